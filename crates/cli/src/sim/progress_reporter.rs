//! How far a long command is.

use crate::messages::tell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// On a terminal, one line is written over this often at most.
const TERMINAL_EACH: Duration = Duration::from_millis(200);

/// Elsewhere, a line this often at most.
const LINE_EACH: Duration = Duration::from_secs(10);

/// Says on the error stream how far a command is: on one line of a terminal, else now and then on
/// lines of their own.
pub(super) struct ProgressReporter {
    is_terminal: bool,
    told: Option<Instant>,
}

impl ProgressReporter {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            told: None,
        }
    }

    /// Says what `line` makes, if it is time again or this is the last of it.
    pub(super) fn report(&mut self, is_last: bool, line: impl FnOnce() -> String) {
        let each = if self.is_terminal {
            TERMINAL_EACH
        } else {
            LINE_EACH
        };
        if self.told.is_some_and(|told| told.elapsed() < each) && !is_last {
            return;
        }
        self.told = Some(Instant::now());
        if self.is_terminal {
            let _unread = write!(std::io::stderr(), "\r{}\u{1b}[K", line());
        } else {
            tell(&line());
        }
    }

    /// Ends the line of the terminal.
    pub(super) fn end(&self) {
        if self.is_terminal {
            tell(&"");
        }
    }
}
