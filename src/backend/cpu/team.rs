//! The threads of a die, and the tiles of rows that they share out.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::buffer::Buffer;
use super::simd::Level;
use crate::arith::sums::COLUMN_CHUNK;

/// Rows of a tile: a multiple of the chunk of column sums, and small enough that a tile's buffers stay in a core's cache.
pub const TILE: usize = 2 * COLUMN_CHUNK;

/// The threads and the instructions that a die computes with.
pub struct Team {
    pool: Option<rayon::ThreadPool>,
    level: Level,
    scratch: Mutex<Vec<Buffer>>,
}

impl Team {
    /// A team of `threads` threads, one of which is the caller's.
    ///
    /// # Errors
    /// The system refuses to start threads.
    pub fn new(threads: usize, level: Level) -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = match threads {
            0 | 1 => None,
            n => Some(rayon::ThreadPoolBuilder::new().num_threads(n).thread_name(|i| format!("team-{i}")).build()?),
        };
        Ok(Self { pool, level, scratch: Mutex::default() })
    }

    /// Its threads.
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// The vector instructions to run with.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Runs `work` on a thread of the team, so that the calls of [`Team::each`] in it cost no hand-over.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `task(i)` for i in 0..n, spread over the threads, and waits for all. Which thread does which never changes a result.
    pub fn each(&self, n: usize, task: impl Fn(usize) + Sync + Send) {
        match &self.pool {
            Some(pool) if n > 1 => pool.install(|| (0..n).into_par_iter().with_max_len(1).for_each(task)),
            _ => (0..n).for_each(task),
        }
    }

    /// Lends `work` a buffer of `len` floats, whose content is unspecified.
    pub fn with_scratch<R>(&self, len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
        let mut buffer = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        buffer.set_len(len);
        let result = work(&mut buffer);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        result
    }
}

/// A buffer cut into disjoint parts, each of which one task takes.
pub struct Parts<'a, T>(Vec<Mutex<Option<&'a mut [T]>>>);

impl<'a, T> Parts<'a, T> {
    /// Parts of `len` elements each (the last may be shorter).
    pub fn new(buffer: &'a mut [T], len: usize) -> Self {
        Self(buffer.chunks_mut(len.max(1)).map(|part| Mutex::new(Some(part))).collect())
    }

    /// Parts that hold the rows of each tile, for rows of `width` elements.
    pub fn tiles(buffer: &'a mut [T], width: usize) -> Self {
        Self::new(buffer, TILE * width)
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Part i.
    ///
    /// # Panics
    /// It was taken before, or does not exist: a task's number stands for its part.
    pub fn take(&self, i: usize) -> &'a mut [T] {
        self.0[i].lock().unwrap_or_else(PoisonError::into_inner).take().expect("a part is taken once")
    }
}
