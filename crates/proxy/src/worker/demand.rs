//! What all workers know of demand: how often targets are requested, and how many bytes may be
//! fetched that no client reads.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use weir_policy::fetch::{self, Chance, NoBackgroundValidation};
use weir_policy::verdict::Storing;
use weir_policy::{Digest, Now, StoredFacts};

/// How often targets that must be forwarded were requested lately.
#[derive(Debug)]
pub(crate) struct Popularity(Mutex<fetch::Popularity>);

impl Default for Popularity {
    fn default() -> Self {
        let bytes = fetch::Popularity::DEFAULT_BYTES;
        Self(Mutex::new(fetch::Popularity::new(bytes)))
    }
}

impl Popularity {
    /// `key` was requested.
    pub(crate) fn note(&self, key: Digest) {
        lock(&self.0).note(key);
    }

    /// The chance that it is requested again.
    pub(crate) fn again(&self, key: Digest) -> Chance {
        lock(&self.0).again(key)
    }
}

/// The budget of bytes that are fetched and that no client reads.
#[derive(Debug)]
pub(crate) struct Background(Mutex<fetch::Background>);

impl Background {
    /// A budget of `rate_bytes_s`.
    pub(crate) fn new(rate_bytes_s: u64) -> Self {
        Self(Mutex::new(fetch::Background::new(rate_bytes_s)))
    }

    /// Sets a new rate; bytes that were saved up are dropped.
    pub(crate) fn set_rate(&self, rate_bytes_s: u64) {
        *lock(&self.0) = fetch::Background::new(rate_bytes_s);
    }

    /// Whether the budget is zero: nothing may be fetched that no client reads.
    pub(crate) fn is_nothing(&self) -> bool {
        lock(&self.0).rate_bytes_s() == 0
    }

    /// Bytes that may be taken now.
    pub(crate) fn free(&self, now: Now) -> u64 {
        lock(&self.0).free(now)
    }

    /// Takes up to `wanted` bytes.
    ///
    /// # Errors
    ///
    /// How long to wait if there are none.
    pub(crate) fn take(&self, now: Now, wanted: u64) -> Result<u64, Duration> {
        let mut budget = lock(&self.0);
        match budget.take(now, wanted) {
            0 => {
                let ready = budget.ready_at(now, wanted).ms_since(now.tick);
                Err(Duration::from_millis(ready).min(WAIT_MAX))
            }
            granted => Ok(granted),
        }
    }

    /// So many bytes were received with a response head, without waiting for the budget.
    pub(crate) fn came(&self, now: Now, bytes: u64) {
        lock(&self.0).take(now, bytes);
    }

    /// Bytes that were taken and are not used after all.
    fn give_back(&self, bytes: u64) {
        lock(&self.0).give_back(bytes);
    }
}

/// What one transfer has taken of that budget and not used yet.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    bytes: u64,
    /// For more of it.
    wait: Option<Pin<Box<Sleep>>>,
}

impl Allowance {
    /// How many bytes may be read now; takes up to `wanted`, which is not 0, from `budget`, and
    /// waits while that has none.
    pub(crate) fn poll(
        &mut self,
        budget: &Background,
        now: impl Fn() -> Now,
        wanted: u64,
        cx: &mut Context<'_>,
    ) -> Poll<u64> {
        while self.bytes == 0 {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            match budget.take(now(), wanted) {
                Ok(granted) => self.bytes = granted,
                Err(wait) => self.wait = Some(Box::pin(tokio::time::sleep(wait))),
            }
        }
        Poll::Ready(self.bytes)
    }

    /// So many bytes were received.
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// The transfer has ended: others may use the rest.
    pub(crate) fn end(&mut self, budget: &Background) {
        budget.give_back(std::mem::take(&mut self.bytes));
    }
}

/// The stale responses that are validated in the background.
#[derive(Debug, Default)]
pub(crate) struct Refreshes(Mutex<fetch::BackgroundValidations<Digest>>);

impl Refreshes {
    /// Begins a validation of `stored`, the response of `key`.
    ///
    /// # Errors
    ///
    /// Why it does not begin now.
    pub(crate) fn begin(
        &self,
        now: Now,
        key: Digest,
        stored: &StoredFacts,
    ) -> Result<(), NoBackgroundValidation> {
        lock(&self.0).begin(now, key, stored)
    }

    /// The validation is over; `storing` became of the response, if there was one.
    pub(crate) fn end(&self, key: Digest, storing: Option<Storing>) {
        lock(&self.0).end(key, storing);
    }
}

/// Looks again at least so often: the rate may have been changed.
const WAIT_MAX: Duration = Duration::from_secs(1);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
