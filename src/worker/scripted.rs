//! A trainer that follows a script: crashes, hangs, prints rubbish and runs out of memory where the script says, for tests of all
//! that stands around a trainer. Debug builds only, so that no made-up number can reach a real results folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::link::Link;
use super::train::{Moved, Trainer};
use crate::event::{Cause, Failure};
use crate::plan::shape_key;
use crate::protocol::{Assignment, FromWorker, MAX_LINE, Place};
use crate::run::{Best, Ending, Finals, Outcome, Row, Timing};
use crate::settings::{Opt, Settings};
use crate::trainer::{Progress, Snapshot};

/// What a scripted trainer does besides training.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Milliseconds that a step takes.
    pub step_ms: u64,
    /// Attempts that it offers to train at once; 0 stands for 1.
    pub lanes: u32,
    /// Attempts that fit into its memory, which it learns when it prepares for the first; absent: all.
    pub memory: Option<u32>,
    /// Deeds, each done where it fits.
    pub rules: Vec<Rule>,
}

/// A deed and where it is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Part of the attempt's folder; empty: every one.
    #[serde(default)]
    pub folder: String,
    /// Attempt; absent: every one.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Step before which it is done.
    pub step: u64,
    /// Deed.
    pub deed: Deed,
}

/// A deed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Aborts the process.
    Abort,
    /// Leaves the process with a status.
    Exit(i32),
    /// Panics.
    Panic(String),
    /// Trains no step any more; the beat goes on.
    Hang,
    /// Prints a line on standard output, as a careless library does.
    Print(String),
    /// Writes a line on the protocol's pipe.
    Rubbish(String),
    /// Writes a line beyond the limit on the protocol's pipe.
    Oversized,
    /// Writes half a line on the protocol's pipe and leaves.
    Torn,
    /// Sends a row of another attempt.
    WrongAttempt,
    /// Ends as diverged.
    Diverge,
    /// Fails.
    Fail(Cause, String),
}

/// Trains by a script.
pub struct Scripted {
    script: Script,
    link: Arc<Link>,
    lanes: u32,
    hand: BTreeMap<u32, Follower>,
}

