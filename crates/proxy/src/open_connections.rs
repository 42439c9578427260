//! How many connections to next hops are open, used or idle: to each and in all.

use crate::config::Limits;
use crate::destination::HopKey;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The count, shared by all workers; touched when a connection opens or closes, not when one is reused.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections {
    by_hop: Mutex<HashMap<HopKey, usize>>,
    total: AtomicUsize,
    freed: Notify,
}

/// One place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    hop: HopKey,
    open: Arc<OpenConnections>,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// That of this next hop.
    NextHop,
    /// That of all together.
    All,
}

impl OpenConnections {
    /// Takes a place.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn take(self: &Arc<Self>, hop: &HopKey, limits: &Limits) -> Result<Permit, Full> {
        let mut by_hop = self.by_hop.lock().unwrap_or_else(PoisonError::into_inner);
        let of_hop = by_hop.get(hop).copied().unwrap_or(0);
        let total = self.total.load(Ordering::Relaxed);
        if of_hop >= limits.connections_per_next_hop_max as usize {
            return Err(Full::NextHop);
        }
        if total >= limits.next_hop_connections_max as usize {
            return Err(Full::All);
        }
        by_hop.insert(hop.clone(), of_hop + 1);
        // written under the lock only; the atomic is for readers
        self.total.store(total + 1, Ordering::Relaxed);
        Ok(Permit {
            hop: hop.clone(),
            open: Arc::clone(self),
        })
    }

    /// Ready when a place was given back, or a connection became idle, after this call.
    pub(crate) fn freed(&self) -> impl Future<Output = ()> + '_ {
        self.freed.notified()
    }

    /// Tells those who wait to look again.
    pub(crate) fn announce(&self) {
        self.freed.notify_waiters();
    }

    /// Connections open now.
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut by_hop = self
            .open
            .by_hop
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_hop.get_mut(&self.hop) {
            *count -= 1;
            if *count == 0 {
                by_hop.remove(&self.hop);
            }
        }
        let total = self.open.total.load(Ordering::Relaxed);
        self.open
            .total
            .store(total.saturating_sub(1), Ordering::Relaxed);
        drop(by_hop);
        self.open.announce();
    }
}
