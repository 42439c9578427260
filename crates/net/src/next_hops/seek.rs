//! What a request does that found no idle connection: open one, wait for one, or both, as the
//! policy says.

use crate::failure::ConnectFailure;
use crate::next_hops::destination::Destination;
use crate::next_hops::next_hop::{self, Connection};
use crate::next_hops::open_connections::{Asked, Full, Handed, Waiter};
use crate::next_hops::pool;
use crate::next_hops::rules::ConnectionRules;
use crate::next_hops::to_come::{self, ToCome};
use crate::worker::Worker;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep_until};
use weir_measure::{Metric, Reuse, WaitEnd as EndLabel, WaitReason as WaitLabel};
use weir_policy::connections::{Demand, Room, WaitEnd, WaitReason};
use weir_semantics::ProxyError;

/// A request that wants a connection.
pub struct Seeker<'a> {
    worker: &'a Worker,
    rules: &'a Arc<ConnectionRules>,
    destination: &'a Destination,
    demand: Demand,
    /// When it stops waiting for a place.
    until: Instant,
}

/// What a wait came to.
enum Waited {
    Got(Box<Connection>),
    Failed(ConnectFailure),
    Again,
}

/// What came first while it waited.
enum First {
    Handed(Option<Handed>),
    Freed,
    TooLate,
}

impl<'a> Seeker<'a> {
    pub fn new(
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

    /// Seeks until there is a connection, or none can be had.
    ///
    /// # Errors
    ///
    /// As for [`next_hop::obtain`].
    pub async fn run(mut self) -> Result<Connection, ConnectFailure> {
        let (worker, destination) = (self.worker, self.destination);
        loop {
            let freed = worker.network().open_connections().freed();
            let asked = worker.network().open_connections().ask(
                &destination.hop,
                &self.rules.open,
                self.demand,
            );
            let (waiter, at_most_us) = match asked {
                Asked::Open(permit, why) => {
                    self.count(Reuse::Miss);
                    let until = self.until;
                    return next_hop::open(worker, self.rules, destination, permit, until, why)
                        .await;
                }
                Asked::Close(room) => {
                    self.demand.can_close = pool::close_one(worker, &destination.hop, room);
                    continue;
                }
                Asked::Race(permit, waiter) => {
                    to_come::spawn(
                        worker,
                        self.rules,
                        destination,
                        permit,
                        ToCome::Raced(waiter.id),
                    );
                    (waiter, None)
                }
                Asked::Wait(waiter, at_most_us) => (waiter, at_most_us),
            };
            match self.wait(waiter, at_most_us, freed).await {
                Waited::Got(connection) => return Ok(*connection),
                Waited::Failed(failure) => return Err(failure),
                Waited::Again => {}
            }
        }
    }

    async fn wait(
        &mut self,
        waiter: Waiter,
        at_most_us: Option<u64>,
        freed: Notified<'_>,
    ) -> Waited {
        let open = self.worker.network().open_connections();
        let mut wait = Wait::begin(self.worker, waiter);
        let why = wait.waiter.why;
        let for_a_place = matches!(why, WaitReason::PerHopMax | WaitReason::TotalMax);
        // what came back just before it began to wait was handed to nobody
        if !self.demand.fresh
            && let Some(connection) = pool::check_out(self.worker, self.rules, self.destination)
        {
            wait.waiter.end = WaitEnd::Returned;
            return Waited::Got(Box::new(connection));
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
        let mut late = pin!(sleep_until(limit.unwrap_or(self.until)));
        loop {
            let first = tokio::select! {
                biased;
                handed = wait.waiter.handed() => First::Handed(handed),
                () = freed.as_mut(), if for_a_place => First::Freed,
                () = late.as_mut(), if limit.is_some() => First::TooLate,
            };
            match first {
                First::Handed(handed) => return self.take(&mut wait, handed),
                First::TooLate => return self.too_late(&mut wait, for_a_place),
                First::Freed => {
                    freed.set(open.freed());
                    if self.has_place() {
                        return wait.found_place(&mut self.demand);
                    }
                }
            }
        }
    }

    /// Whether a connection can be opened now: one that is idle and of no use to it gives way.
    fn has_place(&self) -> bool {
        let (worker, hop) = (self.worker, &self.destination.hop);
        match worker
            .network()
            .open_connections()
            .is_full(hop, &self.rules.open)
        {
            None => true,
            Some(Full::All) => pool::close_one(worker, hop, Room::AnyHop),
            Some(Full::NextHop) => self.demand.fresh && pool::close_one(worker, hop, Room::SameHop),
        }
    }

    fn take(&mut self, wait: &mut Wait<'_>, handed: Option<Handed>) -> Waited {
        match handed {
            Some(Ok(socket)) => {
                wait.waiter.end = WaitEnd::Returned;
                let moves = socket.uses.worker != self.worker.index();
                let usable = pool::usable(socket, self.rules, self.destination, moves);
                let Some(mut connection) = usable else {
                    self.worker.counters().inc(Metric::ConnectionCacheUnusable);
                    return Waited::Again;
                };
                self.count(if connection.uses.requests > 0 {
                    Reuse::Hit
                } else {
                    Reuse::Miss
                });
                connection.begin(self.worker, self.worker.now(), true);
                Waited::Got(Box::new(connection))
            }
            Some(Err(failure)) => {
                wait.waiter.end = WaitEnd::Failed;
                self.count(Reuse::Miss);
                Waited::Failed(failure)
            }
            None => {
                wait.waiter.end = WaitEnd::InVain;
                self.demand.patient = false;
                Waited::Again
            }
        }
    }

    fn too_late(&mut self, wait: &mut Wait<'_>, for_a_place: bool) -> Waited {
        // in the last moment
        if let Some(handed) = wait.waiter.handed_already() {
            return self.take(wait, Some(handed));
        }
        if for_a_place {
            wait.waiter.end = WaitEnd::Refused;
            return Waited::Failed(ConnectFailure::new(
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

    fn found_place(&mut self, demand: &mut Demand) -> Waited {
        self.waiter.end = WaitEnd::Place;
        demand.can_close = true;
        Waited::Again
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
