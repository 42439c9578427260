//! `cargo xtask memory`: the resident memory of weir before a disk that is slower than its next
//! hop, with slow and fast clients of bodies of gigabytes, with and without a length.
//!
//! The bound is `memory` + 64 MiB + 256 KiB a connection, at any moment; afterwards memory returns
//! near its resting size. Every byte that a client gets is compared.

mod crowd;
mod options;
mod record;
mod schedule;
mod slow_disk;

use crate::failure::Failure;
use crate::host;
use crate::options::Task;
use crate::process::files;
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::program;
use crate::proxy::template::Words;
use options::Options;
use record::{Record, SCHEMA};
use std::path::Path;

static SUBJECT: Contender = Contender {
    templates: &[("memory/weir.toml", "weir.toml")],
    ..Contender::WEIR
};

/// Descriptors beside those of the clients.
const FILES_BESIDE: usize = 1000;

/// `cargo xtask memory [options]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match crate::options::parse(arguments)? {
        Task::Show(file) => {
            let record = crate::record::read(Path::new(&file), SCHEMA, |it: &Record| it.schema)?;
            print!("{}", record.render());
            Ok(())
        }
        Task::Measure(options) => measure(&options, arguments),
    }
}

fn measure(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let file = crate::record::place(
        options.out.as_deref(),
        &format!("memory-{}.json", host::date()),
    )?;
    let clients = usize::try_from(options.clients).unwrap_or(usize::MAX);
    let files_max = files::raise_limit(clients + FILES_BESIDE, "`--clients`")?;
    let mut words = Words::default();
    let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], WEIR)?;
    words.set("WEIR", weir);
    words.set("FILES", files_max);
    let mut record = Record::begin(options, arguments, &words, &SUBJECT);
    record.figures = Some(schedule::run(options, &words, &SUBJECT)?);
    crate::record::write(&record, &file)?;
    print!("{}", record.render());
    eprintln!("recorded in {}", file.display());
    match record.missed().as_slice() {
        [] => Ok(()),
        missed => Err(Failure::Refused(missed.join("; "))),
    }
}
