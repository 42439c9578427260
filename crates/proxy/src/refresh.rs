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
use weir_policy::{Digest, Transaction};
use weir_store::StoredResponse;

/// Background validations under way at once, over all workers; beyond it a stale response stays as it is until the
/// next request for it.
const REFRESHES_MAX: usize = 256;

/// Starts one, unless one for this target is under way.
pub(crate) fn spawn(worker: &Rc<Worker>, mode: Mode, exchange: &Exchange, chosen: Chosen) {
    if !worker.shared.begin_refresh(exchange.key, REFRESHES_MAX) {
        return;
    }
    let under_way = UnderWay {
        worker: Rc::clone(worker),
        key: exchange.key,
    };
    let now = worker.now();
    let (tx, forwarding) =
        Transaction::refresh(*exchange.tx.request(), &chosen.response.facts, now);
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
        Box::pin(run(&under_way.worker, mode, exchange, &stored)).await;
    });
}

async fn run(
    worker: &Rc<Worker>,
    mode: Mode,
    mut exchange: Exchange,
    stored: &Arc<StoredResponse>,
) {
    let settings = Arc::clone(&exchange.settings);
    let Plan::Forward { forwarding, .. } = exchange.plan else {
        return;
    };
    let Ok(destination) = Destination::of(&exchange, mode, worker) else {
        return;
    };
    let Ok(mut connection) = next_hop::obtain(worker, &settings, &destination, false).await else {
        return;
    };
    if !exchange.expect(worker) {
        // purged meanwhile: the next request for it asks
        pool::check_in(worker, connection);
        return;
    }
    let request = outbound::request_head(&exchange, forwarding, Some(stored));
    let (from_hop, mut to_hop) = connection.stream.split();
    let sent = upload::send_head(&mut to_hop, &request, &mut exchange, worker).await;
    if sent.is_err() {
        return;
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
        // what was stored is dropped if it has changed: the next request for it asks
        _ => false,
    };
    if reusable {
        pool::check_in(worker, connection);
    }
}

/// Marks a target as being validated.
struct UnderWay {
    worker: Rc<Worker>,
    key: Digest,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.worker.shared.end_refresh(self.key);
    }
}
