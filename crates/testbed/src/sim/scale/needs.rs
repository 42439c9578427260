//! What the nodes of a site or of a network would need: shares of requests from the simulation,
//! costs from records.

use super::costs::NodeCosts;
use super::networks::{Network, Networks};

/// A site or a network.
#[derive(Clone, Debug)]
pub(crate) struct Need<'a> {
    pub(crate) name: String,
    network: &'a Network,
    costs: &'a NodeCosts,
    /// Of the clients of each node.
    pub(crate) requests_per_s: f64,
    /// Of the simulation, from which shares of requests are.
    simulated_per_s: f64,
}

/// Cores of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cores {
    /// Answers to clients, with their content.
    pub(crate) answers: f64,
    /// What other nodes are asked for, and what they ask for.
    pub(crate) lateral: f64,
    /// What the origin is asked for.
    pub(crate) origin: f64,
    /// Choices of nodes.
    pub(crate) choices: f64,
    /// Messages about states and digests.
    pub(crate) messages: f64,
}

/// The site, bytes a second to its clients: 1 Tbit/s.
const SITE_BYTES_PER_S: f64 = 1e12 / 8.0;

/// Sizes of the site's networks.
const SITE_NODES: [u16; 4] = [16, 64, 256, 1024];

/// How often a node asks each other one for its state and for its digest, each second: the defaults
/// of `cluster.state_interval` and `cluster.digest_interval`.
pub(crate) const ASKED_PER_S: f64 = STATES_PER_S + DIGESTS_PER_S;
pub(crate) const STATES_PER_S: f64 = 1.0 / 5.0;
pub(crate) const DIGESTS_PER_S: f64 = 1.0 / 10.0;

/// The site with each number of nodes, then the largest network with the requests that were
/// simulated.
pub(crate) fn needs<'a>(networks: &'a Networks, costs: &'a NodeCosts) -> Vec<Need<'a>> {
    let simulated_per_s = f64::from(networks.rate_per_s);
    let need = |name, network, requests_per_s| Need {
        name,
        network,
        costs,
        requests_per_s,
        simulated_per_s,
    };
    let site = |network: &'a Network| {
        let nodes = f64::from(network.nodes);
        let name = format!("1 Tbit/s, {nodes} nodes");
        need(
            name,
            network,
            SITE_BYTES_PER_S / network.mean_bytes() / nodes,
        )
    };
    let sites = SITE_NODES.iter().filter_map(|nodes| networks.of(*nodes));
    let largest = networks.largest().map(|network| {
        let name = format!("a network of {}, as simulated", network.nodes);
        need(name, network, simulated_per_s)
    });
    sites.map(site).chain(largest).collect()
}

