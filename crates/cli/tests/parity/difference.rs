//! What a replay found to be different.

use crate::trace::Trace;
use std::collections::VecDeque;
use std::fmt::Write as _;
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
