//! `cargo xtask sim-bench`: how fast hits are simulated, beside libCacheSim on the same trace, and whether both count the same.
//!
//! The trace is drawn from a seed and written in the form that both read as it is. Rounds alternate, so that a machine that becomes
//! slower does so for both; what is compared is processor time. `docs/sim-hits.md` says what the figures mean.

mod options;
mod ours;
mod record;
mod table;
mod theirs;

use crate::bed::host;
use crate::bed::options::Task;
use crate::bed::workplace::Workplace;
use crate::bed::{self, program};
use crate::failure::Failure;
use crate::root;
use options::Options;
use record::{Record, SCHEMA};
use std::path::Path;

/// Policies of both, by our names.
pub(crate) const POLICIES: [&str; 4] = ["fifo", "lru", "sieve", "s3-fifo"];

/// `cargo xtask sim-bench [options]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match bed::options::parse(arguments)? {
        Task::Show(file) => {
            let record = bed::record::read(Path::new(&file), SCHEMA, |it: &Record| it.schema)?;
            print!("{}", table::render(&record));
            Ok(())
        }
        Task::Measure(options) => measure(&options, arguments),
    }
}

fn measure(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], "weir")?;
    let place = Workplace::make("sim-bench")?;
    let trace = place.path().join("zipf.oracleGeneral.bin");
    eprintln!("drawing {} requests", options.requests);
    let whole = ours::make_trace(&weir, options, &trace)?;
    let capacity_bytes = whole.footprint_bytes / 100 * options.percent;
    let version = theirs::version(&options.python);
    let mut record = Record::begin(options, arguments, &whole, capacity_bytes, version.clone());
    for round in 1..=options.rounds {
        for policy in POLICIES {
            let mine = ours::measure(&weir, &trace, policy, capacity_bytes)?;
            eprintln!(
                "round {round}, {policy}: weir {:.2} M/s",
                mine.millions_a_second()
            );
            record.add_ours(policy, mine);
            if version.is_some() {
                let other = theirs::measure(&options.python, &trace, policy, capacity_bytes)?;
                eprintln!("  libCacheSim {:.2} M/s", other.millions_a_second());
                record.add_theirs(policy, other);
            }
        }
    }
    let default = || root::directory().join(format!("records/sim-{}.json", host::date()));
    let file = options.out.as_ref().map_or_else(default, Into::into);
    bed::record::write(&record, &file)?;
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
