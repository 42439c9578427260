//! The reference that responses are compared with: the site, the time, and the faults of the
//! scenario.

use weir_semantics::Timestamp;
use weir_workload::{Content, Fault, FaultKind, Site, Target};

/// How many recent targets are remembered, to identify content in the wrong place.
const REMEMBERED_MAX: usize = 256;

/// The reference that responses are compared with.
#[derive(Debug)]
pub(crate) struct Reference<'s> {
    pub(crate) site: &'s Site,
    pub(crate) seed: u64,
    /// The time by the wall, kept by the driver.
    pub(crate) now: Timestamp,
    faults: &'s [Fault],
    remembered: Vec<Target>,
    oldest: usize,
}

impl<'s> Reference<'s> {
    pub(crate) fn new(site: &'s Site, seed: u64, faults: &'s [Fault], now: Timestamp) -> Self {
        Self {
            site,
            seed,
            now,
            faults,
            remembered: Vec::with_capacity(REMEMBERED_MAX),
            oldest: 0,
        }
    }

    /// Remembers a requested target.
    pub(crate) fn remember(&mut self, target: Target) {
        if self.remembered.len() < REMEMBERED_MAX {
            self.remembered.push(target);
        } else {
            self.remembered[self.oldest] = target;
            self.oldest = (self.oldest + 1) % REMEMBERED_MAX;
        }
    }

    /// The recent target with content that begins so. Called only for wrong content.
    pub(super) fn target_with(&self, bytes: &[u8]) -> Option<Target> {
        // fewer could be alike by chance
        if bytes.len() < 8 {
            return None;
        }
        self.remembered.iter().copied().find(|target| {
            let described = self.site.describe(*target, self.now);
            let length = usize::try_from(described.length).unwrap_or(usize::MAX);
            let bytes = &bytes[..bytes.len().min(length)];
            let content = Content::of(self.seed, *target, described.version);
            bytes.len() >= 8 && content.differs_at(0, bytes).is_none()
        })
    }

    /// Does the scenario have the origin send a wrong length for this target? Then a proxy that
    /// passes it on is not wrong.
    pub(super) fn may_have_wrong_length(&self, target: Target) -> bool {
        self.may_have(target, FaultKind::WrongLength)
    }

    /// Does the scenario have the origin answer with this status for this target?
    pub(super) fn may_have_status(&self, target: Target, status: u16) -> bool {
        self.may_have(target, FaultKind::Status(status))
    }

    fn may_have(&self, target: Target, what: FaultKind) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.what == what && fault.share > 0.0 && fault.targets.includes(target))
    }
}
