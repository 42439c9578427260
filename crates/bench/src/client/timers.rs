//! Tasks by their time: a heap, with at most a few entries a connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Never.
pub(super) const NEVER_US: u64 = u64::MAX;

/// Wake-ups by key. One that is not needed any more stays in the heap: its owner checks whether it
/// was still waiting.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

/// When the owner of a key is woken next, kept beside it, so that a wake-up that moves away costs
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerId(u64);

impl Default for TimerId {
    fn default() -> Self {
        Self(NEVER_US)
    }
}

impl Timers {
    /// Wakes `key` at this time, or earlier if that is what it is armed for.
    pub(super) fn arm(&mut self, armed: &mut TimerId, key: usize, at_us: u64) {
        if at_us < armed.0 {
            armed.0 = at_us;
            self.heap.push(Reverse((at_us, key)));
        }
    }

    /// The earliest wake-up.
    pub(super) fn next_us(&self) -> u64 {
        self.heap
            .peek()
            .map_or(NEVER_US, |Reverse((at_us, _))| *at_us)
    }

    /// Takes the next wake-up that is due; its key, and the time it was for, which
    /// [`TimerId::is_for`] compares.
    pub(super) fn due(&mut self, now_us: u64) -> Option<(usize, u64)> {
        if self.next_us() > now_us {
            return None;
        }
        self.heap.pop().map(|Reverse((at_us, key))| (key, at_us))
    }
}

impl TimerId {
    /// Was it this wake-up that the owner waits for? If so, it is disarmed.
    pub(super) fn is_for(&mut self, at_us: u64) -> bool {
        if self.0 != at_us {
            return false;
        }
        self.0 = NEVER_US;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_fires_once_at_the_earliest_armed_time() {
        let mut timers = Timers::default();
        let mut armed = [TimerId::default(); 2];
        timers.arm(&mut armed[0], 0, 50);
        timers.arm(&mut armed[1], 1, 40);
        // later is no news, earlier is
        timers.arm(&mut armed[0], 0, 60);
        timers.arm(&mut armed[0], 0, 30);
        assert_eq!(timers.next_us(), 30);
        let mut woken = Vec::new();
        while let Some((key, at_us)) = timers.due(50) {
            if armed[key].is_for(at_us) {
                woken.push((key, at_us));
            }
        }
        assert_eq!(woken, [(0, 30), (1, 40)]);
        assert_eq!(timers.next_us(), NEVER_US);
        timers.arm(&mut armed[0], 0, 70);
        assert_eq!(timers.due(69), None);
        assert_eq!(timers.due(70), Some((0, 70)));
    }
}
