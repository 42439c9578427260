//! The origin that every proxy stands in front of: HTTP/1.1 with keep-alive in a process of its
//! own, whose responses are described by their targets and whose ledger says what was asked for and
//! how much of it a peer's kernel has taken.

mod answer;
mod asked;
mod connection;
mod ledger;
mod pace;
mod serve;

pub(crate) use asked::{after_thought, target, without_length};
pub(crate) use ledger::{Fetch, Tally};
#[cfg(test)]
pub(crate) use serve::in_thread;
pub(crate) use serve::serve;

use crate::client::get as client;
use crate::failure::{During, Failure};
use crate::process::guarded;
use crate::proxy::server;
use crate::proxy::server::Server;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// What begins the target of a question about the ledger; a prefix of paths follows.
const TALLY: &str = "/tally?";

/// A target that everybody answers when ready.
pub(crate) const READY: &str = "/ready?size=1000";

/// The argument of `uneven` that makes a process the origin.
pub(crate) const ROLE: &str = "origin";

/// The running origin, as the process that measures sees it.
#[derive(Debug)]
pub(crate) struct Origin {
    server: Server,
    addresses: Vec<SocketAddr>,
}

/// Where an origin runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// What it listens on, all with the same port. Between two addresses and a port there are some
    /// 28 000 connections, those that have just ended included: whoever opens many wants an address
    /// of its own.
    pub(crate) hosts: &'a [Ipv4Addr],
    /// See [`server::Place`].
    pub(crate) within: &'a [String],
    /// See [`serve()`].
    pub(crate) send_buffer_bytes: Option<usize>,
    pub(crate) life: Duration,
}

impl Origin {
    /// Starts this program again as an origin.
    pub(crate) fn launch(directory: &Path, place: &Place<'_>) -> Result<Self, Failure> {
        std::fs::create_dir_all(directory).during("make the origin's directory")?;
        let program = std::env::current_exe().during("find this program")?;
        let port = server::free_port()?;
        let addresses: Vec<SocketAddr> = place
            .hosts
            .iter()
            .map(|&host| SocketAddr::from((host, port)))
            .collect();
        let first = addresses.first().copied();
        let first =
            first.ok_or_else(|| Failure::Usage("an origin without an address".to_owned()))?;
        let listed: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        let mut arguments = place.within.to_vec();
        arguments.push(program.display().to_string());
        arguments.extend(["uneven", ROLE].map(str::to_owned));
        arguments.push(listed.join(","));
        arguments.extend(place.send_buffer_bytes.map(|bytes| bytes.to_string()));
        let mut command = guarded::command(&arguments, place.life);
        let server = Server::spawn("origin", &mut command, directory, first, None)?;
        Ok(Self { server, addresses })
    }

    pub(crate) fn wait_until_it_answers(&mut self) -> Result<(), Failure> {
        self.server.wait_until_it_answers(READY)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// All of its addresses, in the order of its hosts.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What was fetched below a prefix of paths until now.
    pub(crate) fn tally(&self, prefix: &str) -> Result<Tally, Failure> {
        let answer = client::get_once(self.address(), &format!("{TALLY}{prefix}"))
            .during("ask the origin for its tally")?;
        serde_json::from_slice(&answer.body).during("understand the origin's tally")
    }
}

/// The arguments behind [`ROLE`]: addresses with commas between them, and the size of send buffers
/// or none.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let usage = || Failure::Usage("`uneven origin` wants addresses, and a size or none".to_owned());
    let (addresses, send_buffer) = match arguments {
        [addresses] => (addresses, None),
        [addresses, bytes] => (addresses, Some(bytes.parse().map_err(|_| usage())?)),
        _ => return Err(usage()),
    };
    let addresses: Result<Vec<SocketAddr>, _> = addresses.split(',').map(str::parse).collect();
    serve(&addresses.map_err(|_| usage())?, send_buffer)
}
