//! A run's arrays by name.
//!
//! | array | of | shape |
//! |---|---|---|
//! | `<name>` | every tensor: its weights | the tensor's |
//! | `<name>.m`, `<name>.v` | every tensor that AdamW trains: its moments | the tensor's |
//! | `<name>.q` | every tensor that SR4 trains: its accumulators | the tensor's |
//! | `<name>.scale`, `<name>.scale_m`, `<name>.scale_v` | the same: its scales and their moments | `[columns]` |
//! | `<name>.previous` | the same, after the first logged step: the ternary values of the last one | the tensor's |
//!
//! The weights of SR4's tensors could be made from accumulators and scales, but for runs that evaluate stale ones.

use std::ops::Range;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::file::{Array, Values};
use crate::model::ModelParams;
use crate::optim::{PanelState, Sr4State, State};
use crate::trainer::{Progressed, Snapshot};

/// An arena of a run's state.
#[derive(Clone, Copy)]
enum Arena {
    Weights,
    M,
    V,
    Q,
    Scale,
    ScaleM,
    ScaleV,
    Previous,
}

/// An array of a file, and where it lies.
struct Slot {
    name: String,
    shape: Vec<usize>,
    arena: Arena,
    range: Range<usize>,
}

/// An arena's values, to be written.
enum ValuesMut<'a> {
    F32(&'a mut [f32]),
    I8(&'a mut [i8]),
}

/// Every array of a run: of SR4's arm or AdamW's, with or without the ternary values of a logged step.
fn slots(params: &ModelParams, sr4: bool, previous: bool) -> Vec<Slot> {
    let mut slots = Vec::new();
    for p in &params.table {
        let mut push = |suffix: &str, shape: &[usize], arena, range: Range<usize>| {
            slots.push(Slot { name: format!("{}{suffix}", p.name), shape: shape.to_vec(), arena, range });
        };
        push("", &p.shape, Arena::Weights, p.id.range());
        let Some(place) = p.ternary.filter(|_| sr4) else {
            push(".m", &p.shape, Arena::M, p.id.range());
            push(".v", &p.shape, Arena::V, p.id.range());
            continue;
        };
        let q = place.base..place.base + p.id.len();
        let scale = place.scale..place.scale + p.id.cols();
        let cols = [p.id.cols()];
        push(".scale", &cols, Arena::Scale, scale.clone());
        push(".scale_m", &cols, Arena::ScaleM, scale.clone());
        push(".scale_v", &cols, Arena::ScaleV, scale);
        if previous {
            push(".previous", &p.shape, Arena::Previous, q.clone());
        }
        push(".q", &p.shape, Arena::Q, q);
    }
    slots
}

impl Arena {
    /// Its values; none of an arm that does not have them.
    fn of(self, snapshot: &Snapshot) -> Option<Values<'_>> {
        let (state, sr4) = (&snapshot.state, snapshot.state.sr4.as_ref());
        Some(match self {
            Self::Weights => Values::F32(&state.weights),
            Self::M => Values::F32(&state.m),
            Self::V => Values::F32(&state.v),
            Self::Q => Values::I8(&sr4?.q),
            Self::Scale => Values::F32(&sr4?.scale),
            Self::ScaleM => Values::F32(&sr4?.m),
            Self::ScaleV => Values::F32(&sr4?.v),
            Self::Previous => Values::I8(snapshot.panel.previous.as_ref()?),
        })
    }

    fn of_mut(self, snapshot: &mut Snapshot) -> Option<ValuesMut<'_>> {
        let (state, panel) = (&mut snapshot.state, &mut snapshot.panel);
        Some(match self {
            Self::Weights => ValuesMut::F32(&mut state.weights),
            Self::M => ValuesMut::F32(&mut state.m),
            Self::V => ValuesMut::F32(&mut state.v),
            Self::Q => ValuesMut::I8(&mut state.sr4.as_mut()?.q),
            Self::Scale => ValuesMut::F32(&mut state.sr4.as_mut()?.scale),
            Self::ScaleM => ValuesMut::F32(&mut state.sr4.as_mut()?.m),
            Self::ScaleV => ValuesMut::F32(&mut state.sr4.as_mut()?.v),
            Self::Previous => ValuesMut::I8(panel.previous.as_mut()?),
        })
    }
}

