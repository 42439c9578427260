//! How every benchmark runs: options, participants, a record that is written at the end, and tables
//! that are made of the record.

use crate::proxy::contender::{self, Contender};
use crate::proxy::template::Words;
use crate::record::host;
use crate::record::markdown::Target;
use crate::record::{self, Benchmark, Record};
use clap::Args;
use std::path::PathBuf;
use weir_bench::descriptors;
use xtask::failure::Failure;
use xtask::program;

/// A benchmark's options on the command line, and those that all benchmarks have.
#[derive(Args, Debug)]
pub(crate) struct CommandLine<O: Args> {
    #[command(flatten)]
    options: O,
    /// Get missing programs from Debian
    #[arg(long)]
    install: bool,
    /// Where the numbers go [default: records/NAME-DATE.json]
    #[arg(long, alias = "record", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the tables of a record as Markdown and measure nothing
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
}

/// Does what the options say. `arguments` are those of the command line.
pub(crate) fn run<B: Benchmark>(
    line: CommandLine<B::Options>,
    arguments: &[String],
) -> Result<(), Failure> {
    if let Some(file) = line.show {
        print!("{}", B::render(&Record::read(&file)?));
        return Ok(());
    }
    let name = format!("{}-{}.json", B::FILE, host::date());
    let file = record::place(line.out, &name)?;
    let mut record = Record::<B>::begin(line.options, arguments);
    record.install = line.install;
    B::measure(&mut record, &file)?;
    record.write(&file)?;
    print!("{}", B::render(&record));
    eprintln!("recorded in {}", file.display());
    match B::faults(&record).as_slice() {
        [] => Ok(()),
        faults => Err(Failure::Refused(faults.join("\n  "))),
    }
}

/// The targets that were missed.
pub(crate) fn missed(targets: Vec<Target>) -> Vec<String> {
    let missed = targets.into_iter().filter(|target| !target.is_met);
    missed.map(|target| target.to_string()).collect()
}

/// Faults of weir among what could not be measured.
pub(crate) fn of_weir(troubles: Vec<String>) -> Vec<String> {
    let is_of_weir = |trouble: &String| trouble.starts_with(contender::WEIR);
    troubles.into_iter().filter(is_of_weir).collect()
}

/// Proxies that take part, and what their files are filled with.
#[derive(Debug)]
pub(crate) struct Participants {
    pub(crate) present: Vec<&'static Contender>,
    pub(crate) words: Words,
    /// Open files that each process may have.
    pub(crate) files_max: u64,
}

/// What else a process has open beside its connections.
const FILES_BESIDE: usize = 100;

impl Participants {
    /// Finds those of these names (all, if there are none) and `tools`, and builds weir. So many
    /// `connections` fit under the limit of open files.
    ///
    /// # Errors
    /// A tool is missing, weir cannot be built, or the limit is too low.
    pub(crate) fn prepare<B: Benchmark>(
        record: &mut Record<B>,
        (all, names): (&'static [Contender], &[String]),
        tools: &[&str],
        connections: usize,
    ) -> Result<Self, Failure> {
        Self::prepare_with(record, (all, names), tools, (connections, None))
    }

    /// The same with this weir; `None` is built.
    pub(crate) fn prepare_with<B: Benchmark>(
        record: &mut Record<B>,
        (all, names): (&'static [Contender], &[String]),
        tools: &[&str],
        (connections, weir): (usize, Option<String>),
    ) -> Result<Self, Failure> {
        let (present, left_out) = contender::prepare(all, names, tools, record.install)?;
        record.left_out.extend(left_out);
        let participants = Self::start_with(present, connections, (B::WEIR_FEATURES, weir))?;
        record.versions = host::versions(&participants.present, &participants.words);
        Ok(participants)
    }

    /// The same for contenders that are known to be present, with these `features` of weir.
    pub(crate) fn start(
        present: Vec<&'static Contender>,
        connections: usize,
        features: &str,
    ) -> Result<Self, Failure> {
        Self::start_with(present, connections, (features, None))
    }

    fn start_with(
        present: Vec<&'static Contender>,
        connections: usize,
        (features, weir): (&str, Option<String>),
    ) -> Result<Self, Failure> {
        let wanted = u64::try_from(connections + FILES_BESIDE).unwrap_or(u64::MAX);
        let outside = |error: std::io::Error| Failure::Outside(error.to_string());
        descriptors::raise_towards(u64::MAX);
        let files_max = descriptors::raise(wanted).map_err(outside)?;
        let mut words = Words::default();
        let has_weir = present
            .iter()
            .any(|contender| contender.name == contender::WEIR);
        if let Some(weir) = weir {
            words.set("WEIR", weir);
        } else if has_weir {
            let what = ["-p", "weir-cli", "--bin", "weir", "--features", features];
            words.set("WEIR", program::build(&what, "weir")?);
        }
        contender::set_next_release(&mut words);
        words.set("FILES", files_max);
        words.set("USER", host::user_name());
        // modules of weir: none, where a benchmark does not say otherwise
        words.set("MODULE_TABLES", "");
        Ok(Self {
            present,
            words,
            files_max,
        })
    }
}
