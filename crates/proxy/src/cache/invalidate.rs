//! Forgetting what is outdated: by an unsafe request (RFC 9111 §4.4), or as the next hop's response
//! shows.

use crate::exchange::state::RequestState;
use crate::fetch::storable_head::StorableHead;
use crate::request::judge::key_of;
use crate::send::heads::stored_fields;
use crate::worker::core::Worker;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use weir_measure::Metric;
use weir_policy::Digest;
use weir_semantics::{Authority, Method, Scheme, Target, canonical_target, lines_named};
use weir_store::{Purge, StoredResponse};
use weir_wire::{LineBuffer, ResponseHead};

/// Forgets the target, and what Location and Content-Location name, one each, if they have the same
/// origin: a response could otherwise empty other sites' caches. The client may hear of the change
/// once that is [`durable`].
pub(crate) fn run(
    worker: &Worker,
    exchange: &RequestState,
    response: &ResponseHead<'_, '_>,
) -> Vec<Purge> {
    let mut purges = vec![forget(worker, exchange.key)];
    for name in ["location", "content-location"] {
        // both are fields with one value (RFC 9110 §8.7, §10.2.2)
        for value in lines_named(response.fields, name).take(1) {
            if let Some(key) = key_of_reference(exchange, value, worker) {
                purges.push(forget(worker, key));
            }
        }
    }
    let removed: usize = purges.iter().map(|purge| purge.removed).sum();
    worker.counters().add(Metric::Invalidated, removed as u64);
    purges
}

/// Forgets `stored` alone: what the next hop sent shows that it is outdated, or that it is not for
/// others any more.
pub(crate) fn one(worker: &Worker, exchange: &RequestState, stored: &Arc<StoredResponse>) -> Purge {
    let mut lines = LineBuffer::new();
    let fields = stored_fields(&stored.head, &mut lines);
    let vary = StorableHead::vary_of(worker, exchange, fields);
    let selecting = vary.map(|(_, selecting)| selecting);
    let store = &worker.shared.store;
    store.purge_one(exchange.key, stored, selecting)
}

/// The store first: a request that comes between the two and finds the response in flight sees that
/// it is outdated there.
fn forget(worker: &Worker, key: Digest) -> Purge {
    let purge = worker.shared.store.purge(key);
    worker.shared.collapsed.forget(key);
    purge
}

/// Waits until `purges` survive a crash, for [`DURABLE_WAIT`] at most. If they might not survive
/// one, they are in force nevertheless, and the store on disk is emptied before it is used again.
/// The response is sent in any case, as the request was carried out.
pub(crate) async fn durable(worker: &Worker, purges: Vec<Purge>) {
    let until = Instant::now() + DURABLE_WAIT;
    for purge in purges {
        let durable = timeout_at(until, purge.durable()).await;
        if !matches!(durable, Ok(Ok(()))) {
            worker.counters().inc(Metric::PurgesNotDurable);
        }
    }
}

/// How long an answer waits for the disk to write down what it invalidates, and an operator for a
/// purge: a rotating disk under load takes a second.
pub(crate) const DURABLE_WAIT: Duration = Duration::from_secs(5);

fn key_of_reference(exchange: &RequestState, value: &[u8], worker: &Worker) -> Option<Digest> {
    let reference = std::str::from_utf8(value).ok()?;
    let reference = reference.split('#').next()?;
    let default = Authority {
        host: exchange.request.host,
        port: Some(exchange.request.port),
    };
    let resolved;
    let raw = if reference.starts_with('/') && !reference.starts_with("//")
        || reference.contains("://")
    {
        reference
    } else if reference.starts_with("//") {
        resolved = format!("http:{reference}");
        &resolved
    } else {
        resolved = resolve_relative(exchange, reference);
        &resolved
    };
    let (target, _): (Target<'_>, _) =
        canonical_target(Method::Get, raw, &[], false, &default, Scheme::Http).ok()?;
    let same_origin = target.host == exchange.request.host
        && target.port == exchange.request.port
        && target.scheme == Scheme::Http;
    same_origin.then(|| key_of(exchange.request.mode, &target, worker.shared.store.secret()))
}

/// A relative reference against the target's path (RFC 3986 §5.2.3, without dot segments: they are
/// rare here and missing one keeps a response that its own freshness still bounds).
fn resolve_relative(exchange: &RequestState, reference: &str) -> String {
    let path = exchange.request.path_and_query();
    let path = path.split('?').next().unwrap_or("/");
    let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
    format!("{folder}{reference}")
}
