//! A connection that is opened in a task of its own, for the first request that needs one: in a
//! race with a busy connection, or in advance.

use super::destination::Destination;
use super::failure::ConnectFailure;
use super::hop_key::HopKey;
use super::open;
use super::open_connections::{AdvanceCount, OpenConnections, Permit};
use super::pool;
use super::rules::ConnectionRules;
use crate::workers::Worker;
use std::sync::Arc;
use tokio::time::Instant;
use weir_policy::connections::OpenReason;
use weir_semantics::ProxyError;

/// Why it is opened.
pub(super) enum Purpose {
    /// The waiter with this number takes it, or a busy connection if one becomes free sooner.
    Race(u64),
    /// It was not opened for a request.
    Advance {
        /// Counts it as being opened until it is idle.
        _count: AdvanceCount,
    },
}

/// Opens a connection in a task of its own.
pub(super) fn spawn(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    permit: Permit,
    purpose: Purpose,
) {
    let mut guard = PendingGuard {
        open: Arc::clone(worker.network().open_connections()),
        hop: destination.hop.clone(),
        waiter: match purpose {
            Purpose::Race(id) => Some(id),
            Purpose::Advance { .. } => None,
        },
        failure: Some(ConnectFailure::new(
            ProxyError::ProxyInternalError,
            "the connection was given up",
        )),
    };
    let Some(worker) = worker.handle() else {
        return;
    };
    let (rules, destination) = (Arc::clone(rules), destination.clone());
    tokio::task::spawn_local(async move {
        // boxed: the task's memory is held only while it runs
        let opened = Box::pin(run(&worker, &rules, &destination, permit, &purpose)).await;
        guard.failure = opened.err();
        drop(guard);
        drop(purpose);
    });
}

async fn run(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
    permit: Permit,
    purpose: &Purpose,
) -> Result<(), ConnectFailure> {
    let until = Instant::now() + rules.wait_limit;
    let why = match purpose {
        Purpose::Race(_) => OpenReason::Race,
        Purpose::Advance { .. } => OpenReason::Preconnect,
    };
    match open::open(worker, rules, destination, permit, until, why).await {
        Ok(connection) => {
            pool::keep(worker, worker.now(), connection.into_idle(), None);
            Ok(())
        }
        Err(failure) => {
            if let Purpose::Advance { .. } = purpose {
                pool::note_advance_failed(worker, &destination.hop);
            }
            Err(failure)
        }
    }
}

/// A request may rely on the connection: it is woken if the connection fails, for whatever reason,
/// a panic included.
struct PendingGuard {
    open: Arc<OpenConnections>,
    hop: HopKey,
    waiter: Option<u64>,
    failure: Option<ConnectFailure>,
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        if let Some(failure) = self.failure.take() {
            self.open.pending_failed(&self.hop, self.waiter, failure);
        }
    }
}
