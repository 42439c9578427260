//! The command line of `weir store`.

use crate::operate::AdminFlags;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_proxy::config::{AdminAddress, Mode};

/// The commands of `weir store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// List the stored responses, one a line
    ///
    /// Columns: key, generation, segment:offset, bytes of content, status (rules: what a target
    /// varies on), content type, URL. Keys are keyed digests: they do not disclose the URL.
    Ls(LsFlags),
    /// Read and verify every byte; exit 1 and a line for each fault
    ///
    /// A proxy that uses the store reads 64 MiB a second, for one such command at a time.
    Verify(WholeStore),
    /// Show how much is stored, how much of it is live, and the state of the files
    Stats(WholeStore),
    /// Write a stored response: head, empty line, content, every byte verified
    ///
    /// The head is the stored one, without fields that are made for each use (Age, Cache-Status,
    /// Connection).
    Export(ExportFlags),
}

/// Which store, and what reads it: this program, or the proxy that uses it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreFlags {
    /// Directory of the store, instead of the one `weir serve` uses by default; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,

    /// Config file (TOML) of `weir serve` that names the directories; if a proxy uses them, it is
    /// asked at the admin address of that file
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) config: Option<PathBuf>,

    /// Ask the proxy that uses the store, at the address of its admin interface
    #[arg(long, value_name = "ADDR", conflicts_with = "dir")]
    pub(crate) admin: Option<AdminAddress>,

    /// File that holds the token of the proxy, instead of the one it was configured with
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) token_file: Option<PathBuf>,
}

impl StoreFlags {
    /// The proxy that is meant.
    pub(super) fn proxy(&self) -> AdminFlags {
        AdminFlags::new(
            self.admin.clone(),
            self.config.clone(),
            self.token_file.clone(),
        )
    }
}

/// A command about all of a store.
#[derive(Debug, Args)]
pub(crate) struct WholeStore {
    /// Directories of the store, as `--dir` names them
    #[arg(value_name = "DIR", conflicts_with_all = ["config", "admin", "token_file"])]
    directories: Vec<PathBuf>,

    #[command(flatten)]
    store: StoreFlags,

    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl WholeStore {
    /// The store that is meant.
    pub(super) fn store(&self) -> StoreFlags {
        let mut store = self.store.clone();
        store.dir.extend_from_slice(&self.directories);
        store
    }
}

/// The flags of `weir store ls`.
#[derive(Debug, Args)]
pub(crate) struct LsFlags {
    #[command(flatten)]
    pub(crate) whole: WholeStore,

    /// Also dead records, with the reason in a last column: purged, superseded, doubtful because
    /// the purge journal is damaged, or forgotten by the proxy that uses the store
    #[arg(long)]
    pub(crate) all: bool,
}

/// The flags of `weir store export`.
#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

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
