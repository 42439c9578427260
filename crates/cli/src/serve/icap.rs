//! `weir icap`: the modules of a config file as ICAP services.

use crate::effective;
use crate::messages::{Failure, tell};
use crate::serve::flags::ServeFlags;
use crate::serve::kinds::kinds;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use weir_adaptation::server::{IcapServer, ListenAddress, NamedModule, ServerSettings};
use weir_proxy::TableModule;
use weir_proxy::config::Config;

/// The flags of `weir icap`.
#[derive(Clone, Debug, Args)]
pub(crate) struct IcapFlags {
    /// Config file (TOML) with the modules
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Where it listens: an address and port, or unix:PATH
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1344")]
    listen: ListenAddress,

    /// Most connections at once, of all clients; others wait
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections_max: u32,

    /// Threads that serve requests; 0 for one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    workers: u16,
}

/// Serves modules until a signal ends it.
///
/// # Errors
///
/// A bad config (exit 2), or an address that cannot be had (exit 3).
pub(crate) fn icap(flags: &IcapFlags) -> Result<(), Failure> {
    let config = effective::load(&ServeFlags {
        config: Some(flags.config.clone()),
        ..ServeFlags::default()
    })?;
    let settings = ServerSettings {
        modules: modules(flags, &config)?,
        connections_max: flags.connections_max as usize,
        workers: match flags.workers {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            workers => usize::from(workers),
        },
        log: Arc::new(|line| tell(&line)),
    };
    let server = IcapServer::start(&flags.listen, settings).map_err(|error| {
        Failure::outside(format!("cannot listen on {}", flags.listen), error)
            .hint("choose another address with `--listen ADDR`")
    })?;
    server
        .run_until_signalled(|server| tell(&announcement(server).trim_end()))
        .map_err(|error| Failure::outside("cannot take signals", error))
}

fn modules(flags: &IcapFlags, config: &Config) -> Result<Vec<NamedModule>, Failure> {
    let loaded = weir_proxy::load_modules(config, &kinds());
    let cannot_serve = |cause: String| {
        let file = flags.config.display();
        Failure::usage(format!("cannot serve the modules of `{file}`"), cause)
    };
    let loaded = loaded.map_err(|invalid| cannot_serve(invalid.to_string()))?;
    if loaded.is_empty() {
        return Err(cannot_serve("there is no `[[module]]` table".to_owned()));
    }
    let named = loaded
        .into_iter()
        .map(|TableModule { table, module }| NamedModule {
            name: table.name,
            kind: table.kind,
            options: format!("{:?}", table.options),
            module,
        });
    Ok(named.collect())
}

/// Where each module is.
fn announcement(server: &IcapServer) -> String {
    let mut lines = format!("weir {} serves ICAP\n", env!("CARGO_PKG_VERSION"));
    for (name, methods) in server.services() {
        let methods = match methods.as_slice() {
            [] => "has no hooks that ICAP can call".to_owned(),
            methods => methods.join(", "),
        };
        lines.push_str(&match server.address() {
            ListenAddress::Tcp(address) => format!("  icap://{address}/{name}  {methods}\n"),
            unix @ ListenAddress::Unix(_) => format!("  {unix} /{name}  {methods}\n"),
        });
    }
    lines
}
