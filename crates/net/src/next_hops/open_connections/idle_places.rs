//! Connections that carry many requests and have none under way, of all workers: which one is
//! closed for the place that it holds.
//!
//! Each is driven by a task of its own worker, so another one can only ask for its end. One is
//! asked at a time: its place is announced when it is given back, and who finds that taken asks for
//! the next.

use super::OpenConnections;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The idle ones, by when they became idle.
#[derive(Debug, Default)]
pub(super) struct IdlePlaces {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Each with what wakes its driver.
    idle: BTreeMap<u64, Waker>,
    next: u64,
    /// The one that is to be closed.
    closing: Option<u64>,
}

impl IdlePlaces {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().idle.len()
    }

    /// Has the one be closed that has been idle for longest.
    pub(super) fn close_oldest(&self) {
        let inner = &mut *self.lock();
        if inner.closing.is_none()
            && let Some((number, driver)) = inner.idle.pop_first()
        {
            inner.closing = Some(number);
            driver.wake();
        }
    }
}

/// A connection that carries many requests and has none, until this is dropped.
pub(crate) struct IdlePlace {
    open: Arc<OpenConnections>,
    number: u64,
}

impl IdlePlace {
    /// One has become idle that `driver` wakes the task of.
    pub(crate) fn begin(open: &Arc<OpenConnections>, driver: &Waker) -> Self {
        let number = {
            let inner = &mut *open.idle_places.lock();
            let number = inner.next;
            inner.next += 1;
            inner.idle.insert(number, driver.clone());
            number
        };
        // there may be a request that waits for its place
        open.announce();
        Self {
            open: Arc::clone(open),
            number,
        }
    }

    /// Whether it is to be closed.
    pub(crate) fn is_to_close(&self) -> bool {
        self.open.idle_places.lock().closing == Some(self.number)
    }
}

impl Drop for IdlePlace {
    fn drop(&mut self) {
        let was_closing = {
            let inner = &mut *self.open.idle_places.lock();
            inner.idle.remove(&self.number);
            let is_closing = inner.closing == Some(self.number);
            inner.closing.take_if(|number| *number == self.number);
            is_closing
        };
        if was_closing {
            // its place is free, or it carries a request again: another one may be asked
            self.open.announce();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Driver(AtomicUsize);

    impl Wake for Driver {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_connection_is_asked_at_a_time_and_the_oldest_first() {
        let open = Arc::new(OpenConnections::default());
        let driver = Arc::new(Driver::default());
        let waker = Waker::from(Arc::clone(&driver));
        let begin = || IdlePlace::begin(&open, &waker);
        let (first, second, third) = (begin(), begin(), begin());
        let asked = || [&first, &second, &third].map(IdlePlace::is_to_close);
        open.idle_places.close_oldest();
        open.idle_places.close_oldest();
        assert_eq!(asked(), [true, false, false]);
        assert_eq!(driver.0.load(Ordering::Relaxed), 1);
        assert_eq!(open.idle_places.len(), 2);
        // it carries a request again
        drop(first);
        assert!(!second.is_to_close());
        drop(second);
        open.idle_places.close_oldest();
        assert!(third.is_to_close());
        drop(third);
        open.idle_places.close_oldest();
        assert!(!begin().is_to_close());
    }
}