/// The arrays of a run.
pub(super) fn arrays<'a>(params: &ModelParams, snapshot: &'a Snapshot) -> Vec<(String, Array<'a>)> {
    let slots = slots(params, snapshot.state.sr4.is_some(), snapshot.panel.previous.is_some());
    let array = |slot: Slot| {
        let values = match slot.arena.of(snapshot)? {
            Values::F32(all) => Values::F32(&all[slot.range]),
            Values::I8(all) => Values::I8(&all[slot.range]),
        };
        Some((slot.name, Array { shape: slot.shape, values }))
    };
    slots.into_iter().filter_map(array).collect()
}

/// The weights alone.
pub(super) fn weights<'a>(params: &ModelParams, weights: &'a [f32]) -> Vec<(String, Array<'a>)> {
    let array = |p: &crate::model::Param| {
        (p.name.clone(), Array { shape: p.shape.clone(), values: Values::F32(p.id.of(weights)) })
    };
    params.table.iter().map(array).collect()
}

/// The weights among these arrays; the error says which array is not as it must be.
pub(super) fn read_weights(params: &ModelParams, arrays: &SafeTensors<'_>) -> Result<Vec<f32>, String> {
    let mut weights = vec![0.0; params.arena_len];
    for p in &params.table {
        let array = arrays.tensor(&p.name).map_err(|_| format!("it has no array `{}`", p.name))?;
        copy(&p.name, &p.shape, &array, ValuesMut::F32(p.id.of_mut(&mut weights)))?;
    }
    Ok(weights)
}

/// The run whose arrays these are; the error says which array is not as it must be.
pub(super) fn snapshot(
    params: &ModelParams,
    sr4: bool,
    progress: Progressed,
    arrays: &SafeTensors<'_>,
) -> Result<Snapshot, String> {
    let previous = params.ternary().next().is_some_and(|(p, _)| arrays.tensor(&format!("{}.previous", p.name)).is_ok());
    let zeros = || vec![0.0; params.arena_len];
    let scales = || vec![0.0; params.scale_len];
    let sr4_state = || Sr4State { q: vec![0; params.ternary_len], scale: scales(), m: scales(), v: scales() };
    let mut snapshot = Snapshot {
        progress,
        state: State { weights: zeros(), m: zeros(), v: zeros(), sr4: sr4.then(sr4_state) },
        panel: PanelState { previous: previous.then(|| vec![0; params.ternary_len]) },
    };
    let slots = slots(params, sr4, previous);
    if arrays.len() != slots.len() {
        return Err(format!("it has {} arrays, where the run has {}", arrays.len(), slots.len()));
    }
    for slot in slots {
        fill(&slot, &mut snapshot, arrays)?;
    }
    Ok(snapshot)
}

fn fill(slot: &Slot, snapshot: &mut Snapshot, arrays: &SafeTensors<'_>) -> Result<(), String> {
    let name = &slot.name;
    let array = arrays.tensor(name).map_err(|_| format!("it has no array `{name}`"))?;
    let to = match slot.arena.of_mut(snapshot) {
        Some(ValuesMut::F32(all)) => ValuesMut::F32(&mut all[slot.range.clone()]),
        Some(ValuesMut::I8(all)) => ValuesMut::I8(&mut all[slot.range.clone()]),
        None => return Err(format!("its array `{name}` is not one of this arm")),
    };
    copy(name, &slot.shape, &array, to)
}

/// Copies an array of a shape.
fn copy(name: &str, shape: &[usize], array: &TensorView<'_>, to: ValuesMut<'_>) -> Result<(), String> {
    if array.shape() != shape {
        return Err(format!("its array `{name}` has shape {:?}, not {shape:?}", array.shape()));
    }
    match (to, array.dtype()) {
        (ValuesMut::F32(to), Dtype::F32) => {
            for (x, bytes) in to.iter_mut().zip(array.data().as_chunks().0) {
                *x = f32::from_le_bytes(*bytes);
            }
        }
        (ValuesMut::I8(to), Dtype::I8) => {
            for (x, byte) in to.iter_mut().zip(array.data()) {
                *x = byte.cast_signed();
            }
        }
        (_, dtype) => return Err(format!("its array `{name}` has type {dtype:?}")),
    }
    Ok(())
}
