//! The process that attacks.

use super::attacker::Attacker;
use super::attacks;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use xtask::failure::{During, Failure};

/// The command that makes a process the attacker.
pub(crate) const ROLE: &str = "attacker";

/// Options of the process that attacks.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The attack
    attack: String,
    /// Where HTTP/2 is spoken in clear
    clear: SocketAddr,
    /// Where TLS is spoken
    tls: SocketAddr,
    /// A file with the ClientHello of a client
    hello: PathBuf,
    /// For how long
    seconds: u32,
    /// Share of a core, per cent
    share: u32,
}

/// Attacks, and says what it took.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let attack = attacks::find(&options.attack)
        .ok_or_else(|| Failure::Usage(format!("no attack is called `{}`", options.attack)))?;
    let hello = std::fs::read(&options.hello).during("read the ClientHello")?;
    let duration = Duration::from_secs(u64::from(options.seconds));
    let share = f64::from(options.share) / 100.0;
    let mut attacker = Attacker::begin((options.clear, options.tls), hello, duration, share);
    (attack.run)(&mut attacker);
    let text = serde_json::to_string(&attacker.end()).during("write the report")?;
    println!("{text}");
    Ok(())
}
