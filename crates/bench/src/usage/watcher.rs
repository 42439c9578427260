//! One entry a second, beside the run.

use super::machine::Machine;
use super::proc_file::TICKS_PER_S;
use super::processes::{Processes, Totals};
use crate::failure::Failure;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_measure::float;
use weir_measure::record::UsageSecond;

/// The most seconds that are kept: more than two days, beyond any scenario.
const SECONDS_MAX: usize = 200_000;

/// Watches a process tree on a thread of its own.
#[derive(Debug)]
pub struct UsageWatcher {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<UsageLog>,
}

/// What was seen.
#[derive(Debug, Default)]
struct UsageLog {
    seconds: Vec<UsageSecond>,
    warnings: Vec<String>,
}

/// A proxy's process, found before anything is measured.
#[derive(Debug)]
pub struct ProxyProcess {
    pid: u32,
    processes: Processes,
}

impl ProxyProcess {
    /// Looks for it on this machine.
    ///
    /// # Errors
    /// There is no such process, or it has ended.
    pub fn find(pid: u32) -> Result<Self, Failure> {
        let mut processes = Processes::of(pid);
        if processes.look().is_none() {
            let failure = Failure::usage(cannot_watch(pid), "there is no such process");
            return Err(failure.with_hint(HINT));
        }
        Ok(Self { pid, processes })
    }

    /// Looks whether it is still there.
    ///
    /// # Errors
    /// It has ended since it was found.
    pub fn look(&mut self) -> Result<(), Failure> {
        if self.processes.look().is_some() {
            return Ok(());
        }
        let cause = "it has ended while the run was prepared";
        Err(Failure::outside(cannot_watch(self.pid), cause).with_hint(HINT))
    }

    /// Begins to watch it and all that come from it; entries count from `start_at`, which may lie
    /// ahead.
    ///
    /// # Errors
    /// There is no thread to watch it.
    pub fn watch(self, start_at: Instant) -> Result<UsageWatcher, Failure> {
        self.watch_every(Duration::from_secs(1), start_at)
    }

    fn watch_every(self, interval: Duration, start_at: Instant) -> Result<UsageWatcher, Failure> {
        let Self { pid, mut processes } = self;
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("weir-usage".into())
            .spawn(move || watch(interval, &mut processes, start_at, &stopped))
            .map_err(|error| Failure::outside(cannot_watch(pid), error))?;
        Ok(UsageWatcher { stop, thread })
    }
}

fn cannot_watch(pid: u32) -> String {
    format!("cannot watch process {pid}")
}

const HINT: &str =
    "--proxy-pid wants the process id of the proxy's master process, on this machine";

impl UsageWatcher {
    /// Ends it. What was seen, and what a reader should know of it.
    #[must_use]
    pub fn stop(self) -> (Vec<UsageSecond>, Vec<String>) {
        drop(self.stop);
        let watched = self.thread.join().unwrap_or_default();
        (watched.seconds, watched.warnings)
    }
}

fn watch(
    interval: Duration,
    processes: &mut Processes,
    start_at: Instant,
    stopped: &mpsc::Receiver<()>,
) -> UsageLog {
    let mut watched = UsageLog::default();
    let ahead = start_at.saturating_duration_since(Instant::now());
    if stopped.recv_timeout(ahead) != Err(RecvTimeoutError::Timeout) {
        return watched;
    }
    let gone = |at_s: f64| format!("The proxy's process was gone after {at_s:.0} s.");
    let Some(mut before) = UsageSample::now(processes) else {
        watched.warnings.push(gone(0.0));
        return watched;
    };
    let mut due = start_at;
    for _ in 0..SECONDS_MAX {
        due += interval;
        let left = due.saturating_duration_since(Instant::now());
        let is_stopped = stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout);
        // a second that was cut short says nothing of a rate
        if is_stopped && before.at.elapsed() < interval / 2 {
            break;
        }
        let at_s = start_at.elapsed().as_secs_f64();
        let Some(after) = UsageSample::now(processes) else {
            watched.warnings.push(gone(at_s));
            break;
        };
        watched.seconds.push(after.since(&before, at_s));
        before = after;
        if is_stopped {
            break;
        }
    }
    if processes.hides_bytes() {
        watched.warnings.push(
            "Bytes that the proxy read and wrote are not known: its processes belong to another user. Run as root to see them."
                .into(),
        );
    }
    watched
}

