//! `weir trace import`.

mod input;
mod outcome;
mod progress;

use crate::messages::{Exit, Failure, give};
use crate::names;
use clap::{Args, ValueEnum};
use input::Input;
use outcome::Outcome;
use progress::Progress;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use weir_proxy::config::ByteSize;
use weir_trace::import::{Damage, Format, MissingSize, Settings, Site, open};
use weir_trace::{ArrivalOrder, Meta, Row, TraceError, WriteSummary, Writer};
use weir_workload::output;

/// The flags of `weir trace import`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImportFlags {
    /// What to read, in this order; `-` is standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,

    /// The trace to write; an existing file is replaced when the new one is complete
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Format of the inputs, if their content does not show it: squid, common (or combined), har,
    /// oracle-general, webcachesim, pcap, pcapng
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// At what cannot be read, stop, or skip and count it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnDamage::Stop)]
    on_damage: OnDamage,

    /// Where a size is missing, skip the transaction and count it, or assume so many bytes, such as
    /// 8KiB [default: by format]
    #[arg(long, value_name = "skip|SIZE", value_parser = missing_size)]
    missing_size: Option<MissingSize>,

    /// Site of the log, for paths without a host: `https://www.example.org`
    #[arg(long, value_name = "URL")]
    site: Option<Site>,

    /// Address at which a proxy received requests, for captures of both of its sides:
    /// 192.0.2.1:3128. The requests it sent become columns of those it received, not rows
    #[arg(long, value_name = "ADDRESS")]
    proxy: Option<SocketAddr>,

    /// Hide nothing: keep targets readable, and hash clients and servers without a key
    #[arg(long, conflicts_with = "key_file")]
    names: bool,

    /// File with the key of the hashes, made if it does not exist; traces with the same key can be
    /// compared [default: a new key that is not kept]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// How rows are put in the trace: in the order in which requests arrived, or as the source has
    /// them
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Arrival)]
    order: Order,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// What to do at damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnDamage {
    /// Stop: nothing is written.
    Stop,
    /// Leave it out and count it.
    Skip,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Of arrival. Squid writes a line when a transaction ends, a browser's archive is ordered by
    /// page
    Arrival,
    /// Of the source, and of several inputs that of the command line
    Source,
}

/// Where rows go.
enum Sink {
    Arrival(ArrivalOrder),
    Source(Writer),
}

impl Sink {
    fn push(&mut self, row: Row) -> Result<(), TraceError> {
        match self {
            Self::Arrival(order) => order.push(row),
            Self::Source(writer) => writer.push(row),
        }
    }

    const fn rows(&self) -> u64 {
        match self {
            Self::Arrival(order) => order.rows(),
            Self::Source(writer) => writer.rows(),
        }
    }

    /// Rows that were moved.
    const fn moved(&self) -> u64 {
        match self {
            Self::Arrival(order) => order.moved(),
            Self::Source(_) => 0,
        }
    }

    fn finish(self, meta: Meta) -> Result<WriteSummary, TraceError> {
        match self {
            Self::Arrival(order) => order.finish(meta),
            Self::Source(mut writer) => {
                *writer.meta_mut() = meta;
                writer.finish()
            }
        }
    }
}

fn missing_size(text: &str) -> Result<MissingSize, String> {
    if text == "skip" {
        return Ok(MissingSize::Skip);
    }
    let size: Result<ByteSize, _> = text.parse();
    size.map(|size| MissingSize::Assume(size.bytes()))
        .map_err(|error| format!("neither `skip` nor a size: {error}"))
}

