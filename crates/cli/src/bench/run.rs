//! `weir bench run`.

use super::flags::RunFlags;
use super::{VERSION, outcome, plan};
use crate::messages::Failure;
use weir_bench::conduct::{Interrupt, LocalPlan, RunPlan};
use weir_bench::progress::Progress;
use weir_bench::record;
use weir_measure::record::Record;

/// Measures, prints a table, writes a record.
///
/// # Errors
/// The run is not valid (exit 1), bad usage (2), or the outside failed (3).
pub(super) fn run(flags: &RunFlags) -> Result<(), Failure> {
    let changes = &flags.scenario.changes;
    let mut scenario = plan::scenario(&flags.scenario.scenario, changes)?;
    if let Some(clients) = flags.clients {
        scenario = plan::with_clients(&scenario, clients)?;
    }
    let scenario = plan::scaled(&scenario, changes.scale)?;
    let proxy = &flags.proxy;
    let plan = plan::run_plan(
        scenario,
        changes.seed,
        proxy.proxy.as_deref(),
        proxy.gateway,
        &proxy.about,
    )?;
    let samples = &flags.samples;
    let samples = samples
        .samples
        .clone()
        .map(|path| (path, samples.sample_every));
    let local = plan::local_plan(&flags.threads, samples);
    let out = flags
        .out
        .clone()
        .unwrap_or_else(|| plan::default_path(&[&plan.scenario.name, &plan.label], ".json"));
    let record = conduct(&plan, &local, &plan::interrupt()?)?;
    outcome::settle(&record, &out)
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
