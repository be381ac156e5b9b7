//! `diesweep run` with real processes: crashes, rubbish, signals, and what is left afterwards.
//!
//! Where a test needs a trainer that misbehaves, a scripted one stands in, which only debug builds have.
#![cfg(debug_assertions)]

mod disk;
mod faults;
mod harness;
mod inspect;
mod lanes;
mod output;
mod resume;
mod shared;
mod signals;
