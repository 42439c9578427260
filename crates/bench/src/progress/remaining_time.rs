//! How long a run will still take.

use crate::tally::SecondTally;
use std::time::Duration;
use weir_workload::{PhasePlan, Scenario, Workload};

/// What is known of the end.
#[derive(Clone, Debug, Default)]
pub(super) struct RemainingTime {
    phases: Vec<PhasePlan>,
    /// Requests of the whole run, where the number decides when it ends.
    requests: Option<u64>,
    ended: u64,
    phase: u8,
    /// The second in which the phase was first seen.
    phase_from_s: u32,
}

impl RemainingTime {
    pub(super) fn of(scenario: &Scenario, seed: u64) -> Self {
        let requests = match &scenario.workload {
            Workload::Wpb(wpb) => {
                Some(2 * u64::from(wpb.clients) * u64::from(wpb.requests_per_client))
            }
            _ => None,
        };
        Self {
            phases: scenario.phases(seed),
            requests,
            ..Self::default()
        }
    }

    pub(super) fn see(&mut self, second: &SecondTally) {
        self.ended += second.responses + second.errors;
        if second.phase > self.phase {
            (self.phase, self.phase_from_s) = (second.phase, second.at_s);
        }
    }

    pub(super) fn phase_name(&self, phase: u8) -> String {
        let phase = self.phases.get(usize::from(phase));
        phase.map_or_else(String::new, |phase| phase.name.clone())
    }

    /// `None` where the scenario does not say.
    pub(super) fn left(&self, passed: Duration) -> Option<Duration> {
        if let Some(ends_at_us) = self.phases.last()?.ends_at_us {
            return Some(Duration::from_micros(ends_at_us).saturating_sub(passed));
        }
        if let Some(lasts_us) = self.phases.get(usize::from(self.phase))?.lasts_us {
            let from = Duration::from_secs(u64::from(self.phase_from_s));
            return Some((from + Duration::from_micros(lasts_us)).saturating_sub(passed));
        }
        let requests = self.requests.filter(|_| self.ended > 0)?;
        let left = u128::from(requests.saturating_sub(self.ended));
        let left_us = passed.as_micros() * left / u128::from(self.ended);
        Some(Duration::from_micros(u64::try_from(left_us).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(ends_at_us: Option<u64>, lasts_us: Option<u64>) -> PhasePlan {
        PhasePlan {
            name: "one".into(),
            is_measured: true,
            ends_at_us,
            lasts_us,
        }
    }

    fn ended(at_s: u32, phase: u8, responses: u64) -> SecondTally {
        SecondTally {
            at_s,
            phase,
            responses,
            ..SecondTally::default()
        }
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn remaining_time_follows_deadline_duration_or_request_count() {
        let mut open = RemainingTime {
            phases: vec![phase(Some(5_000_000), None), phase(Some(9_000_000), None)],
            ..RemainingTime::default()
        };
        assert_eq!(open.left(s(4)), Some(s(5)));
        assert_eq!(open.left(s(40)), Some(s(0)));
        open.see(&ended(0, 1, 1));
        assert_eq!(open.phase_name(1), "one");

        let mut by_clock = RemainingTime {
            phases: vec![phase(None, None), phase(None, Some(10_000_000))],
            ..RemainingTime::default()
        };
        assert_eq!(by_clock.left(s(1)), None);
        by_clock.see(&ended(3, 1, 1));
        by_clock.see(&ended(5, 1, 1));
        assert_eq!(by_clock.left(s(5)), Some(s(8)));

        let mut by_number = RemainingTime {
            phases: vec![phase(None, None)],
            requests: Some(400),
            ..RemainingTime::default()
        };
        assert_eq!(by_number.left(s(1)), None);
        by_number.see(&ended(0, 0, 100));
        assert_eq!(by_number.left(s(10)), Some(s(30)));
    }
}
