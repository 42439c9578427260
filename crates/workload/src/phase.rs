//! The phases of a run, which are counted apart.

/// One phase of a run, in order. Every participant computes the same plan from the scenario and the
/// seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasePlan {
    /// As in the paper: `phase 1`, `warm`, `fill`, `top2`.
    pub name: String,
    /// Does it count towards the result? Ramps, fills and warm-ups do not.
    pub is_measured: bool,
    /// In an open loop: when the phase ends, in microseconds since the start of the run. No request
    /// of it is due later.
    pub ends_at_us: Option<u64>,
    /// In a closed loop that runs by the clock: how long an agent sends requests, in microseconds
    /// since its own first request of the phase. With neither this nor `ends_at_us` the phase ends
    /// when every agent is through with it.
    pub lasts_us: Option<u64>,
}
