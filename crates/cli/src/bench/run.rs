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
    let (clients, out) = (flags.clients, flags.out.as_ref());
    let (plan, out) = plan::single_run(&flags.scenario, clients, &flags.proxy, out)?;
    let samples = &flags.samples;
    let samples = samples
        .samples
        .clone()
        .map(|path| (path, samples.sample_every));
    let local = plan::local_plan(&flags.threads, samples);
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
