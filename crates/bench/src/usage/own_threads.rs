//! Whether the threads of the generator had the processor time that they needed.
//!
//! A thread that is busy all the time is late; one that waits for a processor is late as well, and
//! looks idle. The kernel counts both (`schedstat`).

use super::proc_file::named_numbers;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::time::Instant;
use weir_measure::{float, share};

/// A second in which a thread used more of a core than this counts as a busy one.
const BUSY_SHARE: f64 = 0.95;

/// The most seconds that may be busy, as a share.
const BUSY_SECONDS_SHARE_MAX: f64 = 0.10;

/// What the threads of one participant had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadLoad {
    /// Intervals of about a second that were looked at.
    pub seconds: u64,
    /// Of these, those in which a thread was busier than 95 % of a core.
    pub busy_seconds: u64,
    /// CPU time of the busiest thread, as a share of one core.
    pub cpu_share: f64,
    /// The time that the thread which waited most spent waiting for a processor, as a share of the
    /// whole time.
    pub wait_share: f64,
    /// Peak memory of the process, bytes.
    pub memory_peak_bytes: u64,
}

impl ThreadLoad {
    /// Why a run is not valid with this load of the threads of `role`; `None` if they kept up.
    pub(crate) fn overload(&self, role: &str) -> Option<String> {
        let (busy, all) = (self.busy_seconds, self.seconds);
        (share(busy, all) > BUSY_SECONDS_SHARE_MAX).then(|| {
            format!(
                "The generator was overloaded: a thread of {role} had more than {} % of a core in {busy} of {all} seconds; at most {} % may be \
                 so. Use more threads or machines.",
                100.0 * BUSY_SHARE,
                100.0 * BUSY_SECONDS_SHARE_MAX
            )
        })
    }
}

/// Follows the threads of this process whose names begin with one prefix.
#[derive(Debug)]
pub struct OwnThreads {
    prefix: &'static str,
    since: Instant,
    last_look: Instant,
    last: HashMap<String, Times>,
    so_far: HashMap<String, Times>,
    load: ThreadLoad,
}

/// Nanoseconds since the thread's start.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    running: u64,
    waiting: u64,
}

impl OwnThreads {
    /// Begins now.
    #[must_use]
    pub fn named(prefix: &'static str) -> Self {
        let now = Instant::now();
        Self {
            prefix,
            since: now,
            last_look: now,
            last: times(prefix),
            so_far: HashMap::new(),
            load: ThreadLoad::default(),
        }
    }

    /// Closes an interval; call it about once a second.
    pub fn look(&mut self) {
        let passed_ns = self.last_look.elapsed().as_secs_f64() * 1e9;
        self.last_look = Instant::now();
        let now = times(self.prefix);
        let mut busiest = 0.0_f64;
        for (thread, times) in &now {
            let before = self.last.get(thread).copied().unwrap_or_default();
            let running = times.running.saturating_sub(before.running);
            let sum = self.so_far.entry(thread.clone()).or_default();
            sum.running += running;
            sum.waiting += times.waiting.saturating_sub(before.waiting);
            busiest = busiest.max(float(running) / passed_ns.max(1.0));
        }
        self.last = now;
        self.load.seconds += 1;
        self.load.busy_seconds += u64::from(busiest > BUSY_SHARE);
    }

    /// Everything since the begin.
    #[must_use]
    pub fn load(&self) -> ThreadLoad {
        let whole_ns = (self.since.elapsed().as_secs_f64() * 1e9).max(1.0);
        let most = |of: fn(&Times) -> u64| {
            let most = self.so_far.values().map(of).max().unwrap_or(0);
            float(most) / whole_ns
        };
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        ThreadLoad {
            cpu_share: most(|times| times.running),
            wait_share: most(|times| times.waiting),
            memory_peak_bytes: 1024 * named_numbers(&status).get("VmHWM").copied().unwrap_or(0),
            ..self.load
        }
    }
}

/// Of every thread of this process with such a name, by its id.
fn times(prefix: &str) -> HashMap<String, Times> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return HashMap::new();
    };
    threads
        .flatten()
        .filter(|thread| {
            fs::read_to_string(thread.path().join("comm"))
                .is_ok_and(|comm| comm.starts_with(prefix))
        })
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let mut numbers = text.split_whitespace().map(str::parse::<u64>);
            let times = Times {
                running: numbers.next()?.ok()?,
                waiting: numbers.next()?.ok()?,
            };
            Some((thread.file_name().to_string_lossy().into_owned(), times))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_were_busy_too_often_are_a_reason() {
        let load = |busy_seconds| ThreadLoad {
            seconds: 100,
            busy_seconds,
            ..ThreadLoad::default()
        };
        assert_eq!(load(10).overload("clients"), None);
        let reason = load(11).overload("clients").expect("too often");
        assert!(
            reason.contains("thread of clients had more than 95 %"),
            "{reason}"
        );
        assert!(
            reason.contains("in 11 of 100 seconds; at most 10 %"),
            "{reason}"
        );
    }
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn spinning_thread_is_reported_as_loaded_and_absent_ones_as_idle() {
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let spinning = std::thread::Builder::new().name("spin-0".into());
            let spin = move || {
                ready.send(()).expect("somebody waits");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            spinning.spawn_scoped(scope, spin).expect("a thread");
            is_ready.recv().expect("it has begun");
            let mut spinner = OwnThreads::named("spin-");
            let mut others = OwnThreads::named("others-");
            let until = Instant::now() + Duration::from_millis(200);
            while Instant::now() < until {
                std::thread::yield_now();
            }
            spinner.look();
            others.look();
            stop.store(true, Ordering::Relaxed);
            let load = spinner.load();
            // it may have had to share a processor: then it waited for it
            assert!(load.cpu_share + load.wait_share > 0.5, "{load:?}");
            assert_eq!(load.seconds, 1);
            assert!(load.memory_peak_bytes > 0);
            let others = others.load();
            assert!(others.cpu_share.abs() < f64::EPSILON && others.busy_seconds == 0);
        });
    }
}
