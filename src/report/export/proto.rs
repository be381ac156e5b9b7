//! Protocol buffers, as far as event files need them: <https://protobuf.dev/programming-guides/encoding/>.

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

impl Message {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A whole number.
    pub(super) fn int(mut self, field: u64, x: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(x);
        self
    }

    /// A double.
    pub(super) fn double(mut self, field: u64, x: f64) -> Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&x.to_le_bytes());
        self
    }

    /// A float.
    pub(super) fn float(mut self, field: u64, x: f32) -> Self {
        self.varint(field << 3 | FIXED32);
        self.0.extend_from_slice(&x.to_le_bytes());
        self
    }

    /// Text or bytes.
    pub(super) fn text(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    /// A message within.
    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.text(field, message.bytes())
    }

    fn varint(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(Message::default().int(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").bytes(), b"\x12\x07testing");
        let inner = Message::default().int(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().float(1, 1.0).bytes(), [0x0d, 0, 0, 0x80, 0x3f]);
        assert_eq!(Message::default().double(1, 1.0).bytes(), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(Message::default().int(1, u64::MAX).bytes().len(), 11);
    }
}
