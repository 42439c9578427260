//! Which connection is next, and when.

use crate::world::{EventQueue, Nanos};

/// One event at most for each connection; of two at one time the one that was made first.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    queue: EventQueue,
    made: u64,
}

/// Connections at once: 16 million.
const CONNECTION_BITS: u32 = 24;
/// The rest of 64 bits counts events: 10^12.
const MADE_MASK: u64 = (1 << (64 - CONNECTION_BITS)) - 1;

impl Timeline {
    pub(super) fn schedule(&mut self, at: Nanos, connection: u32) {
        let low = (self.made << CONNECTION_BITS) | u64::from(connection);
        self.made = (self.made + 1) & MADE_MASK;
        self.queue.push((u128::from(at) << 64) | u128::from(low));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the parts of the key")]
    pub(super) fn next(&mut self) -> Option<(Nanos, u32)> {
        let key = self.queue.pop_below(u128::MAX)?;
        let connection = key as u64 & ((1 << CONNECTION_BITS) - 1);
        Some(((key >> 64) as u64, connection as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_as_they_were_made() {
        let mut timeline = Timeline::default();
        timeline.schedule(20, 1);
        timeline.schedule(10, 3);
        timeline.schedule(10, 2);
        timeline.schedule(10, (1 << CONNECTION_BITS) - 1);
        let all: Vec<_> = std::iter::from_fn(|| timeline.next()).collect();
        assert_eq!(all, [(10, 3), (10, 2), (10, (1 << 24) - 1), (20, 1)]);
    }
}
