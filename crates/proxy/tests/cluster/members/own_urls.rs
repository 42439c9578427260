//! What a node says whose URL among the members leads to another process, and what that says.

use crate::nodes::{Nodes, fresh, member, refusals, set_secret, start_node};
use crate::support::{PATIENCE, RawClient, Running, ScriptedOrigin};
use std::time::Instant;
use weir_measure::Metric;
use weir_proxy::admin::{PurgeCall, PurgeReach};

/// A fourth node with the name of the third one, and the same members.
fn namesake(cluster: &Nodes) -> Running {
    let node = start_node("c", cluster.origin.address());
    let members = cluster.members();
    let secret = cluster.nodes[2].settings(|config| config.cluster.secret_file.clone());
    node.reload(|config| {
        config.cluster.members = members;
        config.cluster.secret_file = secret;
    });
    node
}

/// What a purge of `path` at `node` says of itself.
fn problem(node: &Running, path: &str) -> Option<String> {
    let call = PurgeCall::Url(format!("http://a.example{path}"));
    let report = node
        .purge_at(PurgeReach::Cluster, call)
        .expect("purged here");
    assert_eq!(report.is_everywhere(), report.problem.is_none());
    report.problem
}

#[test]
fn node_whose_url_leads_to_another_process_says_so_and_its_purges_fail() {
    for has_secret in [false, true] {
        let cluster = Nodes::start(fresh);
        let _folder = has_secret.then(|| set_secret(&cluster));
        let node = namesake(&cluster);
        node.wait_for(Metric::OwnUrlElsewhere, 1);
        let own = &cluster.nodes[2];
        let url = format!("http://{}", own.listener(1));
        let wrong = format!("{url}, the url of this node, leads to another process");
        let said = problem(&node, "/x").expect("a problem");
        assert!(said.starts_with(&wrong), "{said}");
        node.wait_until_said(&format!("cluster: node c: {said}"), 1);
        assert_eq!(node.control().cluster().expect("one").problem, Some(said));
        // the other process knows of it, too
        own.wait_for_at_least(Metric::PeerNamesakes, 1);
        let reported = own.control().cluster().expect("one").problem;
        let reported = reported.expect("a problem");
        own.wait_until_said(
            &format!("cluster: node c, asked by 127.0.0.1: {reported}"),
            1,
        );
        // nothing is wrong with the others
        for other in &cluster.nodes {
            assert_eq!(problem(other, "/x"), None);
            assert_eq!(other.count(Metric::OwnUrlElsewhere), 0);
        }
        assert_eq!(
            cluster.nodes[0].control().cluster().expect("one").problem,
            None
        );
    }
}

#[test]
fn node_that_is_given_the_name_of_another_one_by_a_reload_says_so_until_it_has_its_own() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    node.reload(|config| config.cluster.node = Some("b".into()));
    node.wait_for(Metric::OwnUrlElsewhere, 1);
    assert!(problem(node, "/x").is_some());
    node.reload(|config| config.cluster.node = Some("a".into()));
    node.wait_for(Metric::OwnUrlElsewhere, 0);
    assert_eq!(problem(node, "/x"), None);
}

#[test]
fn node_knows_its_own_request_behind_a_translated_address() {
    for has_secret in [false, true] {
        let cluster = Nodes::start(fresh);
        let _folder = has_secret.then(|| set_secret(&cluster));
        let node = &cluster.nodes[2];
        let listener = node.listener(1);
        let relay = ScriptedOrigin::new().answering(move |head, _| {
            let response = RawClient::connect(listener).ask(&head.text);
            [response.head.text.as_bytes(), &response.body].concat()
        });
        node.reload(|config| config.cluster.members[2] = member("c", relay.address()));
        let until = Instant::now() + PATIENCE;
        while relay.seen().is_empty() {
            assert!(Instant::now() < until, "it does not ask its own url");
            node.turn();
        }
        let seen = relay.seen();
        let field = seen[0].field("weir-peer").unwrap_or_default();
        assert!(field.contains("node=c, mode=own-url"), "{field}");
        assert_eq!(node.count(Metric::PeerNamesakes), 0);
        assert_eq!(refusals(node), 0);
        assert_eq!(problem(node, "/x"), None);
    }
}
