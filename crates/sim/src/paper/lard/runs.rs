//! Making the runs: they read one trace and have nothing else in common, and are shared out to
//! threads.

use super::error::LardError;
use super::exhibit::Exhibit;
use super::findings::Findings;
use super::job::Job;
use super::shown::{About, Paper};
use super::tables;
use crate::cluster::ClusterOutcome;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZero;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use weir_trace::grouping::ConnectionTrace;

/// The runs to make.
#[derive(Clone, Debug)]
pub struct Order {
    /// The name of the trace, for the report.
    pub trace: String,
    /// For choices at random, and tables of policies: the same seed gives the same paper, to the
    /// last byte.
    pub seed: u64,
    /// What forwarding 512 bytes costs, thousandths of a send.
    pub scale: NonZero<u32>,
    /// What is shown; all of it if nothing is named.
    pub only: Vec<Exhibit>,
    /// Runs at the same time.
    pub threads: NonZero<usize>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests of the runs that are made.
    pub done: u64,
    /// Of all runs.
    pub all: u64,
    /// The expected time of the rest, at the rate until now.
    pub left: Option<Duration>,
}

/// Makes the runs, on so many threads. It ends early once `is_stopped` says so; `report` hears how
/// far it is.
///
/// # Errors
/// [`LardError`].
pub fn reproduce(
    order: &Order,
    trace: &ConnectionTrace,
    is_stopped: &(dyn Fn() -> bool + Sync),
    mut report: impl FnMut(Progress),
) -> Result<Paper, LardError> {
    let exhibits = chosen(&order.only);
    let scale = order.scale.get();
    let jobs: BTreeSet<Job> = exhibits.iter().flat_map(|one| one.jobs(scale)).collect();
    let length = |job: &Job| job.requests(trace.len() as u64);
    let mut meter = Meter::new(jobs.iter().map(length).sum());
    report(meter.progress());
    // the longest first
    let mut jobs: Vec<Job> = jobs.into_iter().collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(length(job)));
    let waiting = Mutex::new(VecDeque::from(jobs));
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front()
    };
    let mut findings = Findings {
        scale,
        ..Findings::default()
    };
    let mut failure = None;
    std::thread::scope(|scope| {
        let (sender, made) = mpsc::channel::<(Job, Result<ClusterOutcome, LardError>)>();
        for _ in 0..order.threads.get() {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(job) = next() {
                    let outcome = match is_stopped() {
                        true => Err(LardError::Interrupted),
                        false => job.run(trace, order.seed, &|| is_stopped()),
                    };
                    let has_failed = outcome.is_err();
                    if sender.send((job, outcome)).is_err() || has_failed {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (job, outcome) in made {
            match outcome {
                Ok(outcome) => {
                    meter.done += length(&job);
                    report(meter.progress());
                    findings.outcomes.insert(job, outcome);
                }
                Err(error) => _ = failure.get_or_insert(error),
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        trace: order.trace.clone(),
        grouping: trace.description(),
        requests: trace.len(),
        targets: trace.targets(),
        connections: trace.connections(),
        seed: order.seed,
        scale: f64::from(scale) / 1000.0,
    };
    let exhibits = exhibits.into_iter();
    let shown = exhibits.map(|exhibit| tables::of(exhibit, &findings));
    Ok(Paper::of(about, shown.collect()))
}

fn chosen(only: &[Exhibit]) -> Vec<Exhibit> {
    let is_chosen = |exhibit: &Exhibit| only.is_empty() || only.contains(exhibit);
    Exhibit::ALL.into_iter().filter(is_chosen).collect()
}

/// Requests that are done, and when they began.
struct Meter {
    done: u64,
    all: u64,
    began: Instant,
}

impl Meter {
    fn new(all: u64) -> Self {
        Self {
            done: 0,
            all,
            began: Instant::now(),
        }
    }

    fn progress(&self) -> Progress {
        let left = (self.done > 0).then(|| {
            let rest = (self.all - self.done) as f64 / self.done as f64;
            self.began.elapsed().mul_f64(rest)
        });
        Progress {
            done: self.done,
            all: self.all,
            left,
        }
    }
}
