//! Setting up a connection for a request: an idle one if there is one; else a new one, the first
//! that becomes free, or both in a race, as `weir_policy::connections` decides.
//!
//! Finding an idle connection takes one lock and allocates nothing; everything else lives in a box
//! of its own while it lasts.

use super::advance;
use super::connection::Connection;
use super::destination::Destination;
use super::failure::ConnectFailure;
use super::open;
use super::open_connections::{HandOver, Limit, OpenDecision, Waiter};
use super::pending::{self, Purpose};
use super::pool;
use super::rules::ConnectionRules;
use crate::workers::Worker;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep_until};
use weir_measure::{Metric, Reuse, WaitEnd as EndLabel, WaitReason as WaitLabel};
use weir_policy::connections::{Demand, Room, WaitEnd, WaitReason};
use weir_semantics::ProxyError;

/// A connection to `destination` for one request; with `fresh` a new one, for example for a retry
/// after an idle connection failed (RFC 9112 §9.3.1). It is new in any case where the next hop is
/// told for whom it is.
///
/// The caller returns it with [`check_in`](super::check_in) if it can be used again, or drops it.
///
/// # Errors
///
/// The name cannot be resolved, no address is allowed or accepts a connection within
/// [`ConnectionRules::connect_limit`], or there is no place for one within
/// [`ConnectionRules::wait_limit`]: [`ProxyError::ConnectionLimitReached`].
pub async fn obtain(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    fresh: bool,
) -> Result<Connection, ConnectFailure> {
    // what was told of one client is used for no request of another
    let fresh = fresh || destination.hop.is_for_one_request();
    let idle = if fresh {
        None
    } else {
        pool::check_out(worker, rules, destination)
    };
    let connection = match idle {
        Some(connection) => connection,
        None => Box::pin(SetUp::new(worker, rules, destination, fresh).run()).await?,
    };
    // one of HTTP/2 has room for the requests that come next
    if rules.connections_ahead > 0 && !connection.is_http2() {
        advance::top_up(worker, rules, destination);
    }
    Ok(connection.over(&rules.links))
}

/// The set-up of a connection for a request that found none idle.
struct SetUp<'a> {
    worker: &'a Worker,
    rules: &'a Arc<ConnectionRules>,
    destination: &'a Destination,
    demand: Demand,
    /// When it stops waiting for a place.
    until: Instant,
}

/// What a wait ended with.
enum WaitResult {
    Connection(Box<Connection>),
    Failure(ConnectFailure),
    /// Decide again.
    Retry,
}

/// The event that ended a wait.
enum WaitEvent {
    HandOver(Option<HandOver>),
    PlaceFreed,
    TimeOver,
}

impl<'a> SetUp<'a> {
    fn new(
        worker: &'a Worker,
        rules: &'a Arc<ConnectionRules>,
        destination: &'a Destination,
        fresh: bool,
    ) -> Self {
        Self {
            worker,
            rules,
            destination,
            demand: Demand {
                idle: 0,
                open_in_all: 0,
                fresh,
                can_close: true,
                patient: true,
                busy_us: pool::busy_us(worker, &destination.hop),
            },
            until: Instant::now() + rules.wait_limit,
        }
    }

    async fn run(mut self) -> Result<Connection, ConnectFailure> {
        let (worker, rules, destination) = (self.worker, self.rules, self.destination);
        let open = worker.network().open_connections();
        loop {
            let freed = open.freed();
            let (waiter, at_most_us) = match open.ask(&destination.hop, &rules.open, self.demand) {
                OpenDecision::Open(permit, why) => {
                    self.count(Reuse::Miss);
                    let until = self.until;
                    let opened = open::open(worker, rules, destination, permit, until, why).await;
                    return opened.map(|mut connection| {
                        connection.begin_new(worker);
                        connection
                    });
                }
                OpenDecision::Close(room) => {
                    self.demand.can_close = pool::close_one(worker, &destination.hop, room);
                    continue;
                }
                OpenDecision::Race(permit, waiter) => {
                    let purpose = Purpose::Race(waiter.id);
                    pending::spawn(worker, rules, destination, permit, purpose);
                    (waiter, None)
                }
                OpenDecision::Wait(waiter, at_most_us) => (waiter, at_most_us),
            };
            match self.wait(waiter, at_most_us, freed).await {
                WaitResult::Connection(connection) => return Ok(*connection),
                WaitResult::Failure(failure) => return Err(failure),
                WaitResult::Retry => {}
            }
        }
    }

