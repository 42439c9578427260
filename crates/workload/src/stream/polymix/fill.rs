//! How much new content has been requested that a cache may store: what ends the fill phase and
//! freezes the working set.

use crate::PolyMix;
use crate::number::whole;

/// Counters of fill, and their goals.
///
/// Polygraph counts what its robots received; here the generator counts what it requests, so that
/// every participant knows the end of the phase beforehand. The two differ by failed requests only.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    /// New storable content of this phase, in bytes.
    phase_bytes: u64,
    /// New storable responses of the whole run.
    responses: u64,
    /// The fill phase ends when this many bytes are new in it.
    bytes_wanted: u64,
    /// The working set is frozen after this many responses.
    responses_wanted: u64,
}

impl Fill {
    pub(super) fn of(polymix: &PolyMix) -> Self {
        Self::new(
            whole(polymix.cache_bytes as f64 * polymix.fill_factor),
            polymix.working_set_targets(),
        )
    }

    fn new(bytes_wanted: u64, responses_wanted: u64) -> Self {
        Self {
            phase_bytes: 0,
            responses: 0,
            bytes_wanted,
            responses_wanted,
        }
    }

    /// One more storable response that was never requested before.
    pub(super) fn add(&mut self, content_bytes: u64) {
        self.phase_bytes += content_bytes;
        self.responses += 1;
    }

    pub(super) fn begin_phase(&mut self) {
        self.phase_bytes = 0;
    }

    /// Is the working set as large as it should get?
    pub(super) fn is_working_set_whole(&self) -> bool {
        self.responses >= self.responses_wanted
    }

    /// May the fill phase end? Both goals have to be reached.
    pub(super) fn is_done(&self) -> bool {
        self.phase_bytes >= self.bytes_wanted && self.is_working_set_whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_ends_only_when_working_set_and_phase_volume_are_complete() {
        let mut fill = Fill::new(1000, 3);
        assert!(!fill.is_done());
        fill.add(5000);
        fill.add(5000);
        assert!(!fill.is_done(), "the working set is not whole");
        fill.begin_phase();
        fill.add(999);
        assert!(fill.is_working_set_whole());
        assert!(!fill.is_done(), "a byte is missing in this phase");
        fill.add(1);
        assert!(fill.is_done());
    }
}
