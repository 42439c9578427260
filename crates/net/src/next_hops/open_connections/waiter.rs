//! A request that waits for a connection, or for a place to open one.

use super::{HandOver, OpenConnections};
use crate::next_hops::hop_key::HopKey;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use weir_policy::connections::{WaitEnd, WaitReason};

/// A request that waits; its wait ends when this is dropped.
pub(crate) struct Waiter {
    /// Its number.
    pub(crate) id: u64,
    /// Why it waits.
    pub(crate) why: WaitReason,
    /// How it ends.
    pub(crate) end: WaitEnd,
    pub(super) hop: HopKey,
    pub(super) receiver: Option<oneshot::Receiver<HandOver>>,
    pub(super) _waiting: Waiting,
    pub(super) open: Arc<OpenConnections>,
}

impl Waiter {
    /// What is handed over; `None` if what it waits for will not come: it has to decide again.
    pub(crate) async fn hand_over(&mut self) -> Option<HandOver> {
        match &mut self.receiver {
            Some(receiver) => receiver.await.ok(),
            None => std::future::pending().await,
        }
    }

    /// Ends the wait for a connection; what was handed over at the last moment.
    pub(crate) fn last_hand_over(&mut self) -> Option<HandOver> {
        let receiver = self.receiver.as_mut()?;
        receiver.close();
        receiver.try_recv().ok()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if self.receiver.is_some() {
            let (id, why, end) = (self.id, self.why, self.end);
            self.open.lock().change(&self.hop, |entry| {
                entry.remove(id);
                entry.hop.wait_ends(why, end);
            });
        }
    }
}

/// Counts a request that must be woken when a place is free.
pub(crate) struct Waiting(Arc<OpenConnections>);

impl Waiting {
    pub(crate) fn begin(open: &Arc<OpenConnections>) -> Self {
        open.waiting.fetch_add(1, Ordering::SeqCst);
        open.waits_begun.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
