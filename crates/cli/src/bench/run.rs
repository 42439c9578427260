//! `weir bench run`.

use super::flags::RunFlags;
use super::proxy_list::{self, GivenProxy};
use super::{VERSION, outcome, plan};
use crate::messages::{Failure, give, tell};
use std::path::{Path, PathBuf};
use weir_bench::conduct::{Interrupt, LocalPlan, RunPlan, ask_all};
use weir_bench::progress::Progress;
use weir_bench::record;
use weir_bench::report::{self, RecordFile};
use weir_bench::usage::ProxyProcess;
use weir_measure::record::Record;
use weir_workload::{Scenario, output};

/// Measures, prints a table, writes a record and a report.
///
/// # Errors
/// A run is not valid (exit 1), bad usage (2), or the outside failed (3). What was measured until
/// then is kept.
pub(super) fn run(flags: &RunFlags) -> Result<(), Failure> {
    let runs = Runs::of(flags)?;
    // rather than after the other proxies' runs
    for pid in runs.all.iter().filter_map(|one| one.plan.proxy_pid) {
        ProxyProcess::find(pid)?;
    }
    let files = runs.all.iter().flat_map(OneRun::files);
    outcome::try_files(files.chain([runs.report.as_path()]))?;
    ask_all(runs.all.iter().map(|one| &one.plan))?;
    let interrupt = plan::interrupt()?;
    let mut done: Vec<RecordFile> = Vec::new();
    let mut failed = None;
    for one in &runs.all {
        if interrupt.is_set() {
            break;
        }
        let title = format!("the run of {}", one.plan.label);
        let samples = one.samples.clone();
        let local = plan::local_plan(
            &flags.threads,
            samples.map(|path| (path, flags.samples.sample_every)),
        );
        let record = flags.repeat.before(&one.plan, &title);
        let record = record.and_then(|()| conduct(&one.plan, &local, &interrupt));
        let record = match record {
            Ok(record) => record,
            Err(failure) => {
                failed = Some(failure);
                break;
            }
        };
        let run = outcome::keep(record, &one.out)?;
        give(&record::text(&run.record))?;
        done.push(run);
    }
    if !done.is_empty() {
        report::write(&done, &runs.report, None)?;
        tell(&format!("report: {}", runs.report.display()));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    let records: Vec<Record> = done.into_iter().map(|run| run.record).collect();
    outcome::verdict(&records)
}

/// What to run, and the file of the report.
struct Runs {
    all: Vec<OneRun>,
    report: PathBuf,
}

/// One run, where its record goes, and where its samples.
struct OneRun {
    plan: RunPlan,
    out: PathBuf,
    samples: Option<PathBuf>,
}

impl OneRun {
    fn files(&self) -> impl Iterator<Item = &Path> {
        let samples = self.samples.as_deref();
        std::iter::once(self.out.as_path()).chain(samples)
    }
}

impl Runs {
    fn of(flags: &RunFlags) -> Result<Self, Failure> {
        let proxies = &flags.proxy.proxy;
        proxy_list::check(proxies, &flags.proxy.about)?;
        let scenario = plan::whole_scenario(&flags.scenario, flags.clients)?;
        let samples = &flags.samples.samples;
        if proxies.len() < 2 && flags.repeat.repeat == 1 {
            let plan = run_plan(flags, &scenario, proxies.first())?;
            let by_name = || plan::default_path(&[&scenario.name, &plan.label], ".json");
            let out = flags.out.clone().unwrap_or_else(by_name);
            return Ok(Self {
                report: beside(&out)?,
                all: vec![OneRun {
                    plan,
                    out,
                    samples: samples.clone(),
                }],
            });
        }
        let plans: Vec<RunPlan> = if proxies.is_empty() {
            vec![run_plan(flags, &scenario, None)?]
        } else {
            let plans = proxies.iter();
            let plans = plans.map(|proxy| run_plan(flags, &scenario, Some(proxy)));
            plans.collect::<Result<_, _>>()?
        };
        flags.repeat.check(&plans)?;
        let folder = flags.out.clone();
        let folder = folder.unwrap_or_else(|| plan::default_path(&[&scenario.name], ""));
        let one = |number: u32, plan: &RunPlan| {
            let suffix = flags.repeat.suffix(number);
            let label = plan::file_name(&[&plan.label]);
            let samples = samples.as_ref();
            OneRun {
                out: folder.join(format!(
                    "{}-{label}{suffix}.json",
                    plan::file_name(&[&scenario.name])
                )),
                samples: samples.map(|path| with_word(path, &format!("-{label}{suffix}"))),
                plan: plan.clone(),
            }
        };
        let numbers = flags.repeat.numbers();
        let all = numbers.flat_map(|number| plans.iter().map(move |plan| one(number, plan)));
        Ok(Self {
            all: all.collect(),
            report: folder.join("report.html"),
        })
    }
}

/// The file beside it with a word before its ending: several runs write several.
fn with_word(path: &Path, word: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(word);
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// The report beside its record.
///
/// # Errors
/// Nothing stands beside a device, and a record named as a page would be replaced by the report.
fn beside(record: &Path) -> Result<PathBuf, Failure> {
    let report = record.with_extension("html");
    let cause = match output::replaceable(record) {
        Ok(None) => {
            "it is a device or a fifo, and a run writes two files, the report beside the record"
        }
        _ if report == record => "the report beside the record would have the same name",
        // other faults of it are reported when it is tried
        _ => return Ok(report),
    };
    Err(
        Failure::usage(format!("cannot write `{}`", record.display()), cause)
            .hint("name a regular file that ends in `.json`"),
    )
}

fn run_plan(
    flags: &RunFlags,
    scenario: &Scenario,
    proxy: Option<&GivenProxy>,
) -> Result<RunPlan, Failure> {
    let all = &flags.proxy.about;
    plan::run_plan(
        scenario.clone(),
        flags.scenario.changes.seed,
        proxy.map(|proxy| proxy.address.as_str()),
        flags.proxy.gateway || proxy.is_some_and(|proxy| proxy.is_gateway),
        &proxy.map_or_else(|| all.clone(), |proxy| proxy.about(all)),
    )
}

/// One run, seen on stderr.
pub(super) fn conduct(
    plan: &RunPlan,
    local: &LocalPlan,
    interrupt: &Interrupt,
) -> Result<Record, Failure> {
    let mut stderr = std::io::stderr();
    let mut progress = Progress::new(&mut stderr, plan::is_watched());
    let gathered = weir_bench::conduct::run(plan, local, interrupt, &mut progress)?;
    Ok(record::write_up(plan, &gathered, VERSION))
}
