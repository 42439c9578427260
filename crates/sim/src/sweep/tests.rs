use super::*;
use crate::hit_ratio::hits::ZipfTrace;
use crate::hit_ratio::keys::KeyRule;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn trace() -> ZipfTrace {
    ZipfTrace {
        requests: 5000,
        keys: 800,
        exponent: 0.8,
        size: "exp(3000)".parse().unwrap(),
        seed: 4,
    }
}

fn grid(job: &dyn Job) -> Grid {
    let axes = [
        "size=1%,10%,64KiB",
        "policy=lru,fifo,sieve,s3-fifo",
        "admission=always,small:4KiB",
    ];
    Grid::new(&job.parameters(), &axes.map(str::to_owned)).unwrap()
}

const TWO: NonZero<usize> = NonZero::new(2).expect("two");

/// Counts runs, and stops after so many.
struct CountingJob<'j> {
    job: &'j HitsJob<'j>,
    runs: AtomicUsize,
    stop: AtomicBool,
    stop_after: usize,
}

impl Job for CountingJob<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        self.job.parameters()
    }
    fn about(&self) -> BTreeMap<String, String> {
        self.job.about()
    }
    fn run(&self, point: &Point) -> Result<Figures, String> {
        if self.runs.fetch_add(1, Ordering::Relaxed) + 1 >= self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.job.run(point)
    }
}

fn make(job: &HitsJob<'_>, path: &Path, stop_after: usize) -> (usize, Done) {
    let counted = CountingJob {
        job,
        runs: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        stop_after,
    };
    let mut last = None;
    let is_stopped = || counted.stop.load(Ordering::Relaxed);
    let done = sweep(&counted, &grid(job), path, TWO, &is_stopped, |progress| {
        assert!(progress.done <= progress.points);
        last = Some(progress.done);
    });
    let done = done.unwrap();
    assert_eq!(last, Some(done.runs));
    (counted.runs.into_inner(), done)
}

#[test]
fn resumed_sweep_repeats_no_run_and_writes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, pieces) = (
        folder.path().join("whole"),
        folder.path().join("sub/pieces"),
    );
    let trace = trace();
    let job = HitsJob::new(&trace, KeyRule::FirstSize, false).unwrap();
    let (made, done) = make(&job, &whole, usize::MAX);
    assert_eq!(
        (made, done),
        (
            24,
            Done {
                runs: 24,
                before: 0,
                points: 24
            }
        )
    );

    let mut made_before = 0;
    for stop_after in [1, 5, 4, usize::MAX] {
        let (made, done) = make(&job, &pieces, stop_after);
        assert_eq!(done.before, made_before);
        assert_eq!(
            done.runs,
            made_before + made,
            "a run that was there was made again"
        );
        made_before = done.runs;
    }
    assert_eq!(made_before, 24);
    assert_eq!(
        std::fs::read(&whole).unwrap(),
        std::fs::read(&pieces).unwrap()
    );
    assert_eq!(make(&job, &pieces, usize::MAX).0, 0);
    let others = std::fs::read_dir(folder.path().join("sub"))
        .unwrap()
        .count();
    assert_eq!(others, 1, "something was left beside the file");
}

#[test]
fn row_has_the_same_figures_as_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let trace = trace();
    let job = HitsJob::new(&trace, KeyRule::SizeInKey, true).unwrap();
    make(&job, &path, usize::MAX);
    let runs = Runs::open(&path, &grid(&job).names(), &job.about()).unwrap();
    assert_eq!(runs.len(), 24);
    for point in grid(&job).points() {
        for (name, figure) in job.run(&point).unwrap() {
            assert_eq!(
                runs.figure(&point, name),
                Some(figure),
                "{name} of {point:?}"
            );
        }
    }
}

#[test]
fn runs_of_another_trace_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let (one, other) = (trace(), ZipfTrace { seed: 5, ..trace() });
    for trace in [&one, &other] {
        let job = HitsJob::new(trace, KeyRule::FirstSize, false).unwrap();
        assert_eq!(make(&job, &path, usize::MAX).0, 24);
    }
    let job = HitsJob::new(&one, KeyRule::FirstSize, false).unwrap();
    assert_eq!(make(&job, &path, usize::MAX).0, 0);
}

#[test]
fn unrelated_file_is_refused_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let trace = trace();
    let job = HitsJob::new(&trace, KeyRule::FirstSize, false).unwrap();
    let open = |names: &[String]| Runs::open(&path, names, &job.about());
    let names = grid(&job).names();
    std::fs::write(&path, "my diary").unwrap();
    let error = open(&names).unwrap_err();
    assert!(
        error.what.contains("a.parquet") && error.is_outside,
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"my diary");
    std::fs::remove_file(&path).unwrap();
    make(&job, &path, usize::MAX);
    let error = open(&names[1..]).unwrap_err();
    assert!(
        error.cause.contains("other columns") && error.hint.is_some(),
        "{error}"
    );
    let mut runs = open(&names).unwrap();
    let error = runs
        .add(Point::new(), vec![("hits", Figure::Whole(1))])
        .unwrap_err();
    assert!(error.cause.contains("other columns"), "{error}");
}

#[test]
fn failed_run_is_reported_and_earlier_runs_are_kept() {
    struct Failing;
    impl Job for Failing {
        fn parameters(&self) -> Vec<Parameter> {
            let check = |_: &str| Ok(());
            vec![Parameter {
                name: "a",
                meaning: "a word",
                default: "1",
                check,
            }]
        }
        fn about(&self) -> BTreeMap<String, String> {
            BTreeMap::new()
        }
        fn run(&self, point: &Point) -> Result<Figures, String> {
            match point["a"].as_str() {
                "2" => Err("no such thing".to_owned()),
                _ => Ok(vec![("x", Figure::Real(0.5))]),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let grid = Grid::new(&Failing.parameters(), &["a=1,2,3".to_owned()]).unwrap();
    let one = NonZero::<usize>::MIN;
    let error = sweep(&Failing, &grid, &path, one, &|| false, |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "run a=2: no such thing");
    let runs = Runs::open(&path, &grid.names(), &BTreeMap::new()).unwrap();
    assert!(runs.has(&grid.points()[0]) && !runs.has(&grid.points()[1]));
}
