//! `cargo xtask peers`: weir beside other caching proxies, on this machine, in the same minutes.
//!
//! Each proxy is a caching gateway on one core before one origin; `wrk` drives it from the other
//! core, where the origin lives too. All are started together and measured in short runs that go
//! round: a disturbance of the machine meets everybody, and the table shows medians with the least
//! and the most. The figure to believe is CPU time a request of the server; requests a second also
//! depend on how much of the other core the origin needs.
//!
//! A number is believed only when it was checked: the body has the right size, no request failed,
//! and the origin's own counter says that hits did not reach it and uncacheable requests did. A run
//! that fails a check stays in the record with the reason and out of the table.

mod contender;
mod idle;
mod options;
mod origin;
mod record;
mod rounds;
mod run;
mod scenario;
mod table;
mod wrk;

use crate::failure::Failure;
use crate::host;
use crate::options::Task;
use crate::proxy::contender as contenders;
use options::Options;
pub(crate) use record::Record;
use std::path::Path;
pub(crate) use table::{cells, idle_bytes, median_cpu_us, render};

/// `cargo xtask peers [options]`; with `--scenario` see [`scenario`].
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| argument == "--scenario") {
        return scenario::run(arguments);
    }
    match crate::options::parse(arguments)? {
        Task::Show(file) => {
            print!("{}", table::render(&Record::read(Path::new(&file))?));
            Ok(())
        }
        Task::Measure(options) => measure(&options, arguments),
    }
}

/// Whether every contender is in the record with every kind of request.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let all = contender::CONTENDERS.iter();
    all.clone().all(|contender| {
        record
            .idle
            .iter()
            .any(|idle| idle.contender == contender.name)
            || !contender.is_cache
    }) && all
        .filter(|contender| contender.is_cache)
        .all(|contender| cells().all(|cell| median_cpu_us(record, cell, contender.name).is_some()))
}

fn measure(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let name = format!("peers-{}.json", host::date());
    let file = crate::record::place(options.record.as_deref(), &name)?;
    let chosen = contenders::named(&contender::CONTENDERS, &options.only)?;
    let tools = ["nginx", "wrk", "setpriv", "timeout"];
    let (present, left_out) = contenders::prepare(&chosen, &tools, "peers", options.install)?;
    let programs = rounds::Programs::build(&present)?;
    let mut record = Record::begin(options, arguments, &programs, &present)?;
    for (name, reason) in left_out {
        record.left_out.insert(name, reason);
    }
    rounds::fill(&mut record, options, &programs, &present)?;
    record.write(&file)?;
    print!("{}", table::render(&record));
    eprintln!("recorded in {}", file.display());
    if record.is_sound() {
        return Ok(());
    }
    Err(Failure::Refused(
        "not every run passed its checks; the table says which".to_owned(),
    ))
}
