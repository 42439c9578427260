//! Readers and fetches that wait for an in-flight response to change.
//!
//! Wakers are taken out under a lock and woken when that is given back: waking a task on another
//! worker is a call to the kernel, and ten thousand may wait.

use std::collections::BTreeMap;
use std::task::Waker;
use weir_policy::fetch::{FetchId, ReaderId};

/// What a fetch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// A reader that advances, or begins to need it.
    Readers,
    /// Bytes of the next hop; it must also learn when it has no reader any more.
    NextHop,
}

/// Readers and fetches that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    readers: BTreeMap<ReaderId, Waker>,
    /// Few.
    fetches: Vec<(FetchId, WaitsFor, Waker)>,
}

impl Waiting {
    pub(crate) fn reader(&mut self, reader: ReaderId, waker: &Waker) {
        self.readers.insert(reader, waker.clone());
    }

    pub(crate) fn fetch(&mut self, fetch: FetchId, waits_for: WaitsFor, waker: &Waker) {
        self.forget_fetch(fetch);
        self.fetches.push((fetch, waits_for, waker.clone()));
    }

    pub(crate) fn forget_reader(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
    }

    pub(crate) fn forget_fetch(&mut self, fetch: FetchId) {
        self.fetches.retain(|(known, ..)| *known != fetch);
    }

    /// There is more to read.
    pub(crate) fn take_readers(&mut self, woken: &mut WakeList) {
        let readers = std::mem::take(&mut self.readers);
        woken.0.extend(readers.into_values());
    }

    /// Readers were attached or detached.
    pub(crate) fn take_fetches(&mut self, woken: &mut WakeList) {
        let fetches = self.fetches.drain(..);
        woken.0.extend(fetches.map(|(.., waker)| waker));
    }

    /// A reader has advanced, which changes nothing for a fetch that was not waiting for one.
    pub(crate) fn take_held_back(&mut self, woken: &mut WakeList) {
        let held_back = |(_, waits_for, _): &mut _| *waits_for == WaitsFor::Readers;
        let fetches = self.fetches.extract_if(.., held_back);
        woken.0.extend(fetches.map(|(.., waker)| waker));
    }
}

/// Wakers that were taken out, woken when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct WakeList(Vec<Waker>);

impl Extend<Waker> for WakeList {
    fn extend<T: IntoIterator<Item = Waker>>(&mut self, wakers: T) {
        self.0.extend(wakers);
    }
}

impl Drop for WakeList {
    fn drop(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}
