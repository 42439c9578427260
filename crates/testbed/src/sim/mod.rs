//! `cargo xtask sim-bench`: how fast the simulator is, and in how much memory.
//!
//! Hits alone are simulated beside libCacheSim on the same trace, and it is seen whether both count
//! the same. The trace is drawn from a seed and written in the form that both read as it is. Rounds
//! alternate, so that a machine that becomes slower does so for both; what is compared is processor
//! time. Packets and connections are simulated on a trace of 1997 that is made for it.
//! `docs/sim-hits.md` and `docs/sim.md` say what the figures mean.
//!
//! Parts can be measured one after the other into one record.

mod child;
mod files;
mod options;
mod ours;
mod packets;
mod record;
mod table;
mod theirs;

use crate::failure::Failure;
use crate::host;
use crate::options::Task;
use crate::process::workplace::Workplace;
use crate::proxy::program;
use files::Streamed;
use options::Options;
use packets::Packets;
use record::{Hits, Record, SCHEMA};
use std::path::Path;

/// Policies of both, by our names.
pub(crate) const POLICIES: [&str; 4] = ["fifo", "lru", "sieve", "s3-fifo"];

/// `cargo xtask sim-bench [options]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match crate::options::parse(arguments)? {
        Task::Show(file) => {
            let record = crate::record::read(Path::new(&file), SCHEMA, |it: &Record| it.schema)?;
            print!("{}", table::render(&record));
            Ok(())
        }
        Task::Measure(options) => measure(&options, arguments),
    }
}

fn measure(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let name = format!("sim-{}.json", host::date());
    let file = crate::record::place(options.out.as_deref(), &name)?;
    let mut record = Record::resume(&file, options, arguments)?;
    let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], "weir")?;
    let speed = program::build(&["-p", "weir-sim", "--example", "sim_speed"], "sim_speed")?;
    let place = Workplace::make("sim-bench")?;
    if options.has("hits") {
        record.hits = Some(hits(options, &weir, place.path())?);
        crate::record::write(&record, &file)?;
    }
    if options.has("made") || options.has("packets") {
        let trace = place.path().join("modem-1997.parquet");
        let made = files::make(&weir, "modem-1997", options.made, options.seed, &trace)?;
        eprintln!(
            "made {} requests: {:.1} s",
            made.requests, made.took.seconds
        );
        if options.has("made") {
            record.made = Some(made);
        }
        if options.has("packets") {
            record.packets = packets(options, &speed, &trace)?;
        }
        crate::record::write(&record, &file)?;
    }
    if options.has("memory") {
        record.memory.clear();
        for requests in [options.memory / 16, options.memory / 4, options.memory] {
            let run = packets::memory(&speed, requests, MEMORY_KEYS)?;
            eprintln!("{requests} requests: {} KiB", run.took.peak_rss_kib);
            record.memory.push(run);
        }
        crate::record::write(&record, &file)?;
    }
    if options.has("streamed") {
        record.streamed = streamed(options, &weir, place.path())?;
        crate::record::write(&record, &file)?;
    }
    print!("{}", table::render(&record));
    eprintln!("recorded in {}", file.display());
    let missed = table::targets(&record)
        .into_iter()
        .filter(|target| !target.is_met);
    match missed.count() {
        0 => Ok(()),
        missed => Err(Failure::Refused(format!("{missed} targets are missed"))),
    }
}

/// Targets of the requests that are drawn where memory is looked at.
const MEMORY_KEYS: u64 = 200_000;

/// Hits alone, beside libCacheSim.
fn hits(options: &Options, weir: &str, place: &Path) -> Result<Hits, Failure> {
    let trace = place.join("zipf.oracleGeneral.bin");
    eprintln!("drawing {} requests", options.requests);
    let whole = ours::make_trace(weir, options.requests, options.keys, options.seed, &trace)?;
    let mut hits = Hits {
        trace: whole,
        capacity_bytes: whole.footprint_bytes / 100 * options.percent,
        libcachesim: theirs::version(&options.python),
        ..Hits::default()
    };
    for round in 1..=options.rounds {
        for policy in POLICIES {
            let mine = ours::measure(weir, &trace, policy, hits.capacity_bytes)?;
            eprintln!(
                "round {round}, {policy}: weir {:.2} M/s",
                mine.millions_a_second()
            );
            hits.add_ours(policy, mine);
            if hits.libcachesim.is_some() {
                let capacity_bytes = hits.capacity_bytes;
                let other = theirs::measure(&options.python, &trace, policy, capacity_bytes)?;
                eprintln!("  libCacheSim {:.2} M/s", other.millions_a_second());
                hits.add_theirs(policy, other);
            }
        }
    }
    Ok(hits)
}

/// Packets and connections.
fn packets(options: &Options, speed: &str, trace: &Path) -> Result<Vec<Packets>, Failure> {
    let mut all = Vec::new();
    for round in 1..=options.rounds {
        for run in packets::measure(speed, trace)? {
            eprintln!(
                "round {round}, {}: {:.0} requests/s",
                run.scenario,
                run.requests_s()
            );
            all.push(run);
        }
    }
    Ok(all)
}

/// A trace of a hundred million requests that is in a file, and one of a tenth beside it: memory
/// must be the same. Of half the keys, so that nearly all of them are asked for in either.
fn streamed(options: &Options, weir: &str, place: &Path) -> Result<Vec<Streamed>, Failure> {
    let mut all = Vec::new();
    for requests in [options.streamed / 10, options.streamed] {
        let trace = place.join("long.oracleGeneral.bin");
        eprintln!("drawing {requests} requests");
        let whole = ours::make_trace(weir, requests, options.keys / 2, options.seed, &trace)?;
        let capacity_bytes = whole.footprint_bytes / 100 * options.percent;
        for policy in ["lru", "s3-fifo"] {
            let run = files::stream(weir, policy, capacity_bytes, &trace)?;
            eprintln!(
                "{policy}: {:.1} s, {} KiB",
                run.took.seconds, run.took.peak_rss_kib
            );
            all.push(run);
        }
    }
    Ok(all)
}
