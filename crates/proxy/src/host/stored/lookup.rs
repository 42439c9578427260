//! What is stored for a target, in memory or on disk.

use crate::cache::disk_lookup::keeps_to_targeted;
use crate::exchange::state::RequestState;
use crate::request::vary::selecting_digest;
use crate::send::disk_read::READ_WAIT;
use crate::send::heads::stored_fields;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use weir_extend::{Fields, StoredError, StoredInfo};
use weir_policy::{Now, StoredFacts};
use weir_store::{
    DiskLookup, DiskLookupResult, ExpectedResponse, LookupResult, StoredResponse, VaryRule,
};
use weir_wire::LineBuffer;

/// A stored response, and what was expected for its target since it was chosen.
pub(super) type Found = (Arc<StoredResponse>, ExpectedResponse);

/// What is stored for the request of `exchange`; `None` if nothing is.
///
/// # Errors
///
/// The disk did not say in time.
pub(super) async fn find(exchange: &mut RequestState) -> Result<Option<Found>, StoredError> {
    let worker = &exchange.worker;
    let (store, key) = (&worker.shared.store, exchange.key);
    let variant = exchange.variant_digest();
    let (fields, variant_key) = (exchange.request.fields(), exchange.variant_key());
    let fields = exchange.selecting(&fields);
    let selecting = |rule: &VaryRule| selecting_digest(store.secret(), variant_key, rule, fields);
    let in_memory = match variant {
        None => store.find(key, &selecting),
        Some(_) => store.find_variant(key, &selecting),
    };
    if let LookupResult::Found(response) = in_memory {
        let expected = store.expect_for(key, &response);
        return Ok(Some((response, expected)));
    }
    let Some(lookup) = DiskLookup::of(store.expect(key)).filter(|_| store.may_be_on_disk(key))
    else {
        return Ok(None);
    };
    let lookup = match variant {
        None => lookup,
        Some(_) => lookup.of_variants(),
    };
    let looking = timeout(READ_WAIT, lookup.run(worker.now(), &selecting));
    let found = looking.await.map_err(|_| StoredError::Timeout)?;
    Ok(match found {
        DiskLookupResult::Found(response, expected) if keeps_to_targeted(exchange, &response) => {
            Some((response, expected))
        }
        DiskLookupResult::Missing(_, disk_variants) => {
            exchange.disk_variants = disk_variants.map(Box::new);
            None
        }
        DiskLookupResult::Found(..) | DiskLookupResult::Unusable(_) => None,
    })
}

/// Whether no rule of the operator permits any more what a response was stored by: it answers no
/// request.
pub(super) fn lacks_rule(exchange: &RequestState, response: &StoredResponse) -> bool {
    let used = exchange.reuse_of(response).of(&response.facts);
    used.lacks_rule()
}

/// What a caller gets to know of a stored response.
pub(super) fn info(response: &StoredResponse, now: Now) -> StoredInfo {
    let mut info = info_of_head(&response.head, &response.facts, now);
    info.complete_bytes = response.complete_length();
    info.stored_bytes = response.body.present_bytes();
    info
}

/// The same, but for the content.
pub(super) fn info_of_head(head: &[u8], facts: &StoredFacts, now: Now) -> StoredInfo {
    let mut lines = LineBuffer::new();
    let fields = stored_fields(head, &mut lines).iter();
    StoredInfo {
        status: facts.status,
        fields: Fields::received(fields.map(|line| (line.name, line.value))),
        complete_bytes: None,
        stored_bytes: 0,
        age: Duration::from_secs(facts.current_age(now).0.into()),
        fresh_for: fresh_for(facts, now),
    }
}

/// How long a response is still fresh.
pub(super) fn fresh_for(facts: &StoredFacts, now: Now) -> Duration {
    let seconds = if facts.no_cache { 0 } else { facts.ttl(now) };
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
