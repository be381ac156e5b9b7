//! A whole step of the optimizer: norm, clipping, SR4 and AdamW, spread over a team.
//!
//! The order within a step: the gradient's norm, clipping; for each ternary tensor the scales' gradient and the move of the
//! accumulators, both with the scales of before the step; AdamW on the scales; AdamW on the continuous tensors.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::backend::cpu::team::Team;
use crate::model::{Class, ModelConfig, ModelParams, ParamId, init_params};
use crate::run::GroupNorms;
use crate::settings::{Decay, Opt, ScaleInit, ScaleLrMode, Settings};

use super::adamw::{AdamW, adamw_chunk};
use super::lr::{ScaleRate, Schedule};
use super::norm::{PIECE, clip_factor, scale_in_place, squares};
use super::sr4::{self, Move, Sr4};

/// Everything that a step changes.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Weights, an arena; SR4's ternary tensors hold what [`Optimizer::refresh`] last made of accumulators and scales.
    pub weights: Vec<f32>,
    /// AdamW's first moments, an arena; zero in SR4's ternary tensors.
    pub m: Vec<f32>,
    /// AdamW's second moments, an arena.
    pub v: Vec<f32>,
    /// Present in SR4's arm.
    pub sr4: Option<Sr4State>,
}

/// What SR4 adds. Accumulators and scales lie as the parameter table's [`crate::model::Ternary`] says.
#[derive(Clone, Debug, PartialEq)]
pub struct Sr4State {
    /// Accumulators.
    pub q: Vec<i8>,
    /// Scales.
    pub scale: Vec<f32>,
    /// AdamW's first moments of the scales.
    pub m: Vec<f32>,
    /// AdamW's second moments of the scales.
    pub v: Vec<f32>,
}

/// What a step tells the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Learning rate of the continuous tensors.
    pub lr: f64,
    /// L2 norm of the gradient over all weights, before clipping. Not finite where some gradient is not.
    pub grad_norm: f64,
    /// The same by groups of tensors.
    pub grad_norms: GroupNorms,
}

/// A run's optimizer: what its settings say, and how the work is cut up.
#[derive(Clone, Debug)]
pub struct Optimizer {
    schedule: Schedule,
    adamw: AdamW,
    grad_clip: f64,
    scales_decay: bool,
    /// Pieces of all tensors, in the table's order: those of the gradient's norm.
    norm_pieces: Vec<Range<usize>>,
    /// The group of each.
    norm_groups: Vec<Group>,
    /// Pieces of what AdamW trains, and whether they decay.
    adamw_pieces: Vec<(Range<usize>, bool)>,
    sr4: Option<Sr4Plan>,
}

/// What SR4's part of a step goes by.
#[derive(Clone, Debug)]
struct Sr4Plan {
    by: Sr4,
    scale_init: ScaleInit,
    scale_lr_mode: ScaleLrMode,
    scale_lr: f64,
    tensors: Vec<Tensor>,
    /// Rows of tensors, together at most about [`PIECE`] weights.
    pieces: Vec<Piece>,
}

/// Where a ternary tensor lies.
#[derive(Clone, Debug)]
struct Tensor {
    rows: usize,
    /// In the arenas of weights and gradients.
    arena: Range<usize>,
    /// In the accumulators.
    q: Range<usize>,
    /// In the scales.
    scale: Range<usize>,
}

/// Whole rows of a ternary tensor.
#[derive(Clone, Debug)]
struct Piece {
    tensor: usize,
    arena: Range<usize>,
    q: Range<usize>,
}

/// Groups of tensors whose gradients' norms are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Embedding,
    Blocks,
    Head,
}

impl Group {
    fn of(params: &ModelParams, id: ParamId) -> Self {
        if id == params.emb {
            Self::Embedding
        } else if [params.ln_out_w, params.ln_out_b, params.head].contains(&id) {
            Self::Head
        } else {
            Self::Blocks
        }
    }
}

fn pieces_of(range: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(len).map(move |start| start..range.end.min(start + len))
}

impl Sr4Plan {
    fn new(settings: &Settings, params: &ModelParams) -> Self {
        let mut tensors = Vec::new();
        let mut pieces = Vec::new();
        for (p, place) in params.ternary() {
            let (arena, cols) = (p.id.range(), p.id.cols());
            let q = place.base..place.base + p.id.len();
            let whole_rows = (PIECE / cols).max(1) * cols;
            pieces.extend(pieces_of(q.clone(), whole_rows).map(|part| Piece {
                tensor: tensors.len(),
                arena: arena.start + part.start - q.start..arena.start + part.end - q.start,
                q: part,
            }));
            tensors.push(Tensor { rows: p.id.rows(), arena, q, scale: place.scale..place.scale + cols });
        }
        Self {
            by: Sr4::from(settings),
            scale_init: settings.scale_init,
            scale_lr_mode: settings.scale_lr_mode,
            scale_lr: settings.scale_lr,
            tensors,
            pieces,
        }
    }
}

