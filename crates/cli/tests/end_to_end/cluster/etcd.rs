//! Members that announce themselves in a real etcd, which is killed, emptied and written to by
//! others.

use super::{NAMES, Nodes, under_load, wait_for_more};
use crate::support::{Config, Etcd, PATIENCE, Weir};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::time::Instant;

/// Nodes that have found each other in etcd.
fn start_with(etcd: &Etcd) -> Nodes {
    start_with_and(etcd, |_, config| config)
}

/// The same with more settings, by the name of each.
fn start_with_and(etcd: &Etcd, more: impl Fn(&str, Config) -> Config) -> Nodes {
    let source = format!("\"etcd:{}\"", etcd.url());
    let nodes = Nodes::start_listed(|name, config| {
        more(name, config)
            .set("cluster.node", &format!("{name:?}"))
            .set("cluster.members", &source)
    });
    for at in 0..NAMES.len() {
        nodes.wait_for_members(at, NAMES.len());
    }
    nodes
}

/// "/weir/cluster/" and what follows it, in base64, for the JSON gateway.
const ALL_KEYS: &str = "\"key\":\"L3dlaXIvY2x1c3Rlci8=\",\"range_end\":\"L3dlaXIvY2x1c3RlcjA=\"";

/// "/weir/cluster/member/" and what follows it.
const MEMBER_KEYS: &str =
    "\"key\":\"L3dlaXIvY2x1c3Rlci9tZW1iZXIv\",\"range_end\":\"L3dlaXIvY2x1c3Rlci9tZW1iZXIw\"";

/// Waits until there are so many keys of members.
fn wait_for_keys(etcd: &Etcd, count: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = etcd.post("kv/range", &format!("{{{MEMBER_KEYS}}}"));
        if answer.contains(&format!("\"count\":\"{count}\"")) {
            return;
        }
        assert!(Instant::now() < until, "never {count} keys: {answer}");
    }
}

/// Waits until one of the members' values has this state.
fn wait_for_value(etcd: &Etcd, state: &str) {
    let wanted = format!("\"state\":\"{state}\"");
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = etcd.post("kv/range", &format!("{{{MEMBER_KEYS}}}"));
        let mut values = answer.split("\"value\":\"").skip(1);
        let has_state = |value: &str| {
            let value = value.split('"').next().unwrap_or_default();
            let value = BASE64.decode(value).expect("base64");
            String::from_utf8_lossy(&value).contains(&wanted)
        };
        if values.any(has_state) {
            return;
        }
        assert!(Instant::now() < until, "none is {state}: {answer}");
    }
}

fn errors(nodes: &Nodes, at: usize) -> u64 {
    let metrics = nodes.nodes[at].metrics();
    metrics.count("weir_member_source_errors_total")
}

#[test]
fn nodes_find_each_other_in_etcd_and_a_killed_one_goes_with_its_lease() {
    let etcd = Etcd::start();
    let mut nodes = start_with(&etcd);
    for at in 0..NAMES.len() {
        assert!(nodes.check_files(at) > 0, "others are asked");
    }
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let mut killed = [Instant::now(); 2];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 100);
        killed[0] = Instant::now();
        nodes.nodes[2].kill();
        killed[1] = Instant::now();
        for at in 0..2 {
            nodes.wait_for_members(at, 2);
        }
        wait_for_more(count, 100);
    });
    for [began, ended] in &failed {
        assert!(
            *began < killed[1] && *ended > killed[0],
            "a request failed that the killed node was not answering"
        );
    }
    wait_for_keys(&etcd, 2);
    assert_eq!(errors(&nodes, 0), 0);
}

