//! A run beside the two things that it is compared with.
//!
//! PROXIM's abstract gives gains over a proxy that keeps neither responses nor connections, its
//! text gains over no proxy at all: both are always run, on the same rows, in one pass over the
//! trace. What the rows say is worked out once; each of the three runs has a thread.

use crate::engine::Simulator;
use crate::facts::{Ask, Assumptions};
use crate::results::outcome::Outcome;
use crate::results::request_result::ResultSink;
use crate::settings::{Settings, SettingsError};
use serde::Serialize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use weir_policy::rule::RuleSet;
use weir_semantics::DeltaSeconds;
use weir_trace::Row;

/// Three outcomes of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What was asked for.
    pub run: Outcome,
    /// Clients and servers without anything in between, connections as in the trace.
    pub no_proxy: Outcome,
    /// A proxy that keeps neither responses nor connections.
    pub no_caches: Outcome,
}

/// Three runs that are made together.
#[derive(Debug)]
pub struct Comparing {
    runs: [Run; 3],
    facts: Vec<(i64, Ask)>,
    rows: u64,
    assumed: Assumptions,
    assumed_lifetime: Option<DeltaSeconds>,
    operator_rules: Option<Arc<RuleSet>>,
}

/// What some rows say, and when they come.
type Facts = Arc<Vec<(i64, Ask)>>;

/// A run in a thread of its own.
#[derive(Debug)]
struct Run {
    facts: SyncSender<Facts>,
    thread: JoinHandle<Simulator>,
}

/// Rows that are handed to the runs at a time: half a megabyte.
const TOGETHER_ROWS: usize = 1024;

/// So often [`TOGETHER_ROWS`] may wait for a run that is slower than the others.
const WAITING_MAX: usize = 4;

impl Comparing {
    /// A run with these settings, and its baselines.
    ///
    /// # Errors
    /// Settings that cannot be run.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Self::with_results(settings, None)
    }

    /// The same; `results` gets the result of each request of the run, not those of its baselines.
    ///
    /// # Errors
    /// Settings that cannot be run.
    pub fn with_results(
        settings: &Settings,
        results: Option<Box<dyn ResultSink>>,
    ) -> Result<Self, SettingsError> {
        let all = [
            settings.clone(),
            settings.without_proxy(),
            settings.without_caches(),
        ];
        for settings in &all {
            settings.check()?;
        }
        let [run, no_proxy, no_caches] = all;
        Ok(Self {
            runs: [
                Run::new(run, results)?,
                Run::new(no_proxy, None)?,
                Run::new(no_caches, None)?,
            ],
            facts: Vec::new(),
            rows: 0,
            assumed: Assumptions::default(),
            assumed_lifetime: settings.assumed_lifetime_s.map(DeltaSeconds),
            operator_rules: settings.operator_rules.clone(),
        })
    }

    /// The next row of the trace.
    pub fn push(&mut self, row: &Row) {
        let ask = Ask::of(row, self.rows, &mut self.assumed);
        let mut ask = ask.assuming(row, self.assumed_lifetime, &mut self.assumed);
        if let Some(rules) = &self.operator_rules {
            ask = ask.ruled_by(rules, row);
        }
        self.rows += 1;
        self.facts.push((row.arrival_us, ask));
        if self.facts.len() >= TOGETHER_ROWS {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let facts = Arc::new(std::mem::take(&mut self.facts));
        self.facts.reserve(TOGETHER_ROWS);
        for run in &self.runs {
            // a run that does not listen any more has panicked: `finish` says so
            let _unheard = run.facts.send(Arc::clone(&facts));
        }
    }

    /// What they came to.
    ///
    /// # Panics
    /// If one of the runs has.
    #[must_use]
    pub fn finish(mut self) -> Comparison {
        self.hand_over();
        let Self { runs, assumed, .. } = self;
        let [run, no_proxy, no_caches] = runs.map(|run| run.finish(&assumed));
        Comparison {
            run,
            no_proxy,
            no_caches,
        }
    }
}

impl Run {
    fn new(
        settings: Settings,
        results: Option<Box<dyn ResultSink>>,
    ) -> Result<Self, SettingsError> {
        let mut simulator = Simulator::new(settings)?;
        if let Some(sink) = results {
            simulator.send_results_to(sink);
        }
        let (sender, facts) = sync_channel(WAITING_MAX);
        Ok(Self {
            facts: sender,
            thread: thread::spawn(move || work(simulator, &facts)),
        })
    }

    fn finish(self, assumed: &Assumptions) -> Outcome {
        drop(self.facts);
        match self.thread.join() {
            Ok(mut simulator) => {
                simulator.assumed(assumed);
                simulator.finish()
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn work(mut simulator: Simulator, facts: &Receiver<Facts>) -> Simulator {
    for rows in facts {
        for (arrival_us, ask) in rows.iter() {
            simulator.push_ask(*arrival_us, ask);
        }
    }
    simulator.settle_all();
    simulator
}

/// Runs a trace that is at hand.
///
/// # Errors
/// Settings that cannot be run.
pub fn compare(
    settings: &Settings,
    rows: impl IntoIterator<Item = Row>,
) -> Result<Comparison, SettingsError> {
    let mut comparing = Comparing::new(settings)?;
    for row in rows {
        comparing.push(&row);
    }
    Ok(comparing.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Network;
    use weir_policy::Profile;

    #[test]
    fn compared_runs_made_together_equal_separate_runs() {
        let row = |n: u64| Row {
            arrival_us: 1000 * i64::try_from(n * n % 777 + n).unwrap(),
            target: n % 9,
            client: Some(n % 5).filter(|client| *client > 0),
            max_age_s: Some(1000),
            received_bytes: (!n.is_multiple_of(7)).then_some(n % 20_000),
            ..Row::default()
        };
        let rows = || (0..3 * TOGETHER_ROWS as u64 + 7).map(row);
        let settings = Settings::of(Network::MODEM, Profile::Rfc9111);
        let together = compare(&settings, rows()).unwrap();
        let alone = |settings| {
            let mut simulator = Simulator::new(settings).unwrap();
            rows().for_each(|row| simulator.push(&row));
            simulator.finish()
        };
        assert!(together.run.assumed.len() > 5 && together.run.out_of_order > 0);
        assert_eq!(together.no_proxy, alone(settings.without_proxy()));
        assert_eq!(together.no_caches, alone(settings.without_caches()));
        assert_eq!(together.run, alone(settings));
    }
}