impl Optimizer {
    /// The optimizer of a run.
    pub fn new(settings: &Settings, params: &ModelParams) -> Self {
        let mut adamw_runs: Vec<(Range<usize>, bool)> = Vec::new();
        for p in &params.table {
            if settings.opt == Opt::Sr4 && p.class == Class::Ternary {
                continue;
            }
            let decays = settings.decay == Decay::All || p.is_matrix();
            match adamw_runs.last_mut() {
                // The gap between neighbours holds zeros, which AdamW leaves zeros.
                Some((run, same)) if *same == decays && p.id.range().start < run.end + 16 => run.end = p.id.range().end,
                _ => adamw_runs.push((p.id.range(), decays)),
            }
        }
        Self {
            schedule: Schedule::from(settings),
            adamw: AdamW::from(settings),
            grad_clip: settings.grad_clip,
            scales_decay: settings.decay == Decay::All,
            norm_pieces: params.table.iter().flat_map(|p| pieces_of(p.id.range(), PIECE)).collect(),
            norm_groups: params
                .table
                .iter()
                .flat_map(|p| pieces_of(p.id.range(), PIECE).map(|_| Group::of(params, p.id)))
                .collect(),
            adamw_pieces: adamw_runs
                .into_iter()
                .flat_map(|(run, decays)| pieces_of(run, PIECE).map(move |piece| (piece, decays)))
                .collect(),
            sr4: (settings.opt == Opt::Sr4).then(|| Sr4Plan::new(settings, params)),
        }
    }

    /// The state before the first step.
    pub fn start(&self, team: &Team, config: &ModelConfig, params: &ModelParams, seed: u64) -> State {
        let zeros = || vec![0.0; params.arena_len];
        let mut state = State { weights: zeros(), m: zeros(), v: zeros(), sr4: None };
        init_params(config, params, seed, &mut state.weights);
        if let Some(plan) = &self.sr4 {
            let mut q = vec![0; params.ternary_len];
            let mut scale = vec![0.0; params.scale_len];
            for t in &plan.tensors {
                sr4::start(team.level(), &mut q[t.q.clone()], t.q.start as u64, &plan.by);
                scale[t.scale.clone()].fill(sr4::initial_scale(plan.scale_init, t.rows));
            }
            let zeros = || vec![0.0; params.scale_len];
            state.sr4 = Some(Sr4State { q, scale, m: zeros(), v: zeros() });
            self.refresh(team, &mut state);
        }
        state
    }

    /// SR4's constants, in its arm.
    pub fn sr4(&self) -> Option<&Sr4> {
        self.sr4.as_ref().map(|plan| &plan.by)
    }

    /// The learning rates.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Makes the ternary tensors' weights of the accumulators and scales as they are now.
    pub fn refresh(&self, team: &Team, state: &mut State) {
        let (Some(plan), Some(sr4)) = (&self.sr4, &state.sr4) else { return };
        let parts = cut(&mut state.weights, plan.pieces.iter().map(|p| p.arena.clone()));
        share(team, plan.pieces.iter().zip(parts).collect(), |(piece, weights)| {
            let scale = &sr4.scale[plan.tensors[piece.tensor].scale.clone()];
            sr4::weights(team.level(), &sr4.q[piece.q.clone()], scale, plan.by.theta, weights);
        });
    }

    /// Takes the update of a step (from 0) by the gradients, an arena, which clipping may change. The ternary tensors'
    /// weights stay those of the step's forward pass until [`Optimizer::refresh`].
    pub fn apply(&self, team: &Team, state: &mut State, grads: &mut [f32], step: u64) -> StepReport {
        let report = self.measure(team, grads, step);
        if let Some(factor) = clip_factor(report.grad_norm, self.grad_clip) {
            let pieces = cut(grads, self.norm_pieces.iter().cloned());
            share(team, pieces, |g| scale_in_place(team.level(), g, factor));
        }
        if let (Some(plan), Some(sr4)) = (&self.sr4, &mut state.sr4) {
            self.apply_sr4(team, plan, sr4, grads, step);
        }
        let ranges = || self.adamw_pieces.iter().map(|(range, _)| range.clone());
        let [plain, decaying] = [false, true].map(|decays| self.adamw.step(step, report.lr, decays));
        let parts = cut(&mut state.weights, ranges())
            .into_iter()
            .zip(cut(&mut state.m, ranges()))
            .zip(cut(&mut state.v, ranges()))
            .zip(&self.adamw_pieces);
        share(team, parts.collect(), |(((p, m), v), (range, decays))| {
            let by = if *decays { &decaying } else { &plain };
            adamw_chunk(team.level(), p, &grads[range.clone()], m, v, by);
        });
        report
    }