#[test]
fn members_stay_while_etcd_is_away_and_when_it_has_lost_them() {
    let mut etcd = Etcd::start();
    let nodes = start_with(&etcd);
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        etcd.kill();
        for node in &nodes.nodes {
            node.until("without etcd", |metrics| {
                metrics.count("weir_member_source_errors_total") > 0
            });
        }
        nodes.wait_for_cluster(0, "etcd does not answer");
        wait_for_more(count, 100);
        assert!(nodes.check_files(2) > 0, "the others are asked");
        etcd.start_again();
        wait_for_keys(&etcd, 3);
        for at in 0..NAMES.len() {
            // it has been listed since
            nodes.wait_for_cluster(at, " s ago, errors");
        }
        // by an operator's mistake
        etcd.post("kv/deleterange", &format!("{{{ALL_KEYS}}}"));
        wait_for_keys(&etcd, 3);
        wait_for_more(count, 100);
        etcd.lose_all();
        etcd.start_again();
        wait_for_keys(&etcd, 3);
        wait_for_more(count, 100);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    for at in 0..NAMES.len() {
        let metrics = nodes.nodes[at].metrics();
        assert_eq!(metrics.count("weir_cluster_members"), 3);
        assert_eq!(metrics.count("weir_peer_failures_total"), 0);
        assert!(nodes.check_files(at) > 0, "the others are asked");
    }
}

#[test]
fn value_in_etcd_that_cannot_be_read_is_named_and_the_last_good_one_stays() {
    let etcd = Etcd::start();
    let mut nodes = start_with(&etcd);
    // what a node that no one has heard of says, and what is no JSON at all
    for (key, value, named) in [
        // /weir/cluster/member/d: {}
        (
            "L3dlaXIvY2x1c3Rlci9tZW1iZXIvZA==",
            "e30=",
            "key `/weir/cluster/member/d`: missing field `url`",
        ),
        // /weir/cluster/member/c: no
        (
            "L3dlaXIvY2x1c3Rlci9tZW1iZXIvYw==",
            "bm8=",
            "key `/weir/cluster/member/c`: expected ident",
        ),
    ] {
        etcd.post(
            "kv/put",
            &format!("{{\"key\":\"{key}\",\"value\":\"{value}\"}}"),
        );
        let text = nodes.wait_for_cluster(0, named);
        // a title, the source, the table's head, and the members
        assert_eq!(text.lines().count(), 6, "{text}");
        nodes.nodes[0].wait_for(named);
        assert!(nodes.check_files(0) > 0, "the others are asked");
        assert!(errors(&nodes, 0) > 0, "it is counted");
        etcd.post("kv/deleterange", &format!("{{\"key\":\"{key}\"}}"));
        nodes.nodes[0].wait_for("good again");
    }
    wait_for_keys(&etcd, 3);
}

#[test]
fn node_announces_that_it_joins_and_drains_and_fails_no_request() {
    let etcd = Etcd::start();
    let mut nodes = start_with_and(&etcd, |name, config| match name {
        "c" => config.set("cluster.join_time", "\"10min\""),
        _ => config,
    });
    assert!(nodes.nodes[2].stop().success(), "it drains");
    wait_for_keys(&etcd, 2);
    for at in 0..2 {
        nodes.wait_for_members(at, 2);
    }
    nodes.check_files(0);
    nodes.check_files(1);
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 100);
        nodes.nodes[2] = Weir::serve(&nodes.configs[2]);
        for at in 0..NAMES.len() {
            nodes.wait_for_members(at, NAMES.len());
        }
        let states = ["joining", "draining", "in"];
        for (state, told) in states.into_iter().zip(["/drain", "/drain/end", "/drain"]) {
            for at in 0..NAMES.len() {
                nodes.wait_for_state(at, "c", state);
            }
            wait_for_value(&etcd, state);
            wait_for_more(count, 50);
            // its own clients are served in each state
            assert!(nodes.check_files(2) > 0, "the others are asked");
            nodes.nodes[2].ask("POST", told).expect(200);
        }
        wait_for_value(&etcd, "draining");
        assert!(nodes.nodes[2].stop().success(), "it drains");
        wait_for_keys(&etcd, 2);
        wait_for_more(count, 100);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    assert_eq!(errors(&nodes, 0), 0);
}

#[test]
fn node_that_ends_leaves_etcd_at_once_and_fails_no_request_of_others() {
    let etcd = Etcd::start();
    let mut nodes = start_with(&etcd);
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 100);
        assert!(nodes.nodes[2].stop().success(), "it drains");
        wait_for_keys(&etcd, 2);
        for at in 0..2 {
            nodes.wait_for_members(at, 2);
        }
        wait_for_more(count, 100);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
}
