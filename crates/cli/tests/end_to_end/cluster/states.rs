//! Nodes that join and drain under load.

use super::members::{file_text, replace, start_with_file_and};
use super::{FILES, NAMES, under_load, wait_for_more};
use crate::support::Weir;

#[test]
fn node_that_joins_takes_over_its_targets_without_asking_the_origin() {
    let (nodes, path, _folder) = start_with_file_and(|name, config| match name {
        "c" => config.set("cluster.join_time", "\"10min\""),
        _ => config,
    });
    replace(&path, &file_text(&nodes.members[..2]));
    nodes.wait_for_members(0, 2);
    nodes.wait_for_members(1, 2);
    nodes.check_files(0);
    nodes.check_files(1);
    assert_eq!(nodes.asked(FILES as usize), [1; FILES as usize]);
    replace(&path, &file_text(&nodes.members));
    for at in 0..NAMES.len() {
        nodes.wait_for_members(at, NAMES.len());
    }
    // one that did not know it yet has refused its request for a digest, and is left alone
    nodes.wait_for_state(2, "a", "in");
    nodes.wait_for_state(2, "b", "in");
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        nodes.wait_for_state(2, "c", "joining");
        // some it keeps itself, the others it fetches from those who do
        nodes.check_files(2);
        let of_others = nodes.check_files(2);
        assert!(of_others < u64::from(FILES), "it has kept what is its own");
        let metrics = nodes.nodes[2].metrics();
        let all = metrics.count("weir_peer_requests_total");
        assert!(all > 2 * of_others, "previous owners were asked");
        wait_for_more(count, 200);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    assert_eq!(nodes.asked(FILES as usize), [1; FILES as usize]);
}

#[test]
fn node_that_is_started_within_the_load_takes_over_its_targets_and_fails_no_request() {
    let (mut nodes, path, _folder) = start_with_file_and(|name, config| match name {
        "c" => config.set("cluster.join_time", "\"10min\""),
        _ => config,
    });
    nodes.nodes[2].kill();
    replace(&path, &file_text(&nodes.members[..2]));
    for at in 0..2 {
        nodes.wait_for_members(at, 2);
    }
    for at in 0..2 {
        nodes.check_files(at);
    }
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 100);
        nodes.nodes[2] = Weir::serve(&nodes.configs[2]);
        nodes.members[2].1 = nodes.nodes[2].peer_listeners[0];
        replace(&path, &file_text(&nodes.members));
        for at in 0..NAMES.len() {
            nodes.wait_for_members(at, NAMES.len());
        }
        for at in 0..2 {
            nodes.wait_for_state(at, "c", "joining");
        }
        nodes.nodes[2].until("some of its own", |metrics| {
            metrics.count("weir_store_entries") > 2
        });
        wait_for_more(count, 200);
        assert!(nodes.check_files(2) > 0, "the others are asked");
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    // one that did not know the new node yet has declined its request
    let asked = nodes.asked(FILES as usize);
    assert!(
        asked.iter().all(|asked| (1..=2).contains(asked)),
        "{asked:?}"
    );
}

#[test]
fn node_that_drains_is_asked_for_no_targets_and_its_end_fails_no_request() {
    let (mut nodes, path, _folder) = start_with_file_and(|_, config| config);
    replace(&path, &file_text(&nodes.members));
    for at in 0..NAMES.len() {
        nodes.wait_for_members(at, NAMES.len());
    }
    nodes.check_files(2);
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 100);
        nodes.nodes[2].ask("POST", "/drain").expect(200);
        nodes.nodes[2].ask("GET", "/healthz").expect(503);
        nodes.wait_for_state(2, "c", "draining");
        // they learn it from its responses
        nodes.wait_for_state(0, "c", "draining");
        nodes.wait_for_state(1, "c", "draining");
        // its own clients are served on
        nodes.check_files(2);
        nodes.nodes[2].ask("POST", "/drain/end").expect(200);
        nodes.wait_for_state(2, "c", "in");
        nodes.wait_for_state(0, "c", "in");
        nodes.nodes[2].ask("POST", "/drain").expect(200);
        nodes.wait_for_state(0, "c", "draining");
        assert!(nodes.nodes[2].stop().success(), "it drains");
        wait_for_more(count, 200);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
}
