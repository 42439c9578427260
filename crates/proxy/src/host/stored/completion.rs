//! Completing a stored part for no client: the fetch of it was paused.

use super::calls::{CallContext, StoredCalls};
use super::lookup::{self, find};
use super::refetch::{background, check_rules, error_of};
use super::target;
use crate::exchange::download::ResponseOutcome;
use crate::exchange::forward::{self, BackgroundResult};
use crate::exchange::next_hop::NextHop;
use crate::exchange::state::RequestState;
use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::missing_range::first_missing;
use crate::log::report;
use std::sync::{Arc, Weak};
use weir_extend::{Pending, StoredError, StoredTarget};
use weir_measure::Metric;
use weir_policy::{Command, Covers, Digest, Event, Forwarding, Transaction};

/// What came of it.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The rest is on its way into this response.
    Begun(Weak<InFlightResponse>),
    /// The link to its next hop has no room for it now.
    NoRoom,
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
    let mut exchange = target::selecting_variant(context, target).await?;
    if exchange.key != key || check_rules(&exchange).is_err() {
        return Ok(Completion::Gone);
    }
    let next_hop = NextHop::of(&exchange).map_err(|_| StoredError::Unreachable)?;
    if !has_room(&exchange, &next_hop) {
        return Ok(Completion::NoRoom);
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
    let mut state = background(&exchange, tx, forwarding);
    state.missing = first_missing(&state, &part, now);
    state.expected = Some(expected);
    if state.missing.is_none() {
        return Ok(Completion::Gone);
    }
    // boxed: it is as large as its largest part
    let asked = forward::in_background(&mut state, next_hop, forwarding, Some(&part));
    let result = Box::pin(asked).await;
    report::count_next_hop(state.worker.counters(), &state.log);
    state.count_heavy_hitters_in_background();
    match result {
        BackgroundResult::Answered(hop, ResponseOutcome::FetchStarted(start)) => {
            state.worker.counters().inc(Metric::FetchesResumed);
            let in_flight = Arc::downgrade(&start.target.in_flight);
            forward::fetch_unread(&state, hop, *start);
            Ok(Completion::Begun(in_flight))
        }
        // another representation, or one that may not be stored
        BackgroundResult::Answered(..) | BackgroundResult::Forgotten => Ok(Completion::Gone),
        BackgroundResult::Failed(reason) => Err(error_of(&reason)),
    }
}

/// Whether the link to a next hop has room for what no client waits for.
fn has_room(exchange: &RequestState, next_hop: &NextHop) -> bool {
    let links = &exchange.settings.connections.links;
    let link = links.of(&next_hop.destination.hop);
    link.is_none_or(|link| link.window_work().completes)
}
