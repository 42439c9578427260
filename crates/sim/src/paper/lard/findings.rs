//! What came of the runs, and the numbers that figures and claims ask for.

use super::exhibit::NODES;
use super::job::{Job, SIZES_KB};
use super::line::Line;
use crate::cluster::{ClusterOutcome, Mechanism, Server};
use std::collections::BTreeMap;

/// The outcomes of all runs that were made.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) outcomes: BTreeMap<Job, ClusterOutcome>,
    /// The cost of forwarding that figures are made with, thousandths of a send.
    pub(super) scale: u32,
}

impl Findings {
    pub(super) fn outcome(&self, job: Job) -> Option<&ClusterOutcome> {
        self.outcomes.get(&job)
    }

    /// Requests a second in a figure.
    pub(super) fn per_s(&self, server: Server, line: Line, nodes: u16) -> Option<f64> {
        self.per_s_at(server, line, nodes, self.scale)
    }

    pub(super) fn per_s_at(
        &self,
        server: Server,
        line: Line,
        nodes: u16,
        scale: u32,
    ) -> Option<f64> {
        let outcome = self.outcome(Job::throughput(server, line, nodes, scale))?;
        Some(outcome.requests_per_s())
    }

    /// What `line` has of the throughput of `other`, percent, at each number of nodes.
    fn shares(&self, server: Server, line: Line, other: Line) -> impl Iterator<Item = f64> {
        NODES.filter_map(move |nodes| {
            let ours = self.per_s(server, line, nodes)?;
            Some(100.0 * ours / self.per_s(server, other, nodes)?)
        })
    }

    /// The least of it.
    pub(super) fn least_share(&self, server: Server, line: Line, other: Line) -> Option<f64> {
        self.shares(server, line, other).reduce(f64::min)
    }

    /// The most of it.
    pub(super) fn largest_share(&self, server: Server, line: Line, other: Line) -> Option<f64> {
        self.shares(server, line, other).reduce(f64::max)
    }

    /// 10^6 bits a second and node.
    pub(super) fn mbit_per_s(&self, server: Server, mechanism: Mechanism, kb: u32) -> Option<f64> {
        let job = Job::Size {
            server,
            mechanism,
            kb,
            scale: self.scale,
        };
        let outcome = self.outcome(job)?;
        Some(outcome.mbit_per_s() / outcome.nodes.len().max(1) as f64)
    }

    /// The response size from which on hand-off costs less than forwarding, KB; between two sizes
    /// on a straight line.
    pub(super) fn crossover_kb(&self, server: Server) -> Option<f64> {
        let gains = SIZES_KB.into_iter().filter_map(|kb| {
            let handed = self.mbit_per_s(server, Mechanism::MultipleHandOff, kb)?;
            let forwarded = self.mbit_per_s(server, Mechanism::Forwarding, kb)?;
            Some((f64::from(kb), handed / forwarded - 1.0))
        });
        let gains: Vec<(f64, f64)> = gains.collect();
        let crossing = gains
            .windows(2)
            .find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)?;
        let ((from, below), (to, above)) = (crossing[0], crossing[1]);
        Some(from + (to - from) * below / (below - above))
    }
}
