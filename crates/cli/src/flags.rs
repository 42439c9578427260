//! The command line. What is documented here is what `--help` prints.

use crate::bench::BenchCommand;
use crate::disk_size::DiskSize;
use crate::messages::{Exit, Failure};
use crate::operate::{PurgeFlags, ReloadFlags};
use crate::serve::RecordFlags;
use crate::sim::SimCommand;
use crate::store::StoreCommand;
use crate::trace::TraceCommand;
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, Parser, Subcommand};
use std::error::Error as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use weir_proxy::config::{
    AdminAddress, ByteSize, Cidr, LogFormat, LogTarget, NextHopUrl, parse_address,
};
use weir_workload::toml_text;

/// A caching HTTP proxy.
#[derive(Debug, Parser)]
#[command(name = "weir", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 a check said no, 2 bad usage or config, 3 the outside failed"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands of `weir`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy until SIGTERM or SIGINT
    ///
    /// Without flags: a forward proxy on 127.0.0.1:3128 for this machine alone, admin on
    /// 127.0.0.1:3129.
    ///
    /// SIGHUP reads the config file again; a bad one is refused whole.
    Serve(ServeFlags),
    /// Say whether a config file is good and what it names can be used here, and what it means
    Check(CheckFlags),
    /// Make a running proxy forget the stored responses of URLs, or all
    Purge(PurgeFlags),
    /// Make a running proxy read its config file again; a bad one is refused whole
    Reload(ReloadFlags),
    /// Print every setting of a config file: form, default, range and reason (Markdown)
    Settings,
    /// Look into a store on disk that no process uses; nothing is ever written to it
    #[command(subcommand)]
    Store(StoreCommand),
    /// Measure a caching proxy, this one or another, by its address
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Make traces of what was asked of caches, and say what is in them
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Say what would happen on a trace, with other caches, connections, links and rules
    #[command(subcommand)]
    Sim(SimCommand),
}

/// The flags of `weir serve`. Those that have a setting override it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeFlags {
    /// Config file (TOML) to start from; without it, the defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Address and port for clients, instead of those in the file; may be repeated
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) listen: Vec<SocketAddr>,

    /// Be a gateway to this next hop (http://host:port), instead of the file's routes; repeat for
    /// more
    ///
    /// The addresses of --listen are then gateways. Without --listen, the file's gateways are kept.
    ///
    /// Without either, there is one on 127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub(crate) origin: Vec<NextHopUrl>,

    /// Address of the admin interface (ADDR may be unix:PATH), or off
    #[arg(long, value_name = "ADDR|off")]
    pub(crate) admin: Option<AdminAddress>,

    /// Network a forward proxy may reach although denied by default; may be repeated
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_destination: Vec<Cidr>,

    /// Memory for the cache, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Disk for the cache, such as 10GiB, instead of the file's; or off
    ///
    /// It is under the user's cache directory, or where --disk-dir says.
    #[arg(long, value_name = "SIZE|off")]
    pub(crate) disk: Option<DiskSize>,

    /// Directory for the cache on disk, instead of those in the file
    #[arg(long, value_name = "PATH")]
    pub(crate) disk_dir: Option<PathBuf>,

    /// Threads that serve requests; 0 for one a core
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u16>,

    /// Where the access log goes: - (stdout), a path, or off
    #[arg(long, value_name = "PATH|-|off")]
    pub(crate) access_log: Option<LogTarget>,

    /// Form of the access log: json, squid or combined
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,

    #[command(flatten)]
    pub(crate) record: RecordFlags,

    /// Print the effective config as TOML and exit
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// The flags of `weir check`.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// Config file (TOML)
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
}

impl Cli {
    /// Takes the command line apart. Help and version are printed here, and so is bad usage; then
    /// the process ends.
    ///
    /// # Errors
    ///
    /// A value that is none of its kind, told as one in a file would be.
    pub(crate) fn read() -> Result<Self, Failure> {
        Self::try_parse().map_err(|error| match error.kind() {
            ErrorKind::ValueValidation => bad_value(&error),
            _ => error.exit(),
        })
    }
}

fn bad_value(error: &clap::Error) -> Failure {
    let context = |kind| {
        let value = error.get(kind);
        value.map_or_else(String::new, ToString::to_string)
    };
    let source = error.source().map_or_else(String::new, ToString::to_string);
    let advice = toml_text::advise(&source, |_| None);
    Failure {
        exit: Exit::BadUsage,
        what: format!(
            "cannot use `{}` for `{}`",
            context(ContextKind::InvalidValue),
            context(ContextKind::InvalidArg)
        ),
        cause: advice.message,
        hint: advice.hint,
    }
}
