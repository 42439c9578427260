//! Starts `weir-testbed`, which has the benchmarks: it depends on more than chores may.

use xtask::failure::{During, Failure};
use xtask::program::profile;
use xtask::root;

/// Commands that measure no time: for them the program is built as tests are.
const MEASURING_NO_TIME: [&str; 6] = ["count", "modules", "tables", "--show", "--help", "-h"];

/// Runs the program with these arguments. It is built in release if it measures time: a load
/// generator must not be slower than what it measures.
///
/// # Errors
/// As the program has it: it said why.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut command = root::cargo();
    command.args(["run", "--quiet", "--locked", "--package", "weir-testbed"]);
    let measures_no_time = |word: &String| MEASURING_NO_TIME.contains(&word.as_str());
    if !arguments.iter().any(measures_no_time) {
        // most of its libraries are those of the weir that is measured, and are built once
        command.arg("--release").args(profile::cargo_arguments());
    }
    // paths on the command line are those of the caller
    if let Ok(directory) = std::env::current_dir() {
        command.current_dir(directory);
    }
    let status = command.arg("--").args(arguments).status();
    let status = status.during("run cargo run")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(Failure::Refused("the benchmark says no".to_owned())),
        Some(2) => Err(Failure::Usage("see above".to_owned())),
        _ => Err(Failure::Outside(format!("the benchmark ended: {status}"))),
    }
}
