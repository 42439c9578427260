//! A few threads that wait for the device so that nobody else has to.

use crate::ReadError;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
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
        drop(waiting);
        self.ready.notify_one();
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
                drop(waiting);
                job();
                waiting = self.lock();
            } else {
                waiting = self
                    .ready
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
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
