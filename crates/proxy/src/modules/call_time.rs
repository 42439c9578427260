//! How long a call of a module takes on the thread of a worker.

use std::time::{Duration, Instant};
use weir_net::thread_time;

/// A call that waits, which it must not, is late after so many times its deadline by the wall
/// clock. Below that it cannot be told from one whose thread had to wait for a processor.
const WAITS_MAX: u32 = 8;

/// The time of a call that has begun. It counts by the processor time of its thread: on a busy
/// machine a module is not to blame for the time in which others ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTime {
    wall: Instant,
    cpu: Duration,
}

impl CallTime {
    /// A call begins.
    pub(super) fn begin() -> Self {
        Self {
            wall: Instant::now(),
            cpu: thread_time(),
        }
    }

    /// Whether it has taken longer than `deadline`.
    pub(super) fn exceeds(&self, deadline: Duration) -> bool {
        let wall = self.wall.elapsed();
        // most calls end here
        wall > deadline
            && (wall > deadline.saturating_mul(WAITS_MAX)
                || thread_time().saturating_sub(self.cpu) > deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(60);

    /// A call that began so long ago by the wall clock, and has done nothing since.
    fn idle_for(wall: Duration) -> Option<CallTime> {
        Some(CallTime {
            wall: Instant::now().checked_sub(wall)?,
            cpu: thread_time(),
        })
    }

    #[test]
    fn call_counts_by_the_time_of_its_thread_unless_it_waits_for_long() {
        let is_late = |wall| {
            let call = idle_for(wall);
            call.map(|call| call.exceeds(DEADLINE))
        };
        // a clock that began with the machine may not know a time before that
        for (times, late) in [(0, false), (2, false), (9, true)] {
            assert!(
                is_late(DEADLINE * times).is_none_or(|it| it == late),
                "{times}"
            );
        }
        let begun = CallTime::begin();
        let deadline = Duration::from_millis(5);
        assert!(!begun.exceeds(DEADLINE));
        while thread_time() - begun.cpu <= deadline {
            std::hint::spin_loop();
        }
        assert!(begun.exceeds(deadline));
    }
}
