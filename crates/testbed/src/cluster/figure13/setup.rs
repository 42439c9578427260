//! What every run needs: the schedule, the origin, and where nodes run.

use super::content;
use super::machines::{self, Machines};
use super::node_kind::{NAMES, NodeKind, NodeMemory};
use super::schedule::Schedule;
use crate::client::get;
use crate::process::affinity::Cores;
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::namespace::Namespace;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(4 * 3600);

/// What every run needs.
#[derive(Debug)]
pub(super) struct Setup<'a> {
    pub(super) cores: Cores,
    pub(super) schedule: &'a Schedule,
    pub(super) memory: NodeMemory,
    pub(super) directory: PathBuf,
    /// With the address of the origin.
    pub(super) words: Words,
    origin: Server,
    /// The machine of the origin, if it is not this one.
    machine: Option<Arc<Namespace>>,
}

impl<'a> Setup<'a> {
    /// Writes the origin's files, and starts it.
    pub(super) fn open(
        cores: Cores,
        schedule: &'a Schedule,
        words: &Words,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let mut words = words.clone();
        // the words of its file alone
        let files = NodeKind::Nginx.content(directory, NAMES[0]);
        words.set("ROOT", files.display());
        content::write_files(&files, schedule)?;
        let contender = NodeKind::Nginx.contender();
        let place = on(cores.load);
        let mut origin = Server::launch(&contender, &directory.join("origin"), &words, &place)?;
        origin.wait_until_it_answers(STATUS)?;
        words.set("ORIGIN", origin.address());
        words.set("SERVICE", machines::service());
        Ok(Self {
            cores,
            schedule,
            memory: NodeMemory::for_content(schedule.content_bytes()),
            directory: directory.to_owned(),
            words,
            origin,
            machine: None,
        })
    }

    /// The same for nodes that are machines of their own: the origin is on that of the clients.
    pub(super) fn on_machines(&self, machines: &Machines) -> Result<Self, Failure> {
        let within = machines.clients.command();
        let place = Place {
            host: machines::clients_address(),
            within: &within,
            ..on(self.cores.load)
        };
        let mut words = self.words.clone();
        let contender = NodeKind::Nginx.contender();
        let directory = self.directory.join("origin-of-machines");
        let mut origin = Server::launch(&contender, &directory, &words, &place)?;
        let clients = &machines.clients;
        clients.inside(|| origin.wait_until_it_answers(STATUS))??;
        words.set("ORIGIN", origin.address());
        Ok(Self {
            directory: self.directory.clone(),
            words,
            origin,
            machine: Some(Arc::clone(clients)),
            ..*self
        })
    }

    /// Where nodes and front ends run: on one core, while clients and origin are on the other one.
    pub(super) fn place(&self) -> Place<'static> {
        on(self.cores.server)
    }

    /// Requests that the origin has had until now.
    pub(super) fn origin_requests(&self) -> Result<u64, Failure> {
        let ask = || get::get_once(self.origin.address(), STATUS);
        let answer = match &self.machine {
            Some(machine) => machine.inside(ask)?,
            None => ask(),
        };
        let answer = answer.during("ask the origin for its requests")?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let count = requests_of(&text);
        count.ok_or_else(|| Failure::Refused(format!("the origin said: {text}")))
    }
}

/// Where nginx says what it has had.
const STATUS: &str = "/status";

/// The third number of the line below `server accepts handled requests`.
fn requests_of(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find(|line| line.starts_with("server accepts"))?;
    lines.next()?.split_whitespace().nth(2)?.parse().ok()
}

fn on(core: usize) -> Place<'static> {
    Place {
        core: Some(core),
        ..Place::local(LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_third_number_that_nginx_says() {
        let text = "Active connections: 1 \nserver accepts handled requests\n 7 8 9 \nReading: 0\n";
        assert_eq!(requests_of(text), Some(9));
        assert_eq!(requests_of("Active connections: 1\n"), None);
    }
}
