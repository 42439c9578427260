//! One line on stderr, over and over, while a long import runs.

use super::input::Meter;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows between two looks at the clock.
const ROWS: u64 = 4096;

/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(500);

/// Prints the progress, if stderr is a terminal.
pub(super) struct Progress {
    is_watched: bool,
    said: Instant,
    steps: u64,
    width: usize,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            is_watched: stderr().is_terminal(),
            said: Instant::now(),
            steps: 0,
            width: 0,
        }
    }

    /// One more item.
    pub(super) fn step(&mut self, path: &Path, meter: &Meter, rows: u64) {
        self.steps += 1;
        if !self.is_watched || !self.steps.is_multiple_of(ROWS) || self.said.elapsed() < INTERVAL {
            return;
        }
        self.said = Instant::now();
        let percent = meter
            .percent()
            .map_or_else(String::new, |percent| format!("{percent} %, "));
        let line = format!("{}: {percent}{rows} rows", path.display());
        self.say(&line);
    }

    /// Takes the line away.
    pub(super) fn end(&mut self) {
        if self.width > 0 {
            self.say("");
            let _unread = write!(stderr(), "\r");
            self.width = 0;
        }
    }

    fn say(&mut self, line: &str) {
        let width = line.chars().count();
        // a closed stderr is no failure
        let _unread = write!(stderr(), "\r{line:<0$}", self.width);
        self.width = width;
    }
}
