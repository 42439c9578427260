//! The machines, and the members of a cluster on them.

use super::{Mechanism, SIZE_BYTES, TARGETS};
use crate::client::get::{connect, get_of};
use crate::client::metrics;
use crate::cluster::nodes::write_secret;
use crate::cluster::setup::Setup;
use crate::origin::Origin;
use crate::process::guarded;
use crate::proxy::server::{Place, Server};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;
use xtask::failure::{During, Failure};
use xtask::namespace::Namespace;
use xtask::namespace::ethernet::{DEVICE, Ethernet, address};

// the numbers of the machines
const CLIENT: u8 = 1;
const FRONT_END: u8 = 2;
const NODES: [u8; 2] = [3, 4];
const ORIGIN: u8 = 5;

/// The address of the service, which all members have.
const SERVICE: &str = "10.77.0.100";

const MEMORY_MIB: u64 = 128;

/// The longest that the front end takes to count a connection.
const COUNTED_MAX: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(5);

/// Ports of the members of each mechanism, on machines of their own.
const fn ports(mechanism: Mechanism) -> Ports {
    match mechanism {
        Mechanism::Forwarding => Ports {
            service: 8080,
            peer: 4000,
            admin: 9000,
        },
        Mechanism::HandOff => Ports {
            service: 8081,
            peer: 4001,
            admin: 9001,
        },
    }
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    service: u16,
    peer: u16,
    admin: u16,
}

/// Machines on one Ethernet.
#[derive(Debug)]
pub(super) struct Machines {
    pub(super) client: Namespace,
    front_end: Namespace,
    nodes: [Namespace; 2],
    origin: Origin,
    _ethernet: Ethernet,
    // behind what runs in it
    _origin_machine: Namespace,
}

impl Machines {
    pub(super) fn make(setup: &Setup) -> Result<Self, Failure> {
        let ethernet = Ethernet::make()?;
        let client = ethernet.join(CLIENT)?;
        let front_end = ethernet.join(FRONT_END)?;
        front_end.ip(&format!("addr add {SERVICE}/32 dev {DEVICE}"))?;
        let nodes = [ethernet.join(NODES[0])?, ethernet.join(NODES[1])?];
        for node in &nodes {
            node.ip(&format!("addr add {SERVICE}/32 dev lo"))?;
        }
        let origin_machine = ethernet.join(ORIGIN)?;
        let within = origin_machine.command();
        let bed = setup.bed("hand-off")?;
        let place = Place {
            host: address(ORIGIN),
            core: Some(setup.cores.load),
            within: &within,
            ..bed.bed().place
        };
        let mut origin = Origin::launch(&bed.bed().directory.join("origin"), &place, None)?;
        client.inside(|| origin.wait_until_it_answers())??;
        Ok(Self {
            client,
            front_end,
            nodes,
            origin,
            _ethernet: ethernet,
            _origin_machine: origin_machine,
        })
    }

    /// Starts the members; the nodes have all responses in their memory.
    pub(super) fn start(&self, setup: &Setup, mechanism: Mechanism) -> Result<Members, Failure> {
        let bed = setup.bed(&format!("hand-off-{}", mechanism.as_str()))?;
        let directory = bed.bed().directory;
        let secret = directory.join("secret");
        write_secret(&secret).during("write a secret")?;
        let ports = ports(mechanism);
        let launch = |name: &str, number: u8, machine: &Namespace| {
            let more = match (mechanism, name) {
                (Mechanism::HandOff, "f") => format!("device = \"{DEVICE}\""),
                _ => String::new(),
            };
            let text = self.config((name, number), mechanism, directory, &more);
            let file = directory.join(format!("{name}.toml"));
            std::fs::write(&file, text).during("write a configuration")?;
            let mut arguments = machine.command();
            let weir = bed.bed().words.fill("@WEIR@")?;
            let file = file.display().to_string();
            arguments.extend([weir, "serve".to_owned(), "--config".to_owned(), file]);
            let place = bed.bed().place;
            let mut command = guarded::command(&arguments, place.life);
            let own = directory.join(name);
            std::fs::create_dir_all(&own).during("make a member's directory")?;
            let at = SocketAddr::from((address(number), ports.peer));
            let mut server = Server::spawn(name, &mut command, &own, at, place.core)?;
            let admin = admin(mechanism);
            machine.inside(|| server.wait_until_it_is_whole(admin))??;
            Ok::<Server, Failure>(server)
        };
        let nodes = [
            launch("a", NODES[0], &self.nodes[0])?,
            launch("b", NODES[1], &self.nodes[1])?,
        ];
        let members = Members {
            mechanism,
            service: format!("{SERVICE}:{}", ports.service)
                .parse()
                .during("understand the address of the service")?,
            front_end: launch("f", FRONT_END, &self.front_end)?,
            _nodes: nodes,
        };
        self.fill(&members)?;
        Ok(members)
    }

    /// Each target is requested on a connection of its own, so that the node that keeps it does.
    fn fill(&self, members: &Members) -> Result<(), Failure> {
        let fill = || {
            (0..TARGETS).try_for_each(|number| {
                let mut stream = connect(members.service)?;
                let answer = get_of(&mut stream, "origin.example", &members.target(number))?;
                match answer.status {
                    200 => Ok(()),
                    status => Err(std::io::Error::other(format!("status {status}"))),
                }
            })
        };
        self.client.inside(fill)?.during("fill the nodes")
    }

