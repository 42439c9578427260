//! Making the runs: each batch of them makes its trace anew and pushes every row into all of its
//! simulators, so that nothing has to be kept of a trace. Batches have nothing in common, and are
//! shared out to threads.

use super::exhibit::Exhibit;
use super::experiment::{Kind, Run};
use super::facts::{Counting, Facts};
use super::findings::Findings;
use super::shown::{About, Paper};
use crate::engine::Simulator;
use crate::results::outcome::Outcome;
use crate::settings::SettingsError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use weir_trace::generator::Recipe;

/// The runs to make.
#[derive(Clone, Debug)]
pub struct Order {
    /// Requests of each trace.
    pub requests: u64,
    /// Of traces and simulators: the same seed gives the same paper, to the last byte.
    pub seed: u64,
    /// What is shown; all of it if nothing is named.
    pub only: Vec<Exhibit>,
    /// Batches at the same time.
    pub threads: NonZero<usize>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests simulated or counted.
    pub done: u64,
    /// All runs.
    pub all: u64,
    /// The expected time of the rest, at the rate until now.
    pub left: Option<Duration>,
}

/// Why there is no paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaperError {
    /// The settings of a run cannot be used.
    Settings(SettingsError),
    /// It was stopped.
    Interrupted,
}

impl fmt::Display for PaperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for PaperError {}

impl From<SettingsError> for PaperError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

/// Runs of one trace that share its making: the fewer, the better cores are used; the more, the
/// less often a trace is made.
const BATCH_MAX: usize = 4;

/// Requests of a trace between two reports of progress, at which the run may be stopped.
const REPORT_EACH: u64 = 4096;

/// One pass over a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Batch {
    kind: Kind,
    counts: bool,
    runs: Vec<Run>,
}

/// What comes from a batch.
enum Message {
    Pushed(u64),
    Done(Box<Made>),
    Failed(PaperError),
}

struct Made {
    kind: Kind,
    facts: Option<Facts>,
    outcomes: Vec<(Run, Outcome)>,
}

