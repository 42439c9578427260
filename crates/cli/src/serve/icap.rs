//! `weir icap`: the modules of a config file as ICAP services.

use crate::effective;
use crate::messages::{Failure, tell};
use crate::serve::flags::ServeFlags;
use crate::serve::kinds::kinds;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use weir_adaptation::server::{
    Destination, IcapServer, LineLog, ListenAddress, NamedModule, ServerSettings,
};
use weir_extend::LoadError;
use weir_proxy::TableModule;
use weir_proxy::config::{Config, Invalid, LogTarget};

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

    /// Destination of the access log: - (stdout), a path, or off [default: as the config says]
    #[arg(long, value_name = "PATH|-|off")]
    access_log: Option<LogTarget>,

    /// Be the process of a module: say on stdout how the start went, and end when stdin ends
    #[arg(long, hide = true)]
    of_proxy: bool,
}

/// Serves modules until a signal ends it.
///
/// # Errors
///
/// A bad config (exit 2), or an address that cannot be had (exit 3).
pub(crate) fn icap(flags: &IcapFlags) -> Result<(), Failure> {
    if flags.of_proxy {
        // the proxy has been told why
        let begin = || {
            let (modules, _) = load(flags).map_err(|refusal| refusal.into_load_error())?;
            // the proxy logs its requests
            Ok(settings(flags, modules, LineLog::off()))
        };
        return weir_adaptation::process::run(&flags.listen, begin).map_err(|error| {
            Failure::usage("cannot serve the module", error.what).hint(error.hint)
        });
    }
    let (modules, config) = load(flags).map_err(|refusal| refusal.into_failure(flags))?;
    let access_log = open_log(&config)?;
    let served = settings(flags, modules, access_log);
    let server = IcapServer::start(&flags.listen, served).map_err(|error| {
        Failure::outside(format!("cannot listen on {}", flags.listen), error)
            .hint("choose another address with `--listen ADDR`")
    })?;
    let again = flags.clone();
    let load_again = move || {
        let refused = |refusal: Refusal| refusal.into_failure(&again).to_string();
        load(&again).map(|(modules, _)| modules).map_err(refused)
    };
    server
        .run_until_signalled(
            |server| tell(&announcement(server).trim_end()),
            load_again,
            tell_reload,
        )
        .map_err(|error| Failure::outside("cannot take signals", error))
}

/// Says how a reload went, and opens the access log again.
fn tell_reload(server: &IcapServer, loaded: Result<(), String>) {
    if let Err(error) = server.reopen_access_log() {
        tell(&format!(
            "note: the access log could not be opened again and stays as it was: {error}"
        ));
    }
    match loaded {
        Ok(()) => tell(&format!("config reloaded\n{}", services(server)).trim_end()),
        Err(error) => tell(&format!("{error}\nthe config in force stays as it was")),
    }
}

/// Opens the access log.
fn open_log(config: &Config) -> Result<LineLog, Failure> {
    let destination = match &config.log.access {
        LogTarget::Off => Destination::Off,
        LogTarget::Stdout => Destination::Stdout,
        LogTarget::File(path) => Destination::Path(path.clone()),
    };
    let report = |error: &std::io::Error| {
        tell(&format!(
            "note: the access log cannot be written ({error}): until it can, its lines are lost"
        ));
    };
    let lines = config.log.queue_lines as usize;
    LineLog::open(destination, lines, report).map_err(|error| {
        let what = format!("cannot open the access log {}", config.log.access);
        Failure::outside(what, error).hint("name another place with `--access-log`")
    })
}

/// Why modules are not served.
enum Refusal {
    /// The config cannot be used.
    Config(Failure),
    /// A module is not loaded.
    Module(Invalid),
    /// There is none.
    NoModule,
}

impl Refusal {
    fn into_failure(self, flags: &IcapFlags) -> Failure {
        let cause = match self {
            Self::Config(failure) => return failure,
            Self::Module(invalid) => invalid.to_string(),
            Self::NoModule => "there is no `[[module]]` table".to_owned(),
        };
        let file = flags.config.display();
        Failure::usage(format!("cannot serve the modules of `{file}`"), cause)
    }

    /// The same for the proxy that has started this process of its module.
    fn into_load_error(self) -> LoadError {
        match self {
            Self::Config(failure) => {
                LoadError::new("", failure.cause, failure.hint.unwrap_or_default())
            }
            Self::Module(invalid) => {
                let option = invalid.key_path.strip_prefix("module[0].options");
                let option = option.unwrap_or_default().trim_start_matches('.');
                LoadError::new(option, invalid.reason, invalid.hint)
            }
            Self::NoModule => LoadError::new("", "there is no module", "name one"),
        }
    }
}

/// The modules of the config file, and the config.
fn load(flags: &IcapFlags) -> Result<(Vec<NamedModule>, Config), Refusal> {
    let serve_flags = ServeFlags {
        config: Some(flags.config.clone()),
        access_log: flags.access_log.clone(),
        ..ServeFlags::default()
    };
    let config = if flags.of_proxy {
        // a module is loaded once
        let config = effective::load_without_modules(&serve_flags);
        // a proxy that is killed cannot remove it
        let _ = std::fs::remove_file(&flags.config);
        config
    } else {
        effective::load(&serve_flags)
    };
    let config = config.map_err(Refusal::Config)?;
    Ok((modules(&config)?, config))
}

/// What is served.
fn settings(flags: &IcapFlags, modules: Vec<NamedModule>, access_log: LineLog) -> ServerSettings {
    ServerSettings {
        modules,
        connections_max: flags.connections_max as usize,
        workers: match flags.workers {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            workers => usize::from(workers),
        },
        log: Arc::new(|line| tell(&line)),
        access_log,
    }
}

fn modules(config: &Config) -> Result<Vec<NamedModule>, Refusal> {
    let loaded = weir_proxy::load_modules(config, &kinds()).map_err(Refusal::Module)?;
    if loaded.is_empty() {
        return Err(Refusal::NoModule);
    }
    let named = loaded
        .into_iter()
        .map(|TableModule { table, module }| NamedModule {
            name: table.name,
            kind: table.kind,
            options: format!("{:?}", table.options),
            hold_bytes: table.hold.as_usize(),
            module,
        });
    Ok(named.collect())
}

fn announcement(server: &IcapServer) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("weir {version} serves ICAP\n{}", services(server))
}

/// Where each module is.
fn services(server: &IcapServer) -> String {
    let mut lines = String::new();
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