/// Reads everything and writes one trace.
///
/// # Errors
///
/// The format of an input is not recognised, or it is the output (exit 2), cannot be read or is
/// damaged, or the trace cannot be written (exit 3).
pub(super) fn import(flags: &ImportFlags) -> Result<(), Failure> {
    flags.check()?;
    output::try_path(&flags.out).map_err(|error| Failure::output(&flags.out, &error))?;
    let anonymiser = names::anonymiser(flags.names, flags.key_file.as_deref())?;
    let mut meta = anonymiser.meta("weir trace import");
    let mut sink = match flags.order {
        Order::Arrival => Sink::Arrival(ArrivalOrder::new(&flags.out)),
        Order::Source => Sink::Source(Writer::create(&flags.out, meta.clone())?),
    };
    let mut outcome = Outcome::new(&flags.out, &anonymiser, flags.key_file.is_some());
    let mut progress = Progress::new();
    for (index, path) in flags.inputs.iter().enumerate() {
        let settings = Settings {
            missing_size: flags.missing_size.unwrap_or_default(),
            site: flags.site.clone(),
            proxy: flags.proxy,
            input: u32::try_from(index).unwrap_or(u32::MAX),
            is_whole_trace: flags.inputs.len() == 1,
            ..Settings::new(&anonymiser)
        };
        read(
            flags,
            path,
            settings,
            &mut sink,
            &mut outcome,
            &mut progress,
        )?;
    }
    progress.end();
    if sink.rows() == 0 {
        return Err(flags.nothing(&outcome));
    }
    meta.source = outcome.source();
    meta.dropped = outcome.dropped();
    outcome.moved = sink.moved();
    outcome.written = sink.finish(meta)?.bytes;
    give(&if flags.json {
        outcome.json()
    } else {
        outcome.text()
    })
}

/// Reads one input.
fn read(
    flags: &ImportFlags,
    path: &Path,
    settings: Settings<'_>,
    sink: &mut Sink,
    outcome: &mut Outcome,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let input =
        Input::open(path).map_err(|error| unread(path, &error, None, Exit::OutsideFailed))?;
    let meter = input.meter();
    let mut opened = open(input, flags.format, settings).map_err(|error| {
        let exit = match &error {
            weir_trace::import::Unreadable::Source(_) => Exit::OutsideFailed,
            _ => Exit::BadUsage,
        };
        unread(path, &error, error.hint(), exit)
    })?;
    if flags.proxy.is_some() && !opened.format.is_capture() {
        let cause = format!(
            "it is no capture but `{}`, which has no addresses",
            opened.format
        );
        let hint = Some("leave out --proxy".to_owned());
        return Err(unread(path, &cause, hint, Exit::BadUsage));
    }
    outcome.begin(path, opened.format, opened.compression);
    for item in opened.rows.by_ref() {
        match item {
            Ok(row) => {
                outcome.add(&row);
                sink.push(row)?;
            }
            Err(damaged) if flags.on_damage == OnDamage::Skip => outcome.skip(damaged),
            Err(damaged) => {
                progress.end();
                return Err(stopped(path, &damaged));
            }
        }
        progress.step(path, &meter, sink.rows());
    }
    outcome.end(&*opened.rows);
    Ok(())
}

fn unread(
    path: &Path,
    cause: &impl std::fmt::Display,
    hint: Option<String>,
    exit: Exit,
) -> Failure {
    Failure {
        exit,
        what: format!("cannot read `{}`", path.display()),
        cause: cause.to_string(),
        hint,
    }
}

fn stopped(path: &Path, damaged: &Damage) -> Failure {
    let hint = Some(damaged.hint().to_owned());
    unread(path, damaged, hint, Exit::OutsideFailed)
}

impl ImportFlags {
    /// A trace without requests is of no use, and a name that is not the right one often makes it.
    fn nothing(&self, outcome: &Outcome) -> Failure {
        let hint = if self.proxy.is_some() {
            "does --proxy name the proxy's address and port as they are in the capture?"
        } else {
            "is it the right file, and what --format says?"
        };
        Failure::usage(
            format!("cannot make trace `{}`", self.out.display()),
            format!("no request was read; dropped: {}", outcome.dropped_text()),
        )
        .hint(hint)
    }

    /// A source is not replaced by what is made of it.
    fn check(&self) -> Result<(), Failure> {
        let Ok(out) = self.out.canonicalize() else {
            return Ok(());
        };
        let is_out = |input: &&PathBuf| input.canonicalize().is_ok_and(|input| input == out);
        match self.inputs.iter().find(is_out) {
            None => Ok(()),
            Some(input) => Err(Failure::usage(
                format!("cannot write trace `{}`", self.out.display()),
                format!("it is the input `{}`", input.display()),
            )
            .hint("name another file by --out")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_size_option_is_skip_or_an_assumed_size() {
        assert_eq!(missing_size("skip"), Ok(MissingSize::Skip));
        assert_eq!(missing_size("8KiB"), Ok(MissingSize::Assume(8192)));
        assert_eq!(missing_size("0"), Ok(MissingSize::Assume(0)));
        assert!(missing_size("zero").is_err_and(|error| error.contains("neither `skip`")));
    }
}
