//! A worker: one process, pinned to one die, that trains the attempts its controller assigns.
//!
//! It trains as many attempts at once as its trainer has lanes, and goes from run to run with its corpora open. It never outlives its
//! controller: the kernel kills it when the controller's thread that started it ends, and it leaves by itself at the end of its input, or
//! when it has not heard of its controller for too long: by then another one may take its runs over.

mod attempt;
mod bind;
mod corpora;
mod cpu;
mod cuda;
mod heart;
mod link;
mod saving;
#[cfg(debug_assertions)]
mod scripted;
mod train;
mod vigil;
mod work;

use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;

pub use bind::{BindError, cores_allowed};
pub use cpu::CpuTrainer;
pub use cuda::CudaTrainer;
pub use link::Link;
#[cfg(debug_assertions)]
pub use scripted::Scripted;
pub use train::{Moved, Trainer};

use crate::event::{Cause, Failure};
use crate::protocol::{DIE_LOST, FromWorker, Hello, Lines, ORPHANED, ToWorker, VERSION, WireError};
use heart::Heart;
use vigil::Vigil;
use work::Work;

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its die.
    pub die: usize,
    /// Cores to pin itself to; all must be in the inherited mask.
    pub cores: Vec<usize>,
    /// Process that must be its parent.
    pub parent: u32,
    /// Longest silence of the controller.
    pub patience: Duration,
}

/// A worker cannot work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It could not tie itself to its parent and its cores.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The signals that stop a sweep cannot be taken.
    #[error("signals cannot be taken")]
    Signals(#[source] std::io::Error),
    /// Its standard descriptors could not be taken over.
    #[error("the standard descriptors cannot be taken over")]
    Descriptors(#[source] std::io::Error),
    /// The controller sent what is no message.
    #[error("the controller broke the protocol")]
    Wire(#[from] WireError),
    /// The controller sent a message that makes no sense now.
    #[error("the controller broke the protocol: {0}")]
    Nonsense(&'static str),
    /// The controller was not heard of for too long. What was in hand is saved.
    #[error("the controller was not heard of for too long")]
    Alone,
    /// A thread could not be started.
    #[error("a thread cannot be started")]
    Thread(#[source] std::io::Error),
    /// The trainer could not be made, or can train nothing any more.
    #[error(transparent)]
    Trainer(Failure),
}

impl WorkerError {
    /// Exit status that tells the controller what kind of end it was.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Trainer(failure) if failure.cause == Cause::DeviceLost => DIE_LOST,
            Self::Alone => ORPHANED,
            _ => 1,
        }
    }
}

/// Serves a controller until it says `shutdown`. `make` builds the trainer once the descriptors are safe
/// from libraries that print, and the process is pinned.
///
/// # Errors
/// The worker cannot work; its controller learns it from the exit status and standard error.
pub fn serve<T: Trainer>(
    options: &Options,
    make: impl FnOnce(&Arc<Link>) -> Result<T, Failure>,
) -> Result<(), WorkerError> {
    bind::to_parent(options.parent)?;
    leave_signals_to_the_controller().map_err(WorkerError::Signals)?;
    let vigil = Arc::new(Vigil::new(options.patience));
    let (link, input, errors) = link::take_over(Arc::clone(&vigil)).map_err(WorkerError::Descriptors)?;
    let link = Arc::new(link);
    let cores = bind::to_cores(&options.cores)?;
    let trainer = make(&link).map_err(WorkerError::Trainer)?;
    link.tell(&FromWorker::Hello {
        hello: Hello {
            version: VERSION,
            pid: std::process::id(),
            die: options.die,
            cores,
            backend: trainer.backend().to_owned(),
            simd: trainer.simd().to_owned(),
            lanes: trainer.lanes(),
            device: trainer.device(),
        },
    });
    let heart = Arc::new(Heart::default());
    heart::start(Arc::clone(&heart), Arc::clone(&link)).map_err(WorkerError::Thread)?;
    vigil::start(Arc::clone(&vigil), Arc::clone(&heart)).map_err(WorkerError::Thread)?;
    let (orders, inbox) = crossbeam_channel::unbounded();
    let listener = Arc::clone(&vigil);
    std::thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || read(input, &orders, &listener))
        .map_err(WorkerError::Thread)?;
    Work::new(&link, &heart, &errors, &vigil, &inbox, trainer).run()
}

/// What stops a sweep is often sent to all of its processes, by Slurm or a service manager. It is the controller's to act
/// on: it has the runs saved, and workers leave when it says so or is gone.
fn leave_signals_to_the_controller() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// An order, or what came in its place.
type Order = Result<ToWorker, WireError>;

/// Passes the controller's messages on. At the end of input the controller is gone, and so is the use of this
/// process: it ends here and now, in whatever its other threads are.
fn read(input: std::fs::File, orders: &Sender<Order>, vigil: &Vigil) {
    let mut lines = Lines::new(BufReader::new(input));
    loop {
        match lines.read::<ToWorker>() {
            Ok(Some(ToWorker::Beat)) => vigil.hear(),
            Ok(Some(order)) => {
                vigil.hear();
                // The main thread takes orders as long as the process lives.
                let _ = orders.send(Ok(order));
            }
            Ok(None) => std::process::exit(ORPHANED.into()),
            Err(error) => {
                // The main thread ends the process, with the error on standard error.
                let _ = orders.send(Err(error));
                return;
            }
        }
    }
}
