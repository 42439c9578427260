//! The command line. What is documented here is what `--help` prints.

use crate::bench::BenchCommand;
use crate::messages::Failure;
use crate::operate::{
    ClusterFlags, DrainFlags, ExplainFlags, ModulesFlags, PurgeFlags, ReloadFlags, RouteFlags,
    StoredFlags, TopFlags,
};
use crate::reference::GenerateCommand;
use crate::serve::flags::{CheckFlags, ServeFlags};
use crate::serve::icap::IcapFlags;
use crate::sim::SimCommand;
use crate::store::StoreCommand;
use crate::trace::TraceCommand;
use clap::error::{ContextKind, ErrorKind};
use clap::{Parser, Subcommand};
use std::error::Error as _;
use weir_workload::toml_text;

/// A caching HTTP proxy.
#[derive(Debug, Parser)]
#[command(name = "weir", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 a check failed, 2 bad usage or config, 3 a file, a port or another resource failed"
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
    /// SIGHUP reads the config file again; one with a mistake changes nothing.
    Serve(ServeFlags),
    /// Check a config file: its settings, and whether this user can use the paths it names
    Check(CheckFlags),
    /// Drop the stored responses of URLs, or all of them, in a running proxy
    Purge(PurgeFlags),
    /// Look at what a running proxy has stored for a URL, change it, or have it stored
    Stored(StoredFlags),
    /// Apply the config file to a running proxy; one with a mistake changes nothing
    Reload(ReloadFlags),
    /// List the modules of a running proxy, disable some, or enable them again
    Modules(ModulesFlags),
    /// List the nodes of the cluster that a running proxy is in, as it knows them
    Cluster(ClusterFlags),
    /// Take a running proxy out of its cluster, or back with `--end`; it serves its clients on
    ///
    /// Other nodes ask it for no new targets once they have its next response, or its state from
    /// etcd. Its `/healthz` answers 503, so that what spreads clients sends it none. It drains
    /// until `--end` or until it ends; SIGTERM drains, too.
    Drain(DrainFlags),
    /// Print which node and which next hop a running proxy would choose for a URL, and why
    ///
    /// Nothing is requested, and no policy notes it. The costs of one policy compare: `balancing`
    /// is the delay by other requests, `locality` that of a response which is not there or lies far
    /// in the rendezvous order, `replacement` that of others later.
    Route(RouteFlags),
    /// Explain what a running proxy would do with a request, and what it has stored for its URL
    ///
    /// Whether it is a hit, validated, fetched, passed or denied, what each input of that decision
    /// is, in the words of RFC 9111, and which rule decides. Nothing is fetched without `--fetch`,
    /// and nothing changes. Values of fields that may be of a user are hashed without the token.
    Explain(ExplainFlags),
    /// Show what a running proxy does: rates, hit ratios, who takes the bytes, the last misses
    ///
    /// In a terminal it is read each second until `q`; `?` names the other keys.
    Top(TopFlags),
    /// Serve the modules of a config file to ICAP clients, such as another proxy
    ///
    /// Each module is a service: icap://127.0.0.1:1344/NAME. It takes REQMOD and RESPMOD where the
    /// module has hooks on requests and responses. Listeners, routes and cache of the file are not
    /// used. SIGHUP has it read the file again; SIGTERM ends it, when the messages under way are
    /// answered.
    Icap(IcapFlags),
    /// Print every setting of a config file: form, default, range and reason (Markdown)
    Settings,
    /// Make man pages, or the completions of a shell
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Look at a store on disk, also one that a running proxy uses; never writes to it
    #[command(subcommand)]
    Store(StoreCommand),
    /// Measure a caching proxy, this one or another, by its address
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Make, import, describe and compare traces of requests
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Simulate a trace with other caches, connections, links and rules
    #[command(subcommand)]
    Sim(SimCommand),
}

impl Cli {
    /// Takes the command line apart. Help and version are printed here, and so is bad usage; then
    /// the process ends.
    ///
    /// # Errors
    ///
    /// A value of the wrong kind, reported as one in a file would be.
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
    Failure::usage(
        format!(
            "cannot use `{}` for `{}`",
            context(ContextKind::InvalidValue),
            context(ContextKind::InvalidArg)
        ),
        advice.message,
    )
    .hint_if(advice.hint)
}
