//! How next hops are: which are ejected, how many requests they have, how soon they respond.
//!
//! Passive health checks, by the outcome of the connects of requests; of nodes of a cluster, by
//! whether they answer as members do, and of siblings by whether they answer in time. And active
//! ones, by the outcome of probes, where a route has them: a next hop that fails several in a row
//! is ejected until it passes several.
//!
//! A failed connect ejects a next hop for a time. After that time one request probes it, and the
//! others avoid it until the outcome is known: a next hop where connects time out then costs one
//! request at a time. If the probe fails, the next ejection is twice as long, up to a limit.
//! Failures *during* an ejection (requests in progress together, or probes because all next hops
//! are ejected) restart it without doubling it: they are the same failure seen again.

use crate::connections::HopId;
use crate::now::{Now, Tick};
use crate::route::cluster::Load;
use crate::route::response_time::PeakMean;
use alloc::vec::Vec;

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

/// How the outcomes of active probes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRules {
    /// So many probes in a row that pass end an ejection; at least 1.
    pub healthy_after: u32,
    /// So many probes in a row that fail eject a next hop; at least 1.
    pub unhealthy_after: u32,
    /// How long an ejection lasts beyond the last probe that failed, milliseconds: longer than
    /// until the outcome of the next one.
    pub hold_ms: u64,
}

/// The outcome of a connect to a next hop; of a request to a sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The connection was established; a sibling has answered.
    Connected,
    /// It was refused, unreachable, or timed out; a sibling has not answered in time.
    ConnectFailed,
}

/// What an outcome changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// It is ejected since now.
    Ejected,
    /// It had been ejected, and is back.
    Back,
}

/// The health of a next hop, or of a node of a cluster.
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
    /// Every hop of every route by its number, so that the size is that of the configuration.
    hops: Vec<HopState>,
}

/// What is known of a next hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopState {
    hop: HopId,
    ejection: Ejection,
    /// Probes in a row that had one outcome.
    streak: Streak,
    /// When it was added, or its last ejection ended; `None` for a next hop from the start.
    back_since: Option<Tick>,
    /// Requests that were sent there and have not ended.
    pub(super) load: Load,
    /// Of these, the ones that wait for the head of their response: what is known of its miss
    /// pressure.
    pub(super) awaited: u32,
    pub(super) response_time: PeakMean,
}

/// Probes in a row: one of the two is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    passed: u32,
    failed: u32,
}

/// Whether one next hop, or one node of a cluster, is ejected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ejection {
    /// `None`: well.
    failing: Option<Failing>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    until: Tick,
    /// The length of this ejection.
    ejection_ms: u64,
    /// `until` is not the end of an ejection, but when a probe counts as failed.
    is_probed: bool,
    /// Active probes have ejected it, and they alone end that before `until`.
    is_held: bool,
}

impl Health {
    pub(super) fn new(rules: EjectionRules, hops: impl Iterator<Item = HopId>) -> Self {
        let mut hops: Vec<HopState> = hops.map(HopState::new).collect();
        hops.sort_by_key(|state| state.hop);
        hops.dedup_by_key(|state| state.hop);
        Self { rules, hops }
    }

    /// Takes over the state of those that `before` has too; the others are new.
    pub(super) fn keep(&mut self, now: Now, before: &Self, known: impl Fn(HopId) -> Option<HopId>) {
        for state in &mut self.hops {
            let same = known(state.hop).and_then(|hop| before.index_of(hop));
            match same {
                Some(same) => {
                    let hop = state.hop;
                    *state = HopState {
                        hop,
                        ..before.hops[same]
                    };
                }
                None => state.back_since = Some(now.tick),
            }
        }
    }

    /// Where a hop is, for [`Health::at`].
    pub(super) fn index_of(&self, hop: HopId) -> Option<usize> {
        self.hops.binary_search_by_key(&hop, |state| state.hop).ok()
    }

    pub(super) fn at(&self, index: usize) -> &HopState {
        &self.hops[index]
    }

    /// A hop of any route.
    pub(super) fn of(&mut self, hop: HopId) -> Option<&mut HopState> {
        let index = self.index_of(hop)?;
        Some(&mut self.hops[index])
    }

    /// A request was sent to try the hop at `index`.
    pub(super) fn begin_probe(&mut self, now: Now, index: usize) {
        let rules = self.rules;
        self.hops[index].ejection.begin_probe(rules, now.tick);
    }

