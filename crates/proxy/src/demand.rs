//! What all workers know of demand: how often targets are asked for, and what may be fetched for nobody.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_policy::fetch::{self, Chance};
use weir_policy::{Digest, Now};

/// How often targets that must be forwarded were asked for lately.
#[derive(Debug)]
pub(crate) struct Popularity(Mutex<fetch::Popularity>);

impl Default for Popularity {
    fn default() -> Self {
        let bytes = fetch::Popularity::DEFAULT_BYTES;
        Self(Mutex::new(fetch::Popularity::new(bytes)))
    }
}

impl Popularity {
    /// `key` was asked for.
    pub(crate) fn note(&self, key: Digest) {
        lock(&self.0).note(key);
    }

    /// The chance that it is asked for again.
    pub(crate) fn again(&self, key: Digest) -> Chance {
        lock(&self.0).again(key)
    }
}

/// The budget of bytes that are fetched though nobody reads them.
#[derive(Debug)]
pub(crate) struct Background(Mutex<fetch::Background>);

impl Background {
    /// A budget of `rate_bytes_s`.
    pub(crate) fn new(rate_bytes_s: u64) -> Self {
        Self(Mutex::new(fetch::Background::new(rate_bytes_s)))
    }

    /// A new rate; what was saved up is gone.
    pub(crate) fn set_rate(&self, rate_bytes_s: u64) {
        *lock(&self.0) = fetch::Background::new(rate_bytes_s);
    }

    /// Whether nothing is ever to be fetched that nobody reads.
    pub(crate) fn is_nothing(&self) -> bool {
        lock(&self.0).rate_bytes_s() == 0
    }

    /// Bytes that are left now.
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
}

/// Looks again at least so often: the rate may have been changed.
const WAIT_MAX: Duration = Duration::from_secs(1);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
