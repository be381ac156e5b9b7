//! A lane's run between two steps: copied to the host, and put in a lane again, of whatever die or backend it came from.

use super::{Lanes, LanesError};
use crate::backend::cuda::die::DieError;
use crate::optim::{PanelState, Sr4State, State};
use crate::settings::{Opt, Settings};
use crate::trainer::Snapshot;

impl Lanes {
    /// Puts a run in a lane as it was when the snapshot was taken, here or on another backend.
    ///
    /// # Errors
    /// The run is of another shape, or the die's error.
    ///
    /// # Panics
    /// There is no such lane, or the snapshot's arrays are not of the run's lengths.
    pub fn resume(&mut self, lane: usize, settings: &Settings, snapshot: &Snapshot) -> Result<(), LanesError> {
        let mut run = self.run(settings)?;
        run.go_on_from(snapshot);
        if let Some(previous) = &snapshot.panel.previous {
            self.control.previous.upload(lane * self.engine.params().ternary_len, previous)?;
        }
        self.place(lane, run, &snapshot.state)
    }

    /// Copies everything that the future of a lane's run depends on; none of an empty lane. The other lanes rest meanwhile.
    ///
    /// # Errors
    /// The die's.
    pub fn snapshot(&self, lane: usize) -> Result<Option<Snapshot>, DieError> {
        let Some(run) = &self.runs[lane] else { return Ok(None) };
        let (state, length) = (self.state(lane)?, self.engine.params().ternary_len);
        let previous = match run.has_measured() {
            true => Some(self.control.previous.download(lane * length, length)?),
            false => None,
        };
        Ok(Some(Snapshot { progress: run.progress(), state, panel: PanelState { previous } }))
    }

    /// Copies a run's state into a lane.
    pub(super) fn upload(&self, lane: usize, state: &State) -> Result<(), DieError> {
        let params = self.engine.params();
        let (o, arena) = (&self.optimizer, lane * params.arena_len);
        // Moments of the scales stay from the lane's last run where this one has none.
        self.control.clear(&self.die, o, lane)?;
        self.engine.arenas().weights.upload(arena, &state.weights)?;
        o.m.upload(arena, &state.m)?;
        o.v.upload(arena, &state.v)?;
        if let Some(Sr4State { q, scale, m, v }) = &state.sr4 {
            let scales = lane * params.scale_len;
            o.q.upload(lane * params.ternary_len, q)?;
            o.scale.upload(scales, scale)?;
            o.scale_m.upload(scales, m)?;
            o.scale_v.upload(scales, v)?;
        }
        Ok(())
    }

    /// A lane's weights, moments, accumulators and scales, as the CPU backend holds them: SR4's weights are those of its accumulators.
    ///
    /// # Errors
    /// The die's.
    pub fn state(&self, lane: usize) -> Result<State, DieError> {
        let params = self.engine.params();
        let (o, arena, scales) = (&self.optimizer, params.arena_len, params.scale_len);
        o.refresh(&*self.die, &self.engine, &self.control.only(lane)?)?;
        let sr4 = self.runs[lane].as_ref().is_some_and(|run| run.settings.opt == Opt::Sr4);
        Ok(State {
            weights: self.engine.arenas().weights.download(lane * arena, arena)?,
            m: o.m.download(lane * arena, arena)?,
            v: o.v.download(lane * arena, arena)?,
            sr4: if sr4 {
                Some(Sr4State {
                    q: o.q.download(lane * params.ternary_len, params.ternary_len)?,
                    scale: o.scale.download(lane * scales, scales)?,
                    m: o.scale_m.download(lane * scales, scales)?,
                    v: o.scale_v.download(lane * scales, scales)?,
                })
            } else {
                None
            },
        })
    }
}
