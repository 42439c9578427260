//! Validation in the background: the client has its stale response already (RFC 5861 §3).

use crate::cache::chosen::ChosenResponse;
use crate::exchange::download::ResponseOutcome;
use crate::exchange::forward::{self, BackgroundResult};
use crate::exchange::next_hop::NextHop;
use crate::exchange::state::{Plan, RequestState};
use crate::log::report;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::catalog::Refusal;
use weir_policy::verdict::{NotStored, Storing};
use weir_policy::{Digest, Transaction};
use weir_store::StoredResponse;

/// Starts one, unless one for this target is under way, or the last one failed a short while ago.
pub(crate) fn spawn(exchange: &RequestState, chosen: ChosenResponse) {
    let worker = &exchange.worker;
    let (now, facts) = (worker.now(), chosen.response.facts);
    let refreshes = &worker.shared.refreshes;
    if refreshes.begin(now, exchange.key, &facts).is_err() {
        return;
    }
    let mut under_way = UnderWay {
        worker: Rc::clone(worker),
        key: exchange.key,
        storing: None,
    };
    // as its client has it: what serves it stale has it spared if the refresh fails
    let used = exchange.reuse_of(&chosen.response).of(&facts);
    let (tx, forwarding) = Transaction::refresh(*exchange.tx.request(), &used, now);
    let mut exchange = exchange.in_background(
        tx,
        Plan::Forward {
            forwarding,
            stored: None,
        },
    );
    exchange.expected = Some(chosen.expected);
    let stored = chosen.response;
    tokio::task::spawn_local(async move {
        // boxed: the task's memory is held only while it runs
        let storing = Box::pin(run(exchange, &stored)).await;
        under_way.came_to(storing);
    });
}

/// What became of the response, if there was one.
async fn run(mut exchange: RequestState, stored: &Arc<StoredResponse>) -> Option<Storing> {
    let worker = &Rc::clone(&exchange.worker);
    let Plan::Forward { forwarding, .. } = exchange.plan else {
        return None;
    };
    let next_hop = NextHop::of(&exchange).ok()?;
    let result = forward::in_background(&mut exchange, next_hop, forwarding, Some(stored)).await;
    report::count_next_hop(worker.counters(), &exchange.log);
    exchange.count_heavy_hitters_in_background();
    match result {
        BackgroundResult::Answered(
            hop,
            ResponseOutcome::Merged { .. } | ResponseOutcome::Relayed,
        ) => {
            let offered_bytes_max = exchange.read_ahead().bytes();
            hop.release(worker.net(), offered_bytes_max);
        }
        // a stored response that has changed is dropped, and the next request for it is forwarded.
        // A response that is not received to its end is stopped by closing its connection
        BackgroundResult::Answered(..) | BackgroundResult::Failed(_) => {}
        // purged meanwhile: the next request for it is forwarded
        BackgroundResult::Forgotten => {
            let gone = NotStored::Catalog(Refusal::NotResident);
            return Some(Storing::NotStored(gone));
        }
    }
    exchange.tx.verdict().storing
}

/// Marks a target as being validated.
struct UnderWay {
    worker: Rc<Worker>,
    key: Digest,
    storing: Option<Storing>,
}

impl UnderWay {
    fn came_to(&mut self, storing: Option<Storing>) {
        self.storing = storing;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let refreshes = &self.worker.shared.refreshes;
        refreshes.end(self.key, self.storing);
    }
}
