//! The progress of a run: one line, rewritten in place on a terminal, a new one now and then
//! elsewhere.
//!
//! ```text
//! phase-2    1523/s   hit ratio 24.1 %   p99 312 ms   errors 0   1:42 left
//! ```
//!
//! It writes to whatever it is given; whether that is a terminal the caller knows.

mod line;
mod remaining_time;

use crate::tally::SecondTally;
use line::Line;
use remaining_time::RemainingTime;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};
use weir_workload::Scenario;

/// The line is made from so many of the last seconds.
const WINDOW_S: u32 = 10;

/// Where there is no terminal, a line comes every so often.
const INTERVAL: Duration = Duration::from_secs(10);

/// Reports the progress of a run.
pub struct Progress<'w> {
    out: &'w mut dyn Write,
    is_terminal: bool,
    /// Something stands on the line that is rewritten.
    is_open: bool,
    drawn: Option<Instant>,
    start_at: Option<Instant>,
    remaining_time: RemainingTime,
    seconds: BTreeMap<u32, SecondTally>,
    responses: u64,
    errors: u64,
    wrong: u64,
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("is_terminal", &self.is_terminal)
            .field("responses", &self.responses)
            .finish_non_exhaustive()
    }
}

impl<'w> Progress<'w> {
    /// Writes to `out`, and rewrites lines if it is a terminal.
    pub fn new(out: &'w mut dyn Write, is_terminal: bool) -> Self {
        Self {
            out,
            is_terminal,
            is_open: false,
            drawn: None,
            start_at: None,
            remaining_time: RemainingTime::default(),
            seconds: BTreeMap::new(),
            responses: 0,
            errors: 0,
            wrong: 0,
        }
    }

    /// A line that stays.
    pub fn say(&mut self, text: &str) {
        self.close();
        self.write(&format!("{text}\n"));
    }

    /// The current activity, where it can be overwritten.
    pub fn state(&mut self, text: &str) {
        if self.is_terminal {
            self.rewrite(text);
        }
    }

    /// A participant has joined.
    pub(crate) fn joined(&mut self, name: &str) {
        self.state(&format!("{name} has joined"));
    }

    /// Looks ahead at how long it will take. May take a while itself.
    pub(crate) fn expect(&mut self, scenario: &Scenario, seed: u64) {
        self.remaining_time = RemainingTime::of(scenario, seed);
    }

    /// The run starts then; so many threads will report each second.
    pub(crate) fn begin(&mut self, start_at: Instant, shares: u32) {
        self.start_at = Some(start_at);
        self.drawn = Some(start_at);
        self.seconds.clear();
        (self.responses, self.errors, self.wrong) = (0, 0, 0);
        let threads = if shares == 1 { "thread" } else { "threads" };
        self.state(&format!("starting {shares} {threads} of clients"));
    }

    /// One second of one thread.
    pub(crate) fn second(&mut self, second: &SecondTally) {
        self.responses += second.responses;
        self.errors += second.errors;
        self.wrong += second.wrong;
        self.remaining_time.see(second);
        self.seconds
            .entry(second.at_s)
            .and_modify(|sum| sum.merge(second))
            .or_insert_with(|| second.clone());
        while self.seconds.len() > usize::try_from(WINDOW_S).unwrap_or(usize::MAX) {
            self.seconds.pop_first();
        }
    }

    /// Draws the line if it is time.
    pub(crate) fn tick(&mut self) {
        let every = if self.is_terminal {
            Duration::from_secs(1)
        } else {
            INTERVAL
        };
        if self
            .drawn
            .is_none_or(|drawn| Instant::now() < drawn + every)
        {
            return;
        }
        self.drawn = Some(Instant::now());
        let Some(line) = self.line() else {
            return;
        };
        if self.is_terminal {
            self.rewrite(&line);
        } else {
            self.write(&format!("{line}\n"));
        }
    }

    /// The run is over.
    pub(crate) fn end(&mut self) {
        self.close();
        self.start_at = None;
        self.drawn = None;
    }

    fn line(&self) -> Option<String> {
        let start_at = self.start_at?;
        let mut seconds = self.seconds.values();
        let mut sum = seconds.next()?.clone();
        seconds.for_each(|second| sum.merge(second));
        let line = Line {
            phase: self.remaining_time.phase_name(sum.phase),
            responses: sum.responses,
            seconds: u64::try_from(self.seconds.len()).unwrap_or(1),
            hits: sum.hits,
            p99_us: sum.quantile_us(0.99),
            errors: self.errors,
            wrong: self.wrong,
            passed: start_at.elapsed(),
            left: self.remaining_time.left(start_at.elapsed()),
        };
        Some(line.to_string())
    }

    fn rewrite(&mut self, text: &str) {
        // to the begin of the line, and erase it
        self.write(&format!("\r\x1b[K{text}"));
        self.is_open = true;
    }

    fn close(&mut self) {
        if self.is_open {
            self.write("\r\x1b[K");
            self.is_open = false;
        }
    }

    fn write(&mut self, text: &str) {
        // a closed terminal is no failure
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at_s: u32) -> SecondTally {
        SecondTally {
            at_s,
            responses: 100,
            hits: 25,
            response_time_us: vec![(1000, 99), (50_000, 1)],
            ..SecondTally::default()
        }
    }

    #[test]
    fn progress_line_covers_only_the_last_ten_seconds() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, false);
        progress.begin(Instant::now(), 2);
        for at_s in 0..100 {
            progress.second(&second(at_s));
            progress.second(&second(at_s));
        }
        let line = progress.line().expect("it has begun");
        assert!(
            line.contains("200/s   hit ratio 25.0 %   p99 1 ms   errors 0"),
            "{line}"
        );
        assert_eq!(progress.seconds.len(), 10);
    }

    #[test]
    fn output_to_a_file_has_messages_and_no_state_lines() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, false);
        progress.state("preparing");
        progress.begin(Instant::now(), 1);
        progress.second(&second(0));
        progress.tick();
        progress.say("done");
        progress.end();
        assert_eq!(out, b"done\n");
    }

    #[test]
    fn terminal_state_line_is_erased_before_a_message() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, true);
        progress.state("preparing");
        progress.say("done");
        progress.end();
        assert_eq!(out, b"\r\x1b[Kpreparing\r\x1b[Kdone\n");
    }
}
