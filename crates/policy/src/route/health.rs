//! Which next hops are ejected: passive health checks, by the outcome of the connects of requests.
//!
//! A failed connect ejects a next hop for a time. After that time one request probes it, and the
//! others avoid it until the outcome is known: a next hop where connects time out then costs one
//! request at a time. If the probe fails, the next ejection is twice as long, up to a limit.
//! Failures *during* an ejection (requests in progress together, or probes because all next hops
//! are ejected) restart it without doubling it: they are the same failure seen again.

use crate::connections::HopId;
use crate::now::{Now, Tick};
use alloc::collections::BTreeMap;

/// How long a next hop is ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectionRules {
    /// Milliseconds after the first failed connect; 0: never. Also how long a probe may have no
    /// outcome before another request probes.
    pub ejection_ms: u64,
    /// The longest ejection, milliseconds: each failed probe doubles the time up to this. At least
    /// `ejection_ms` counts.
    pub ejection_max_ms: u64,
}

impl Default for EjectionRules {
    /// 10 s, up to 60 s.
    ///
    /// 10 s is nginx's `fail_timeout`; a minute bounds how late a returned next hop is noticed.
    fn default() -> Self {
        Self {
            ejection_ms: 10_000,
            ejection_max_ms: 60_000,
        }
    }
}

/// The outcome of a connect to a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The connection was established.
    Connected,
    /// It was refused, unreachable, or timed out.
    ConnectFailed,
}

/// The health of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// No failed connect since the last good one.
    Healthy,
    /// To be avoided until then.
    Ejected { until: Tick },
    /// The ejection is over, and no request has probed it yet.
    Probing,
}

#[derive(Debug)]
pub(super) struct Health {
    rules: EjectionRules,
    /// Every hop of every route, so that the size is that of the configuration; `None`: well.
    hops: BTreeMap<HopId, Option<Failing>>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    until: Tick,
    /// The length of this ejection.
    ejection_ms: u64,
    /// `until` is not the end of an ejection, but when a probe counts as failed.
    is_probed: bool,
}

impl Health {
    pub(super) fn new(rules: EjectionRules, hops: impl Iterator<Item = HopId>) -> Self {
        Self {
            rules,
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
            None => Condition::Healthy,
            Some(failing) if failing.until > now.tick => Condition::Ejected {
                until: failing.until,
            },
            Some(_) => Condition::Probing,
        }
    }

    /// A request was sent to try `hop`.
    pub(super) fn begin_probe(&mut self, now: Now, hop: HopId) {
        if let Some(Some(failing)) = self.hops.get_mut(&hop) {
            failing.until = now.tick.plus_ms(self.rules.ejection_ms);
            failing.is_probed = true;
        }
    }

    pub(super) fn report(&mut self, now: Now, hop: HopId, outcome: Outcome) {
        let Some(condition) = self.hops.get_mut(&hop) else {
            return;
        };
        *condition = match outcome {
            Outcome::Connected => None,
            Outcome::ConnectFailed => Some(self.rules.after_failure(now, *condition)),
        };
    }
}

impl EjectionRules {
    fn after_failure(self, now: Now, before: Option<Failing>) -> Failing {
        let ejection_ms = match before {
            None => self.ejection_ms,
            Some(failing) if failing.is_probed || failing.until <= now.tick => {
                let doubled = failing.ejection_ms.saturating_mul(2);
                doubled.min(self.ejection_max_ms.max(self.ejection_ms))
            }
            Some(failing) => failing.ejection_ms,
        };
        Failing {
            until: now.tick.plus_ms(ejection_ms),
            ejection_ms,
            is_probed: false,
        }
    }
}
