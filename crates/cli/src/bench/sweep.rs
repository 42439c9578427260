//! `weir bench sweep`: the experiment of figures 2-11.

use super::flags::SweepFlags;
use super::proxy_list::{self, GivenProxy};
use super::{outcome, plan, run};
use crate::messages::{Failure, give, tell};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weir_bench::conduct::{Interrupt, RunPlan, ask_all};
use weir_bench::report::RecordFile;
use weir_measure::record::Record;

/// Between two looks whether to go on.
const GLANCE: Duration = Duration::from_millis(100);

/// Measures every point, caching on and off, and draws the report.
///
/// # Errors
/// A run is not valid (exit 1), bad usage (2), or the outside failed (3). What was measured until
/// then is kept.
pub(super) fn sweep(flags: &SweepFlags) -> Result<(), Failure> {
    let plans = plans(flags)?;
    let local = plan::local_plan(&flags.threads, None);
    let folder = flags.out.clone().unwrap_or_else(|| default_folder(flags));
    outcome::try_files([folder.join("report.html").as_path()])?;
    ask_all(&plans)?;
    let has_names = flags.proxy.len() > 1;
    let interrupt = plan::interrupt()?;
    let mut runs: Vec<RecordFile> = Vec::new();
    let repeat = &flags.repeat;
    let plans = &plans;
    let all: Vec<(u32, &RunPlan)> = repeat
        .numbers()
        .flat_map(|number| plans.iter().map(move |plan| (number, plan)))
        .collect();
    for (index, &(number, plan)) in all.iter().enumerate() {
        if index > 0 {
            pause(Duration::from_secs(flags.pause), &interrupt);
        }
        if interrupt.is_set() {
            break;
        }
        tell(&format!("{} of {}: {}", index + 1, all.len(), title(plan)));
        repeat.before(plan, &title(plan))?;
        let record = run::conduct(plan, &local, &interrupt)?;
        let suffix = repeat.suffix(number);
        let path = folder.join(file_name(plan, has_names, &suffix));
        let run = outcome::keep(record, &path)?;
        give(&line(&run.record, has_names))?;
        runs.push(run);
    }
    outcome::finish("sweep", runs, &folder, interrupt.is_set())
}

fn plans(flags: &SweepFlags) -> Result<Vec<RunPlan>, Failure> {
    let changes = &flags.scenario.changes;
    let scenario = plan::scenario(&flags.scenario.scenario, changes)?;
    proxy_list::check(&flags.proxy, &flags.about)?;
    refuse_strangers(flags)?;
    let mut plans = Vec::new();
    for &clients in &flags.clients.numbers {
        let scenario = plan::with_clients(&scenario, clients)?;
        let scenario = plan::scaled(&scenario, changes.scale)?;
        let plan = |proxy: &GivenProxy| {
            plan::run_plan(
                scenario.clone(),
                changes.seed,
                Some(&proxy.address),
                flags.gateway || proxy.is_gateway,
                &proxy.about(&flags.about),
            )
        };
        for proxy in &flags.proxy {
            plans.push(plan(proxy)?);
            if let Some(without) = without_cache(flags, proxy) {
                plans.push(RunPlan {
                    is_caching: false,
                    // it is another process
                    proxy_pid: without.pid,
                    ..plan(without)?
                });
            }
        }
    }
    flags.repeat.check(&plans)?;
    Ok(plans)
}

/// The same proxy with caching off.
fn without_cache<'f>(flags: &'f SweepFlags, proxy: &GivenProxy) -> Option<&'f GivenProxy> {
    let mut others = flags.proxy_without_cache.iter();
    others.find(|other| other.name == proxy.name)
}

/// A proxy without caching stands beside one with it.
fn refuse_strangers(flags: &SweepFlags) -> Result<(), Failure> {
    let is_known = |other: &&GivenProxy| flags.proxy.iter().any(|proxy| proxy.name == other.name);
    let mut others = flags.proxy_without_cache.iter();
    let Some(stranger) = others.find(|other| !is_known(other)) else {
        return Ok(());
    };
    let name = stranger.name.as_deref().unwrap_or(&stranger.address);
    Err(Failure::usage(
        "cannot sweep",
        format!("no --proxy has the name of --proxy-without-cache `{name}`"),
    )
    .hint("--proxy squid=127.0.0.1:3128 --proxy-without-cache squid=127.0.0.1:3129"))
}

fn default_folder(flags: &SweepFlags) -> PathBuf {
    let scenario = flags.scenario.scenario.as_str();
    let label = match flags.proxy.as_slice() {
        [one] => one.name.as_deref().or(flags.about.label.as_deref()),
        _ => Some("all"),
    };
    plan::default_path(&["sweep", scenario, label.unwrap_or("proxy")], "")
}

fn pause(time: Duration, interrupt: &Interrupt) {
    let until = Instant::now() + time;
    while Instant::now() < until && !interrupt.is_set() {
        std::thread::sleep(GLANCE.min(time));
    }
}

fn caching(is_caching: bool) -> &'static str {
    if is_caching { "caching" } else { "no-caching" }
}

fn title(plan: &RunPlan) -> String {
    format!(
        "{} with {} clients, {}",
        plan.label,
        plan.scenario.agents(),
        caching(plan.is_caching)
    )
}

fn file_name(plan: &RunPlan, has_names: bool, suffix: &str) -> PathBuf {
    let (clients, caching) = (plan.scenario.agents(), caching(plan.is_caching));
    let name = if has_names {
        plan::file_name(&[&plan.scenario.name, &plan.label])
    } else {
        plan.scenario.name.clone()
    };
    PathBuf::from(format!("{name}-{clients:04}-{caching}{suffix}.json"))
}

/// One point as a line.
fn line(record: &Record, has_names: bool) -> String {
    let clients = record.parameters.get("clients").copied().unwrap_or(0.0);
    let phases = record.phases.iter().map(|phase| {
        let mean_s = phase.response_time.all.mean_us().unwrap_or(0.0) / 1e6;
        format!(
            "{}: {mean_s:.3} s, {} errors",
            phase.name,
            phase.client.error_count()
        )
    });
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
    };
    let measured = record.measured_together();
    let hit_ratio = percent(measured.hit_ratio());
    let offered = percent(measured.offered_hit_ratio());
    let name = if has_names {
        format!("{}, ", record.subject.label)
    } else {
        String::new()
    };
    let valid = if record.is_valid { "" } else { "; NOT VALID" };
    format!(
        "{name}{clients:>4} clients, {:<10} {}; hit ratio {hit_ratio} of {offered} offered{valid}\n",
        caching(record.subject.is_caching),
        phases.collect::<Vec<_>>().join("; ")
    )
}
