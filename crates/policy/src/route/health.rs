//! Which next hops rest: passive health, learnt from connects that were made anyway.
//!
//! A failed connect sends a next hop to rest. When the rest is over, one request tries it, and the
//! others go on passing it by until that is known: a next hop that lets connects time out then
//! costs one request at a time. If the trial fails the rest is twice as long, up to a limit.
//! Failures *during* a rest (requests under way together, or trials because all rest) start the
//! same rest anew without doubling it: they are the same failure seen again.

use crate::connections::HopId;
use crate::now::{Now, Tick};
use alloc::collections::BTreeMap;

/// How long a next hop rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Milliseconds after the first failed connect; 0: none ever rests. Also how long a trial may
    /// remain without outcome before another is made.
    pub rest_ms: u64,
    /// Milliseconds to which the rest at most grows, doubling with every failed trial; at least
    /// `rest_ms` counts.
    pub rest_max_ms: u64,
}

impl Default for Rest {
    /// 10 s, up to 60 s.
    ///
    /// 10 s is nginx's `fail_timeout`; a minute bounds how late a returned next hop is noticed.
    fn default() -> Self {
        Self {
            rest_ms: 10_000,
            rest_max_ms: 60_000,
        }
    }
}

/// What came of connecting to a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The connection stood.
    Connected,
    /// It was refused, unreachable, or timed out.
    ConnectFailed,
}

/// How a next hop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// No failed connect since the last good one.
    Well,
    /// To be passed by.
    Resting { until: Tick },
    /// The rest is over, and nobody has tried it since.
    Rested,
}

#[derive(Debug)]
pub(super) struct Health {
    rest: Rest,
    /// Every hop of every route, so that the size is that of the configuration; `None`: well.
    hops: BTreeMap<HopId, Option<Failing>>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    until: Tick,
    /// The length of this rest.
    rest_ms: u64,
    /// `until` is not the end of a rest, but when a trial counts as lost.
    on_trial: bool,
}

impl Health {
    pub(super) fn new(rest: Rest, hops: impl Iterator<Item = HopId>) -> Self {
        Self {
            rest,
            hops: hops.map(|hop| (hop, None)).collect(),
        }
    }

    /// Takes over the condition of those that `before` has too.
    pub(super) fn keep(&mut self, before: &Self, known: impl Fn(HopId) -> Option<HopId>) {
        for (hop, condition) in &mut self.hops {
            let same = known(*hop).and_then(|hop| before.hops.get(&hop));
            *condition = same.copied().unwrap_or(*condition);
        }
    }

    pub(super) fn condition(&self, now: Now, hop: HopId) -> Condition {
        match self.hops.get(&hop).copied().flatten() {
            None => Condition::Well,
            Some(failing) if failing.until > now.tick => Condition::Resting {
                until: failing.until,
            },
            Some(_) => Condition::Rested,
        }
    }

    /// A request was sent to try `hop`.
    pub(super) fn begin_probe(&mut self, now: Now, hop: HopId) {
        if let Some(Some(failing)) = self.hops.get_mut(&hop) {
            failing.until = now.tick.plus_ms(self.rest.rest_ms);
            failing.on_trial = true;
        }
    }

    pub(super) fn report(&mut self, now: Now, hop: HopId, outcome: Outcome) {
        let Some(condition) = self.hops.get_mut(&hop) else {
            return;
        };
        *condition = match outcome {
            Outcome::Connected => None,
            Outcome::ConnectFailed => Some(self.rest.after_failure(now, *condition)),
        };
    }
}

impl Rest {
    fn after_failure(self, now: Now, before: Option<Failing>) -> Failing {
        let rest_ms = match before {
            None => self.rest_ms,
            Some(failing) if failing.on_trial || failing.until <= now.tick => {
                let doubled = failing.rest_ms.saturating_mul(2);
                doubled.min(self.rest_max_ms.max(self.rest_ms))
            }
            Some(failing) => failing.rest_ms,
        };
        Failing {
            until: now.tick.plus_ms(rest_ms),
            rest_ms,
            on_trial: false,
        }
    }
}
