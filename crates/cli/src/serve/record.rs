//! `--record`: every request, written into a series of traces.
//!
//! The proxy hands over what happened on a thread of its own and waits for nothing; what is
//! written, where and when a new file begins is decided here. Names are hidden before a row is
//! made: nothing else of a request leaves memory.

mod file_names;
mod rotation;
mod row;
mod series;
mod window;

use crate::messages::{Exit, Failure, tell};
use crate::names;
use clap::Args;
use file_names::FileNames;
use rotation::{Rotate, Rotation};
use series::Series;
use std::path::{Path, PathBuf};
use weir_proxy::record::Recorder;

/// The flags about recording.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RecordFlags {
    /// Record every request in traces named after this file: t.parquet gives
    /// t-20261121T234255Z-1.parquet and so on
    ///
    /// Clients, servers and URLs become keyed hashes before anything is written. No request waits
    /// for the recorder: rows that it cannot write in time are dropped and counted.
    /// docs/trace-record.md explains the columns.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Begin another file after so many bytes, or so much time; may be given once for each
    /// [default: 256MiB and 1h]
    #[arg(long, value_name = "SIZE|TIME", requires = "record")]
    record_rotate: Vec<Rotate>,

    /// Record names: keep targets readable, and hash clients and servers without a key
    #[arg(long, requires = "record", conflicts_with = "record_key_file")]
    record_names: bool,

    /// File with the key of the hashes, made if it does not exist [default: a new key that is not
    /// kept]
    #[arg(long, value_name = "FILE", requires = "record")]
    record_key_file: Option<PathBuf>,
}

/// A recorder that can write, and what to say of it at the start.
pub(super) struct Recording {
    pub(super) recorder: Box<dyn Recorder>,
    pub(super) said: String,
}

impl RecordFlags {
    /// Opens the first file, if a recording is configured.
    ///
    /// # Errors
    ///
    /// Bad flags (exit 2), or the file cannot be made (exit 3).
    pub(super) fn open(&self) -> Result<Option<Recording>, Failure> {
        let Some(file) = &self.record else {
            return Ok(None);
        };
        let rotation = Rotation::of(&self.record_rotate)?;
        let file_names = FileNames::of(file).map_err(|cause| Failure {
            exit: Exit::BadUsage,
            hint: Some("name a file: others are made beside it, called after it".to_owned()),
            ..unusable(file, cause)
        })?;
        let key_file = self.record_key_file.as_deref();
        let anonymiser = names::anonymiser(self.record_names, key_file)?;
        let names = names::described(&anonymiser, key_file.is_some());
        let say = Box::new(|line: &str| tell(&format!("note: {line}")));
        let series = Series::open(file_names, rotation, anonymiser, say)
            .map_err(|error| unusable(file, error.cause))?;
        let said = format!(
            "{}, another file after {rotation}; names {names}",
            series.path().display()
        );
        Ok(Some(Recording {
            recorder: Box::new(series),
            said,
        }))
    }
}

fn unusable(file: &Path, cause: String) -> Failure {
    Failure::outside(format!("cannot record to `{}`", file.display()), cause)
        .hint("files are made beside that name: its directory has to be there, and writable")
}
