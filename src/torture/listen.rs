//! What comes from the processes of a call: questions at points, events, and ends.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};
use serde_json::Value;

use crate::fault::{Answer, Point};

/// Something that a process of a call did.
pub(super) enum News {
    /// A process is at a point, and waits.
    Asked { pid: u32, point: Point, reply: Sender<Answer> },
    /// A controller told of an event.
    Told { controller: usize, event: Value },
    /// A controller wrote a line that is no event.
    Riddle { controller: usize, line: String },
    /// A controller's output ended.
    Closed { controller: usize },
}

/// Listens at a socket until it is dropped.
pub(super) struct Listener {
    pub(super) path: PathBuf,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start(path: &Path, news: Sender<News>) -> std::io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let accept = move || {
            for stream in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                let news = news.clone();
                if let Ok(stream) = stream {
                    // A connection ends with its process.
                    std::thread::spawn(move || answer(stream, &news));
                }
            }
        };
        let thread = std::thread::Builder::new().name("points".to_owned()).spawn(accept)?;
        Ok(Self { path: path.to_owned(), closing, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Passes a process's questions on and gives it the answers.
fn answer(mut stream: UnixStream, news: &Sender<News>) {
    let Ok(reader) = stream.try_clone() else { return };
    for line in BufReader::new(reader).lines() {
        let Ok(line) = line else { return };
        let question =
            line.split_once(' ').and_then(|(pid, point)| Some((pid.parse().ok()?, point.parse::<Point>().ok()?)));
        let mut answer = Answer::Go;
        if let Some((pid, point)) = question {
            let (reply, replies) = bounded(1);
            if news.send(News::Asked { pid, point, reply }).is_ok() {
                answer = replies.recv().unwrap_or(Answer::Go);
            }
        }
        if writeln!(stream, "{answer}").is_err() {
            return;
        }
    }
}

/// Passes a controller's events on, to the end of its output.
pub(super) fn read_events(output: impl std::io::Read, controller: usize, news: &Sender<News>) {
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    // A last line without its end is a killed controller's.
    while lines.read_until(b'\n', &mut line).is_ok_and(|_| line.ends_with(b"\n")) {
        let told = match serde_json::from_slice(&line) {
            Ok(event) => News::Told { controller, event },
            Err(_) => News::Riddle { controller, line: String::from_utf8_lossy(&line).into_owned() },
        };
        if news.send(told).is_err() {
            return;
        }
        line.clear();
    }
    let _ = news.send(News::Closed { controller });
}
