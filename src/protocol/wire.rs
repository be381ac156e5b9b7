//! Messages as bounded lines of JSON.

use std::io::{self, BufRead, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest line, line feed included. The longest honest message is an assignment of about 2 KiB with its paths,
/// or a failure of 8 KiB whose characters may be escaped sixfold.
pub const MAX_LINE: usize = 128 << 10;

/// A line could not be read or written as a message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The line has no end within the limit.
    #[error("a line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// The stream ended inside a line.
    #[error("the stream ended in the middle of a line: `{0}`")]
    Truncated(String),
    /// The line is no message.
    #[error("a line is not a message: `{text}`")]
    Rubbish {
        /// Beginning of the line.
        text: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The message has no form as JSON.
    #[error("a message cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// Reading failed.
    #[error("the stream cannot be read")]
    Io(#[source] io::Error),
}

/// The message as a line, line feed included.
///
/// # Errors
/// [`WireError::TooLong`] if it would not be accepted at the other end.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut line = serde_json::to_vec(message).map_err(WireError::Encode)?;
    line.push(b'\n');
    if line.len() > MAX_LINE { Err(WireError::TooLong) } else { Ok(line) }
}

/// Reads messages, a line each.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads from `reader`.
    pub const fn new(reader: R) -> Self {
        Self { reader, line: Vec::new() }
    }

    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream is not to be read as messages any more after an error.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        self.line.clear();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        (&mut self.reader).take(limit).read_until(b'\n', &mut self.line).map_err(WireError::Io)?;
        match self.line.split_last() {
            None => Ok(None),
            Some((b'\n', text)) => serde_json::from_slice(text)
                .map(Some)
                .map_err(|source| WireError::Rubbish { text: excerpt(text), source }),
            Some(_) if self.line.len() == MAX_LINE => Err(WireError::TooLong),
            Some(_) => Err(WireError::Truncated(excerpt(&self.line))),
        }
    }

    /// The stream, to drain it after an error.
    pub fn into_inner(self) -> R {
        self.reader
    }
}

/// The beginning of a line that is not to be trusted, fit for a terminal.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 80;
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let mut text = String::from_utf8_lossy(shown).escape_debug().to_string();
    if bytes.len() > SHOWN {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;
    use crate::event::{Cause, Failure, Phase};
    use crate::protocol::{End, FromWorker, Place, Pulse, ToWorker};
    use crate::run::{Ending, Outcome, Row, RunId, Timing};

    fn place() -> Place {
        Place { lane: 0, run: RunId::from_bits(7), attempt: 2 }
    }

    fn read(bytes: &[u8]) -> Result<Option<FromWorker>, WireError> {
        Lines::new(BufReader::new(bytes)).read()
    }

    fn row(value: f64) -> Row {
        Row {
            step: 5,
            train_bpb: value,
            val_bpb: 0.1 + 0.2,
            val_acc: 1.0 / 3.0,
            grad_norm: f64::MIN_POSITIVE,
            grad_norms: None,
            lr: 1e-3,
            panel: None,
            timing: Timing { step_sec: 0.0, tok_per_sec: f64::INFINITY, elapsed_sec: 1.5, eta_sec: 2.0 },
        }
    }

    #[test]
    fn numbers_come_back_to_the_last_bit() {
        for value in [1.0 / 3.0, f64::MAX, 5e-324, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let line = encode(&FromWorker::Row { place: place(), row: row(value) }).unwrap();
            let Some(FromWorker::Row { row: back, .. }) = read(&line).unwrap() else { panic!("not a row") };
            if value.is_nan() {
                assert!(back.train_bpb.is_nan());
            } else {
                assert_eq!(back.train_bpb.to_bits(), value.to_bits());
            }
            assert_eq!(back.val_bpb.to_bits(), (0.1_f64 + 0.2).to_bits());
            assert_eq!(back.timing.tok_per_sec, f64::INFINITY);
        }
    }

    #[test]
    fn every_message_comes_back() {
        let outcome = Outcome {
            ending: Ending::Diverged { step: 3, loss: f64::INFINITY },
            steps: 3,
            skipped: 0,
            best_val_bpb: None,
            best_val_acc: None,
            wall_sec: 0.5,
            tok_per_sec: 10.0,
        };
        let pulse = Pulse { place: place(), phase: Phase::Training, step: Some(4), still_ms: 10, usual_ms: None };
        let messages = [
            FromWorker::Checkpointed { place: place(), step: 8 },
            FromWorker::Resumed { place: place(), steps: Some(9), refused: vec!["x is damaged".to_owned()] },
            FromWorker::Beat { pulses: vec![pulse] },
            FromWorker::Ended { place: place(), end: End::Result { outcome: Box::new(outcome) } },
            FromWorker::Ended { place: place(), end: End::Cancelled { step: None } },
            FromWorker::Ended {
                place: place(),
                end: End::Failed { failure: Failure::new(Cause::Bug, "line\nbreak \u{1}") },
            },
        ];
        for message in messages {
            let line = encode(&message).unwrap();
            assert_eq!(line.iter().filter(|&&b| b == b'\n').count(), 1);
            assert_eq!(read(&line).unwrap(), Some(message));
        }
        let line = encode(&ToWorker::Cancel { place: place() }).unwrap();
        let back: Option<ToWorker> = Lines::new(&line[..]).read().unwrap();
        assert_eq!(back, Some(ToWorker::Cancel { place: place() }));
    }

    #[test]
    fn the_longest_failure_fits_a_line() {
        let failure = Failure::new(Cause::Bug, "\u{1}".repeat(1 << 20));
        assert!(encode(&FromWorker::Ended { place: place(), end: End::Failed { failure } }).is_ok());
    }

    #[test]
    fn bad_lines_are_told_apart() {
        assert!(matches!(read(b""), Ok(None)));
        assert!(matches!(read(b"{\"type\":\"beat\""), Err(WireError::Truncated(_))));
        assert!(matches!(read(&vec![b'x'; MAX_LINE + 10]), Err(WireError::TooLong)));
        for rubbish in [
            &b"hello\n"[..],
            b"\n",
            b"null\n",
            b"{\"type\":\"nonsense\"}\n",
            b"{\"type\":\"beat\",\"pulses\":[],\"more\":1}\n",
            b"{\"type\":\"beat\",\"pulses\":[]} {}\n",
            b"\xff\xfe\n",
            b"{\"type\":\"checkpointed\",\"place\":{\"lane\":0,\"run\":\"7\",\"attempt\":1},\"step\":1}\n",
            b"{\"type\":\"checkpointed\",\"place\":{\"lane\":0,\"run\":\"0000000000000007\",\"attempt\":1},\"step\":-1}\n",
        ] {
            assert!(matches!(read(rubbish), Err(WireError::Rubbish { .. })), "{}", excerpt(rubbish));
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_overflow() {
        let mut line = vec![b'['; MAX_LINE - 2];
        line.push(b'\n');
        assert!(matches!(read(&line), Err(WireError::Rubbish { .. })));
    }

    #[test]
    fn what_is_shown_of_a_bad_line_is_short_and_printable() {
        let Err(WireError::Rubbish { text, .. }) = read(&[&b"\x1b[31m"[..], &[b'a'; 500], b"\n"].concat()) else {
            panic!("taken as a message")
        };
        assert!(text.starts_with("\\u{1b}[31maaa") && text.ends_with("a…"), "{text}");
    }
}
