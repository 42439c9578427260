//! `cargo xtask uneven`: weir beside other caching proxies where the links on its two sides are
//! uneven: a client that leaves, one that is slow or stops, a fast one behind a slow one, thousands
//! at once, thousands of modems, and a long path.
//!
//! Every proxy is a caching gateway before one [`origin`](crate::origin) that counts what is taken
//! from it; clients are threads of this process and check every byte. The proxies run at the same
//! time. What is light is measured of all at once, the rest of one after the other, experiment by
//! experiment, so that each row is of the same minutes. `docs/uneven.md` says what each row means.

mod abort;
mod contender;
mod experiments;
mod herd;
mod join;
mod measured;
mod memory;
mod options;
mod path;
mod read_ahead;
mod record;
mod table;
mod targets;

use crate::failure::Failure;
use crate::host;
use crate::options::Task;
use crate::process::files;
use crate::proxy::contender as contenders;
use crate::proxy::program;
use crate::proxy::template::Words;
use options::Options;
pub(crate) use record::Record;
use record::SCHEMA;
use std::path::Path;
pub(crate) use table::{experiments as render_experiments, render};

/// Connections at once, of the clients: the most that an experiment wants.
const CONNECTIONS_MAX: usize = 10_000;

/// `cargo xtask uneven [options]`, and the origin that it starts.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some((crate::origin::ROLE, rest)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return crate::origin::run(rest);
    }
    match crate::options::parse(arguments)? {
        Task::Show(file) => {
            let record = crate::record::read(Path::new(&file), SCHEMA, |it: &Record| it.schema)?;
            print!("{}", table::render(&record));
            Ok(())
        }
        Task::Measure(options) => measure(&options, arguments),
    }
}

/// Whether every contender is in the record with the experiments that all of them take part in.
pub(crate) fn record_has_experiments(record: &Record) -> bool {
    let has = |name: &str| record.contenders.iter().any(|contender| contender == name);
    let is_measured = !record.aborts.is_empty()
        && !record.leads.is_empty()
        && !record.joins.is_empty()
        && !record.herds.is_empty();
    is_measured
        && contender::CONTENDERS
            .iter()
            .all(|contender| has(contender.name))
}

fn measure(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let name = format!("uneven-{}.json", host::date());
    let file = crate::record::place(options.out.as_deref(), &name)?;
    let chosen = contenders::named(&contender::CONTENDERS, &options.peers)?;
    let tools = ["setpriv", "timeout"];
    let (present, left_out) = contenders::prepare(&chosen, &tools, "uneven", options.install)?;
    let files_max = files::raise_limit(CONNECTIONS_MAX, "other experiments: `--experiments`")?;
    let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], contenders::WEIR)?;
    let mut words = Words::default();
    words.set("WEIR", weir);
    words.set("FILES", files_max);
    words.set("USER", host::user_name());
    let mut record = Record::begin(options, arguments, &words, &present, files_max);
    record.left_out.extend(left_out);
    experiments::run(&mut record, options, &words, &present)?;
    crate::record::write(&record, &file)?;
    print!("{}", table::render(&record));
    eprintln!("recorded in {}", file.display());
    // what another proxy cannot do is a figure; what weir cannot, a fault
    match table::troubles(&record)
        .iter()
        .any(|trouble| trouble.starts_with(contenders::WEIR))
    {
        true => Err(Failure::Refused(
            "not everything of weir could be measured; the list at the end says what".to_owned(),
        )),
        false => Ok(()),
    }
}
