//! The account of one run: what ran, what was left out and why, what failed.

use crate::collection::Collection;
use crate::vector::{Kind, Runner, Vector};
use std::fmt;

/// The account of one runner over a collection.
#[derive(Clone, Debug)]
pub struct Tally {
    runner: Runner,
    ran: usize,
    left_out: Vec<String>,
    failed: Vec<String>,
    observed: Vec<String>,
}

impl Tally {
    /// Runs every vector that `runner` can run by `run`, which answers with the differences, each
    /// with its step.
    pub fn of(
        runner: Runner,
        collection: &Collection,
        mut run: impl FnMut(&Vector) -> Vec<String>,
    ) -> Self {
        let mut tally = Self {
            runner,
            ran: 0,
            left_out: Vec::new(),
            failed: Vec::new(),
            observed: Vec::new(),
        };
        for vector in collection.vectors() {
            if let Some(need) = vector.unmet(runner) {
                tally.left_out.push(format!("{}: needs {need}", vector.id));
                continue;
            }
            tally.ran += 1;
            let differences = run(vector);
            if differences.is_empty() {
                continue;
            }
            let told = tell(vector, &differences);
            match vector.kind {
                Kind::Must | Kind::Optimal => tally.failed.push(told),
                Kind::Observe => tally.observed.push(told),
            }
        }
        tally
    }

    /// How many ran.
    #[must_use]
    pub fn ran(&self) -> usize {
        self.ran
    }

    /// How many were left out.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// What failed, one text a vector.
    #[must_use]
    pub fn failed(&self) -> &[String] {
        &self.failed
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "vectors, {:?}: {} ran, {} left out, {} failed, {} observed to differ",
            self.runner,
            self.ran,
            self.left_out.len(),
            self.failed.len(),
            self.observed.len()
        )?;
        for line in &self.left_out {
            writeln!(f, "  left out {line}")?;
        }
        for text in &self.observed {
            writeln!(f, "  observed {text}")?;
        }
        for text in &self.failed {
            writeln!(f, "  FAILED {text}")?;
        }
        Ok(())
    }
}

fn tell(vector: &Vector, differences: &[String]) -> String {
    let mut text = format!(
        "{} ({}, {}), {}\n    {}",
        vector.id, vector.kind, vector.spec, vector.place, vector.why
    );
    for difference in differences {
        text.push_str("\n    - ");
        text.push_str(difference);
    }
    text
}