    fn config(
        &self,
        (name, number): (&str, u8),
        mechanism: Mechanism,
        directory: &Path,
        more: &str,
    ) -> String {
        let Ports {
            service,
            peer,
            admin,
        } = ports(mechanism);
        let own = address(number);
        let origin = self.origin.address();
        let secret = directory.join("secret");
        let (secret, mechanism) = (secret.display(), mechanism.as_str());
        let members = [("f", FRONT_END), ("a", NODES[0]), ("b", NODES[1])].map(|(name, number)| {
            let (url, front_end) = (address(number), name == "f");
            format!(
                "[[cluster.member]]\nname = \"{name}\"\nurl = \"http://{url}:{peer}\"\n\
                 front_end = {front_end}\n"
            )
        });
        let members = members.concat();
        format!(
            "workers = 1\n\
             [cluster]\nnode = \"{name}\"\nsecret_file = \"{secret}\"\nmechanism = \"{mechanism}\"\n\
             policy = \"hash\"\njoin_time = \"0s\"\n{more}\n{members}\
             [[listener]]\naddress = \"{SERVICE}:{service}\"\nmode = \"gateway\"\n\
             [[listener]]\naddress = \"{own}:{peer}\"\nmode = \"peer\"\n\
             [[route]]\nnext_hops = [\"http://{origin}\"]\n\
             [admin]\naddress = \"127.0.0.1:{admin}\"\n\
             [disk]\nenabled = false\n[cache]\nmemory = \"{MEMORY_MIB}MiB\"\n\
             [log]\naccess = \"off\"\n"
        )
    }
}

fn admin(mechanism: Mechanism) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], ports(mechanism).admin))
}

/// The members of one cluster.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) mechanism: Mechanism,
    pub(super) service: SocketAddr,
    pub(super) front_end: Server,
    _nodes: [Server; 2],
}

impl Members {
    /// A target by number, below a path that no other measurement has.
    pub(super) fn target(&self, number: u64) -> String {
        let path = format!("/hand-off/{}/{number}", self.mechanism.as_str());
        ResponseSpec::new(&path, SIZE_BYTES).to_string()
    }

    /// What the front end has counted until now.
    pub(super) fn numbers(&self, machines: &Machines) -> Result<Numbers, Failure> {
        let read = || metrics::text(admin(self.mechanism));
        let text = machines.front_end.inside(read)?;
        Numbers::read(&text.during("read the metrics of the front end")?)
    }
}

impl Members {
    /// What the front end has counted since `before`, of so many connections: the last one may be
    /// counted when its client has the response.
    pub(super) fn numbers_of(
        &self,
        machines: &Machines,
        before: &Numbers,
        connections: u64,
    ) -> Result<Numbers, Failure> {
        let until = Instant::now() + COUNTED_MAX;
        loop {
            let numbers = self.numbers(machines)?.since(before);
            let counted = numbers.handed_over + numbers.stayed + numbers.lost;
            let is_whole = self.mechanism == Mechanism::Forwarding || counted >= connections;
            if is_whole || Instant::now() > until {
                return Ok(numbers);
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Numbers of the front end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) handed_over: u64,
    pub(super) stayed: u64,
    pub(super) lost: u64,
    /// Moves that took no longer than so many microseconds, cumulated; the last has no limit.
    holds: Vec<(u64, u64)>,
}

impl Numbers {
    fn read(text: &str) -> Result<Self, Failure> {
        let number = |name: &str| {
            let sum = metrics::sum(text, name);
            sum.ok_or_else(|| Failure::Refused(format!("the front end has no metric {name}")))
        };
        Ok(Self {
            handed_over: number("weir_hand_offs_total")?,
            stayed: number("weir_hand_offs_refused_total")?,
            lost: number("weir_hand_offs_lost_total")?,
            holds: metrics::buckets_us(text, "weir_hand_off_hold_seconds"),
        })
    }

    /// What was counted since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let holds = self.holds.iter().zip(&earlier.holds);
        Self {
            handed_over: self.handed_over - earlier.handed_over,
            stayed: self.stayed - earlier.stayed,
            lost: self.lost - earlier.lost,
            holds: holds
                .map(|((limit, now), (_, before))| (*limit, now - before))
                .collect(),
        }
    }

    /// The time that this share of the moves did not exceed, microseconds, as the buckets have it.
    pub(super) fn hold_us(&self, share: f64) -> u64 {
        let all = self.holds.last().map_or(0, |(_, count)| *count);
        let wanted = weir_measure::float(all) * share;
        let mut buckets = self.holds.iter();
        let found = buckets.find(|(_, count)| weir_measure::float(*count) >= wanted);
        found.filter(|_| all > 0).map_or(0, |(limit, _)| *limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_the_moves_is_found_among_those_since_the_begin_of_a_run() {
        let numbers = |counts: [u64; 3]| Numbers {
            holds: [100, 200, u64::MAX].into_iter().zip(counts).collect(),
            ..Numbers::default()
        };
        let run = numbers([60, 199, 200]).since(&numbers([10, 100, 100]));
        assert_eq!(run, numbers([50, 99, 100]));
        assert_eq!(run.hold_us(0.5), 100);
        assert_eq!(run.hold_us(0.51), 200);
        assert_eq!(run.hold_us(0.99), 200);
        assert_eq!(run.hold_us(1.0), u64::MAX);
        assert_eq!(Numbers::default().hold_us(0.5), 0);
        assert_eq!(numbers([0, 0, 0]).hold_us(0.5), 0);
    }
}