impl Need<'_> {
    /// To clients, of each node.
    pub(crate) fn client_gbit_per_s(&self) -> f64 {
        gbit(self.requests_per_s * self.network.mean_bytes())
    }

    /// To other nodes, of each node; it receives as much.
    pub(crate) fn lateral_gbit_per_s(&self) -> f64 {
        self.client_gbit_per_s() * self.network.lateral_bytes_share()
    }

    /// From the origin, to all nodes.
    pub(crate) fn origin_gbit_per_s(&self) -> f64 {
        let nodes = f64::from(self.network.nodes);
        nodes * self.client_gbit_per_s() * self.network.origin_bytes_share()
    }

    /// Digests of all others in the memory of a node.
    pub(crate) fn digests_mb(&self) -> Option<f64> {
        let bytes = self.network.messages.digest_bytes?;
        Some(weir_measure::float(bytes) * self.network.others() / 1e6)
    }

    /// Additions to digests, received by each node: what it stores grows with its requests.
    pub(crate) fn digests_mbit_per_s(&self) -> f64 {
        let times = self.requests_per_s / self.simulated_per_s;
        self.network.messages.digest_bytes_per_s * 8.0 / 1e6 * times
    }

    /// Until a purge is everywhere, milliseconds: all messages one after the other, and a round
    /// trip.
    pub(crate) fn purge_ms(&self, round_trip_ms: f64) -> f64 {
        self.network.others() * self.costs.message.sender_us / 1000.0 + round_trip_ms
    }

    /// Of each node.
    pub(crate) fn cores(&self) -> Cores {
        let (costs, network) = (self.costs, self.network);
        let mean = network.mean_bytes();
        let lateral = network.lateral_share();
        let origin = network.origin_requests.value / weir_measure::float(network.requests.max(1));
        let missed = 1.0 - network.own_hit_ratio.value;
        // the other node sends the content, and this one receives it
        let lateral_bytes = 2.0 * mean * network.lateral_bytes_share();
        let origin_bytes = mean * network.origin_bytes_share();
        let us = |a_request: f64| self.requests_per_s * a_request / 1e6;
        Cores {
            answers: us(costs.hit_of_us(mean)),
            lateral: us(
                lateral * (costs.lateral_us - costs.own_us) + costs.content_us(lateral_bytes)
            ),
            origin: us(origin * (costs.forward_us - costs.hit_us) + costs.content_us(origin_bytes)),
            choices: us(missed * costs.choice_of_ns(f64::from(network.nodes)) / 1000.0),
            messages: network.others() * ASKED_PER_S * costs.message.both_us() / 1e6,
        }
    }

    /// Of all nodes.
    pub(crate) fn all_cores(&self) -> f64 {
        f64::from(self.network.nodes) * self.cores().sum()
    }
}

impl Cores {
    pub(crate) fn sum(&self) -> f64 {
        self.answers + self.lateral + self.origin + self.choices + self.messages
    }
}

fn gbit(bytes: f64) -> f64 {
    bytes * 8.0 / 1e9
}

#[cfg(test)]
mod tests {
    use super::super::costs::made::COSTS;
    use super::super::networks::made::networks;
    use super::*;

    fn check(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-6 * expected.abs().max(1.0),
            "{found}, not {expected}"
        );
    }

    #[test]
    fn site_of_1_tbit_per_s_is_shared_by_its_nodes() {
        let networks = networks();
        let all = needs(&networks, &COSTS);
        let [few, many, simulated] = all.as_slice() else {
            panic!("{all:?}")
        };
        assert_eq!(few.name, "1 Tbit/s, 16 nodes");
        check(few.client_gbit_per_s(), 1000.0 / 16.0);
        check(many.client_gbit_per_s(), 1000.0 / 1024.0);
        check(few.requests_per_s, 125e9 / 10_000.0 / 16.0);
        // half of the content comes from other nodes, a fifth from the origin
        check(few.lateral_gbit_per_s(), 500.0 / 16.0);
        check(few.origin_gbit_per_s(), 200.0);
        // a node stores more in a second where it has more requests
        check(
            few.digests_mbit_per_s(),
            15.0 * 8e-3 * few.requests_per_s / 1000.0,
        );
        check(simulated.requests_per_s, 1000.0);
        check(simulated.digests_mb().expect("digests"), 1023.0 * 1.25);
        check(simulated.purge_ms(60.0), 1023.0 * 0.02 + 60.0);
    }

    #[test]
    fn cores_are_those_of_each_part() {
        let networks = networks();
        let all = needs(&networks, &COSTS);
        let cores = all[2].cores();
        // 1000 requests of 10 us and 8976 bytes
        check(cores.answers, 0.01 + 1000.0 * 8976.0 * 0.25e-9);
        // 400 of them 20 us more, and 5 MB sent and received
        check(cores.lateral, 0.008 + 2.0 * 5e6 * 0.25e-9);
        check(cores.origin, 0.002 + 2e6 * 0.25e-9);
        check(cores.choices, 500.0 * 3124e-9);
        check(cores.messages, 1023.0 * 0.3 * 30e-6);
        let parts = cores.answers + cores.lateral + cores.origin + cores.choices + cores.messages;
        check(cores.sum(), parts);
        check(all[2].all_cores(), 1024.0 * parts);
    }
}
