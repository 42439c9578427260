//! What hand-off saves a front end: its CPU time for a response of 100 KB that it passes on, and
//! for one that a node sends the client by itself; how long packets of a connection are dropped
//! while it moves; and whether clients see anything of that.
//!
//! The client, the front end, two nodes and the origin are machines of their own on one Ethernet,
//! in network namespaces. It takes root.

mod clients;
mod machines;
pub(in crate::cluster) mod table;

use crate::cluster::Record;
use crate::cluster::setup::Setup;
use crate::process::usage::MachineTime;
use crate::record::markdown::ratio;
use clients::{Connections, Served};
use machines::{Machines, Members};
use serde::{Deserialize, Serialize};
use xtask::failure::Failure;

const SIZE_BYTES: u64 = 100_000;

/// They fit into the memory of the nodes.
const TARGETS: u64 = 200;

/// Requests of a connection, and connections of a run at scale 1.
const RUNS: [(u64, u64); 2] = [(20, 1000), (1, 5000)];

/// How responses get from a node to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cluster) enum Mechanism {
    /// The front end passes them on.
    Forwarding,
    /// It hands the connection over.
    HandOff,
}

const MECHANISMS: [Mechanism; 2] = [Mechanism::Forwarding, Mechanism::HandOff];

impl Mechanism {
    /// The word of the setting.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding",
            Self::HandOff => "hand-off",
        }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct HandOffRun {
    round: u32,
    mechanism: Mechanism,
    requests_a_connection: u64,
    connections: u64,
    /// Connections on which each response came whole, with every byte right.
    unbroken: u64,
    /// Of the front end's process, user and system time, microseconds. What of softirq is in it is
    /// what its own system calls process: packets that it receives and sends itself.
    front_end_us: u64,
    /// Of all processes and the kernel on this machine, microseconds: clients and nodes, and the
    /// packets that are forwarded to nodes, which the kernel does in the name of their sender.
    machine_us: u64,
    /// Of that, in softirq.
    softirq_us: u64,
    /// Connections that the front end has handed over, that stayed, and that were lost.
    handed_over: u64,
    stayed: u64,
    lost: u64,
    /// How long packets of a connection were dropped: half of the moves took no longer, and 99 of
    /// 100, microseconds. Rounded up to a power of two. 0 without a move.
    hold_p50_us: u64,
    hold_p99_us: u64,
}

impl HandOffRun {
    fn requests(&self) -> u64 {
        self.connections * self.requests_a_connection
    }

    /// CPU time of the front end for a response.
    fn front_end_us_per_response(&self) -> f64 {
        ratio(self.front_end_us, self.requests())
    }

    /// CPU time of the whole machine for a response.
    fn machine_us_per_response(&self) -> f64 {
        ratio(self.machine_us, self.requests())
    }
}

/// Starts both mechanisms, and measures them in turn, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) -> Result<(), Failure> {
    let machines = Machines::make(setup)?;
    let mut all = Vec::new();
    for mechanism in MECHANISMS {
        let started = machines.start(setup, mechanism);
        all.extend(record.kept(format!("members with {}", mechanism.as_str()), started));
    }
    for round in 1..=record.settings.rounds {
        for (requests_a_connection, connections) in RUNS {
            for members in &all {
                let connections = Connections {
                    count: setup.scaled(connections, 40),
                    requests_each: requests_a_connection,
                    seed: setup.options.seed + u64::from(round),
                };
                let name = members.mechanism.as_str();
                let what = format!("{name}, {requests_a_connection} a connection, round {round}");
                let run = run(setup, (&machines, members), &connections, round);
                if let Some(run) = record.kept(what.clone(), run) {
                    let (front_end, all) = (
                        run.front_end_us_per_response(),
                        run.machine_us_per_response(),
                    );
                    eprintln!("  {what}: {front_end:.1} us at the front end, {all:.1} us in all");
                    record.figures.hand_offs.push(run);
                }
            }
        }
    }
    Ok(())
}

fn run(
    setup: &Setup,
    (machines, members): (&Machines, &Members),
    connections: &Connections,
    round: u32,
) -> Result<HandOffRun, Failure> {
    let before = members.numbers(machines)?;
    let (used, machine) = (members.front_end.cpu_time(), MachineTime::now()?);
    let served: Served = connections.run(machines, members, setup.cores.load)?;
    let used = members.front_end.cpu_time() - used;
    let machine = MachineTime::now()?.since(machine);
    let numbers = members.numbers_of(machines, &before, connections.count)?;
    for why in &served.failures {
        eprintln!("  failed: {why}");
    }
    Ok(HandOffRun {
        round,
        mechanism: members.mechanism,
        requests_a_connection: connections.requests_each,
        connections: connections.count,
        unbroken: served.unbroken,
        front_end_us: used.sum_us(),
        machine_us: machine.busy_us,
        softirq_us: machine.softirq_us,
        handed_over: numbers.handed_over,
        stayed: numbers.stayed,
        lost: numbers.lost,
        hold_p50_us: numbers.hold_us(0.5),
        hold_p99_us: numbers.hold_us(0.99),
    })
}
