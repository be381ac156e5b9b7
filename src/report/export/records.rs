//! TFRecord, the framing of event files: <https://www.tensorflow.org/tutorials/load_data/tfrecord>.

/// What is added to a checksum after it is turned, so that a checksum of data that holds checksums stays a good one.
const MASK: u32 = 0xa282_ead8;

/// Appends a record: its length, the length's checksum, the bytes, and their checksum.
pub(super) fn push_record(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = (bytes.len() as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(&masked(bytes).to_le_bytes());
}

/// CRC-32C, turned right by 15 bits, plus a constant.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(MASK)
}

/// Reads records back; `None` where a checksum or a length does not fit.
#[cfg(test)]
pub(super) fn read_records(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let n = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (data, rest) = rest.split_at_checked(n)?;
        let (data_check, rest) = rest.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*check) != masked(length) || u32::from_le_bytes(*data_check) != masked(data) {
            return None;
        }
        records.push(data.to_vec());
        bytes = rest;
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_as_tensorflow_writes_them() {
        // CRC-32C of "123456789" is 0xe3069283 (RFC 3720, B.4 has others).
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn records_read_back_and_a_changed_byte_is_seen() {
        let mut file = Vec::new();
        push_record(&mut file, b"");
        push_record(&mut file, b"brain.Event:2");
        assert_eq!(read_records(&file), Some(vec![Vec::new(), b"brain.Event:2".to_vec()]));
        for i in 0..file.len() {
            let mut broken = file.clone();
            broken[i] ^= 1;
            assert_eq!(read_records(&broken), None, "byte {i}");
        }
    }
}
