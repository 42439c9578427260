//! A few threads that wait for the device so that nobody else has to.
//!
//! Waking a thread costs more than a short read does, and one that is reading already will soon have time for the next. So a read
//! that comes while others are under way wakes a further thread only where more than [`READS_A_THREAD`] wait for each of those that
//! read. That a read is slow, or never comes back, is seen by a thread that has nothing to do: it looks every [`WATCH`], and takes what
//! still waits then.

use crate::ReadError;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Reads that may wait for each thread that reads before another one is woken. Measured on an SSD with hits of 12 KB on one core: 2 takes a
/// tenth off the CPU time of a hit, 1 gains nothing.
const READS_A_THREAD: usize = 2;

/// The longest time that a read waits behind a slow one while a thread has nothing to do. A wake-up in that time costs a thousandth of a core.
const WATCH: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Threads that read.
    busy: usize,
    /// Threads that have nothing to do.
    idle: usize,
    /// Of those, the ones that look again soon without being woken.
    watching: usize,
    is_closed: bool,
}

impl Waiting {
    /// Whether a thread is to be woken for what waits.
    fn wants_another(&self) -> bool {
        self.idle > 0 && (self.watching == 0 || self.jobs.len() > self.busy * READS_A_THREAD)
    }
}

pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    /// Reads that may wait.
    max: usize,
    /// There are no threads: a read is done by who asks.
    is_by_hand: bool,
}

impl Pool {
    pub(crate) fn new(max: usize, is_by_hand: bool) -> Self {
        Self {
            waiting: Mutex::default(),
            ready: Condvar::new(),
            max,
            is_by_hand,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `read` done by a thread; one that nobody waits for any more is left out.
    pub(crate) fn submit<T, F>(
        &self,
        read: F,
    ) -> impl Future<Output = Result<T, ReadError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, ReadError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let job = move || {
            if !sender.is_closed() {
                // who waited may have left meanwhile
                drop(sender.send(read()));
            }
        };
        let refused = self.enqueue(Box::new(job)).err();
        async move {
            match refused {
                Some(error) => Err(error),
                None => receiver.await.unwrap_or(Err(ReadError::Closed)),
            }
        }
    }

    fn enqueue(&self, job: Job) -> Result<(), ReadError> {
        if self.is_by_hand {
            job();
            return Ok(());
        }
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Err(ReadError::Closed);
        }
        if waiting.jobs.len() >= self.max {
            return Err(ReadError::Busy);
        }
        waiting.jobs.push_back(job);
        let wants_another = waiting.wants_another();
        drop(waiting);
        if wants_another {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// What each thread does until the store is closed.
    pub(crate) fn run(&self) {
        let mut waiting = self.lock();
        loop {
            if waiting.is_closed {
                return;
            }
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.busy += 1;
                drop(waiting);
                job();
                waiting = self.lock();
                waiting.busy -= 1;
            } else {
                waiting = self.rest(waiting);
            }
        }
    }

    /// Until there is something to do, or for [`WATCH`] while others read.
    fn rest<'p>(&'p self, mut waiting: MutexGuard<'p, Waiting>) -> MutexGuard<'p, Waiting> {
        waiting.idle += 1;
        let watches = waiting.busy > 0 && waiting.watching == 0;
        let mut waiting = if watches {
            waiting.watching += 1;
            let (mut waiting, _) = self
                .ready
                .wait_timeout(waiting, WATCH)
                .unwrap_or_else(PoisonError::into_inner);
            waiting.watching -= 1;
            waiting
        } else {
            self.ready
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner)
        };
        waiting.idle -= 1;
        waiting
    }

    /// Reads that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().jobs.len()
    }

    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.jobs.clear();
        drop(waiting);
        self.ready.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    #[test]
    fn read_beyond_the_limit_waits() {
        let pool = Arc::new(Pool::new(1, false));
        let first = pool.submit(|| Ok(1));
        let second = pool.submit(|| Ok(2));
        assert_eq!(runtime().block_on(second), Err(ReadError::Busy));
        let thread = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.run()
        });
        assert_eq!(runtime().block_on(first), Ok(1));
        pool.close();
        thread.join().unwrap();
        assert_eq!(
            runtime().block_on(pool.submit(|| Ok(3))),
            Err(ReadError::Closed)
        );
    }

    #[test]
    fn read_behind_one_that_hangs_waits_for_it() {
        let pool = Arc::new(Pool::new(10, false));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let pool = Arc::clone(&pool);
                std::thread::spawn(move || pool.run())
            })
            .collect();
        let runtime = runtime();
        for _ in 0..20 {
            // threads have read before, and rest in whatever way they do
            assert_eq!(runtime.block_on(pool.submit(|| Ok(0))), Ok(0));
            let (release, held) = std::sync::mpsc::channel::<()>();
            let hangs = pool.submit(move || {
                held.recv().unwrap();
                Ok(1)
            });
            for number in 2..5 {
                let behind = pool.submit(move || Ok(number));
                assert_eq!(runtime.block_on(behind), Ok(number));
            }
            release.send(()).unwrap();
            assert_eq!(runtime.block_on(hangs), Ok(1));
        }
        pool.close();
        for thread in threads {
            thread.join().unwrap();
        }
    }

    #[test]
    fn thread_is_woken_for_what_another_will_soon_do() {
        let check = |busy, idle, watching, reads: usize, expected| {
            let mut waiting = Waiting {
                busy,
                idle,
                watching,
                ..Waiting::default()
            };
            for _ in 0..reads {
                waiting.jobs.push_back(Box::new(|| {}));
            }
            assert_eq!(
                waiting.wants_another(),
                expected,
                "{busy} {idle} {watching} {reads}"
            );
        };
        // nobody reads
        check(0, 4, 0, 1, true);
        // somebody does, and another one looks on
        check(1, 3, 1, 1, false);
        check(1, 3, 1, 2, false);
        check(1, 3, 1, 3, true);
        check(2, 2, 1, 4, false);
        check(2, 2, 1, 5, true);
        // nobody looks on
        check(1, 3, 0, 1, true);
        // there is nobody to wake
        check(4, 0, 0, 100, false);
    }

    #[test]
    fn read_that_nobody_waits_for_is_done() {
        let pool = Arc::new(Pool::new(2, false));
        drop(pool.submit(|| -> Result<(), ReadError> { panic!("was done") }));
        let second = pool.submit(|| Ok(2));
        let thread = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.run()
        });
        assert_eq!(runtime().block_on(second), Ok(2));
        pool.close();
        thread.join().unwrap();
    }
}
