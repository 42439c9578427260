//! `weir bench modem`: experiment 3 of the WPB paper.

use super::flags::{AboutFlags, ModemFlags};
use super::proxy_list::NamedProxy;
use super::{failure, modem_table, outcome, plan, run};
use crate::messages::{Failure, give, tell};
use weir_bench::conduct::{ERRORS_SHARE_MAX, RunPlan, ask_all};
use weir_bench::report::RecordFile;
use weir_bench::usage::ProxyProcess;
use weir_measure::record::Record;
use weir_workload::Scenario;

/// The link of the paper's clients where the scenario gives none.
const MODEM: &str = "clients.link=modem-1998";

/// Measures every proxy with clients unshaped and behind modems.
///
/// # Errors
/// A run is not valid (exit 1), bad usage (2), or the outside failed (3).
pub(super) fn modem(flags: &ModemFlags) -> Result<(), Failure> {
    let (unshaped, shaped) = scenarios(flags)?;
    let local = plan::local_plan(&flags.threads, None);
    let folder = flags
        .out
        .clone()
        .unwrap_or_else(|| plan::default_path(&["modem"], ""));
    // rather than after the other proxies' runs
    for pid in flags.proxy.iter().filter_map(|proxy| proxy.pid) {
        ProxyProcess::find(pid)?;
    }
    outcome::try_files([folder.join("report.html").as_path()])?;
    let plans = flags.proxy.iter();
    let plans = plans.map(|proxy| proxy_plan(proxy, &unshaped, flags.changes.seed));
    ask_all(&plans.collect::<Result<Vec<_>, _>>()?)?;
    let interrupt = plan::interrupt()?;
    let mut runs: Vec<RecordFile> = Vec::new();
    for proxy in &flags.proxy {
        for (scenario, how) in [(&unshaped, "lan"), (&shaped, "modem")] {
            if interrupt.is_set() {
                break;
            }
            tell(&format!(
                "{} with {} clients, {how}",
                proxy.name,
                scenario.agents()
            ));
            let plan = proxy_plan(proxy, scenario, flags.changes.seed)?;
            let record = run::conduct(&plan, &local, &interrupt)?;
            let path = folder.join(format!("{}-{how}.json", proxy.name));
            runs.push(outcome::keep(record, &path)?);
        }
    }
    if !runs.is_empty() {
        let records: Vec<Record> = runs.iter().map(|run| run.record.clone()).collect();
        give(&modem_table::text(&records))?;
    }
    outcome::finish("experiment", runs, &folder, interrupt.is_set())
}

/// Without a link, and with one.
fn scenarios(flags: &ModemFlags) -> Result<(Scenario, Scenario), Failure> {
    let mut shaped = plan::scenario(&flags.scenario, &flags.changes)?;
    if let Some(clients) = flags.clients {
        shaped = plan::with_clients(&shaped, clients)?;
    }
    let set = |scenario: &mut Scenario, assignment: &str| {
        let done = scenario.set(assignment);
        done.map_err(|error| failure::scenario(&flags.scenario, &error))
    };
    if shaped.clients.link.is_none() {
        set(&mut shaped, MODEM)?;
    }
    let mut unshaped = shaped.clone();
    set(&mut unshaped, "clients.link=none")?;
    let scale = flags.changes.scale;
    Ok((
        plan::scaled(&unshaped, scale)?,
        plan::scaled(&shaped, scale)?,
    ))
}

fn proxy_plan(proxy: &NamedProxy, scenario: &Scenario, seed: u64) -> Result<RunPlan, Failure> {
    let about = AboutFlags {
        label: Some(proxy.name.clone()),
        proxy_version: None,
        uncached: false,
        cache_bytes: None,
        proxy_pid: proxy.pid,
        errors_max: ERRORS_SHARE_MAX,
    };
    plan::run_plan(
        scenario.clone(),
        seed,
        Some(&proxy.address),
        proxy.is_gateway,
        &about,
    )
}
