//! Validation in the background: the client has its stale response already (RFC 5861 §3).

use crate::chosen::Chosen;
use crate::config::Mode;
use crate::deadline::Deadline;
use crate::destination::Destination;
use crate::download::{self, Downloaded};
use crate::exchange::{Exchange, Plan};
use crate::sink::Sink;
use crate::upload::Sending;
use crate::worker::Worker;
use crate::{next_hop, outbound, pool, report, upload};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_policy::catalog::Refusal;
use weir_policy::verdict::{NotStored, Storing};
use weir_policy::{Digest, Transaction};
use weir_store::StoredResponse;

/// Starts one, unless one for this target is under way, or the last one came to nothing a short while ago.
pub(crate) fn spawn(worker: &Rc<Worker>, mode: Mode, exchange: &Exchange, chosen: Chosen) {
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
    let (tx, forwarding) = Transaction::refresh(*exchange.tx.request(), &facts, now);
    let mut exchange = exchange.in_background(
        tx,
        Plan::Forward {
            forwarding,
            stored: None,
        },
        Instant::now(),
    );
    exchange.expected = Some(chosen.expected);
    let stored = chosen.response;
    tokio::task::spawn_local(async move {
        // boxed: the task's memory is held only while it runs
        let storing = Box::pin(run(&under_way.worker, mode, exchange, &stored)).await;
        under_way.came_to(storing);
    });
}

/// What became of the response, if there was one.
async fn run(
    worker: &Rc<Worker>,
    mode: Mode,
    mut exchange: Exchange,
    stored: &Arc<StoredResponse>,
) -> Option<Storing> {
    let settings = Arc::clone(&exchange.settings);
    let Plan::Forward { forwarding, .. } = exchange.plan else {
        return None;
    };
    let destination = Destination::of(&exchange, mode, worker).ok()?;
    let obtained = next_hop::obtain(worker, &settings, &destination, false).await;
    let mut connection = obtained.ok()?;
    if !exchange.expect(worker) {
        // purged meanwhile: the next request for it asks
        pool::check_in(worker, connection);
        let gone = NotStored::Catalog(Refusal::NotResident);
        return Some(Storing::NotStored(gone));
    }
    let request = outbound::request_head(&exchange, forwarding, Some(stored));
    let (from_hop, mut to_hop) = connection.stream.split();
    let sent = upload::send_head(&mut to_hop, &request, &mut exchange, worker).await;
    if sent.is_err() {
        return None;
    }
    let mut deadline = Deadline::new(settings.config.limits.next_hop_silence.as_duration());
    let downloaded = download::run(download::Parties {
        sending: &Cell::new(Sending::Done),
        from_hop,
        to_client: Sink::Nobody,
        exchange: &mut exchange,
        worker,
        deadline: &mut deadline,
        stored: Some(stored),
    })
    .await;
    report::background(worker, &exchange);
    let reusable = match downloaded {
        Downloaded::Merged { reusable, .. } | Downloaded::Relayed { reusable, .. } => reusable,
        // what was stored is dropped if it has changed: the next request for it asks. A response that nobody takes is
        // ended by closing its connection
        _ => false,
    };
    if reusable {
        pool::check_in(worker, connection);
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
