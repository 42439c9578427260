//! Threads that verify passwords, so that no worker waits for one.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// Most logins that wait to be verified. With bcrypt of cost 12 they take eight seconds on two
/// threads; a client that waits longer would give up.
const QUEUE_MAX: usize = 64;
/// Threads. Verifying is all that they do, and the workers need the cores.
const THREADS: usize = 2;

/// What a thread is to do.
type Job = Box<dyn FnOnce() + Send>;

/// The queue of the threads, which begin with the first login and end with the configuration that
/// they are of.
#[derive(Default)]
pub(super) struct Verifier(OnceLock<Option<SyncSender<Job>>>);

impl Verifier {
    /// Puts `job` into the queue; `false` if it is full.
    pub(super) fn queue(&self, job: Job) -> bool {
        let queue = self.0.get_or_init(start);
        queue
            .as_ref()
            .is_some_and(|queue| queue.try_send(job).is_ok())
    }
}

/// `None` if no thread can be had.
fn start() -> Option<SyncSender<Job>> {
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let started = (0..THREADS).filter(|_| {
        let receiver = Arc::clone(&receiver);
        let thread = thread::Builder::new().name("logins".into());
        thread.spawn(move || work(&receiver)).is_ok()
    });
    (started.count() > 0).then_some(sender)
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job();
    }
}
