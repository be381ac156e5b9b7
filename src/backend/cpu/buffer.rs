//! Buffers that begin at a cache line, so that whole registers are read and written within lines.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest register.
const LINE: usize = 64;

/// Floats in memory, of a fixed number, beginning at a cache line.
#[derive(Debug, Default)]
pub struct Buffer {
    data: Vec<f32>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let data = vec![0.0; len + LINE / size_of::<f32>() - 1];
        // The vector never grows, so that its address stays.
        let start = data.as_ptr().align_offset(LINE).min(data.len() - len);
        Self { data, start, len }
    }

    /// Takes the length `len`; what was in it is lost where that is more than ever before.
    pub fn set_len(&mut self, len: usize) {
        if self.start + len > self.data.len() {
            *self = Self::zeros(len);
        }
        self.len = len;
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_a_line_and_keep_their_values() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let mut buffer = Buffer::zeros(len);
            buffer.fill(1.5);
            let copy = buffer.clone();
            assert_eq!((buffer.len(), copy.len()), (len, len));
            assert_eq!(copy.as_ptr() as usize % LINE, 0);
            assert!(copy.iter().all(|&x| x == 1.5));
            buffer.set_len(2000);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % LINE), (2000, 0));
        }
    }
}
