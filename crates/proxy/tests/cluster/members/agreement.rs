//! Nodes that do not agree which of them keeps a target say so, and go on.

use crate::nodes::{Nodes, fresh};
use crate::support::{Running, span};
use weir_measure::Metric;
use weir_policy::route::policy::PolicyKind;

const BEGINS: &str = "does not agree with this one which node keeps a target: their policies, \
                      constants, members, weights or secrets differ";
const ENDS: &str = "agrees with this one again which node keeps a target";

/// The nodes that do not agree with `node`, and those that are not as they are to be.
fn disagreement(node: &Running) -> (Vec<String>, Vec<String>) {
    let report = node.control().cluster().expect("a cluster");
    let members = report.members.iter();
    let (mut differ, mut out) = (Vec::new(), Vec::new());
    for member in members {
        if member.placement_differs {
            differ.push(member.name.clone());
        }
        if member.state != "in" {
            out.push(format!("{} is {}", member.name, member.state));
        }
    }
    (differ, out)
}

/// Node number 0 asks the others how they are each 50 ms.
fn ask_often(cluster: &Nodes) {
    cluster.nodes[0].reload(|config| config.cluster.state_interval = span("50ms"));
}

#[test]
fn node_with_another_policy_is_named_when_it_begins_and_when_it_ends() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    ask_often(&cluster);
    node.wait_for_at_least(Metric::PeerStateMessages, 6);
    assert_eq!(disagreement(node), (Vec::new(), Vec::new()));
    cluster.nodes[1].reload(|config| config.cluster.policy = PolicyKind::Hash);
    node.wait_until_said(&format!("node b {BEGINS}"), 1);
    assert_eq!(disagreement(node), (vec!["b".to_owned()], Vec::new()));
    let sent = node.count(Metric::PeerStateMessages);
    node.wait_for_at_least(Metric::PeerStateMessages, sent + 6);
    // this node has it, too, from now on
    node.reload(|config| config.cluster.policy = PolicyKind::Hash);
    node.wait_until_said(&format!("node b {ENDS}"), 1);
    node.wait_until_said(&format!("node c {BEGINS}"), 1);
    assert_eq!(disagreement(node), (vec!["c".to_owned()], Vec::new()));
}

#[test]
fn lists_that_differ_eject_no_node_and_fail_no_request() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    // b does not know a, and c has another weight for it
    let mut members = cluster.members();
    members[0].weight = 50;
    cluster.nodes[2].reload(|config| config.cluster.members = members.clone());
    members.remove(0);
    cluster.nodes[1].reload(|config| config.cluster.members = members);
    ask_often(&cluster);
    node.wait_until_said(&format!("node b {BEGINS}"), 1);
    node.wait_until_said(&format!("node c {BEGINS}"), 1);
    let sent = node.count(Metric::PeerStateMessages);
    node.wait_for_at_least(Metric::PeerStateMessages, sent + 10);
    for number in 0..30 {
        let path = format!("/differs/{number}");
        for at in 0..3 {
            assert_eq!(cluster.get(at, &path).text(), path);
        }
    }
    let named = ["b", "c"].map(str::to_owned).to_vec();
    assert_eq!(disagreement(node), (named, Vec::new()));
    let failures =
        [Metric::PeerStateFailures, Metric::PeersFailed].map(|metric| node.count(metric));
    assert_eq!(failures, [0, 0]);
    // their lists are the same again
    for node in &cluster.nodes[1..] {
        node.reload(|config| config.cluster.members = cluster.members());
    }
    node.wait_until_said(&format!("node b {ENDS}"), 1);
    node.wait_until_said(&format!("node c {ENDS}"), 1);
    assert_eq!(disagreement(node), (Vec::new(), Vec::new()));
}