    pub(super) fn report(
        &mut self,
        now: Now,
        hop: HopId,
        outcome: Outcome,
    ) -> Option<HealthChange> {
        let rules = self.rules;
        let state = self.of(hop)?;
        match outcome {
            Outcome::Connected if state.ejection.is_held(now.tick) => None,
            Outcome::Connected => state.recover(now),
            Outcome::ConnectFailed => {
                let is_new = state.ejection.fail(rules, now.tick);
                is_new.then_some(HealthChange::Ejected)
            }
        }
    }

    /// An active probe of `hop` has ended.
    pub(super) fn probed(
        &mut self,
        now: Now,
        hop: HopId,
        has_passed: bool,
        rules: ProbeRules,
    ) -> Option<HealthChange> {
        let state = self.of(hop)?;
        let Streak { passed, failed } = state.streak;
        if has_passed {
            let passed = passed.saturating_add(1);
            state.streak = Streak { passed, failed: 0 };
            if passed >= rules.healthy_after {
                return state.recover(now);
            }
        } else {
            let failed = failed.saturating_add(1);
            state.streak = Streak { passed: 0, failed };
            if failed >= rules.unhealthy_after || state.ejection.is_held(now.tick) {
                let is_new = state.ejection.failing.is_none();
                state.ejection.hold(now.tick.plus_ms(rules.hold_ms));
                return is_new.then_some(HealthChange::Ejected);
            }
        }
        None
    }
}

impl HopState {
    const fn new(hop: HopId) -> Self {
        Self {
            hop,
            ejection: Ejection { failing: None },
            streak: Streak {
                passed: 0,
                failed: 0,
            },
            back_since: None,
            load: Load::NONE,
            awaited: 0,
            response_time: PeakMean::NONE,
        }
    }

    pub(super) const fn hop(&self) -> HopId {
        self.hop
    }

    pub(super) fn condition(&self, now: Now) -> Condition {
        self.ejection.condition(now.tick)
    }

    /// How long it has been back after an ejection, or there at all, milliseconds; `None` from the
    /// start.
    pub(super) fn back_for_ms(&self, now: Now) -> Option<u64> {
        self.back_since.map(|since| now.tick.ms_since(since))
    }

    fn recover(&mut self, now: Now) -> Option<HealthChange> {
        let was_ejected = self.ejection.end();
        if was_ejected {
            self.back_since = Some(now.tick);
        }
        was_ejected.then_some(HealthChange::Back)
    }
}

impl Ejection {
    pub(super) fn condition(&self, now: Tick) -> Condition {
        match self.failing {
            None => Condition::Healthy,
            Some(failing) if failing.until > now => Condition::Ejected {
                until: failing.until,
            },
            Some(_) => Condition::Probing,
        }
    }

    /// A request is sent to try it; the others avoid it until the outcome is known, or for as long
    /// as an ejection.
    pub(super) fn begin_probe(&mut self, rules: EjectionRules, now: Tick) {
        if let Some(failing) = &mut self.failing {
            failing.until = now.plus_ms(rules.ejection_ms);
            failing.is_probed = true;
        }
    }

    /// It failed; whether it was well before.
    pub(super) fn fail(&mut self, rules: EjectionRules, now: Tick) -> bool {
        if self.is_held(now) {
            return false;
        }
        let was_well = self.failing.is_none();
        self.failing = Some(rules.after_failure(now, self.failing));
        was_well
    }

    /// Active probes eject it, until then or until they pass.
    fn hold(&mut self, until: Tick) {
        self.failing = Some(Failing {
            until,
            ejection_ms: 0,
            is_probed: false,
            is_held: true,
        });
    }

    fn is_held(&self, now: Tick) -> bool {
        self.failing
            .is_some_and(|failing| failing.is_held && failing.until > now)
    }

    /// It did not fail; whether it had before.
    pub(super) const fn end(&mut self) -> bool {
        self.failing.take().is_some()
    }
}

impl EjectionRules {
    fn after_failure(self, now: Tick, before: Option<Failing>) -> Failing {
        let ejection_ms = match before {
            None => self.ejection_ms,
            Some(failing) if failing.is_probed || failing.until <= now => {
                let doubled = failing.ejection_ms.saturating_mul(2);
                doubled.min(self.ejection_max_ms.max(self.ejection_ms))
            }
            Some(failing) => failing.ejection_ms,
        };
        let ejection_ms = ejection_ms.max(self.ejection_ms);
        Failing {
            until: now.plus_ms(ejection_ms),
            ejection_ms,
            is_probed: false,
            is_held: false,
        }
    }
}
