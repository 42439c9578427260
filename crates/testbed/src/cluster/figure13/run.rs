//! One run: a system, its nodes and its clients.

use super::load::{ClosedLoop, Progress};
use super::machines::Machines;
use super::node_kind::NodeKind;
use super::nodes::{self, Node};
use super::responses::{Http, SILENCE_MAX};
use super::setup::Setup;
use super::systems::{FrontEnd, System};
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use xtask::failure::Failure;

/// Connections at once of `n` nodes: (n - 1) T_high + T_low - 1, as in the papers.
const T_LOW: usize = 30;
const T_HIGH: usize = 80;

/// While memories fill, disks do so many times as many reads as when they are measured. If they
/// were not limited, they would be idle, and `extended-lard` would have each node keep copies of
/// everything; if they were as slow, it would take minutes.
const FILL_TIMES: u32 = 2;

/// From the limit of reads on until it has shown in the queues.
const SETTLE: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(50);

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunKind {
    pub(super) system: System,
    pub(super) node_kind: NodeKind,
    pub(super) http: Http,
    pub(super) nodes: usize,
}

impl RunKind {
    /// For people.
    pub(super) fn name(self) -> String {
        let (system, kind, http) = (self.system.name(), self.node_kind.name(), self.http.name());
        format!("{system}, {} nodes of {kind}, {http}", self.nodes)
    }

    /// Connections at once.
    pub(super) const fn clients(self) -> usize {
        (self.nodes - 1) * T_HIGH + T_LOW - 1
    }
}

/// How long and under which limit a run is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLength {
    pub(super) round: u32,
    /// For memories to fill.
    pub(super) fill: Duration,
    pub(super) measured: Duration,
    pub(super) reads_per_s: u32,
}

/// What came of one run, after its caches were full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) round: u32,
    #[serde(flatten)]
    pub(super) kind: RunKind,
    /// Requests that filled the caches before.
    pub(super) fill_requests: u64,
    pub(super) duration_us: u64,
    /// That were answered, every byte right.
    pub(super) requests: u64,
    /// Of their content.
    pub(super) content_bytes: u64,
    /// Reads of the disk, by node.
    pub(super) reads: Vec<u64>,
    /// CPU time, by node.
    pub(super) node_cpu_us: Vec<u64>,
    /// CPU time of the front end; 0 if there is none.
    pub(super) front_end_cpu_us: u64,
    /// Requests of nodes to other nodes.
    pub(super) lateral: u64,
    /// Connections that the front end has handed over since its start.
    pub(super) hand_offs: u64,
    pub(super) origin_requests: u64,
}

impl Run {
    pub(super) fn requests_per_s(&self) -> f64 {
        ratio(self.requests * 1_000_000, self.duration_us)
    }

    /// Reads of all disks for 100 requests.
    pub(super) fn reads_percent(&self) -> f64 {
        100.0 * ratio(self.reads.iter().sum(), self.requests)
    }

    /// Reads that were done of those that the limits permit, per cent: below 100, something else
    /// was a limit, too.
    pub(super) fn disks_busy_percent(&self, reads_per_s: u32) -> f64 {
        let permitted = u64::from(reads_per_s) * self.reads.len() as u64 * self.duration_us;
        100.0 * ratio(self.reads.iter().sum::<u64>() * 1_000_000, permitted)
    }

    /// Of the one core that all nodes and the front end have, per cent.
    pub(super) fn core_percent(&self) -> f64 {
        let cpu_us = self.node_cpu_us.iter().sum::<u64>() + self.front_end_cpu_us;
        100.0 * ratio(cpu_us, self.duration_us)
    }
}

/// What has been counted at one moment.
struct Counts {
    at: Instant,
    requests: u64,
    content_bytes: u64,
    reads: Vec<u64>,
    node_cpu_us: Vec<u64>,
    front_end_cpu_us: u64,
    lateral: u64,
    hand_offs: u64,
    origin_requests: u64,
}

