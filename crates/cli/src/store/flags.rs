//! The command line of `weir store`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_proxy::config::Mode;

/// The commands of `weir store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// List the stored responses, one a line
    ///
    /// Columns: key, generation, segment:offset, bytes of content, status (rules: what a target
    /// varies on), content type. Keys are keyed digests: they do not disclose the URL.
    Ls(LsFlags),
    /// Read and verify every byte; exit 1 and a line for each fault
    Verify(Directories),
    /// Show how much is stored, how much of it is live, and the state of the files
    Stats(Directories),
    /// Write a stored response: head, empty line, content, every byte verified
    ///
    /// The head is the stored one, without fields that are made for each use (Age, Cache-Status,
    /// Connection).
    Export(ExportFlags),
}

/// Which store.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Directories {
    /// Directory of the store, instead of the one `weir serve` uses by default; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,

    /// Config file (TOML) of `weir serve` that names the directories
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) config: Option<PathBuf>,
}

/// The flags of `weir store ls`.
#[derive(Debug, Args)]
pub(crate) struct LsFlags {
    #[command(flatten)]
    pub(crate) directories: Directories,

    /// Also dead records, with the reason in a last column: purged, superseded, or doubtful because
    /// the purge journal is damaged
    #[arg(long)]
    pub(crate) all: bool,
}

/// The flags of `weir store export`.
#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    #[command(flatten)]
    pub(crate) directories: Directories,

    /// The URL as it was requested: scheme, host, path and query
    #[arg(
        value_name = "URL",
        required_unless_present = "key",
        conflicts_with = "key"
    )]
    pub(crate) url: Option<String>,

    /// The key that `weir store ls` prints, instead of a URL
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Kind of the listener that stored it, forward or gateway; without it, either
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,

    /// Write to this file instead of stdout; the file is removed again if the content is damaged
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
