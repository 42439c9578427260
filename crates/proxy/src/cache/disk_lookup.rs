//! The look-up on disk for a response that is not in memory, before the request is forwarded.
//!
//! What the page cache has is found at once; otherwise a thread of the disk reads it, and the
//! request waits within a limit. Of a large response only the head is read; its content is read
//! when it is sent.

use crate::client::fast;
use crate::exchange::state::{Plan, RequestState};
use crate::request::vary::selecting_digest;
use crate::send::heads::stored_fields;
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::timeout;
use weir_measure::{DiskLookupEnd, Metric};
use weir_policy::{Missing, Transaction};
use weir_store::{DiskLookup, DiskLookupResult, StoredResponse, Unusable, VaryRule};
use weir_wire::LineBuffer;

/// Looks for a response to a request that memory has none for; returns how the request is answered.
pub(crate) async fn run(exchange: &mut RequestState, missing: Missing) -> Plan {
    let worker = Rc::clone(&exchange.worker);
    let found = look_up(exchange).await;
    let now = worker.now();
    let settings = Arc::clone(&exchange.settings);
    let (end, why) = match found {
        Some(DiskLookupResult::Found(response, expected))
            if keeps_to_targeted(exchange, &response) =>
        {
            worker
                .counters()
                .inc(Metric::DiskLookups(DiskLookupEnd::Found));
            let mut tx = exchange.tx;
            tx.found_on_disk();
            let fields = exchange.request.fields();
            let found = (now, exchange.reuse_of(&response));
            let plan = fast::found(&mut tx, &settings, found, &fields, response, |_| expected);
            exchange.tx = tx;
            return plan;
        }
        Some(DiskLookupResult::Found(response, _)) => {
            worker.shared.store.drop_one(exchange.key, &response);
            (DiskLookupEnd::Missing, missing)
        }
        Some(DiskLookupResult::Missing(why, disk_variants)) => {
            exchange.disk_variants = disk_variants.map(Box::new);
            (DiskLookupEnd::Missing, why)
        }
        Some(DiskLookupResult::Unusable(Unusable::Outdated)) => (DiskLookupEnd::Missing, missing),
        Some(DiskLookupResult::Unusable(Unusable::Read(_) | Unusable::Corrupt)) => {
            (DiskLookupEnd::Unusable, missing)
        }
        None => (DiskLookupEnd::TooSlow, missing),
    };
    worker.counters().inc(Metric::DiskLookups(end));
    let why = if missing == Missing::Variant {
        missing
    } else {
        why
    };
    fast::missing(&mut exchange.tx, &settings, now, why)
}

/// Whether what was found keeps to the targeted field that decides now (RFC 9213): it was stored by
/// a process that read other fields, if not.
pub(crate) fn keeps_to_targeted(exchange: &RequestState, response: &StoredResponse) -> bool {
    let mut lines = LineBuffer::new();
    let fields = stored_fields(&response.head, &mut lines);
    let targeted = exchange.settings.targeted(exchange.request.mode);
    let chosen = targeted.choose(fields);
    chosen.is_none_or(|(_, directives)| response.facts.keep_to(&directives))
}

/// `None` if that took longer than `disk.lookup_wait`.
async fn look_up(exchange: &RequestState) -> Option<DiskLookupResult> {
    let worker = &exchange.worker;
    let store = &worker.shared.store;
    let Some(lookup) = DiskLookup::of(store.expect(exchange.key)) else {
        return Some(DiskLookupResult::Missing(Missing::Target, None));
    };
    let lookup = match exchange.variant_digest() {
        None => lookup,
        Some(_) => lookup.of_variants(),
    };
    let (fields, key) = (exchange.request.fields(), exchange.variant_key());
    let fields = exchange.selecting(&fields);
    let selecting = |rule: &VaryRule| selecting_digest(store.secret(), key, rule, fields);
    let looking_up = lookup.run(worker.now(), &selecting);
    let wait = exchange.settings.config.disk.lookup_wait.as_duration();
    timeout(wait, looking_up).await.ok()
}

/// The response that was found cannot be read, and nothing of it was sent: it is dropped, and the
/// request forwarded.
pub(crate) fn unreadable(exchange: &mut RequestState, response: &Arc<StoredResponse>) -> Plan {
    forget(exchange, response);
    let now = exchange.worker.now();
    lost(&mut exchange.tx, now)
}

/// Forgets what was found and cannot be read.
pub(crate) fn forget(exchange: &RequestState, response: &Arc<StoredResponse>) {
    let worker = &exchange.worker;
    worker
        .counters()
        .inc(Metric::DiskLookups(DiskLookupEnd::Unusable));
    worker.shared.store.drop_one(exchange.key, response);
}

fn lost(tx: &mut Transaction, now: weir_policy::Now) -> Plan {
    fast::plan_of(&tx.lost(now))
}
