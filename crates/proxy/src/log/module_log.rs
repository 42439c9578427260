//! Lines of modules, and about them, on their way to the operator.

use super::access_log::Say;
use super::line_limit::LineLimit;
use std::fmt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use weir_policy::Tick;

/// Lines that may wait to be written; further ones are dropped.
const LINES_MAX: usize = 256;

/// Between two lines about refused nodes, milliseconds: members that are refused ask each 5 s.
const REFUSAL_PAUSE_MS: u64 = 10_000;

/// Where modules write lines, and what is said of them. A thread writes them, begun with the first:
/// a worker does not wait for a terminal or a pipe.
pub(crate) struct ModuleLog {
    say: Say,
    queue: OnceLock<Option<SyncSender<String>>>,
    /// Of lines about health.
    health: Mutex<LineLimit>,
    /// When the last line of each kind about what was refused was written.
    refused: [Mutex<Option<Tick>>; 4],
}

/// What a line about what was refused is about: a node, a balancer, or a client. Each kind has a
/// pause of its own: any program can say that it is some node, and must not keep the operator from
/// learning that a member is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusalKind {
    /// A request in the name of a member that is not proved: the secrets may differ.
    MemberNotProved,
    /// All else about nodes.
    Other,
    /// A connection of a listener for balancers alone.
    Balancer,
    /// TLS or HTTP/2 at a listener of HTTP/1.1 in clear, or HTTP in clear at one with TLS.
    OtherProtocol,
}

impl fmt::Debug for ModuleLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModuleLog")
    }
}

impl ModuleLog {
    /// One whose lines `say` writes.
    pub(crate) fn new(say: Say) -> Self {
        Self {
            say,
            queue: OnceLock::new(),
            health: Mutex::default(),
            refused: Default::default(),
        }
    }

    /// Writes a line soon; `false` if it is dropped, as too many wait.
    pub(crate) fn write(&self, line: String) -> bool {
        let queue = self.queue.get_or_init(|| self.begin());
        let queue = queue.as_ref();
        queue.is_some_and(|queue| queue.try_send(line).is_ok())
    }

    /// Writes a line about the health of a node or a next hop soon, unless there were many within
    /// this second: one that fails and answers in turn must not fill the log.
    pub(crate) fn write_health(&self, now: Tick, line: &str) {
        let mut limit = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let permitted = limit.permit(now);
        drop(limit);
        match permitted {
            None => {}
            Some(0) => drop(self.write(line.to_owned())),
            Some(dropped) => drop(self.write(format!("({dropped} lines dropped) {line}"))),
        }
    }

    /// Writes a line about what was refused soon, unless there was one of this
    /// kind lately: any program can cause it.
    pub(crate) fn write_refusal(
        &self,
        now: Tick,
        kind: RefusalKind,
        line: impl FnOnce() -> String,
    ) {
        let last = &self.refused[kind as usize];
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now.ms_since(last) >= REFUSAL_PAUSE_MS) {
            *last = Some(now);
            drop(last);
            self.write(line());
        }
    }

    fn begin(&self) -> Option<SyncSender<String>> {
        let say = Say::clone(&self.say);
        let (queue, lines) = sync_channel::<String>(LINES_MAX);
        let write = move || lines.into_iter().for_each(|line| say(&line));
        let thread = thread::Builder::new().name("weir-modules".into());
        thread.spawn(write).ok().map(|_| queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    #[test]
    fn line_that_finds_the_queue_full_is_dropped() {
        let (said, heard) = channel();
        let writing = Arc::new(Mutex::new(()));
        let stopped = Arc::clone(&writing);
        let log = ModuleLog::new(Arc::new(move |line: &str| {
            said.send(line.to_owned()).expect("the test listens");
            drop(stopped.lock());
        }));
        let held = writing.lock().expect("no panic");
        assert!(log.write("first".into()));
        let first = heard.recv_timeout(Duration::from_secs(20));
        assert_eq!(first.as_deref(), Ok("first"));
        for _ in 0..LINES_MAX {
            assert!(log.write("waits".into()));
        }
        assert!(!log.write("is dropped".into()));
        drop(held);
        drop(log);
        assert_eq!(heard.into_iter().count(), LINES_MAX);
    }
}
