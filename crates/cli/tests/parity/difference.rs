//! What a replay found to be different, and a shorter trace with the same fate.

use crate::coverage::Coverage;
use crate::replay::replay;
use crate::trace::Trace;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;
use weir_sim::journal::Happening;

/// Happenings that are told before a difference.
const TOLD: usize = 25;

/// Proxy and simulator decide differently.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The row it is about.
    pub(crate) row: Option<u64>,
    /// What each of them does.
    pub(crate) what: String,
    /// What happened before, as the simulator has it.
    pub(crate) before: VecDeque<Happening>,
}

impl Difference {
    pub(crate) fn new(row: Option<u64>, what: String) -> Self {
        Self {
            row,
            what,
            before: VecDeque::new(),
        }
    }

    /// The same, after `happenings`.
    pub(crate) fn after(self, happenings: &[Happening]) -> Self {
        let from = happenings.len().saturating_sub(TOLD);
        Self {
            before: happenings[from..].iter().copied().collect(),
            ..self
        }
    }

    /// All there is to say about it.
    pub(crate) fn told(&self, seed: u64, trace: &Trace) -> String {
        let mut text = format!("seed {seed}: {}\n", self.what);
        let _ = writeln!(text, "conditions: {:?}", trace.conditions);
        for (number, row) in trace.rows.iter().enumerate() {
            let mark = if self.row == Some(number as u64) {
                ">"
            } else {
                " "
            };
            let _ = writeln!(text, "{mark} row {number}: {}", short(&format!("{row:?}")));
        }
        let _ = writeln!(text, "what happened before, as it was simulated:");
        for happening in &self.before {
            let _ = writeln!(text, "  {:>8} ms  {:?}", happening.at_ms, happening.what);
        }
        let _ = write!(text, "to see it again: make parity SEED={seed} SEEDS=1");
        text
    }
}

/// A row without what it does not say.
fn short(row: &str) -> String {
    let fields = row.trim_start_matches("Row { ").trim_end_matches(" }");
    let said = fields
        .split(", ")
        .filter(|field| !field.ends_with(": None"));
    said.collect::<Vec<_>>().join(", ")
}

/// Replays that are spent on it.
const TRIES_MAX: usize = 120;

/// How long a replay of a shorter trace waits for what may not come.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Leaves rows out as long as there is a difference: halves first, then less.
pub(crate) fn shortened(trace: &Trace, difference: Difference) -> (Trace, Difference) {
    let (mut trace, mut difference) = (trace.clone(), difference);
    let mut tries = 0;
    let mut chunk = trace.rows.len() / 2;
    while chunk > 0 && tries < TRIES_MAX {
        let mut from = 0;
        while from < trace.rows.len() && tries < TRIES_MAX {
            tries += 1;
            let mut shorter = trace.clone();
            shorter
                .rows
                .drain(from..(from + chunk).min(trace.rows.len()));
            match replay(&shorter, PATIENCE, &mut Coverage::default()) {
                Err(found) => {
                    trace = shorter;
                    difference = found;
                }
                Ok(()) => from += chunk,
            }
        }
        chunk /= 2;
    }
    (trace, difference)
}
