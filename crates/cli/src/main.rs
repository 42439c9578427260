//! The one binary: flags, config files and messages. What a proxy does is in `weir-proxy`.
//!
//! Data goes to stdout, talk to stderr. Exit codes are declared in [`messages::Exit`]. This crate
//! decides nothing about caching; it turns text into a [`weir_proxy::config::Config`] and failures
//! into text a stranger can act on.

mod allocator;
mod bench;
mod check;
mod disk_size;
mod effective;
mod file;
mod flags;
mod messages;
mod names;
mod operate;
mod reference;
mod serve;
mod sim;
mod store;
mod trace;

use flags::{Cli, Command};

fn main() -> std::process::ExitCode {
    if let Some(exit) = weir_modules::run_helper(weir_net::run_when_idle) {
        return exit;
    }
    let done = Cli::read().and_then(|cli| match cli.command {
        Command::Serve(flags) => serve::serve(flags.with_one_config()),
        Command::Check(flags) => check::check(&flags),
        Command::Purge(flags) => operate::purge(&flags),
        Command::Stored(flags) => operate::stored(&flags),
        Command::Reload(flags) => operate::reload(&flags),
        Command::Modules(flags) => operate::modules(&flags),
        Command::Cluster(flags) => operate::cluster(&flags),
        Command::Drain(flags) => operate::drain(&flags),
        Command::Route(flags) => operate::route(&flags),
        Command::Explain(flags) => operate::explain(&flags),
        Command::Top(flags) => operate::top(&flags),
        Command::Icap(flags) => serve::icap::icap(&flags),
        Command::Settings => reference::settings(),
        Command::Generate(command) => reference::generate(&command),
        Command::Store(command) => store::run(&command),
        Command::Bench(command) => bench::run(&command),
        Command::Sim(command) => {
            allocator::use_huge_pages();
            sim::run(&command)
        }
        Command::Trace(command) => {
            allocator::use_huge_pages();
            trace::run(&command)
        }
    });
    messages::exit_code(done)
}
