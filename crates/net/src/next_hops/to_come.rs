//! A connection that is opened for whoever needs it first: in a race with a busy one, or before
//! anybody asks.

use crate::failure::ConnectFailure;
use crate::next_hops::destination::{Destination, HopKey};
use crate::next_hops::next_hop;
use crate::next_hops::open_connections::{Ahead, OpenConnections, Permit};
use crate::next_hops::pool;
use crate::next_hops::rules::ConnectionRules;
use crate::worker::Worker;
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::Instant;
use weir_policy::connections::OpenReason;
use weir_semantics::ProxyError;

/// Why it comes.
pub enum ToCome {
    /// The waiter with this number wants it, or a busy one.
    Raced(u64),
    /// Nobody asked yet.
    Ahead {
        /// Counts it as under way until it is there.
        _under_way: Ahead,
    },
}

/// Opens it in a task of its own.
pub fn spawn(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    permit: Permit,
    why: ToCome,
) {
    let mut promise = Promise {
        open: Arc::clone(worker.network().open_connections()),
        hop: destination.hop.clone(),
        asker: match why {
            ToCome::Raced(id) => Some(id),
            ToCome::Ahead { .. } => None,
        },
        broken: Some(ConnectFailure::new(
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
        let came = Box::pin(run(&worker, &rules, &destination, permit, &why)).await;
        promise.broken = came.err();
        drop(promise);
        drop(why);
    });
}

async fn run(
    worker: &Rc<Worker>,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    permit: Permit,
    why: &ToCome,
) -> Result<(), ConnectFailure> {
    let until = Instant::now() + rules.wait_limit;
    let reason = match why {
        ToCome::Raced(_) => OpenReason::Race,
        ToCome::Ahead { .. } => OpenReason::Ahead,
    };
    let came = next_hop::set_up(worker, rules, destination, permit, until, reason).await;
    match came {
        Ok(connection) => {
            pool::keep(worker, worker.now(), connection.rest(), None);
            Ok(())
        }
        Err(failure) => {
            if let ToCome::Ahead { .. } = why {
                pool::ahead_failed(worker, &destination.hop);
            }
            Err(failure)
        }
    }
}

/// Somebody may rely on the connection: who does learns if it does not come, whatever the reason.
struct Promise {
    open: Arc<OpenConnections>,
    hop: HopKey,
    asker: Option<u64>,
    broken: Option<ConnectFailure>,
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(failure) = self.broken.take() {
            self.open.did_not_come(&self.hop, self.asker, failure);
        }
    }
}