/// Makes the runs, on so many threads. It ends early once `is_stopped` says so; `report` hears how
/// far it is.
///
/// # Errors
/// [`PaperError`].
pub fn reproduce(
    order: &Order,
    is_stopped: &(dyn Fn() -> bool + Sync),
    mut report: impl FnMut(Progress),
) -> Result<Paper, PaperError> {
    let exhibits = chosen(&order.only);
    let batches = batches(&exhibits, order.threads);
    let passes: u64 = batches.iter().map(Batch::passes).sum();
    let mut meter = ProgressMeter::new(passes * order.requests);
    report(meter.progress());
    let waiting = Mutex::new(batches);
    let mut all: BTreeMap<Kind, Findings> = BTreeMap::new();
    let mut failure = None;
    std::thread::scope(|scope| {
        let (sender, messages) = mpsc::channel::<Message>();
        for _ in 0..order.threads.get() {
            let sender = sender.clone();
            let waiting = &waiting;
            scope.spawn(move || work(order, waiting, is_stopped, &sender));
        }
        drop(sender);
        for message in messages {
            match message {
                Message::Pushed(count) => {
                    meter.done += count;
                    report(meter.progress());
                }
                Message::Done(made) => enter(&mut all, *made, order.requests),
                Message::Failed(error) => {
                    lock(&waiting).clear();
                    failure.get_or_insert(error);
                }
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let findings: Vec<Findings> = all.into_values().collect();
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        requests: order.requests,
        seed: order.seed,
    };
    Ok(Paper::of(about, &exhibits, &findings))
}

fn enter(all: &mut BTreeMap<Kind, Findings>, made: Made, requests: u64) {
    let findings = all.entry(made.kind).or_insert_with(|| Findings {
        kind: made.kind,
        requests,
        facts: None,
        outcomes: BTreeMap::new(),
    });
    findings.outcomes.extend(made.outcomes);
    if made.facts.is_some() {
        findings.facts = made.facts;
    }
}

fn chosen(only: &[Exhibit]) -> Vec<Exhibit> {
    let is_chosen = |exhibit: &Exhibit| only.is_empty() || only.contains(exhibit);
    Exhibit::ALL.into_iter().filter(is_chosen).collect()
}

/// The passes that these exhibits need, those with the most runs first.
fn batches(exhibits: &[Exhibit], threads: NonZero<usize>) -> VecDeque<Batch> {
    let runs: BTreeSet<(Kind, Run)> = exhibits.iter().flat_map(|one| one.runs()).collect();
    let counts: BTreeSet<Kind> = exhibits
        .iter()
        .flat_map(|one| one.counts())
        .copied()
        .collect();
    // with many cores there are better many batches than large ones
    let size = runs.len().div_ceil(threads.get() * 2).clamp(1, BATCH_MAX);
    let mut batches: Vec<Batch> = Vec::new();
    for kind in Kind::ALL {
        let of_kind: Vec<Run> = runs
            .iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, run)| *run)
            .collect();
        batches.extend(of_kind.chunks(size).map(|runs| Batch {
            kind,
            counts: false,
            runs: runs.to_vec(),
        }));
        if counts.contains(&kind) {
            batches.push(Batch {
                kind,
                counts: true,
                runs: Vec::new(),
            });
        }
    }
    batches.sort_by_key(|batch| std::cmp::Reverse(batch.passes()));
    batches.into()
}

impl Batch {
    /// How often a row is looked at.
    fn passes(&self) -> u64 {
        self.runs.len() as u64 + u64::from(self.counts)
    }
}

type Waiting = Mutex<VecDeque<Batch>>;

fn work(
    order: &Order,
    waiting: &Waiting,
    is_stopped: &(dyn Fn() -> bool + Sync),
    sender: &mpsc::Sender<Message>,
) {
    loop {
        let Some(batch) = lock(waiting).pop_front() else {
            return;
        };
        let passes = batch.passes();
        let reports_rows = |rows: u64| {
            let is_heard = sender.send(Message::Pushed(rows * passes)).is_ok();
            is_heard && !is_stopped()
        };
        let message = match make(&batch, order, &reports_rows) {
            Ok(made) => Message::Done(Box::new(made)),
            Err(error) => Message::Failed(error),
        };
        if sender.send(message).is_err() {
            return;
        }
    }
}

/// One pass; `reports_rows` hears of rows that are done, and says whether to go on.
fn make(
    batch: &Batch,
    order: &Order,
    reports_rows: &dyn Fn(u64) -> bool,
) -> Result<Made, PaperError> {
    let mut simulators = Vec::with_capacity(batch.runs.len());
    for run in &batch.runs {
        simulators.push((*run, Simulator::new(run.settings(batch.kind, order.seed))?));
    }
    let mut counting = batch.counts.then(Counting::default);
    // a test names every recipe that a kind has
    let recipe = Recipe::built_in(batch.kind.profile());
    let rows = recipe
        .iter()
        .flat_map(|recipe| recipe.rows(order.requests, order.seed));
    let mut unreported = 0;
    for row in rows {
        for (_, simulator) in &mut simulators {
            simulator.push(&row);
        }
        if let Some(counting) = &mut counting {
            counting.add(&row);
        }
        unreported += 1;
        if unreported == REPORT_EACH {
            unreported = 0;
            if !reports_rows(REPORT_EACH) {
                return Err(PaperError::Interrupted);
            }
        }
    }
    if !reports_rows(unreported) {
        return Err(PaperError::Interrupted);
    }
    let ended = simulators
        .into_iter()
        .map(|(run, simulator)| (run, simulator.finish()));
    Ok(Made {
        kind: batch.kind,
        facts: counting.map(Counting::finish),
        outcomes: ended.collect(),
    })
}

/// A thread that panicked while it held the queue left it whole: it only takes from it.
fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, VecDeque<Batch>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

struct ProgressMeter {
    begun: Instant,
    done: u64,
    all: u64,
}

impl ProgressMeter {
    fn new(all: u64) -> Self {
        Self {
            begun: Instant::now(),
            done: 0,
            all,
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            done: self.done,
            all: self.all,
            left: left(self.begun.elapsed(), self.done, self.all),
        }
    }
}

fn left(took: Duration, done: u64, all: u64) -> Option<Duration> {
    if done == 0 {
        return None;
    }
    let missing = all.saturating_sub(done);
    Some(took.mul_f64(missing as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_needed_run_is_made_exactly_once() {
        for threads in [1, 2, 64] {
            let threads = NonZero::new(threads).unwrap();
            let batches = batches(&Exhibit::ALL, threads);
            let made: Vec<(Kind, Run)> = batches
                .iter()
                .flat_map(|batch| batch.runs.iter().map(|run| (batch.kind, *run)))
                .collect();
            let needed: BTreeSet<(Kind, Run)> =
                Exhibit::ALL.iter().flat_map(|one| one.runs()).collect();
            assert_eq!(made.len(), needed.len());
            assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), needed);
            assert_eq!(batches.iter().filter(|batch| batch.counts).count(), 2);
            assert!(batches.iter().all(|batch| batch.runs.len() <= BATCH_MAX));
        }
    }

    #[test]
    fn single_table_needs_only_its_own_runs() {
        let batches = batches(&[Exhibit::Causes], NonZero::<usize>::MIN);
        assert!(
            batches
                .iter()
                .all(|batch| batch.counts && batch.runs.is_empty())
        );
        assert_eq!(chosen(&[]), Exhibit::ALL);
        assert_eq!(
            chosen(&[Exhibit::Figure9, Exhibit::Causes]),
            [Exhibit::Causes, Exhibit::Figure9]
        );
    }

    #[test]
    fn each_trace_kind_has_a_profile_and_valid_settings() {
        for kind in Kind::ALL {
            assert!(Recipe::built_in(kind.profile()).is_some());
        }
        for (kind, run) in Exhibit::ALL.iter().flat_map(|one| one.runs()) {
            assert_eq!(run.settings(kind, 1).check(), Ok(()));
        }
    }

    #[test]
    fn time_left_is_proportional_to_the_missing_requests() {
        let s = Duration::from_secs;
        assert_eq!(left(s(10), 5, 20), Some(s(30)));
        assert_eq!(left(s(10), 20, 20), Some(s(0)));
        assert_eq!(left(s(10), 0, 20), None);
    }
}
