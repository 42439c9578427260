//! What a purge costs that all nodes carry out: CPU time of a message at the node that sends it and
//! at the one that receives it, and how long it takes until all nodes have it.

use crate::client::get::{connect, post_of};
use crate::cluster::Record;
use crate::cluster::nodes::{Node, NodeRules, Nodes};
use crate::cluster::setup::Setup;
use crate::cluster::system::DEFAULT_POLICY;
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use weir_measure::quantile;
use xtask::failure::{During, Failure};

/// Sizes of the clusters that are compared.
const NODES: [usize; 2] = [2, 4];

const MEMORY_MIB: u64 = 64;

/// Of each run at scale 1, one after the other: each is a message of its own to each other node.
const PURGES: u64 = 4000;

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct PurgeRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) nodes: u64,
    pub(in crate::cluster) purges: u64,
    /// Messages of the first node, at which all purges are asked for.
    pub(in crate::cluster) messages: u64,
    /// CPU time of the first node.
    pub(in crate::cluster) sender_cpu_us: u64,
    /// CPU time of the first node for as many purges at that node alone.
    pub(in crate::cluster) alone_cpu_us: u64,
    /// CPU time of all other nodes.
    pub(in crate::cluster) receivers_cpu_us: u64,
    /// Until all nodes have purged: the answer has them all.
    pub(in crate::cluster) everywhere_us: Times,
    /// Until the first node alone has.
    pub(in crate::cluster) alone_us: Times,
}

/// Of the purges of a run, microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::cluster) struct Times {
    pub(in crate::cluster) p50: u64,
    pub(in crate::cluster) p99: u64,
}

impl PurgeRun {
    /// CPU time of a message at the node that sends it; the purge itself is not in it.
    pub(in crate::cluster) fn sender_us(&self) -> f64 {
        ratio(
            self.sender_cpu_us.saturating_sub(self.alone_cpu_us),
            self.messages,
        )
    }

    /// CPU time of a message at the node that receives it, with its purge.
    pub(in crate::cluster) fn receiver_us(&self) -> f64 {
        ratio(self.receivers_cpu_us, self.messages)
    }
}

/// Measures, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) {
    for round in 1..=record.settings.rounds {
        for nodes in NODES {
            let what = format!("purges of {nodes} nodes, round {round}");
            if let Some(run) = record.kept(what, run(setup, nodes, round)) {
                let (sender, receiver) = (run.sender_us(), run.receiver_us());
                let p50 = run.everywhere_us.p50;
                eprintln!("  {nodes} nodes: {sender:.1} + {receiver:.1} us a message, {p50} us");
                record.figures.purges.push(run);
            }
        }
    }
}

fn run(setup: &Setup, count: usize, round: u32) -> Result<PurgeRun, Failure> {
    let bed = setup.bed(&format!("purge-{count}-{round}"))?;
    let rules = NodeRules {
        count,
        memory_mib: MEMORY_MIB,
        policy: Some(DEFAULT_POLICY),
        has_secret: true,
    };
    let nodes = Nodes::start(&bed.bed(), rules)?;
    let purges = setup.scaled(PURGES, 50);
    let [first, others @ ..] = nodes.nodes.as_slice() else {
        return Err(Failure::Refused("there is no node".to_owned()));
    };
    // connections between the nodes are open from here on
    purge(first, others, ("purge?", 10))?;
    let used = || nodes.cpu_us();
    let messages = || first.metric("weir_peer_purge_messages_total");

    let before = (used(), messages()?);
    let everywhere_us = purge(first, others, ("purge?", purges))?;
    let middle = (used(), messages()?);
    let alone_us = purge(first, &[], ("purge?this-node&", purges))?;
    let after = used();

    let cpu_us = |from: &[u64], to: &[u64]| to.iter().sum::<u64>() - from.iter().sum::<u64>();
    Ok(PurgeRun {
        round,
        nodes: u64::try_from(count).unwrap_or(u64::MAX),
        purges,
        messages: middle.1 - before.1,
        sender_cpu_us: cpu_us(&before.0[..1], &middle.0[..1]),
        alone_cpu_us: cpu_us(&middle.0[..1], &after[..1]),
        receivers_cpu_us: cpu_us(&before.0[1..], &middle.0[1..]),
        everywhere_us,
        alone_us,
    })
}

/// Has `first` purge so many URLs, one after the other; each of `others` must have done so, too.
fn purge(first: &Node, others: &[Node], (call, count): (&str, u64)) -> Result<Times, Failure> {
    let mut stream = connect(first.admin).during("connect to a node's admin interface")?;
    let host = first.admin.to_string();
    let mut times = Vec::new();
    for number in 0..count {
        let path = format!("/{call}url=http://origin.example/purge/{number}");
        let begun = Instant::now();
        let answer = post_of(&mut stream, &host, &path).during("have a node purge")?;
        times.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
        let said = String::from_utf8_lossy(&answer.body);
        let has_purged = |node: &Node| {
            let line = format!("{}: purged 0", node.name);
            said.lines().any(|it| it == line)
        };
        if answer.status != 200 || !others.iter().all(has_purged) {
            let what = format!("not all nodes have purged: {} {said}", answer.status);
            return Err(Failure::Refused(what));
        }
    }
    times.sort_unstable();
    let of = |share| quantile::of_sorted(&times, share).unwrap_or_default();
    Ok(Times {
        p50: of(0.5),
        p99: of(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_costs_what_the_purge_at_one_node_alone_does_not() {
        let times = Times::default();
        let run = PurgeRun {
            round: 1,
            nodes: 4,
            purges: 1000,
            messages: 3000,
            sender_cpu_us: 150_000,
            alone_cpu_us: 60_000,
            receivers_cpu_us: 120_000,
            everywhere_us: times,
            alone_us: times,
        };
        assert!((run.sender_us() - 30.0).abs() < 1e-9);
        assert!((run.receiver_us() - 40.0).abs() < 1e-9);
    }
}
