//! How fast the clients and the origin are, and how much memory the clients take.
//!
//! ```text
//! cargo run --release -p weir-bench --example speed -- hits [--seconds 10] [--rounds 3] [--record FILE]
//! cargo run --release -p weir-bench --example speed -- origin [--seconds 10] [--rounds 3] [--record FILE]
//! cargo run --release -p weir-bench --example speed -- robots [--seconds 60] [--record FILE]
//! ```
//!
//! `hits`: on the first core wrk and our clients in turn, on the second a server that does as
//! little as one can; 64 connections that are kept, 1 KiB a response. Our clients check every byte,
//! every validator and the mark; wrk checks nothing.
//!
//! `origin`: our clients on the first core, the origin on the second, 1 KiB a response as fast as
//! they come; CPU time of the origin's process is read from the kernel.
//!
//! `robots`: 10 000 robots in an open loop, each with its own address and up to two connections,
//! against an origin that takes 2.5 s to answer; what the clients' process takes is read from the
//! kernel.
//!
//! On stdout a table, in the record everything that was measured, raw.

mod client;
mod hits;
mod origin;
mod process;
mod record;
mod robots;
mod server;
mod wrk;

use std::process::ExitCode;

/// What is said on the command line.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) seconds: u64,
    pub(crate) rounds: u32,
    pub(crate) record: Option<String>,
    /// For the parts that this program starts itself.
    pub(crate) server: Option<String>,
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((part, options)) = read(&arguments) else {
        eprintln!(
            "error: bad usage\nhint: speed hits|origin|robots [--seconds N] [--rounds N] [--record FILE]"
        );
        return ExitCode::from(2);
    };
    let outcome = match part {
        "hits" => hits::measure(&options),
        "robots" => robots::measure(&options),
        "origin" => origin::measure(&options),
        "serve" => server::serve(),
        "serve-hits" => hits::scenario(1).and_then(origin::serve),
        "serve-robots" => robots::scenario(1).and_then(origin::serve),
        "ask-hits" => client::ask(&options, hits::scenario),
        "ask-robots" => client::ask(&options, robots::scenario),
        _ => {
            eprintln!("error: unknown part `{part}`\nhint: hits, origin or robots");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}

fn read(arguments: &[String]) -> Option<(&str, Options)> {
    let (part, rest) = arguments.split_first()?;
    let mut options = Options {
        seconds: 10,
        rounds: 3,
        record: None,
        server: None,
    };
    for pair in rest.chunks(2) {
        match pair {
            [name, value] if name == "--seconds" => options.seconds = value.parse().ok()?,
            [name, value] if name == "--rounds" => options.rounds = value.parse().ok()?,
            [name, value] if name == "--record" => options.record = Some(value.clone()),
            [name, value] if name == "--server" => options.server = Some(value.clone()),
            _ => return None,
        }
    }
    Some((part, options))
}
