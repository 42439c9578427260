//! Requests as a recorder gets them: `weir serve --record`.
//!
//! A worker hands a [`Finished`] over for each request that has ended, and never waits: the queue
//! is bounded in requests and in bytes, and what finds no room is dropped and counted. A thread of
//! its own, of lower priority than the workers, takes them out and gives them to a [`Recorder`],
//! which may be as slow as it likes. This module has nothing to do with files, or with hiding
//! names.
//!
//! Without a recorder a request costs one more comparison.
//!
//! Only requests of clients are recorded: not those in the background, not connections opened
//! ahead, not requests to the admin interface.

mod content_times;
mod details;
mod finished;
mod row;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use content_times::ContentTimes;
pub(crate) use details::RecordDetails;
pub use finished::{End, Finished, NextHop, PhaseTimes};
pub use tally::Tally;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use weir_measure::Unrecorded;

/// Requests that may wait for the recorder. Their places take about 5 MB, whether they are used or
/// not.
pub const QUEUE_MAX: usize = 16 * 1024;

/// Bytes of heads that may wait for it.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Bytes of the two heads of one request: twice what is taken of one by default. Half a head would
/// say that fields are not there which are.
pub const HEADS_BYTES_MAX: usize = 128 << 10;

/// How long the first of a batch waits for others: each time the thread is woken costs a worker a
/// system call.
const COLLECT: Duration = Duration::from_millis(5);

/// Requests that are taken before time is looked at.
const BATCH_MAX: usize = 1024;

/// How often time is looked at when nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// How long an end waits for the recorder to write the rest: a disk that hangs must not hold up the
/// end for ever.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// How much the recorder steps back behind the workers where both want the processor (`nice`, of
/// 19).
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Writes down what happened. It lives on a thread of its own.
pub trait Recorder: Send {
    /// A request has ended. They come in the order in which they ended, those of one worker
    /// exactly.
    fn take(&mut self, finished: &Finished, tally: &Tally);

    /// Time has passed: called behind each batch of requests, and about once a second.
    fn tick(&mut self, tally: &Tally);

    /// Nothing more will come.
    fn end(&mut self, tally: &Tally);
}

/// The way to a recorder. Share it by reference; dropping it waits for the recorder's end, up to 30
/// s.
#[derive(Debug)]
pub(crate) struct Record {
    /// `None` wakes the thread, to see that it is over.
    queue: SyncSender<Option<Finished>>,
    shared: Arc<Shared>,
    /// Yields an error once the thread has ended.
    ended: Mutex<Receiver<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    tally: Tally,
    closing: AtomicBool,
}

impl Record {
    /// Starts the thread of `recorder`.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn start(recorder: Box<dyn Recorder>) -> io::Result<Self> {
        let (queue, inbox) = mpsc::sync_channel(QUEUE_MAX);
        let (running, ended) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let run = {
            let shared = Arc::clone(&shared);
            move || {
                step_back();
                run(recorder, &inbox, &shared);
                drop(running);
            }
        };
        thread::Builder::new()
            .name("weir-record".into())
            .spawn(run)?;
        Ok(Self {
            queue,
            shared,
            ended: Mutex::new(ended),
        })
    }

    /// Hands over what happened, or drops and counts it. Never waits.
    pub(crate) fn tell(&self, finished: Finished) {
        let tally = self.tally();
        let bytes = finished.heads_bytes();
        if bytes > HEADS_BYTES_MAX {
            tally.unrecorded(Unrecorded::TooLarge, 1);
            return;
        }
        if tally.enter(bytes) {
            if self.queue.try_send(Some(finished)).is_ok() {
                return;
            }
            tally.leave(bytes);
        }
        tally.unrecorded(Unrecorded::QueueFull, 1);
    }

    /// The bytes received were no request.
    pub(crate) fn skip(&self) {
        self.tally().unrecorded(Unrecorded::NotHttp, 1);
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// Waits until the recorder has written all that it got, up to 30 s. No thread may report to it
    /// anything any more.
    pub(crate) fn close(&self) {
        if self.shared.closing.swap(true, Ordering::AcqRel) {
            return;
        }
        // where there is no room it is awake
        let _full = self.queue.try_send(None);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _late = ended.recv_timeout(CLOSE_LIMIT);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.close();
    }
}

/// Passes the queued requests to `recorder`, until the queue is closed.
fn run(
    mut recorder: Box<dyn Recorder>,
    inbox: &Receiver<Option<Finished>>,
    Shared { tally, closing }: &Shared,
) {
    let take = |recorder: &mut dyn Recorder, finished: &Finished| {
        tally.leave(finished.heads_bytes());
        recorder.take(finished, tally);
    };
    loop {
        // read before the queue is found empty: it is not filled afterwards
        let is_over = closing.load(Ordering::Acquire);
        match inbox.recv_timeout(if is_over { Duration::ZERO } else { TICK }) {
            Ok(first) => {
                if let Some(finished) = first {
                    take(&mut *recorder, &finished);
                }
                if !is_over {
                    thread::sleep(COLLECT);
                }
                for finished in inbox.try_iter().take(BATCH_MAX).flatten() {
                    take(&mut *recorder, &finished);
                }
            }
            Err(RecvTimeoutError::Timeout) if !is_over => {}
            Err(_) => break,
        }
        recorder.tick(tally);
    }
    recorder.end(tally);
}

/// Lowers its priority below that of the workers.
fn step_back() {
    // of this thread alone, as Linux reads "this process"; elsewhere it would be all of them
    #[cfg(target_os = "linux")]
    let _refused = rustix::process::setpriority_process(None, NICE);
}
