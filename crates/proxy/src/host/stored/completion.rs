//! Completing a stored part for no client: the fetch of it was paused.

use super::calls::{CallContext, StoredCalls};
use super::link_room::{self, HasRoom};
use super::lookup::{self, find};
use super::refetch::{background, check_rules, error_of};
use super::target;
use crate::exchange::download::ResponseOutcome;
use crate::exchange::forward::{self, BackgroundResult};
use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::missing_range::first_missing;
use crate::log::report;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::timeout;
use weir_extend::{Pending, StoredError, StoredTarget};
use weir_measure::Metric;
use weir_policy::fetch::RestRefusal;
use weir_policy::{Command, Covers, Digest, Event, Forwarding, Transaction};

/// How long the head of a response may take, with connecting and the wait for the link. The next
/// hop has less (`RequestState::head_silence`).
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

/// Over no link there is always room.
const COMPLETES: HasRoom = |work| work.is_none_or(|work| work.completes);

/// What came of it.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The rest is on its way into this response.
    Begun(Weak<InFlightResponse>),
    /// The link to its next hop has no room for it now.
    NoRoom,
    /// The next hop sent something else.
    Refused(RestRefusal),
    /// There is no such part any more, or it may not be completed.
    Gone,
}

impl StoredCalls {
    /// Has the first missing range of the part that is stored for `target` fetched, if its cache
    /// key is `key`. A request without any field of a client selects it and asks for the rest.
    pub(crate) fn complete(
        &self,
        target: StoredTarget,
        key: Digest,
    ) -> Pending<Result<Completion, StoredError>> {
        self.call(async move |context: CallContext| complete(&context, &target, key).await)
    }
}

async fn complete(
    context: &CallContext,
    target: &StoredTarget,
    key: Digest,
) -> Result<Completion, StoredError> {
    let exchange = target::exchange(context, target)?;
    if !link_room::may_be(&exchange, COMPLETES) {
        return Ok(Completion::NoRoom);
    }
    let mut exchange = target::with_variant(exchange).await?;
    exchange.is_unasked = true;
    if exchange.key != key || check_rules(&exchange).is_err() {
        return Ok(Completion::Gone);
    }
    let Some((part, expected)) = find(&mut exchange).await? else {
        return Ok(Completion::Gone);
    };
    if !part.is_part() || lookup::lacks_rule(&exchange, &part) {
        return Ok(Completion::Gone);
    }
    let now = exchange.worker.now();
    let rules = &exchange.settings.rules;
    let unshared = !exchange.settings.config.cache.enabled;
    let mut tx = Transaction::new(*exchange.tx.request(), now);
    let _ = tx.handle(now, rules, Event::Request { unshared });
    let found = Event::FoundPart(&part.facts, Covers::Lacking);
    let forwarding = match tx.handle(now, rules, found).first() {
        Some(Command::Forward(forwarding @ Forwarding { complete: true, .. })) => forwarding,
        _ => return Ok(Completion::Gone),
    };
    tx.unasked(now, rules);
    let mut state = background(&exchange, tx, forwarding);
    state.missing = first_missing(&state, &part, now).map(Box::new);
    state.expected = Some(Box::new(expected));
    if state.missing.is_none() {
        return Ok(Completion::Gone);
    }
    let Some(next_hop) = link_room::next_hop(&exchange, COMPLETES)? else {
        return Ok(Completion::NoRoom);
    };
    // boxed: it is as large as its largest part
    let asked = forward::in_background(&mut state, next_hop, forwarding, Some(&part));
    let result = timeout(HEAD_TIME_MAX, Box::pin(asked)).await;
    let result = result.map_err(|_| StoredError::Timeout)?;
    report::count_next_hop(state.worker.counters(), &state.log);
    state.count_heavy_hitters_in_background();
    match result {
        BackgroundResult::Answered(hop, ResponseOutcome::FetchStarted(start)) => {
            state.worker.counters().inc(Metric::FetchesResumed);
            let in_flight = Arc::downgrade(&start.target.in_flight);
            forward::fetch_unread(&state, hop, *start);
            Ok(Completion::Begun(in_flight))
        }
        BackgroundResult::Answered(_, ResponseOutcome::NotRest(refusal)) => {
            Ok(Completion::Refused(refusal))
        }
        BackgroundResult::Answered(..) => Err(StoredError::Unreachable),
        BackgroundResult::Forgotten => Ok(Completion::Gone),
        BackgroundResult::Failed(reason) => Err(error_of(&reason)),
    }
}
