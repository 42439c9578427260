//! Runs of PolyMix-3 mini, of all cases at the same time: each has clients and an origin of its
//! own, and the load of all of them is a part of a core.

use super::Record;
use super::cases::{AGAINST, Case, Work};
use super::setup::Setup;
use crate::peers::scenario;
use crate::process::guarded::{self, GuardedProcess};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use weir_measure::record::Record as BenchRecord;
use xtask::failure::{During, Failure};
use xtask::files;

const SCENARIO: &str = "polymix3-mini";

/// Room of each store, MiB: what the scenario says.
const CACHE_MIB: u32 = 64;

/// How long the whole scenario takes at most, seconds; and what does not become shorter.
const WHOLE_S: f64 = 1800.0;
const BESIDE_S: f64 = 240.0;

/// One run, as far as the table needs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PolyMixRun {
    pub(super) case: String,
    /// Of the measured phase.
    pub(super) requests: u64,
    pub(super) rate_per_s: f64,
    pub(super) response_us: f64,
    pub(super) miss_us: f64,
    pub(super) hit_us: f64,
    pub(super) hit_ratio: f64,
    /// Why its numbers are not to be believed; empty when nothing speaks against them.
    pub(super) reasons: Vec<String>,
}

/// Proxy and benchmark of one case. The benchmark ends first.
struct Running {
    case: &'static Case,
    bench: GuardedProcess,
    record: PathBuf,
    _server: Server,
}

/// Runs all cases, into the record.
pub(super) fn measure(record: &mut Record, setup: &Setup<'_>) -> Result<(), Failure> {
    eprintln!("{SCENARIO}: all cases at the same time");
    std::fs::create_dir_all(setup.directory.join("table5")).during("make a directory")?;
    let mut running = Vec::new();
    let has_column = |case: &&Case| Work::COLUMNS.contains(&case.work) && case.name() != AGAINST;
    for case in setup.of_weir().filter(has_column) {
        let begun = begin(record, setup, case);
        running.extend(record.kept(format!("{}, {SCENARIO}", case.name()), begun));
    }
    for one in running {
        let case = one.case;
        let run = end(one);
        if let Some(run) = record.kept(format!("{}, {SCENARIO}", case.name()), run) {
            eprintln!("  {run:?}");
            record.figures.polymix.push(run);
        }
    }
    Ok(())
}

fn begin(record: &Record, setup: &Setup<'_>, case: &'static Case) -> Result<Running, Failure> {
    let (options, cores) = (&record.settings, record.figures.cores);
    let directory = setup.directory.join("table5").join(case.file_name());
    let life = Duration::from_secs_f64(WHOLE_S.mul_add(options.scale, BESIDE_S));
    let mut words = setup.words(case)?;
    scenario::set_store(&mut words, CACHE_MIB, true);
    let place = Place {
        core: Some(cores.server),
        ..Place::local(life)
    };
    let contender = Contender {
        name: case.name(),
        ..Contender::WEIR.with(scenario::FOLDER)
    };
    let mut server = Server::launch(&contender, &directory, &words, &place)?;
    server.wait_until_it_listens()?;
    let file = directory.with_extension("json");
    let weir = words.fill("@WEIR@")?;
    let mut arguments = [&weir, "bench", "run", SCENARIO]
        .map(str::to_owned)
        .to_vec();
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    option("--proxy", server.address().to_string());
    option("--proxy-pid", server.id().to_string());
    option("--label", case.file_name());
    option("--seed", options.seed.to_string());
    option("--scale", options.scale.to_string());
    option("--cache-bytes", format!("{CACHE_MIB}MiB"));
    option("--out", file.display().to_string());
    let mut command = guarded::command(&arguments, life);
    let log = directory.join("bench");
    let bench = GuardedProcess::spawn_logged(Some(cores.load), &mut command, &log)?;
    Ok(Running {
        case,
        bench,
        record: file,
        _server: server,
    })
}

fn end(mut running: Running) -> Result<PolyMixRun, Failure> {
    let status = running.bench.wait().during("wait for `weir bench`")?;
    if !running.record.is_file() {
        let what = format!("`weir bench` ended with {status} and left no record");
        return Err(Failure::Outside(what));
    }
    let run: BenchRecord = files::read_json(&running.record)?;
    let phase = run.measured_together();
    let times = &phase.response_time;
    let number = |number: Option<f64>| number.unwrap_or_default();
    Ok(PolyMixRun {
        case: running.case.name().to_owned(),
        requests: phase.client.requests,
        rate_per_s: number(phase.rate_per_s()),
        response_us: number(times.all.mean_us()),
        miss_us: number(times.miss.mean_us()),
        hit_us: number(times.hit.mean_us()),
        hit_ratio: number(phase.hit_ratio()),
        reasons: run.reasons,
    })
}
