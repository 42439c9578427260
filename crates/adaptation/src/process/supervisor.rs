//! The thread that keeps a process running.

use super::announcement::Announcement;
use super::child::{Child, Launch, Wake, wait};
use super::directory::PrivateDirectory;
use crate::client::served::{Abilities, Process};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use weir_extend::Options;

/// The pause before a process is started again, at first and at most. It doubles from one end of
/// the process to the next.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A process that runs so long has not failed at its start: the next pause is the shortest one.
const RUN_LONG: Duration = Duration::from_secs(60);

/// Lines of a process that are logged in a second; the others are dropped.
const LINES_MAX: u32 = 10;

/// The pauses before a process is started again.
struct Pauses(Duration);

impl Pauses {
    const fn new() -> Self {
        Self(PAUSE_MIN)
    }

    /// The process has run for this time.
    fn ran(&mut self, time: Duration) {
        if time >= RUN_LONG {
            self.0 = PAUSE_MIN;
        }
    }

    /// The next one.
    fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_MAX);
        pause
    }
}

/// What a process is started with.
pub(super) struct Plan {
    pub(super) launch: Arc<dyn Launch>,
    pub(super) kind: &'static str,
    pub(super) options: Options,
    pub(super) directory: PrivateDirectory,
}

impl Plan {
    pub(super) fn start(&self) -> io::Result<Child> {
        let directory = self.directory.path();
        let socket = self.directory.socket();
        let command = self
            .launch
            .command(self.kind, &self.options, directory, &socket)?;
        Child::spawn(command)
    }

    fn log(&self, line: &str) {
        let name = &self.options.settings().name;
        self.launch
            .log(&format!("process of module `{name}`: {line}"));
    }
}

/// What is known of the process.
#[derive(Debug, Default)]
struct Status {
    /// 0 while it does not run.
    id: AtomicU32,
    starts: AtomicU64,
}

impl Status {
    fn started(&self, child: &Child) {
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.id.store(child.id(), Ordering::Relaxed);
    }
}

/// The process of a module, which ends when this is dropped.
pub(super) struct SupervisedProcess {
    status: Arc<Status>,
    /// Closed: the process is not wanted any more.
    _stop: OwnedFd,
}

impl Process for SupervisedProcess {
    fn note(&self) -> String {
        let starts = self.status.starts.load(Ordering::Relaxed);
        match self.status.id.load(Ordering::Relaxed) {
            0 => format!("its process has ended, and is started again; starts: {starts}"),
            id => format!("process {id}; starts: {starts}"),
        }
    }
}

/// Keeps `child`, which has the abilities of its module, running until the result is dropped.
///
/// # Errors
///
/// There is no thread, or no pipe to it.
pub(super) fn supervise(
    plan: Plan,
    child: Child,
    abilities: Abilities,
) -> io::Result<SupervisedProcess> {
    let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let status = Arc::new(Status::default());
    status.started(&child);
    let supervisor = Supervisor {
        plan,
        abilities,
        status: Arc::clone(&status),
        stopped,
        pauses: Pauses::new(),
    };
    let thread = thread::Builder::new().name("module-process".to_owned());
    thread.spawn(move || supervisor.run(child))?;
    Ok(SupervisedProcess {
        status,
        _stop: stop,
    })
}

struct Supervisor {
    plan: Plan,
    abilities: Abilities,
    status: Arc<Status>,
    stopped: OwnedFd,
    pauses: Pauses,
}

impl Supervisor {
    fn run(mut self, child: Child) {
        let mut next = Some(child);
        while let Some(child) = next {
            if !self.watch(child) {
                return;
            }
            next = self.restart();
        }
    }

    /// Waits until the process has ended; `false` if it was not wanted any more.
    fn watch(&mut self, mut child: Child) -> bool {
        let begun = Instant::now();
        let (mut second, mut lines) = (begun, 0);
        loop {
            match child.wait(self.stopped.as_fd()) {
                Wake::Said => {
                    for line in child.lines() {
                        if second.elapsed() >= Duration::from_secs(1) {
                            (second, lines) = (Instant::now(), 0);
                        }
                        lines += 1;
                        if lines <= LINES_MAX {
                            self.plan.log(&line);
                        }
                    }
                }
                Wake::Stop => {
                    child.end();
                    return false;
                }
                Wake::Ended => break,
            }
        }
        self.status.id.store(0, Ordering::Relaxed);
        self.pauses.ran(begun.elapsed());
        let words = child.last_words();
        self.plan.log(&words);
        true
    }

    /// Starts it again, as often as it takes; `None` if it is not wanted any more.
    fn restart(&mut self) -> Option<Child> {
        loop {
            let mut fds = [PollFd::new(&self.stopped, PollFlags::IN)];
            if !matches!(wait(&mut fds, Some(self.pauses.next())), Ok(0)) {
                return None;
            }
            match self.start() {
                Ok(child) => {
                    self.status.started(&child);
                    self.plan.log("started again");
                    return Some(child);
                }
                Err(reason) => self.plan.log(&format!("it does not start: {reason}")),
            }
        }
    }

    fn start(&self) -> Result<Child, String> {
        let mut child = self.plan.start().map_err(|error| error.to_string())?;
        match child.announcement(Some(self.stopped.as_fd()))? {
            Announcement::Ready(abilities) if abilities == self.abilities => Ok(child),
            // the proxy has noted which hooks it has
            Announcement::Ready(_) => Err("the module has other hooks now: reload".to_owned()),
            Announcement::Refused(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_until_the_process_has_run_for_long() {
        let mut pauses = Pauses::new();
        let taken: Vec<u128> = (0..10)
            .map(|_| {
                pauses.ran(RUN_LONG - Duration::from_millis(1));
                pauses.next().as_millis()
            })
            .collect();
        let expected = [
            250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000,
        ];
        assert_eq!(taken, expected);
        pauses.ran(RUN_LONG);
        assert_eq!(pauses.next(), PAUSE_MIN);
    }
}
