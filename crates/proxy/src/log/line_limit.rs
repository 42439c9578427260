//! How many lines of one kind are written to the proxy's own log.

use weir_policy::Tick;

/// Lines that may be written within a second: by one module on one worker, or about the health of
/// next hops and nodes. Further ones are dropped, and counted.
const LINES_PER_SECOND_MAX: u32 = 20;

/// How many lines were written lately.
#[derive(Debug, Default)]
pub(crate) struct LineLimit {
    second: u64,
    written: u32,
    /// Since a line was written.
    dropped: u64,
}

impl LineLimit {
    /// Whether a line may be written now: with the lines that were dropped before it.
    pub(crate) fn permit(&mut self, now: Tick) -> Option<u64> {
        let second = now.0 / 1000;
        if second != self.second {
            self.second = second;
            self.written = 0;
        }
        if self.written >= LINES_PER_SECOND_MAX {
            self.dropped += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_writes_20_lines_a_second_and_learns_how_many_were_dropped() {
        let mut limit = LineLimit::default();
        for _ in 0..20 {
            assert_eq!(limit.permit(Tick(999)), Some(0));
        }
        assert_eq!(limit.permit(Tick(999)), None);
        assert_eq!(limit.permit(Tick(999)), None);
        assert_eq!(limit.permit(Tick(1000)), Some(2));
        assert_eq!(limit.permit(Tick(1000)), Some(0));
    }
}