    async fn wait(
        &mut self,
        waiter: Waiter,
        at_most_us: Option<u64>,
        freed: Notified<'_>,
    ) -> WaitResult {
        let open = self.worker.network().open_connections();
        let mut wait = Wait::begin(self.worker, waiter);
        let why = wait.waiter.why;
        let for_a_place = matches!(why, WaitReason::PerHopMax | WaitReason::TotalMax);
        // a connection that became free just before the wait began was handed to no waiter
        if !self.demand.fresh
            && let Some(connection) = pool::check_out(self.worker, self.rules, self.destination)
        {
            wait.waiter.end = WaitEnd::Returned;
            return WaitResult::Connection(Box::new(connection));
        }
        if for_a_place && self.has_place() {
            return wait.found_place(&mut self.demand);
        }
        let limit = match (why, at_most_us) {
            (WaitReason::Race, _) => None,
            (_, None) => Some(self.until),
            (_, Some(us)) => Some(self.until.min(Instant::now() + Duration::from_micros(us))),
        };
        let mut freed = pin!(freed);
        let mut timer = pin!(sleep_until(limit.unwrap_or(self.until)));
        loop {
            let event = tokio::select! {
                biased;
                handed = wait.waiter.hand_over() => WaitEvent::HandOver(handed),
                () = freed.as_mut(), if for_a_place => WaitEvent::PlaceFreed,
                () = timer.as_mut(), if limit.is_some() => WaitEvent::TimeOver,
            };
            match event {
                WaitEvent::HandOver(handed) => return self.take(&mut wait, handed),
                WaitEvent::TimeOver => return self.time_over(&mut wait, for_a_place),
                WaitEvent::PlaceFreed => {
                    freed.set(open.freed());
                    if self.has_place() {
                        return wait.found_place(&mut self.demand);
                    }
                }
            }
        }
    }

    /// Whether a connection can be opened now: an idle one that this request cannot use is closed
    /// for it.
    fn has_place(&self) -> bool {
        let (worker, hop) = (self.worker, &self.destination.hop);
        let open = worker.network().open_connections();
        match open.limit_reached(hop, &self.rules.open) {
            None => true,
            Some(Limit::Total) => pool::close_one(worker, hop, Room::AnyHop),
            Some(Limit::PerHop) => self.demand.fresh && pool::close_one(worker, hop, Room::SameHop),
        }
    }

    /// Takes what was handed over; `None` if it will not come.
    fn take(&mut self, wait: &mut Wait<'_>, handed: Option<HandOver>) -> WaitResult {
        match handed {
            Some(Ok(idle)) => {
                wait.waiter.end = WaitEnd::Returned;
                let moves = idle.uses.worker != self.worker.index();
                let usable = pool::usable(idle, self.rules, self.destination, moves);
                let Some(mut connection) = usable else {
                    self.worker.counters().inc(Metric::ConnectionCacheUnusable);
                    return WaitResult::Retry;
                };
                self.count(if connection.uses.requests > 0 {
                    Reuse::Hit
                } else {
                    Reuse::Miss
                });
                connection.begin(self.worker, self.worker.now(), true);
                WaitResult::Connection(Box::new(connection))
            }
            Some(Err(failure)) => {
                wait.waiter.end = WaitEnd::Failed;
                self.count(Reuse::Miss);
                WaitResult::Failure(failure)
            }
            None => {
                wait.waiter.end = WaitEnd::InVain;
                self.demand.patient = false;
                WaitResult::Retry
            }
        }
    }

    fn time_over(&mut self, wait: &mut Wait<'_>, for_a_place: bool) -> WaitResult {
        // handed over at the last moment
        if let Some(handed) = wait.waiter.last_hand_over() {
            return self.take(wait, Some(handed));
        }
        if for_a_place {
            wait.waiter.end = WaitEnd::Refused;
            return WaitResult::Failure(ConnectFailure::new(
                ProxyError::ConnectionLimitReached,
                format!(
                    "all connections allowed to {} are in use",
                    self.destination.hop
                ),
            ));
        }
        self.take(wait, None)
    }

    fn count(&self, reuse: Reuse) {
        if !self.demand.fresh {
            self.worker.counters().inc(Metric::ConnectionCache(reuse));
        }
    }
}

/// A wait; counted when it begins and when it ends.
struct Wait<'a> {
    worker: &'a Worker,
    waiter: Waiter,
}

impl<'a> Wait<'a> {
    fn begin(worker: &'a Worker, waiter: Waiter) -> Self {
        let reason = reason_label(waiter.why);
        worker.counters().inc(Metric::ConnectionWaits(reason));
        Self { worker, waiter }
    }

    /// There is room to open a connection: the next decision may do so.
    fn found_place(&mut self, demand: &mut Demand) -> WaitResult {
        self.waiter.end = WaitEnd::Place;
        demand.can_close = true;
        WaitResult::Retry
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let ended = Metric::ConnectionWaitEnds(end_label(self.waiter.end));
        self.worker.counters().inc(ended);
    }
}

fn reason_label(why: WaitReason) -> WaitLabel {
    match why {
        WaitReason::Sooner => WaitLabel::Sooner,
        WaitReason::Race => WaitLabel::Race,
        WaitReason::UnderWay => WaitLabel::UnderWay,
        WaitReason::PerHopMax => WaitLabel::PerHopMax,
        WaitReason::TotalMax => WaitLabel::TotalMax,
    }
}

fn end_label(end: WaitEnd) -> EndLabel {
    match end {
        WaitEnd::Returned => EndLabel::Returned,
        WaitEnd::Place => EndLabel::Place,
        WaitEnd::InVain => EndLabel::InVain,
        WaitEnd::Failed => EndLabel::Failed,
        WaitEnd::Refused => EndLabel::Refused,
        WaitEnd::Left => EndLabel::Left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Label;

    #[test]
    fn wait_reason_and_wait_end_labels_equal_the_policy_words() {
        for why in WaitReason::ALL {
            assert_eq!(reason_label(why).word(), why.as_str());
        }
        for end in WaitEnd::ALL {
            assert_eq!(end_label(end).word(), end.as_str());
        }
    }
}
