//! The line to the harness: a question, `<process> <point>`, and an answer, a line of text each.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::point::Point;

/// Environment variable with the path of the harness's socket. Not for users.
pub const VARIABLE: &str = "DIESWEEP_FAULTS";

/// What shall happen at a point. Killing and stopping is the harness's own to do, before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: go on.
    Go,
    /// The call fails as on a full disk; a write gets half-way before.
    Full,
    /// A write gets half-way; the harness is asked again before the other half.
    Half,
    /// A worker's line is garbage.
    Garbage,
    /// The wall clock jumps by so many seconds.
    Jump(i64),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Go => f.write_str("go"),
            Self::Full => f.write_str("full"),
            Self::Half => f.write_str("half"),
            Self::Garbage => f.write_str("garbage"),
            Self::Jump(seconds) => write!(f, "jump {seconds}"),
        }
    }
}

impl FromStr for Answer {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "go" => Ok(Self::Go),
            "full" => Ok(Self::Full),
            "half" => Ok(Self::Half),
            "garbage" => Ok(Self::Garbage),
            _ => text.strip_prefix("jump ").and_then(|n| n.parse().ok()).map(Self::Jump).ok_or(()),
        }
    }
}

type Line = Mutex<BufReader<UnixStream>>;

/// The line of this process; none but under a harness.
fn line() -> Option<&'static Line> {
    static LINE: OnceLock<Option<Line>> = OnceLock::new();
    let connect = || {
        let path = std::env::var_os(VARIABLE)?;
        // Without its harness the program is as it is without faults.
        UnixStream::connect(path).ok().map(|stream| Mutex::new(BufReader::new(stream)))
    };
    LINE.get_or_init(connect).as_ref()
}

/// Whether there is a harness to ask.
#[inline]
pub(super) fn is_there() -> bool {
    #[cfg(test)]
    if test::is_there() {
        return true;
    }
    line().is_some()
}

/// Asks what shall happen at a point.
pub(super) fn ask(point: Point) -> Answer {
    #[cfg(test)]
    if let Some(answer) = test::ask(point) {
        return answer;
    }
    let Some(line) = line() else { return Answer::Go };
    let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    let question = format!("{} {point}\n", std::process::id());
    let asked = line.get_mut().write_all(question.as_bytes()).and_then(|()| line.read_line(&mut text));
    // A harness that is gone, or speaks in riddles, has no say.
    asked.ok().and_then(|_| text.trim_end().parse().ok()).unwrap_or(Answer::Go)
}

#[cfg(test)]
pub(crate) use test::answering;

#[cfg(test)]
mod test {
    use std::cell::RefCell;

    use super::{Answer, Point};

    type Answers<'a> = Box<dyn FnMut(Point) -> Answer + 'a>;

    thread_local! {
        static ANSWERS: RefCell<Option<Answers<'static>>> = const { RefCell::new(None) };
    }

    /// Has `answers` asked in place of a harness at the points that `body` passes on this thread.
    pub(crate) fn answering<T>(answers: impl FnMut(Point) -> Answer + 'static, body: impl FnOnce() -> T) -> T {
        ANSWERS.set(Some(Box::new(answers)));
        let result = body();
        ANSWERS.set(None);
        result
    }

    pub(super) fn is_there() -> bool {
        ANSWERS.with_borrow(Option::is_some)
    }

    pub(super) fn ask(point: Point) -> Option<Answer> {
        ANSWERS.with_borrow_mut(|answers| answers.as_mut().map(|answers| answers(point)))
    }

    #[test]
    fn answers_read_back() {
        for answer in [Answer::Go, Answer::Full, Answer::Half, Answer::Garbage, Answer::Jump(-86_400)] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        assert_eq!("".parse::<Answer>(), Err(()));
    }
}
