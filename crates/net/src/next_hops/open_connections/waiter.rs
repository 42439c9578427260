//! Somebody who waits for a connection, or for a place to open one.

use super::{Handed, OpenConnections};
use crate::next_hops::destination::HopKey;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use weir_policy::connections::{WaitEnd, WaitReason};

/// Somebody who waits; waits no more when dropped.
pub struct Waiter {
    /// Its number.
    pub id: u64,
    /// Why it waits.
    pub why: WaitReason,
    /// How it ends.
    pub end: WaitEnd,
    pub(super) hop: HopKey,
    pub(super) receiver: Option<oneshot::Receiver<Handed>>,
    pub(super) _waiting: Waiting,
    pub(super) open: Arc<OpenConnections>,
}

impl Waiter {
    /// What is handed over; `None` if what it waits for will not come, and it has to ask again.
    pub async fn handed(&mut self) -> Option<Handed> {
        match &mut self.receiver {
            Some(receiver) => receiver.await.ok(),
            None => std::future::pending().await,
        }
    }

    /// What was handed over in the last moment.
    pub fn handed_already(&mut self) -> Option<Handed> {
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

/// Somebody who is to be told when a place is free.
pub struct Waiting(Arc<OpenConnections>);

impl Waiting {
    pub fn begin(open: &Arc<OpenConnections>) -> Self {
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
