//! `cargo xtask store-bench`: the disk stores of weir and of other caching proxies: filled with
//! misses, asked for a working set ten times their memory, killed and started again.
//!
//! Every proxy is a caching gateway on one core before the origin of `uneven`, whose content is a
//! function of target and offset; clients check every byte. `docs/store-bench.md` says what each
//! figure means.

mod contender;
mod device;
mod latency;
mod load;
mod mix;
mod options;
mod record;
mod restart;
mod schedule;
mod table;

use crate::failure::Failure;
use crate::host;
use crate::options::Task;
use crate::process::affinity::Cores;
use crate::process::files;
use crate::proxy::contender as contenders;
use crate::proxy::contender::WEIR;
use crate::proxy::program;
use crate::proxy::template::Words;
use options::Options;
use record::{Record, SCHEMA};
use std::path::Path;

/// `cargo xtask store-bench [options]`.
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
    let name = format!("store-{}.json", host::date());
    let file = crate::record::place(options.out.as_deref(), &name)?;
    let chosen = contenders::named(&contender::CONTENDERS, &options.peers)?;
    let tools = ["setpriv", "timeout"];
    let (present, left_out) = contenders::prepare(&chosen, &tools, "store-bench", options.install)?;
    let files_max = files::raise_limit(load::CONNECTIONS_MAX, "`--connections`")?;
    let mut words = Words::default();
    if present.iter().any(|contender| contender.name == WEIR) {
        let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], WEIR)?;
        words.set("WEIR", weir);
    }
    words.set("FILES", files_max);
    words.set("USER", host::user_name());
    let cores = Cores::choose()?;
    let mut record = Record::begin(options, arguments, &words, &present, cores);
    record.left_out.extend(left_out);
    schedule::run(&mut record, options, &words, &present, cores)?;
    crate::record::write(&record, &file)?;
    print!("{}", table::render(&record));
    eprintln!("recorded in {}", file.display());
    // what another proxy cannot do is a figure; what weir cannot, a fault
    match record.troubles.iter().any(|it| it.starts_with(WEIR)) {
        true => Err(Failure::Refused(
            "not everything of weir could be measured; the list at the end says what".to_owned(),
        )),
        false => Ok(()),
    }
}
