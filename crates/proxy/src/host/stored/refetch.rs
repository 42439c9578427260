//! Requests to next hops for what is stored, or to be stored: without a client, and not collapsed
//! with those of clients.

use super::calls::{CallContext, StoredCalls};
use super::link_room::{self, HasRoom};
use super::lookup::{self, Found, find};
use super::target;
use crate::exchange::download::ResponseOutcome;
use crate::exchange::forward::{self, BackgroundResult};
use crate::exchange::next_hop::NextHop;
use crate::exchange::state::{Plan, RequestState};
use crate::log::report;
use crate::request::answer::AnswerReason;
use std::sync::Arc;
use weir_extend::{Pending, StoredError, StoredInfo, StoredTarget, Validation};
use weir_policy::fetch::is_to_refresh;
use weir_policy::verdict::{NotStored, Storing};
use weir_policy::{Event, Forwarding, Missing, Transaction};
use weir_semantics::ProxyError;
use weir_store::StoredResponse;

/// A request as a client sends it.
const AS_SENT: Forwarding = Forwarding {
    validate: false,
    complete: false,
};

/// Over no link nothing is validated for no client.
const REFRESHES: HasRoom = |work| work.is_some_and(|work| work.refreshes > 0);

/// What came of a request.
enum Outcome {
    /// The stored response is freshened.
    Freshened,
    /// It is stored.
    Stored,
    /// It is not; the status of the response.
    NotStored(NotStored, Option<u16>),
    /// It answers another request than the one that was sent: the validators were wrong.
    Again,
}

/// Refuses to request what rules of the operator have no client get from the store.
pub(super) fn check_rules(exchange: &RequestState) -> Result<(), StoredError> {
    let rules = &exchange.settings.operator_rules;
    let outcome = rules.outcome(exchange.operator_rules);
    if outcome.deny.is_some() {
        return Err(StoredError::Forbidden);
    }
    match outcome.bypass {
        true => Err(StoredError::Refused(NotStored::BypassByRule.as_str(), None)),
        false => Ok(()),
    }
}

/// Has the response to a GET of the target stored, unless a fresh one is.
pub(super) async fn fetch(
    context: &CallContext,
    target: &StoredTarget,
) -> Result<StoredInfo, StoredError> {
    let mut exchange = target::selecting_variant(context, target).await?;
    check_rules(&exchange)?;
    let now = context.worker.now();
    let found = find(&mut exchange).await?;
    let is_used =
        |(response, _): &Found| !response.is_part() && !lookup::lacks_rule(&exchange, response);
    let whole = found.filter(is_used);
    let mut outcome = Outcome::Again;
    if let Some((response, expected)) = whole {
        if !lookup::fresh_for(&response.facts, now).is_zero() {
            return Ok(lookup::info(&response, now));
        }
        if response.facts.has_validator {
            let next_hop = next_hop(&exchange)?;
            outcome = ask_about(&exchange, (response, expected), next_hop).await?;
        }
    }
    if matches!(outcome, Outcome::Again) {
        outcome = ask_anew(&mut exchange).await?;
    }
    match outcome {
        Outcome::NotStored(why, status) => Err(StoredError::Refused(why.as_str(), status)),
        Outcome::Again => Err(StoredError::Unreachable),
        Outcome::Freshened | Outcome::Stored => {
            let stored = find(&mut exchange).await?;
            let (response, _) = stored.ok_or(StoredError::Outdated)?;
            Ok(lookup::info(&response, context.worker.now()))
        }
    }
}

/// Has the origin say whether what is stored is still valid.
pub(super) async fn validate(
    context: &CallContext,
    target: &StoredTarget,
) -> Result<Validation, StoredError> {
    let mut exchange = target::selecting_variant(context, target).await?;
    check_rules(&exchange)?;
    let found = find(&mut exchange).await?;
    let found = found.filter(|(response, _)| !response.is_part());
    let found = found.ok_or(StoredError::NotStored)?;
    let next_hop = next_hop(&exchange)?;
    let outcome = match ask_about(&exchange, found, next_hop).await? {
        Outcome::Again => ask_anew(&mut exchange).await?,
        outcome => outcome,
    };
    match outcome {
        Outcome::Freshened => Ok(Validation::Valid),
        Outcome::Stored => Ok(Validation::Replaced),
        Outcome::NotStored(NotStored::StoredIsUsable, _) | Outcome::Again => {
            Err(StoredError::Unreachable)
        }
        Outcome::NotStored(..) => Ok(Validation::Dropped),
    }
}

/// What came of looking at a popular response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// It was validated, or replaced.
    Done,
    /// It needs no validation, or none is for it.
    NotNeeded,
    /// The link to its next hop has no window for it now.
    NoWindow,
}

impl StoredCalls {
    /// Validates the response that is stored for `target`, if it is not fresh for long and a time
    /// window of the link to its next hop has that. No field of a client selects it or is sent.
    pub(crate) fn refresh(&self, target: StoredTarget) -> Pending<Result<Refresh, StoredError>> {
        self.call(async move |context: CallContext| refresh(&context, &target).await)
    }
}

