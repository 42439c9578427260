//! `weir bench run`.

use super::flags::RunFlags;
use super::proxy_list::{self, GivenProxy};
use super::{VERSION, outcome, plan};
use crate::messages::{Failure, give, tell};
use std::path::{Path, PathBuf};
use weir_bench::conduct::{Interrupt, LocalPlan, RunPlan};
use weir_bench::progress::Progress;
use weir_bench::record;
use weir_bench::report::{self, Named};
use weir_bench::usage::ProxyProcess;
use weir_measure::record::Record;
use weir_workload::Scenario;

/// Measures, prints a table, writes a record and a report.
///
/// # Errors
/// A run is not valid (exit 1), bad usage (2), or the outside failed (3). What was measured until then is kept.
pub(super) fn run(flags: &RunFlags) -> Result<(), Failure> {
    let runs = Runs::of(flags)?;
    let samples = &flags.samples;
    let samples = samples
        .samples
        .clone()
        .map(|path| (path, samples.sample_every));
    let local = plan::local_plan(&flags.threads, samples);
    // rather than after the other proxies' runs
    for pid in runs.plans.iter().filter_map(|(plan, _)| plan.proxy_pid) {
        ProxyProcess::find(pid)?;
    }
    let interrupt = plan::interrupt()?;
    let mut done: Vec<Named> = Vec::new();
    let mut failed = None;
    for (plan, out) in &runs.plans {
        if interrupt.is_set() {
            break;
        }
        let record = match conduct(plan, &local, &interrupt) {
            Ok(record) => record,
            Err(failure) => {
                failed = Some(failure);
                break;
            }
        };
        outcome::keep(&record, out)?;
        give(&record::text(&record))?;
        done.push(Named {
            file: out.display().to_string(),
            record,
        });
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

/// What is to be run, where the records go, and where the report.
struct Runs {
    plans: Vec<(RunPlan, PathBuf)>,
    report: PathBuf,
}

impl Runs {
    fn of(flags: &RunFlags) -> Result<Self, Failure> {
        let proxies = &flags.proxy.proxy;
        proxy_list::check(proxies, &flags.proxy.about)?;
        let scenario = plan::whole_scenario(&flags.scenario, flags.clients)?;
        let plan = |proxy: Option<&GivenProxy>| run_plan(flags, &scenario, proxy);
        if let [_, _, ..] = proxies.as_slice() {
            let folder = flags.out.clone();
            let folder = folder.unwrap_or_else(|| plan::default_path(&[&scenario.name], ""));
            let file = |plan: RunPlan| {
                let name = plan::file_name(&[&scenario.name, &plan.label]);
                let path = folder.join(format!("{name}.json"));
                (plan, path)
            };
            let plans: Result<Vec<_>, Failure> = proxies
                .iter()
                .map(|proxy| Ok(file(plan(Some(proxy))?)))
                .collect();
            return Ok(Self {
                plans: plans?,
                report: folder.join("report.html"),
            });
        }
        let plan = plan(proxies.first())?;
        let out = flags.out.clone();
        let out =
            out.unwrap_or_else(|| plan::default_path(&[&scenario.name, &plan.label], ".json"));
        Ok(Self {
            report: beside(&out),
            plans: vec![(plan, out)],
        })
    }
}

/// The report beside its record.
fn beside(record: &Path) -> PathBuf {
    record.with_extension("html")
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
