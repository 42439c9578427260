//! What one node is measured to cost, out of the records of `cargo xtask peers` and `cluster`.

use crate::cluster;
use crate::peers;

/// CPU time of one node, microseconds where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NodeCosts {
    /// A hit of [`SMALL_BYTES`].
    pub(crate) hit_us: f64,
    /// A request that is forwarded to an origin, of as much content.
    pub(crate) forward_us: f64,
    /// Each further byte of content that is sent, nanoseconds.
    pub(crate) byte_ns: f64,
    /// A hit of [`SMALL_BYTES`] that another node has: of both nodes.
    pub(crate) lateral_us: f64,
    /// The same where the node that is asked has it, measured beside that.
    pub(crate) own_us: f64,
    /// A choice among 16 and among 64 nodes, nanoseconds.
    pub(crate) choice_ns: [f64; 2],
    pub(crate) message: MessageCosts,
}

/// A message to another node, with its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MessageCosts {
    pub(crate) sender_us: f64,
    pub(crate) receiver_us: f64,
    /// Of purges; else it is assumed.
    pub(crate) is_measured: bool,
}

/// Content of the small responses of `peers` and `cluster`.
const SMALL_BYTES: f64 = 1024.0;

/// Of the large one of `peers`.
const LARGE_BYTES: f64 = 1_048_576.0;

/// Nodes of the two choices that are measured.
const CHOICE_NODES: [f64; 2] = [16.0, 64.0];

impl NodeCosts {
    /// Of these records; `None` if one lacks a figure.
    pub(crate) fn of(peers: &peers::Record, cluster: &cluster::Record) -> Option<Self> {
        let weir = |cell| peers::median_cpu_us(peers, cell, crate::proxy::contender::WEIR);
        let (small, large) = (weir("hit 1 KiB")?, weir("hit 1 MiB")?);
        let (own_us, lateral_us) = cluster::hit_costs_us(cluster)?;
        // both nodes of a lateral hit, of which the one that answers does at least an own hit
        let assumed = MessageCosts {
            sender_us: lateral_us - own_us,
            receiver_us: own_us,
            is_measured: false,
        };
        let measured =
            cluster::message_costs_us(cluster).map(|(sender_us, receiver_us)| MessageCosts {
                sender_us,
                receiver_us,
                is_measured: true,
            });
        Some(Self {
            hit_us: small,
            forward_us: weir("forward 1 KiB")?,
            byte_ns: 1000.0 * (large - small) / (LARGE_BYTES - SMALL_BYTES),
            lateral_us,
            own_us,
            choice_ns: cluster::choice_ns(cluster)?,
            message: measured.unwrap_or(assumed),
        })
    }

    /// A hit with so much content.
    pub(crate) fn hit_of_us(&self, bytes: f64) -> f64 {
        self.hit_us + self.content_us(bytes - SMALL_BYTES)
    }

    /// Content alone.
    pub(crate) fn content_us(&self, bytes: f64) -> f64 {
        bytes.max(0.0) * self.byte_ns / 1000.0
    }

    /// Each node that a choice looks at, nanoseconds.
    pub(crate) fn choice_each_ns(&self) -> f64 {
        let [few, many] = self.choice_ns;
        (many - few) / (CHOICE_NODES[1] - CHOICE_NODES[0])
    }

    /// A choice among so many nodes, nanoseconds: beyond 64 it is not measured, and taken to grow
    /// as it does from 16 to 64.
    pub(crate) fn choice_of_ns(&self, nodes: f64) -> f64 {
        self.choice_ns[0] + (nodes - CHOICE_NODES[0]) * self.choice_each_ns()
    }
}

impl MessageCosts {
    /// Of both nodes: as each sends as many as it receives, of one node for both.
    pub(crate) fn both_us(&self) -> f64 {
        self.sender_us + self.receiver_us
    }
}

#[cfg(test)]
pub(crate) mod made {
    use super::*;

    /// Round numbers.
    pub(crate) const COSTS: NodeCosts = NodeCosts {
        hit_us: 10.0,
        forward_us: 30.0,
        byte_ns: 0.25,
        lateral_us: 30.0,
        own_us: 10.0,
        choice_ns: [100.0, 244.0],
        message: MessageCosts {
            sender_us: 20.0,
            receiver_us: 10.0,
            is_measured: false,
        },
    };

    #[test]
    fn content_costs_by_the_byte_and_choices_by_the_node() {
        assert!((COSTS.hit_of_us(1024.0 + 40_000.0) - 20.0).abs() < 1e-9);
        assert!((COSTS.hit_of_us(10.0) - 10.0).abs() < 1e-9);
        assert!((COSTS.choice_each_ns() - 3.0).abs() < 1e-9);
        assert!((COSTS.choice_of_ns(1024.0) - 3124.0).abs() < 1e-9);
    }
}
