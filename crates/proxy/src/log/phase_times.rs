//! When a request reached its phases.

use weir_policy::Phase;

/// When a request reached each phase, microseconds from its first byte.
#[derive(Clone, Copy, Debug)]
pub struct PhaseTimes([u32; Phase::ALL.len()]);

/// No time: the phase was not reached.
const NOT_REACHED: u32 = u32::MAX;

impl PhaseTimes {
    /// None was reached.
    pub(crate) const NONE: Self = Self([NOT_REACHED; Phase::ALL.len()]);

    /// The time of `phase`; `None` if it was not reached.
    #[must_use]
    pub fn us(&self, phase: Phase) -> Option<u64> {
        let us = self.0[phase.index()];
        (us != NOT_REACHED).then_some(u64::from(us))
    }

    /// `phase` was reached after `us`.
    pub(crate) fn set(&mut self, phase: Phase, us: u64) {
        self.0[phase.index()] = u32::try_from(us).unwrap_or(NOT_REACHED - 1);
    }

    /// `phase` was reached in vain.
    pub(crate) fn forget(&mut self, phase: Phase) {
        self.0[phase.index()] = NOT_REACHED;
    }
}
