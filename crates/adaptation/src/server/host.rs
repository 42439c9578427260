//! What a module on a worker of the ICAP server has beside the messages.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_extend::{FetchError, Host, LogLevel, OwnRequest, OwnResponse, Pending};
use weir_net::clock::Clock;

/// Where lines of the log go.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Lines a second that are logged; the others are dropped. Clients can have modules write as many
/// as they like.
const LINES_MAX: u32 = 10;

/// The log of a server: warnings and errors, and not too many of them.
pub(super) struct LimitedLog {
    log: Log,
    clock: Clock,
    /// The second, and how many lines were logged in it.
    written: Mutex<(u64, u32)>,
}

impl LimitedLog {
    pub(super) fn new(log: Log, clock: Clock) -> Self {
        Self {
            log,
            clock,
            written: Mutex::new((0, 0)),
        }
    }

    pub(super) fn write(&self, level: LogLevel, line: &str) {
        let level = match level {
            LogLevel::Debug | LogLevel::Info => return,
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
        };
        if self.may_write() {
            (self.log)(&format!("{level}: {line}"));
        }
    }

    fn may_write(&self) -> bool {
        let second = self.clock.tick().0 / 1000;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.0 != second {
            *written = (second, 0);
        }
        written.1 += 1;
        written.1 <= LINES_MAX
    }
}

/// The host of one module on one worker. It sends no requests: the destination rules are those of a
/// proxy.
pub(super) struct ServerHost {
    worker: usize,
    name: String,
    log: Arc<LimitedLog>,
}

impl ServerHost {
    pub(super) fn of(worker: usize, name: &str, log: &Arc<LimitedLog>) -> Rc<dyn Host> {
        Rc::new(Self {
            worker,
            name: name.to_owned(),
            log: Arc::clone(log),
        })
    }
}

impl Host for ServerHost {
    fn worker(&self) -> usize {
        self.worker
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    fn log(&self, level: LogLevel, line: &str) {
        self.log.write(level, &format!("{}: {line}", self.name));
    }

    fn fetch(&self, _: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError::Forbidden)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::clock::ManualClock;
    use weir_semantics::Timestamp;

    #[test]
    fn no_more_than_ten_lines_are_logged_in_a_second() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let manual = Arc::new(ManualClock::new(Timestamp(0)));
        let log: Log = Arc::new(move |line| kept.lock().unwrap().push(line.to_owned()));
        let limited = LimitedLog::new(log, Clock::Manual(Arc::clone(&manual)));
        for _ in 0..2 {
            for at in 0..20 {
                limited.write(LogLevel::Warning, &at.to_string());
                limited.write(LogLevel::Info, "no");
            }
            manual.advance_ms(1000);
        }
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 20);
        assert_eq!(
            (&*lines[0], &*lines[9], &*lines[10]),
            ("warning: 0", "warning: 9", "warning: 0")
        );
    }
}
