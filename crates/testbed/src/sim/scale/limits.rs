//! With how many nodes each thing that grows with them meets a limit: a tenth of a core, a tenth of
//! 1 Gbit/s, or a default.

use super::costs::NodeCosts;
use super::needs::{ASKED_PER_S, DIGESTS_PER_S, STATES_PER_S};
use super::networks::{Network, Networks};
use weir_measure::float;

/// Something that grows with the nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) what: &'static str,
    /// What it meets.
    pub(crate) limit: &'static str,
    /// Where its numbers come from.
    pub(crate) basis: &'static str,
    /// With so many nodes, of [`RATES`] times the requests that were simulated.
    pub(crate) nodes: [f64; 2],
}

/// Requests of a node, in parts of those that were simulated.
pub(crate) const RATES: [f64; 2] = [1.0, 10.0];

const CORE: &str = "a tenth of a core of each node";
const SENDER: &str = "a tenth of a core of one node";
const NETWORK: &str = "100 Mbit/s of each node";

/// A tenth of a core, microseconds a second.
const CORE_US_PER_S: f64 = 100_000.0;

/// A tenth of 1 Gbit/s, bytes a second.
const NETWORK_BYTES_PER_S: f64 = 12_500_000.0;

/// The default of `cluster.digest_memory`.
const DIGEST_MEMORY_BYTES: f64 = 67_108_864.0;

/// The default of `cluster.join_time`, seconds.
const JOIN_S: f64 = 60.0;

/// The default of `limits.idle_next_hop_connections_max`.
const IDLE_CONNECTIONS_MAX: f64 = 1024.0;

/// `weir_policy::route::NODES_MAX`.
const NODES_MAX: f64 = 1024.0;

/// All of them, what comes first is first. Shares of requests are those of the largest network.
pub(crate) fn limits(networks: &Networks, costs: &NodeCosts) -> Vec<Limit> {
    let Some(network) = networks.largest() else {
        return Vec::new();
    };
    let rate = f64::from(networks.rate_per_s);
    let mut all = of_core(network, costs, rate);
    all.extend(of_network(network));
    all.extend(of_defaults(network));
    all.sort_by(|one, other| one.nodes[0].total_cmp(&other.nodes[0]));
    all
}

fn of_core(network: &Network, costs: &NodeCosts, rate: f64) -> Vec<Limit> {
    let message = costs.message;
    let basis = match message.is_measured {
        true => "measured for a purge",
        false => "assumed",
    };
    let missed = 1.0 - network.own_hit_ratio.value;
    let choices = RATES.map(|times| {
        let choice_ns = CORE_US_PER_S * 1000.0 / (rate * times * missed);
        16.0 + (choice_ns - costs.choice_ns[0]) / costs.choice_each_ns()
    });
    let core = |what, limit, basis, us_a_node: f64| Limit {
        what,
        limit,
        basis,
        nodes: [1.0 + CORE_US_PER_S / us_a_node; 2],
    };
    vec![
        Limit {
            what: "choices of nodes",
            limit: CORE,
            basis: "measured to 64 nodes, simulated",
            nodes: choices,
        },
        core(
            "questions about states",
            CORE,
            basis,
            STATES_PER_S * message.both_us(),
        ),
        core(
            "questions about digests",
            CORE,
            basis,
            DIGESTS_PER_S * message.both_us(),
        ),
        core(
            "both kinds of questions",
            CORE,
            basis,
            ASKED_PER_S * message.both_us(),
        ),
        core(
            "one purge a second, at one node",
            SENDER,
            basis,
            message.sender_us,
        ),
        core(
            "one purge a second at each node",
            CORE,
            basis,
            message.both_us(),
        ),
    ]
}

fn of_network(network: &Network) -> Vec<Limit> {
    let messages = &network.messages;
    let a_node = |bytes_per_s: f64| bytes_per_s / network.others().max(1.0);
    let additions = a_node(messages.digest_bytes_per_s);
    let states = a_node(messages.state_bytes_per_s);
    let nodes = |bytes_per_s: f64| 1.0 + NETWORK_BYTES_PER_S / bytes_per_s;
    let mut all = vec![
        Limit {
            what: "additions to digests",
            limit: NETWORK,
            basis: "simulated",
            nodes: RATES.map(|times| nodes(additions * times)),
        },
        Limit {
            what: "questions about states",
            limit: NETWORK,
            basis: "size assumed",
            nodes: [nodes(states); 2],
        },
    ];
    // both ways, within the time of joining
    all.extend(messages.digest_bytes.map(|bytes| Limit {
        what: "digests that a node gets and gives when it joins",
        limit: "100 Mbit/s of that node for a minute",
        basis: "simulated",
        nodes: [1.0 + NETWORK_BYTES_PER_S * JOIN_S / (2.0 * float(bytes)); 2],
    }));
    all
}

fn of_defaults(network: &Network) -> Vec<Limit> {
    let default = |what, limit, nodes| Limit {
        what,
        limit,
        basis: "a default",
        nodes: [nodes; 2],
    };
    let mut all = vec![
        default(
            "an idle connection to each other node",
            "`limits.idle_next_hop_connections_max`, 1024",
            1.0 + IDLE_CONNECTIONS_MAX,
        ),
        Limit {
            basis: "a constant",
            ..default(
                "nodes that a choice looks at",
                "`NODES_MAX`, 1024",
                NODES_MAX,
            )
        },
    ];
    all.extend(network.messages.digest_bytes.map(|bytes| {
        default(
            "digests in memory",
            "`cluster.digest_memory`, 64 MiB",
            1.0 + DIGEST_MEMORY_BYTES / float(bytes),
        )
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::super::costs::made::COSTS;
    use super::super::networks::made::networks;
    use super::*;

    #[test]
    fn each_limit_is_met_where_its_part_is_as_large() {
        let all = limits(&networks(), &COSTS);
        let check = |what: &str, limit: &str, expected: [f64; 2]| {
            let found = all.iter().find(|it| it.what == what && it.limit == limit);
            let found = found.unwrap_or_else(|| panic!("no {what} in {all:?}"));
            for (nodes, expected) in found.nodes.iter().zip(expected) {
                assert!((nodes - expected).abs() < 0.01, "{found:?}, not {expected}");
            }
        };
        // 500 choices a second take 0.1 s if each takes 200 us
        check(
            "choices of nodes",
            CORE,
            [16.0 + 199_900.0 / 3.0, 16.0 + 19_900.0 / 3.0],
        );
        check("questions about states", CORE, [1.0 + 1e5 / 6.0; 2]);
        check("one purge a second, at one node", SENDER, [5001.0; 2]);
        check("additions to digests", NETWORK, [12_501.0, 1251.0]);
        check("questions about states", NETWORK, [50_001.0; 2]);
        check(
            "digests in memory",
            "`cluster.digest_memory`, 64 MiB",
            [54.687; 2],
        );
        assert!(all.is_sorted_by(|one, other| one.nodes[0] <= other.nodes[0]));
        assert_eq!(all[0].what, "digests in memory");
    }
}
