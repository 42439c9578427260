//! The origin that every proxy stands in front of: HTTP/1.1 with keep-alive in a process of its own, whose responses are
//! described by their targets and whose ledger says what was asked for and how much of it a peer's kernel has taken.

mod answer;
mod asked;
mod connection;
mod ledger;
mod pace;
mod serve;

pub(crate) use asked::{after_thought, target};
pub(crate) use ledger::{Fetch, Tally};
#[cfg(test)]
pub(crate) use serve::in_thread;
pub(crate) use serve::serve;

use crate::bed::server::Server;
use crate::bed::{client, guarded, server};
use crate::failure::{During, Failure};
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
}

impl Origin {
    /// Starts this program again as an origin. `within` and `send_buffer_bytes`: see [`server::Place`] and [`serve`].
    pub(crate) fn launch(
        directory: &Path,
        host: Ipv4Addr,
        within: &[String],
        send_buffer_bytes: Option<usize>,
        life: Duration,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(directory).during("make the origin's directory")?;
        let program = std::env::current_exe().during("find this program")?;
        let address = SocketAddr::from((host, server::free_port()?));
        let mut arguments = within.to_vec();
        arguments.push(program.display().to_string());
        arguments.extend(["uneven", ROLE].map(str::to_owned));
        arguments.push(address.to_string());
        arguments.extend(send_buffer_bytes.map(|bytes| bytes.to_string()));
        let mut command = guarded::command(&arguments, life);
        let server = Server::spawn("origin", &mut command, directory, address, None)?;
        Ok(Self { server })
    }

    pub(crate) fn wait_until_it_answers(&mut self) -> Result<(), Failure> {
        self.server.wait_until_it_answers(READY)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What was fetched below a prefix of paths until now.
    pub(crate) fn tally(&self, prefix: &str) -> Result<Tally, Failure> {
        let answer = client::get_once(self.address(), &format!("{TALLY}{prefix}"))
            .during("ask the origin for its tally")?;
        serde_json::from_slice(&answer.body).during("understand the origin's tally")
    }
}

/// The arguments behind [`ROLE`]: an address, and the size of send buffers.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let usage =
        || Failure::Usage("`uneven origin` wants an address, and a size or none".to_owned());
    let (address, send_buffer) = match arguments {
        [address] => (address, None),
        [address, bytes] => (address, Some(bytes.parse().map_err(|_| usage())?)),
        _ => return Err(usage()),
    };
    serve(address.parse().map_err(|_| usage())?, send_buffer)
}
