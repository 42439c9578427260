//! An attacker at work: its time, its share of a core, and what it says of itself.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Between two looks of an attacker that waits.
const REST: Duration = Duration::from_millis(2);

/// What an attacker says of itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) cpu_us: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// Connections that were opened.
    pub(super) connections: u64,
    /// The most that were open at once.
    pub(super) open_max: u64,
    /// Connections that weir has ended.
    pub(super) ended: u64,
    /// Connections that could not be opened.
    pub(super) refused: u64,
}

/// An attacker at work.
pub(super) struct Attacker {
    pub(super) clear: SocketAddr,
    pub(super) tls: SocketAddr,
    pub(super) hello: Vec<u8>,
    pub(super) report: Report,
    share: f64,
    began: Instant,
    duration: Duration,
    cpu_before: Duration,
    /// CPU time of programs that it has started and that have ended.
    of_children: Duration,
}

impl Attacker {
    /// Begins an attack on these listeners, in clear and under TLS.
    pub(super) fn begin(
        (clear, tls): (SocketAddr, SocketAddr),
        hello: Vec<u8>,
        duration: Duration,
        share: f64,
    ) -> Self {
        Self {
            clear,
            tls,
            hello,
            report: Report::default(),
            share,
            began: Instant::now(),
            duration,
            cpu_before: cpu_time(),
            of_children: Duration::ZERO,
        }
    }

    /// What it took.
    pub(super) fn end(mut self) -> Report {
        let used = self.used();
        self.report.cpu_us = u64::try_from(used.as_micros()).unwrap_or(u64::MAX);
        self.report
    }

    /// A program that it has started has ended, and was waited for.
    pub(super) fn child_ended(&mut self) {
        self.of_children = of_children().unwrap_or_default();
    }

    fn used(&self) -> Duration {
        cpu_time() - self.cpu_before + self.of_children
    }

    /// Whether there is time left.
    pub(super) fn goes_on(&self) -> bool {
        self.began.elapsed() < self.duration
    }

    /// Waits until the attacker is within its share of the core; whether there is time left.
    pub(super) fn pace(&self) -> bool {
        loop {
            let passed = self.began.elapsed();
            if passed >= self.duration {
                return false;
            }
            let used = self.used();
            if used.as_secs_f64() <= self.share * passed.as_secs_f64() {
                return true;
            }
            std::thread::sleep(REST);
        }
    }

    /// Waits a moment for the other side.
    pub(super) fn rest(&self) {
        std::thread::sleep(REST);
    }
}

/// CPU time of this process, in the kernel too.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The same of those that it has started and waited for: `cutime` and
/// `cstime` of `proc_pid_stat(5)`, in ticks of the kernel.
fn of_children() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // behind the name, which may have blanks, the third field is the first
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_ascii_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|text| text.parse::<u64>().ok()).sum();
    let a_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(1000 * ticks / a_second))
}
