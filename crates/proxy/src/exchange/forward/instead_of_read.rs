//! A response that is on the disk of this node, or its content, asked of another node that has it
//! in memory, while the disk is busy.
//!
//! The other node answers from its store or not at all. The request leads no others and waits for
//! none: each of them costs the other node a hit. If no response comes, the transaction is again
//! what it was before, and the response is read.

use super::{AS_SENT, AnswerResult, answer, note_next_hop, release_whole, talk};
use crate::client::fast;
use crate::exchange::attempts::{self, Failed};
use crate::exchange::download::{HopFailure, ResponseOutcome};
use crate::exchange::heads::outbound;
use crate::exchange::next_hop::{LateralFetch, NextHop};
use crate::exchange::state::{Plan, RequestState};
use std::rc::Rc;
use std::sync::Arc;
use weir_net::http::{ClientStream, ConnectionNeed};
use weir_policy::{Missing, Phase};

/// What there is of it in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InMemory {
    /// Nothing, and what would be found missing if the disk had nothing, either.
    Nothing(Missing),
    /// Its head, by which it was chosen.
    Head,
}

/// Sends the request to `next_hop`, another node; `false` if the response is to be read after all.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    next_hop: NextHop,
    in_memory: InMemory,
) -> bool {
    let (before, settings) = (exchange.tx, Arc::clone(&exchange.settings));
    let now = exchange.worker.now();
    let plan = match in_memory {
        InMemory::Nothing(missing) => fast::missing(&mut exchange.tx, &settings, now, missing),
        InMemory::Head => fast::plan_of(&exchange.tx.lost(now)),
    };
    let is_forwarded = matches!(plan, Plan::Forward { .. });
    if is_forwarded && ask(stream, exchange, &next_hop).await {
        return true;
    }
    exchange.tx = before;
    exchange.lateral = None;
    exchange.expected = None;
    exchange.log.read_after_all();
    false
}

/// Whether the exchange is over.
async fn ask(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    next_hop: &NextHop,
) -> bool {
    let (worker, settings) = (Rc::clone(&exchange.worker), Arc::clone(&exchange.settings));
    let connected = worker.now().tick;
    let fail = |failed| {
        if let Some(peer) = next_hop.peer() {
            attempts::fail_peer(&worker, peer, failed, connected);
        }
    };
    let how = (ConnectionNeed::Any, false);
    let mut hop = match attempts::open(&worker, &settings, next_hop, how).await {
        Ok(hop) => hop,
        Err(failure) => {
            fail(Failed::NoConnection(failure.error));
            return false;
        }
    };
    exchange.log.reach(Phase::Choose);
    exchange.ask(next_hop, &mut hop);
    note_next_hop(stream, exchange, &mut hop);
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    exchange.expect(&worker);
    // behind the ticket that a purge finds from now on
    let purges = &worker.shared.cluster_purges;
    let is_behind = |lateral: &LateralFetch| lateral.is_behind(purges);
    if purges.is_held(exchange.key) || exchange.lateral.as_deref().is_some_and(is_behind) {
        hop.release_unused(worker.net());
        return false;
    }
    let request = outbound::request_head(exchange, AS_SENT, None);
    let outcome = talk(stream, exchange, &mut hop, request, None).await;
    match outcome {
        ResponseOutcome::Failed(HopFailure::Unanswered(_)) if hop.facts().reused => false,
        ResponseOutcome::Failed(HopFailure::Unanswered(reason) | HopFailure::Broken(reason)) => {
            fail(Failed::Sent(reason.error));
            false
        }
        ResponseOutcome::Declined(why) => {
            release_whole(exchange, hop);
            fail(Failed::Declined(why));
            false
        }
        ResponseOutcome::ForwardAgain => false,
        outcome => matches!(
            answer(stream, exchange, hop, outcome, None).await,
            AnswerResult::Ended
        ),
    }
}
