//! The flags of `weir serve`, and of `weir check`, which looks at the same settings.

use super::RecordFlags;
use crate::disk_size::DiskSize;
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use weir_proxy::config::{
    AdminAddress, ByteSize, Cidr, LogFormat, LogTarget, NextHopUrl, parse_address,
};

/// The flags of `weir serve`. Those that have a setting override it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeFlags {
    /// Config file (TOML) to start from; without it, the defaults
    #[arg(value_name = "CONFIG", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,

    /// The same, as the flag of other commands has it
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
    /// If neither names a gateway, it listens on 127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub(crate) origin: Vec<NextHopUrl>,

    /// Address of the admin interface (ADDR may be unix:PATH), or off
    #[arg(long, value_name = "ADDR|off")]
    pub(crate) admin: Option<AdminAddress>,

    /// Network whose clients may use the forward proxy, beside those in the file; may be repeated
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_client: Vec<Cidr>,

    /// Network that clients of a forward proxy may reach although it is refused by default; may be
    /// repeated
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_destination: Vec<Cidr>,

    /// Memory for the cache, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Disk for the cache, such as 10GiB, instead of the file's; or off
    ///
    /// Without --disk-dir it is in the user's cache directory: ~/.cache/weir.
    #[arg(long, value_name = "SIZE|off")]
    pub(crate) disk: Option<DiskSize>,

    /// Directory for the cache on disk, instead of those in the file
    #[arg(long, value_name = "PATH")]
    pub(crate) disk_dir: Option<PathBuf>,

    /// Threads that serve requests; 0 for one a core
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u16>,

    /// Destination of the access log: - (stdout), a path, or off
    #[arg(long, value_name = "PATH|-|off")]
    pub(crate) access_log: Option<LogTarget>,

    /// Form of the access log: auto (readable on a terminal, json elsewhere), readable, json, squid
    /// or combined
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,

    #[command(flatten)]
    pub(crate) record: RecordFlags,

    /// Print the effective config as TOML and exit
    #[arg(long)]
    pub(crate) print_config: bool,
}

impl ServeFlags {
    /// With the file of the argument as that of the flag.
    pub(crate) fn with_one_config(mut self) -> Self {
        self.config = self.config.or(self.file.take());
        self
    }
}

/// The flags of `weir check`.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// Config file (TOML)
    #[arg(value_name = "CONFIG", required_unless_present = "named")]
    config: Option<PathBuf>,

    /// The same, as the flag of other commands has it
    #[arg(
        id = "named",
        long = "config",
        value_name = "FILE",
        conflicts_with = "config"
    )]
    named: Option<PathBuf>,
}

impl CheckFlags {
    /// The file to check.
    pub(crate) fn config(&self) -> &Path {
        let one = self.config.as_deref().or(self.named.as_deref());
        // one of both is required
        one.unwrap_or(Path::new(""))
    }
}
