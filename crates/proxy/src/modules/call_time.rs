//! How long a call of a module takes on the thread of a worker.

use std::cell::Cell;
use std::time::{Duration, Instant};
use weir_net::thread_time;

/// A call that waits, which it must not, is late after so many times its deadline by the wall
/// clock. Below that it cannot be told from one whose thread had to wait for a processor.
const WAITS_MAX: u32 = 8;

/// The processor time is read anew where that was last done longer ago than this part of the
/// deadline: a call may be taken for longer by so much. It is a call of the system, and the clock
/// of the wall is not.
const READ_EACH: u32 = 16;

/// When the processor time of a thread was read, and what it was.
#[derive(Clone, Copy, Debug)]
struct CpuReading {
    at: Instant,
    cpu: Duration,
}

thread_local! {
    static LAST_READING: Cell<Option<CpuReading>> = const { Cell::new(None) };
}

impl CpuReading {
    fn now(at: Instant) -> Self {
        let cpu = thread_time();
        let reading = Self { at, cpu };
        LAST_READING.set(Some(reading));
        reading
    }

    /// The last one, if it is young enough for this deadline.
    fn recent(at: Instant, deadline: Duration) -> Self {
        let last = LAST_READING.get();
        let young = last.filter(|last| at.duration_since(last.at) < deadline / READ_EACH);
        young.unwrap_or_else(|| Self::now(at))
    }
}

/// The time of a call that has begun. It counts by the processor time of its thread: on a busy
/// machine a module is not to blame for the time in which others ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTime {
    wall: Instant,
    /// Of the thread, shortly before or when the call began.
    cpu: Duration,
    deadline: Duration,
}

impl CallTime {
    /// A call begins that may take so long.
    pub(super) fn begin(deadline: Duration) -> Self {
        let wall = Instant::now();
        let cpu = CpuReading::recent(wall, deadline).cpu;
        Self {
            wall,
            cpu,
            deadline,
        }
    }

    /// Whether it has taken longer than it may.
    pub(super) fn is_late(&self) -> bool {
        let wall = self.wall.elapsed();
        // most calls end here
        wall > self.deadline
            && (wall > self.deadline.saturating_mul(WAITS_MAX)
                || thread_time().saturating_sub(self.cpu) > self.deadline)
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
            deadline: DEADLINE,
        })
    }

    /// Has the thread work for so long.
    fn work(time: Duration) {
        let begun = thread_time();
        while thread_time() - begun <= time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn call_counts_by_the_time_of_its_thread_unless_it_waits_for_long() {
        let is_late = |wall| {
            let call = idle_for(wall);
            call.map(|call| call.is_late())
        };
        // a clock that began with the machine may not know a time before that
        for (times, late) in [(0, false), (2, false), (9, true)] {
            assert!(
                is_late(DEADLINE * times).is_none_or(|it| it == late),
                "{times}"
            );
        }
        let deadline = Duration::from_millis(5);
        let [long, short] = [DEADLINE, deadline].map(CallTime::begin);
        assert!(!short.is_late());
        work(deadline);
        assert!(short.is_late());
        assert!(!long.is_late());
    }

    #[test]
    fn what_its_thread_did_before_a_call_counts_for_a_sixteenth_of_its_deadline_at_most() {
        let deadline = Duration::from_millis(32);
        for _ in 0..20 {
            let before = thread_time();
            let call = CallTime::begin(deadline);
            assert!(before.saturating_sub(call.cpu) <= deadline / READ_EACH);
            work(Duration::from_millis(1));
        }
        let [first, second] = [CallTime::begin(DEADLINE), CallTime::begin(DEADLINE)];
        assert_eq!(first.cpu, second.cpu, "read once for both");
    }
}