/// One sample of all counters.
#[derive(Debug)]
struct UsageSample {
    at: Instant,
    tree: Totals,
    machine: Machine,
}

impl UsageSample {
    fn now(processes: &mut Processes) -> Option<Self> {
        Some(Self {
            at: Instant::now(),
            tree: processes.look()?,
            machine: Machine::look(),
        })
    }

    fn since(&self, before: &Self, at_s: f64) -> UsageSecond {
        let seconds = (self.at - before.at).as_secs_f64().max(1e-3);
        let machine = self.machine.since(&before.machine, seconds);
        let ticks = self.tree.cpu_ticks - before.tree.cpu_ticks;
        UsageSecond {
            at_s,
            processes: self.tree.processes,
            cpu_share: float(ticks) / TICKS_PER_S / seconds,
            rss_bytes: self.tree.rss_bytes,
            read_bytes: self.tree.read_bytes - before.tree.read_bytes,
            written_bytes: self.tree.written_bytes - before.tree.written_bytes,
            machine_cpu_share: machine.cpu_share,
            machine_wait_share: machine.wait_share,
            disk_read_bytes: machine.read_bytes,
            disk_written_bytes: machine.written_bytes,
            disk_busy_share: machine.busy_share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn process_id_without_a_process_is_refused() {
        let failure = ProxyProcess::find(u32::MAX).expect_err("no such process");
        assert!(failure.to_string().contains("no such process"), "{failure}");
    }

    #[test]
    fn process_ended_before_the_start_is_refused() {
        let mut sleeper = sleeper();
        let mut found = ProxyProcess::find(sleeper.id()).expect("it is there");
        found.look().expect("it is still there");
        sleeper.kill().expect("it is ours");
        // its parent has not waited for it: it has ended all the same
        let until = Instant::now() + Duration::from_secs(20);
        let failure = loop {
            assert!(Instant::now() < until, "it does not end");
            if let Err(failure) = found.look() {
                break failure;
            }
        };
        assert!(failure.to_string().contains("has ended"), "{failure}");
        assert!(ProxyProcess::find(sleeper.id()).is_err());
        sleeper.wait().expect("it was started");
    }

    fn sleeper() -> std::process::Child {
        std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat is everywhere")
    }

    #[test]
    fn watched_process_is_recorded_with_its_resident_memory() {
        let mut sleeper = sleeper();
        let start_at = Instant::now();
        let found = ProxyProcess::find(sleeper.id()).expect("it is there");
        let watcher = found.watch_every(SOON, start_at).expect("a thread");
        while start_at.elapsed() < 3 * SOON {
            std::thread::yield_now();
        }
        let (seconds, warnings) = watcher.stop();
        assert!(
            seconds.iter().any(|second| second.rss_bytes > 0),
            "{seconds:?}"
        );
        assert!(
            seconds.iter().all(|second| second.processes == 1),
            "{seconds:?}"
        );
        assert_eq!(warnings, [""; 0]);
        sleeper.kill().expect("it is ours");
        sleeper.wait().expect("it was started");
    }

    #[test]
    fn end_of_the_watched_process_is_a_warning_not_a_failure() {
        let mut sleeper = sleeper();
        let start_at = Instant::now();
        let found = ProxyProcess::find(sleeper.id()).expect("it is there");
        let watcher = found.watch_every(SOON, start_at).expect("a thread");
        sleeper.kill().expect("it is ours");
        sleeper.wait().expect("it was started");
        while !watcher.thread.is_finished() && start_at.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        let (_, warnings) = watcher.stop();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("gone"), "{warnings:?}");
    }
}
