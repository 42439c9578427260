//! Making the runs.

use super::file::{FileError, Runs};
use super::grid::{Grid, Point};
use super::job::{Figures, Job};
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// What has come of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Runs of this sweep in the file now.
    pub runs: usize,
    /// Those that were there before.
    pub before: usize,
    /// Points of the grid.
    pub points: usize,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs made, and those that were there before.
    pub done: usize,
    /// Points of the grid.
    pub points: usize,
    /// What the rest will take, if its runs take as long as those until now.
    pub left: Option<Duration>,
}

/// Why a sweep is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepError {
    /// The file cannot be used, or written.
    File(FileError),
    /// A run cannot be made; the others until then are in the file.
    Run {
        /// Its point.
        point: Point,
        /// Why.
        what: String,
    },
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Run { point, what } => {
                let words: Vec<String> = point
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "run {}: {what}", words.join(" "))
            }
        }
    }
}

impl std::error::Error for SweepError {}

impl From<FileError> for SweepError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// The file is rewritten after so long, and at the end: at most so much work is lost when the
/// process is killed.
const WRITTEN_EACH: Duration = Duration::from_secs(1);

/// Makes the runs that are not in the file at `path` yet. It ends after the runs that are under way
/// once `is_stopped` says so; `told` is called after every run.
///
/// # Errors
/// [`SweepError`]; what was made until then is kept.
pub fn sweep(
    job: &dyn Job,
    grid: &Grid,
    path: &Path,
    threads: NonZero<usize>,
    is_stopped: &(dyn Fn() -> bool + Sync),
    mut told: impl FnMut(Progress),
) -> Result<Done, SweepError> {
    let points = grid.points();
    let mut runs = Runs::open(path, &grid.names(), &job.about())?;
    let missing: VecDeque<Point> = points
        .iter()
        .filter(|point| !runs.has(point))
        .cloned()
        .collect();
    let before = points.len() - missing.len();
    let mut course = Course::new(points.len(), before);
    told(course.progress());
    let missing = Mutex::new(missing);
    let mut failure = None;
    std::thread::scope(|scope| {
        let (sender, ended) = mpsc::channel::<(Point, Result<Figures, String>)>();
        for _ in 0..threads.get() {
            let sender = sender.clone();
            let missing = &missing;
            scope.spawn(move || work(job, missing, is_stopped, &sender));
        }
        drop(sender);
        for (point, figures) in ended {
            let kept = figures
                .map_err(|what| SweepError::Run {
                    point: point.clone(),
                    what,
                })
                .and_then(|figures| Ok(runs.add(point, figures)?))
                .and_then(|()| Ok(runs.write_if_older(WRITTEN_EACH)?));
            if let Err(error) = kept {
                // the others come to their end; no further one begins
                lock(&missing).clear();
                failure.get_or_insert(error);
                continue;
            }
            course.one_more();
            told(course.progress());
        }
    });
    runs.write_if_older(Duration::ZERO)?;
    match failure {
        Some(error) => Err(error),
        None => Ok(Done {
            runs: course.done,
            before,
            points: points.len(),
        }),
    }
}

type Queue = Mutex<VecDeque<Point>>;

fn work(
    job: &dyn Job,
    missing: &Queue,
    is_stopped: &(dyn Fn() -> bool + Sync),
    ended: &mpsc::Sender<(Point, Result<Figures, String>)>,
) {
    while !is_stopped() {
        let Some(point) = lock(missing).pop_front() else {
            return;
        };
        let figures = job.run(&point);
        if ended.send((point, figures)).is_err() {
            return;
        }
    }
}

/// A thread that panicked while it held the queue left it whole: it only takes from it.
fn lock(queue: &Queue) -> std::sync::MutexGuard<'_, VecDeque<Point>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Course {
    begun: Instant,
    points: usize,
    before: usize,
    done: usize,
}

impl Course {
    fn new(points: usize, before: usize) -> Self {
        Self {
            begun: Instant::now(),
            points,
            before,
            done: before,
        }
    }

    fn one_more(&mut self) {
        self.done += 1;
    }

    fn progress(&self) -> Progress {
        Progress {
            done: self.done,
            points: self.points,
            left: left(
                self.begun.elapsed(),
                self.done - self.before,
                self.points - self.done,
            ),
        }
    }
}

fn left(took: Duration, made: usize, missing: usize) -> Option<Duration> {
    let each = took.checked_div(u32::try_from(made).ok()?)?;
    each.checked_mul(u32::try_from(missing).ok()?)
}

#[cfg(test)]
mod left_tests {
    use super::*;

    #[test]
    fn time_left_is_proportional_to_the_missing_runs() {
        let s = Duration::from_secs;
        assert_eq!(left(s(10), 2, 6), Some(s(30)));
        assert_eq!(left(s(10), 2, 0), Some(s(0)));
        assert_eq!(left(s(10), 0, 6), None);
    }
}
