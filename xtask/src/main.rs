//! Chores of this repository, in Rust so that one toolchain is all a newcomer needs.
//!
//! `ci` is everything that has to be green, `tidy` keeps the walls of the house, `dist` makes what
//! people install, `profile` what releases are compiled with, `oracles` compares with what other
//! programs found in traces; benchmarks beside other programs, and the tables made of their
//! records, are `crates/testbed`, which is started from here. The command line is read by hand and
//! the dependencies are few: this package is built before anything else, so every build waits for
//! it.

mod ci;
mod dist;
mod oracles;
mod testbed;
mod tidy;

use std::process::ExitCode;
use xtask::failure::Failure;
use xtask::{filters, need};

const USAGE: &str = "\
usage: cargo xtask <chore>

  ci                       prerequisites, fmt, tidy, clippy, tests, counts, packages, docs, fuzz build
  tidy                     the rules of the house that the compiler does not know
  modules                  count the code of the modules, beside the paper's Table 4
  tables                   write the tables of documents anew, from the newest records
  dist [options]           make a Debian package, a tarball and an OCI image, see dist --help
  profile                  measure how often each part of weir runs, for releases: profile/weir.profdata
  need PROGRAM...          make sure that programs are installed (Debian packages)
  filters [rust-go|probes|coraza] build the proxy-wasm filters of tests and benchmark under target/filters, and print their paths
  BENCHMARK [options]      peers, instructions, count, extend, cluster, uneven, store-bench, memory, sim-bench, scale, bench-speed, dashboard, links, tls, attack: weir beside other programs, see BENCHMARK --help
  oracles --data DIR       import the traces in DIR, and compare with the figures in its README.md
      --weir FILE          the program to ask (default: it is built)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((chore, rest)) = arguments.split_first() else {
        return Err(Failure::Usage(format!("no chore was named\n{USAGE}")));
    };
    match (chore.as_str(), rest) {
        ("ci", []) => ci::run(),
        ("tidy", []) => tidy::run(),
        ("need", [_, ..]) => need::programs(rest),
        ("filters", _) => filters::run(rest),
        (
            "peers" | "instructions" | "count" | "extend" | "cluster" | "uneven" | "memory"
            | "store-bench" | "sim-bench" | "scale" | "bench-speed" | "dashboard" | "links" | "tls"
            | "attack" | "modules" | "tables",
            _,
        ) => testbed::run(arguments),
        ("profile", []) => dist::profile::run(),
        ("dist", _) => dist::run(rest),
        ("oracles", _) => oracles::run(rest),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(Failure::Usage(format!(
            "`{}` is not a chore with these arguments\n{USAGE}",
            arguments.join(" ")
        ))),
    }
}