impl Scripted {
    /// Follows the JSON script at `path`.
    ///
    /// # Errors
    /// The script cannot be read.
    pub fn load(path: &Path, link: &Arc<Link>) -> Result<Self, Failure> {
        let bad = |error: &dyn std::fmt::Display| {
            Failure::new(Cause::BadSettings, format!("script {} cannot be read: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| bad(&error))?;
        let script: Script = serde_json::from_str(&text).map_err(|error| bad(&error))?;
        Ok(Self { lanes: script.lanes.max(1), script, link: Arc::clone(link), hand: BTreeMap::new() })
    }
}

impl Trainer for Scripted {
    fn backend(&self) -> &str {
        "cpu"
    }

    fn simd(&self) -> &str {
        "scripted"
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn prepare(&mut self, _: &Assignment) -> Result<Option<String>, Failure> {
        let before = self.lanes;
        while self.script.memory.is_some_and(|most| self.lanes > most) && self.lanes > 1 {
            self.lanes /= 2;
        }
        Ok((self.lanes < before).then(|| format!("out of device memory at {before} lanes")))
    }

    fn fits(&self, assignment: &Assignment) -> bool {
        let key = shape_key(&assignment.settings);
        self.lanes > 1 && self.hand.values().all(|other| shape_key(&other.settings) == key)
    }

    fn begin(&mut self, assignment: &Assignment, _: Option<Snapshot>) -> Result<(), Failure> {
        let folder = assignment.folder.to_string_lossy();
        let fits =
            |rule: &&Rule| folder.contains(&rule.folder) && rule.attempt.is_none_or(|n| n == assignment.place.attempt);
        let follower = Follower {
            rules: self.script.rules.iter().filter(fits).cloned().collect(),
            link: Arc::clone(&self.link),
            place: assignment.place,
            settings: assignment.settings.clone(),
            began: Instant::now(),
            step: 0,
            best: None,
            diverged: false,
        };
        self.hand.insert(assignment.place.lane, follower);
        Ok(())
    }

    fn advance(&mut self) -> Result<Moved, Failure> {
        let moved: Moved = self.hand.iter_mut().map(|(&lane, follower)| (lane, follower.advance())).collect();
        for (lane, progress) in &moved {
            if matches!(progress, Err(_) | Ok(Progress::Ended(_))) {
                self.hand.remove(lane);
            }
        }
        std::thread::sleep(Duration::from_millis(self.script.step_ms));
        Ok(moved)
    }

    fn saves(&self) -> bool {
        false
    }

    fn snapshot(&mut self, _: u32) -> Result<Option<Snapshot>, Failure> {
        Ok(None)
    }

    fn weights(&mut self, _: u32) -> Result<Vec<f32>, Failure> {
        Ok(Vec::new())
    }

    fn empty(&mut self, lane: u32) -> Result<(), Failure> {
        self.hand.remove(&lane);
        Ok(())
    }

    fn work(&self, _: u32, _: u64) -> f64 {
        1.0
    }
}

struct Follower {
    rules: Vec<Rule>,
    link: Arc<Link>,
    place: Place,
    settings: Settings,
    began: Instant,
    step: u64,
    best: Option<Best>,
    diverged: bool,
}

impl Follower {
    fn advance(&mut self) -> Result<Progress, Failure> {
        for rule in std::mem::take(&mut self.rules) {
            if rule.step == self.step {
                self.obey(&rule.deed)?;
            } else {
                self.rules.push(rule);
            }
        }
        if self.diverged || self.step == self.settings.steps {
            return Ok(Progress::Ended(Box::new(self.outcome())));
        }
        let step = self.step;
        self.step += 1;
        let logged = step.is_multiple_of(self.settings.eval_every) || self.step == self.settings.steps;
        Ok(if logged { Progress::Logged(self.row(step)) } else { Progress::Stepped { step } })
    }

    fn obey(&mut self, deed: &Deed) -> Result<(), Failure> {
        match deed {
            Deed::Abort => std::process::abort(),
            Deed::Exit(status) => std::process::exit(*status),
            Deed::Panic(text) => panic!("{text}"),
            Deed::Hang => loop {
                std::thread::park();
            },
            Deed::Print(text) => println!("{text}"),
            Deed::Rubbish(text) => self.link.put(format!("{text}\n").as_bytes()),
            Deed::Oversized => self.link.put(&[vec![b'x'; 2 * MAX_LINE], b"\n".to_vec()].concat()),
            Deed::Torn => {
                self.link.put(b"{\"type\":\"be");
                std::process::exit(0);
            }
            Deed::WrongAttempt => {
                let place = Place { attempt: self.place.attempt + 1, ..self.place };
                let row = self.row(self.step);
                self.link.tell(&FromWorker::Row { place, row });
            }
            Deed::Diverge => self.diverged = true,
            Deed::Fail(cause, text) => return Err(Failure::new(*cause, text.clone())),
        }
        Ok(())
    }

    /// A curve that depends on the settings alone.
    #[expect(clippy::cast_precision_loss, reason = "made-up numbers")]
    fn bpb(&self, step: u64) -> f64 {
        let arm = if self.settings.opt == Opt::Sr4 { 0.2 } else { 0.0 };
        let noise = (self.settings.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1u64 << 24) as f64;
        2.0 + arm + 0.1 * noise + 6.0 / (1.0 + step as f64)
    }

    fn row(&mut self, step: u64) -> Row {
        let value = self.bpb(step);
        if self.best.is_none_or(|best| value < best.value) {
            self.best = Some(Best { value, step });
        }
        let elapsed_sec = self.began.elapsed().as_secs_f64();
        Row {
            step,
            train_bpb: value,
            val_bpb: value,
            val_acc: 1.0 / value,
            grad_norm: 1.0,
            grad_norms: None,
            lr: self.settings.lr,
            panel: None,
            timing: Timing { step_sec: 0.0, tok_per_sec: self.speed(), elapsed_sec, eta_sec: 0.0 },
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "made-up numbers")]
    fn speed(&self) -> f64 {
        (self.step * (self.settings.batch * self.settings.seq_len) as u64) as f64
            / self.began.elapsed().as_secs_f64().max(1e-9)
    }

    fn outcome(&self) -> Outcome {
        let value = self.bpb(self.step);
        let ending = if self.diverged {
            Ending::Diverged { step: self.step, loss: f64::INFINITY }
        } else {
            let test = Some(value + 0.05);
            Ending::Finished(Finals {
                train_bpb: value,
                val_bpb: value,
                val_acc: 1.0 / value,
                test_bpb: test,
                test_acc: test.map(|test| 1.0 / test),
            })
        };
        Outcome {
            ending,
            steps: self.step,
            skipped: 0,
            best_val_bpb: self.best,
            best_val_acc: self.best.map(|best| Best { value: 1.0 / best.value, ..best }),
            wall_sec: self.began.elapsed().as_secs_f64(),
            tok_per_sec: self.speed(),
        }
    }
}
