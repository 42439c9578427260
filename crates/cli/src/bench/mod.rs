//! `weir bench`: measures any caching proxy by its address. What it does is in `weir-bench`; here
//! are flags and messages.

mod apart;
mod failure;
mod flags;
mod modem;
mod modem_table;
mod outcome;
mod plan;
mod proxy_list;
mod range;
mod repeat;
mod report;
mod run;
mod scenarios;
mod sweep;

pub(crate) use flags::BenchCommand;

use crate::messages::Failure;

/// The program's version, as records have it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the command.
///
/// # Errors
///
/// The run is not valid (exit 1), bad usage (2), or the outside failed (3).
pub(crate) fn run(command: &BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::Run(flags) => run::run(flags),
        BenchCommand::Master(flags) => apart::master(flags),
        BenchCommand::Origin(flags) => apart::origin(flags),
        BenchCommand::Clients(flags) => apart::clients(flags),
        BenchCommand::Sweep(flags) => sweep::sweep(flags),
        BenchCommand::Modem(flags) => modem::modem(flags),
        BenchCommand::Report(flags) => report::report(flags),
        BenchCommand::Scenarios(flags) => scenarios::scenarios(flags),
    }
}
