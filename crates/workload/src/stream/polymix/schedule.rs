//! PolyMix's phases: how long each lasts, and the three factors that change along a straight line
//! within it.

use crate::PolyMix;
use crate::phase::PhasePlan;
use crate::stream::arrivals::Ramp;

/// One phase of the schedule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchedulePhase {
    pub(super) name: String,
    pub(super) is_measured: bool,
    /// `None`: until the fill goal is reached.
    pub(super) seconds: Option<f64>,
    /// Of the peak rate: at the beginning and at the end.
    load: (f64, f64),
    /// The recurrence, with the phase's factor in it.
    recurrence: (f64, f64),
    /// Of the shares of conditional requests, reloads and other methods than GET.
    special: (f64, f64),
}

impl SchedulePhase {
    /// One of the phase's factors as a function of time.
    fn ramp(&self, (begin, end): (f64, f64)) -> Ramp {
        Ramp {
            begin,
            end,
            seconds: self.seconds,
        }
    }

    /// Arrivals a second, where the whole load is `peak_rate_per_s`.
    pub(super) fn arrivals(&self, peak_rate_per_s: f64) -> Ramp {
        let (begin, end) = self.load;
        self.ramp((begin * peak_rate_per_s, end * peak_rate_per_s))
    }

    /// The load, as a share of the peak's.
    pub(super) fn load(&self) -> Ramp {
        self.ramp(self.load)
    }

    /// How often a request is repeated.
    pub(super) fn recurrence(&self) -> Ramp {
        self.ramp(self.recurrence)
    }

    /// What the shares of special requests are multiplied by.
    pub(super) fn special(&self) -> Ramp {
        self.ramp(self.special)
    }

    pub(super) fn plan(&self, ends_at_us: u64) -> PhasePlan {
        PhasePlan {
            name: self.name.clone(),
            is_measured: self.is_measured,
            ends_at_us: Some(ends_at_us),
            lasts_us: None,
        }
    }
}

/// The scenario's phases, each from where the one before it ended.
pub(super) fn phases(polymix: &PolyMix) -> Vec<SchedulePhase> {
    let mut load = 0.0;
    let mut factors = None;
    let phases = polymix.phases.iter();
    phases
        .map(|phase| {
            let begin = phase
                .load_from
                .map_or(load, |from| polymix.load_share(from));
            load = polymix.load_share(phase.load);
            let end = (phase.recurrence * polymix.recurrence, phase.special);
            let from = factors.replace(end).unwrap_or(end);
            SchedulePhase {
                name: phase.name.clone(),
                is_measured: phase.measured,
                seconds: phase.seconds,
                load: (begin, load),
                recurrence: (from.0, end.0),
                special: (from.1, end.1),
            }
        })
        .collect()
}