    /// What a step's log tells of its gradients, an arena.
    pub fn measure(&self, team: &Team, grads: &[f32], step: u64) -> StepReport {
        let sums = self.piece_sums(team, grads);
        StepReport { lr: self.schedule.at(step), grad_norm: total(&sums), grad_norms: self.group_norms(&sums) }
    }

    /// L2 norm of the gradient over all weights.
    pub fn norm(&self, team: &Team, grads: &[f32]) -> f64 {
        total(&self.piece_sums(team, grads))
    }

    /// The norms by groups, from the sums of squares of the pieces: those of a group in order.
    ///
    /// # Panics
    /// Not one sum for each piece.
    pub fn group_norms(&self, sums: &[f64]) -> GroupNorms {
        assert_eq!(sums.len(), self.norm_groups.len(), "a sum for each piece");
        let of = |group: Group| {
            let mine = self.norm_groups.iter().zip(sums).filter(|(of, _)| **of == group);
            mine.fold(0.0, |total, (_, sum)| total + sum).sqrt()
        };
        GroupNorms { embedding: of(Group::Embedding), blocks: of(Group::Blocks), head: of(Group::Head) }
    }

    fn piece_sums(&self, team: &Team, grads: &[f32]) -> Vec<f64> {
        /// Pieces a task takes: vectors of channels are pieces of their own, and too small for one.
        const BATCH: usize = 8;
        let mut sums = vec![0.0; self.norm_pieces.len()];
        let tasks = self.norm_pieces.chunks(BATCH).zip(sums.chunks_mut(BATCH)).collect();
        share(team, tasks, |(pieces, sums): (&[Range<usize>], &mut [f64])| {
            for (piece, sum) in pieces.iter().zip(sums) {
                *sum = squares(team.level(), &grads[piece.clone()]);
            }
        });
        sums
    }

    fn apply_sr4(&self, team: &Team, plan: &Sr4Plan, state: &mut Sr4State, grads: &[f32], step: u64) {
        let mut scale_grads = vec![0.0f32; state.scale.len()];
        let mut rates = vec![None; plan.tensors.len()];
        {
            let columns = cut(&mut scale_grads, plan.tensors.iter().map(|t| t.scale.clone()));
            let tasks = plan.tensors.iter().zip(columns).zip(&mut rates).collect();
            share(team, tasks, |((t, out), rate): ((&Tensor, &mut [f32]), &mut Option<f64>)| {
                let mut sums = vec![0.0; out.len()];
                let (grad, q) = (&grads[t.arena.clone()], &state.q[t.q.clone()]);
                let size =
                    sr4::gradients(team.level(), grad, q, &state.scale[t.scale.clone()], plan.by.theta, &mut sums);
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = sum as f32;
                }
                *rate = plan.by.rate(size, grad.len());
            });
        }
        let parts = cut(&mut state.q, plan.pieces.iter().map(|p| p.q.clone()));
        share(team, plan.pieces.iter().zip(parts).collect(), |(piece, q)| {
            let Some(rate) = rates[piece.tensor] else { return };
            let scale = &state.scale[plan.tensors[piece.tensor].scale.clone()];
            let to = Move { rate, step, base: piece.q.start as u64 };
            sr4::accumulate(team.level(), q, &grads[piece.arena.clone()], scale, &to, &plan.by);
        });
        let rate = ScaleRate::new(plan.scale_lr_mode, plan.scale_lr, self.schedule.at(step), self.schedule.lr);
        if plan.scale_lr_mode == ScaleLrMode::Grad {
            scale_in_place(team.level(), &mut scale_grads, rate.factor as f32);
        }
        let by = self.adamw.step(step, rate.lr, self.scales_decay);
        adamw_chunk(team.level(), &mut state.scale, &scale_grads, &mut state.m, &mut state.v, &by);
    }
}

/// The norm of all pieces, in order.
fn total(sums: &[f64]) -> f64 {
    sums.iter().fold(0.0, |total, sum| total + sum).sqrt()
}

/// Cuts disjoint, ascending ranges out of a buffer.
fn cut<T>(mut buffer: &mut [T], ranges: impl Iterator<Item = Range<usize>>) -> Vec<&mut [T]> {
    let mut at = 0;
    ranges
        .map(|range| {
            let (_, rest) = std::mem::take(&mut buffer).split_at_mut(range.start - at);
            let (part, rest) = rest.split_at_mut(range.len());
            (buffer, at) = (rest, range.end);
            part
        })
        .collect()
}

/// Spreads tasks over the team; each is done once, by whichever thread.
fn share<T: Send>(team: &Team, tasks: Vec<T>, work: impl Fn(T) + Sync + Send) {
    let tasks: Vec<_> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    team.each(tasks.len(), |i| {
        let task = tasks[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        work(task.expect("a task is taken once"));
    });
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
