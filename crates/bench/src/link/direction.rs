//! One direction of a wire: packets one after the other.

/// Nanoseconds in a second, and in a microsecond.
const SECOND_NS: u128 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1000;

/// A wire that carries so many bytes a second, in the order in which they come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    /// At least 1; `None`: as fast as they come.
    bytes_per_s: Option<u64>,
    /// In nanoseconds, so that many short packets do not add up to a wrong rate.
    free_at_ns: u64,
}

impl Direction {
    pub(super) fn new(bytes_per_s: Option<u64>) -> Self {
        Self {
            bytes_per_s,
            free_at_ns: 0,
        }
    }

    /// When all that was accepted is through, in microseconds.
    pub(super) fn free_at_us(&self) -> u64 {
        self.free_at_ns.div_ceil(MICROSECOND_NS)
    }

    /// Accepts so many bytes now; when the last of them is through.
    pub(super) fn carry(&mut self, now_us: u64, bytes: usize) -> u64 {
        let Some(bytes_per_s) = self.bytes_per_s else {
            return now_us;
        };
        let takes_ns = (bytes as u128 * SECOND_NS).div_ceil(u128::from(bytes_per_s));
        let takes_ns = u64::try_from(takes_ns).unwrap_or(u64::MAX);
        let begins_ns = self.free_at_ns.max(now_us.saturating_mul(MICROSECOND_NS));
        self.free_at_ns = begins_ns.saturating_add(takes_ns);
        self.free_at_us()
    }
}