/// Runs it.
///
/// # Errors
/// Something does not start, or a request failed.
pub(super) fn run(setup: &Setup<'_>, kind: RunKind, length: RunLength) -> Result<Run, Failure> {
    let directory = setup.directory.join("run");
    let of_nodes = (kind.node_kind, kind.nodes);
    let machines = kind.system.needs_machines();
    let machines = machines.then(|| Machines::make(kind.nodes)).transpose()?;
    let on_machines = machines
        .as_ref()
        .map(|machines| setup.on_machines(machines));
    let on_machines = on_machines.transpose()?;
    let setup = on_machines.as_ref().unwrap_or(setup);
    let network = (kind.system.policy_of_nodes(), machines.as_ref());
    let nodes = nodes::start(setup, of_nodes, &directory, network)?;
    let before = (nodes.as_slice(), machines.as_ref());
    let front_end = FrontEnd::start(setup, kind.system, before, &directory)?;
    let clients = ClosedLoop {
        schedule: setup.schedule,
        http: kind.http,
        clients: kind.clients(),
        core: setup.cores.load,
    };
    let limit = |reads: Option<u32>| {
        nodes
            .iter()
            .try_for_each(|node| node.set_reads_per_s(reads))
    };
    limit(Some(length.reads_per_s.saturating_mul(FILL_TIMES)))?;
    let observe = |progress: &Progress| {
        progress.sleep(length.fill)?;
        let fill = progress.requests.load(Ordering::Relaxed);
        limit(Some(length.reads_per_s))?;
        progress.sleep(SETTLE.min(length.measured))?;
        let count = || {
            let origin_requests = setup.origin_requests()?;
            Counts::now(origin_requests, &nodes, &front_end, progress)
        };
        let before = count()?;
        progress.sleep(length.measured)?;
        wait_for_more(progress, before.requests)?;
        let after = count()?;
        // those that wait are to end soon
        limit(None)?;
        Ok((fill, before, after))
    };
    let entrances = front_end.entrances();
    let ran = match &machines {
        Some(machines) => machines
            .clients
            .inside(|| clients.run_while(entrances, observe))?,
        None => clients.run_while(entrances, observe),
    };
    let (fill_requests, before, after) = ran?;
    Ok(after.since(&before, (length.round, kind), fill_requests))
}

/// Waits until more requests than these were answered: a disk that others use, too, may take its
/// time.
fn wait_for_more(progress: &Progress, requests: u64) -> Result<(), Failure> {
    let until = Instant::now() + SILENCE_MAX;
    while progress.requests.load(Ordering::Relaxed) <= requests {
        if Instant::now() > until {
            return Err(Failure::Refused("no request is answered".to_owned()));
        }
        progress.sleep(POLL)?;
    }
    Ok(())
}

impl Counts {
    fn now(
        origin_requests: u64,
        nodes: &[Node],
        front_end: &FrontEnd,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let lateral = nodes.iter().map(Node::lateral).sum::<Result<u64, _>>()?;
        Ok(Self {
            at: Instant::now(),
            requests: progress.requests.load(Ordering::Relaxed),
            content_bytes: progress.bytes.load(Ordering::Relaxed),
            reads: nodes.iter().map(Node::reads).collect::<Result<_, _>>()?,
            node_cpu_us: nodes.iter().map(Node::cpu_us).collect(),
            front_end_cpu_us: front_end.cpu_us(),
            lateral,
            hand_offs: front_end.hand_offs()?,
            origin_requests,
        })
    }

    fn since(self, before: &Self, (round, kind): (u32, RunKind), fill_requests: u64) -> Run {
        let duration = self.at - before.at;
        let each = |after: &[u64], before: &[u64]| {
            let both = after.iter().zip(before);
            both.map(|(after, before)| after - before).collect()
        };
        Run {
            round,
            kind,
            fill_requests,
            duration_us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            requests: self.requests - before.requests,
            content_bytes: self.content_bytes - before.content_bytes,
            reads: each(&self.reads, &before.reads),
            node_cpu_us: each(&self.node_cpu_us, &before.node_cpu_us),
            front_end_cpu_us: self.front_end_cpu_us - before.front_end_cpu_us,
            lateral: self.lateral - before.lateral,
            hand_offs: self.hand_offs,
            // less the question before
            origin_requests: (self.origin_requests - before.origin_requests).saturating_sub(1),
        }
    }
}