async fn refresh(context: &CallContext, target: &StoredTarget) -> Result<Refresh, StoredError> {
    let exchange = target::exchange(context, target)?;
    if !link_room::may_be(&exchange, REFRESHES) {
        return Ok(Refresh::NoWindow);
    }
    let mut exchange = target::with_variant(exchange).await?;
    exchange.is_unasked = true;
    check_rules(&exchange)?;
    let now = context.worker.now();
    let Some((response, expected)) = find(&mut exchange).await? else {
        return Ok(Refresh::NotNeeded);
    };
    let used = exchange.reuse_of(&response).of(&response.facts);
    let is_shared = used.answers_others(now) && !used.lacks_rule();
    if response.is_part() || !is_shared || !is_to_refresh(now, &response.facts) {
        return Ok(Refresh::NotNeeded);
    }
    let Some(next_hop) = link_room::next_hop(&exchange, REFRESHES)? else {
        return Ok(Refresh::NoWindow);
    };
    let links = &exchange.settings.connections.links;
    if let Some(link) = links.of(&next_hop.destination.hop) {
        link.refreshed();
    }
    ask_about(&exchange, (response, expected), next_hop).await?;
    Ok(Refresh::Done)
}

/// Asks whether a stored response is still valid; without a validator it is requested anew.
async fn ask_about(
    exchange: &RequestState,
    (response, expected): Found,
    next_hop: NextHop,
) -> Result<Outcome, StoredError> {
    let now = exchange.worker.now();
    let request = *exchange.tx.request();
    // an error does not replace what clients are still served by a rule
    let used = exchange.reuse_of(&response).of(&response.facts);
    let (mut tx, forwarding) = Transaction::refresh(request, &used, now);
    if exchange.is_unasked {
        tx.unasked(now, &exchange.settings.rules);
    }
    let mut state = background(exchange, tx, forwarding);
    state.expected = Some(Box::new(expected));
    ask(&mut state, next_hop, forwarding, Some(&response)).await
}

/// Requests it as if nothing were stored.
async fn ask_anew(exchange: &mut RequestState) -> Result<Outcome, StoredError> {
    let now = exchange.worker.now();
    let mut tx = Transaction::new(*exchange.tx.request(), now);
    let rules = &exchange.settings.rules;
    let unshared = !exchange.settings.config.cache.enabled;
    let _ = tx.handle(now, rules, Event::Request { unshared });
    let _ = tx.handle(now, rules, Event::Missing(Missing::Target));
    let mut state = background(exchange, tx, AS_SENT);
    state.disk_variants = exchange.disk_variants.take();
    let next_hop = next_hop(&state)?;
    ask(&mut state, next_hop, AS_SENT, None).await
}

pub(super) fn background(
    exchange: &RequestState,
    tx: Transaction,
    forwarding: Forwarding,
) -> RequestState {
    let plan = Plan::Forward {
        forwarding,
        stored: None,
    };
    let mut state = exchange.in_background(tx, plan);
    state.is_of_call = true;
    state.is_unasked = exchange.is_unasked;
    state
}

fn next_hop(exchange: &RequestState) -> Result<NextHop, StoredError> {
    NextHop::of(exchange).map_err(|answer| match answer.status {
        403 => StoredError::Forbidden,
        _ => StoredError::Unreachable,
    })
}

async fn ask(
    exchange: &mut RequestState,
    next_hop: NextHop,
    forwarding: Forwarding,
    stored: Option<&Arc<StoredResponse>>,
) -> Result<Outcome, StoredError> {
    // boxed: it is as large as its largest part
    let result = Box::pin(forward::in_background(
        exchange, next_hop, forwarding, stored,
    ))
    .await;
    let worker = &exchange.worker;
    report::count_next_hop(worker.counters(), &exchange.log);
    exchange.count_heavy_hitters_in_background();
    let (hop, outcome) = match result {
        BackgroundResult::Answered(hop, outcome) => (hop, outcome),
        BackgroundResult::Forgotten => return Err(StoredError::Outdated),
        BackgroundResult::Failed(reason) => return Err(error_of(&reason)),
    };
    match outcome {
        ResponseOutcome::Merged { ref stored, .. } => {
            let is_stored = stored.is_some();
            hop.release(worker.net(), exchange.read_ahead().bytes());
            return if is_stored {
                Ok(Outcome::Freshened)
            } else {
                Err(StoredError::Outdated)
            };
        }
        ResponseOutcome::Relayed => {
            hop.release(worker.net(), exchange.read_ahead().bytes());
        }
        ResponseOutcome::ForwardAgain => return Ok(Outcome::Again),
        // of what is not received to its end the connection is closed
        _ => {}
    }
    match exchange.tx.verdict().storing {
        Some(Storing::Stored) if matches!(outcome, ResponseOutcome::Relayed) => Ok(Outcome::Stored),
        Some(Storing::NotStored(NotStored::Incomplete)) => Err(StoredError::Unreachable),
        Some(Storing::NotStored(why)) => {
            Ok(Outcome::NotStored(why, exchange.tx.verdict().fwd_status))
        }
        Some(Storing::Stored) | None => Err(StoredError::Unreachable),
    }
}

pub(super) fn error_of(reason: &AnswerReason) -> StoredError {
    match reason.error {
        ProxyError::DestinationIpProhibited => StoredError::Forbidden,
        error if error.as_str().contains("timeout") => StoredError::Timeout,
        _ => StoredError::Unreachable,
    }
}
