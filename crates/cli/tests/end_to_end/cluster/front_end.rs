//! Front ends of three real nodes: a gateway that probes them, and a member that keeps nothing.

use super::{FILES, NAMES, Nodes, check_file, under_load, wait_for_more};
use crate::support::{Config, PATIENCE, RawClient, Weir};
use std::net::SocketAddr;
use std::time::Instant;

const PROBED: &str = r#"policy = "hash"
ramp = "2s"
probe = { path = "/f/0", interval = "100ms", unhealthy_after = 2 }"#;

/// A gateway whose next hops are these nodes.
fn gateway_of(nodes: &[SocketAddr]) -> Weir {
    let urls: Vec<String> = nodes.iter().map(|node| format!("http://{node}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let config = Config::gateway(&[]).without_routes();
    // what it stores itself would hide the nodes
    let config = config.set("cache.largest_response", "\"1KiB\"");
    Weir::serve(&config.route(PROBED, &urls))
}

#[test]
fn node_that_is_killed_is_ejected_by_probes_and_gets_requests_again_when_it_is_back() {
    let mut nodes = Nodes::start();
    let addresses = [0, 1, 2].map(|at| nodes.nodes[at].address());
    let front_end = gateway_of(&addresses);
    let clients = [front_end.address(); 2];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 100);
        nodes.nodes[2].kill();
        front_end.until("ejected", |metrics| {
            metrics.count("weir_next_hop_probe_failures_total") >= 3
        });
        wait_for_more(count, 200);
    });
    assert!(
        failed.len() <= 4,
        "more than were under way: {}",
        failed.len()
    );
    let ejected = front_end
        .ask("GET", "/route?url=http://a.example/")
        .expect(200);
    assert!(ejected.text().contains("gone"), "{}", ejected.text());

    let listeners = [addresses[2], nodes.members[2].1].map(|address| address.to_string());
    let config = nodes.configs[2].clone().without_listeners();
    let config = config
        .listener(&listeners[0], "gateway")
        .listener(&listeners[1], "peer")
        .set("cluster.member", &super::members_toml(&nodes.members));
    nodes.nodes[2] = Weir::serve(&config);
    nodes.configs[2] = config;
    nodes.reload(2, &nodes.members);
    let mut client = RawClient::connect(front_end.address());
    let until = Instant::now() + PATIENCE;
    // each probe is the first request of its connection
    let is_asked = || {
        let metrics = nodes.nodes[2].metrics();
        metrics.all_requests() > metrics.count("weir_client_first_requests_total")
    };
    let is_back = || {
        let route = front_end.ask("GET", "/route?url=http://a.example/");
        !route.expect(200).text().contains("gone")
    };
    while !is_back() || !is_asked() {
        for number in 0..FILES {
            check_file(&mut client, number).expect("a whole response");
        }
        assert!(Instant::now() < until, "it gets no requests");
    }
}

#[test]
fn front_end_of_a_cluster_keeps_nothing_and_each_file_comes_whole() {
    let nodes = Nodes::start();
    let front_end = super::members_toml(&nodes.members).replacen(" }", ", front_end = true }", 1);
    for at in 0..NAMES.len() {
        let config = nodes.configs[at].clone().set("cluster.member", &front_end);
        nodes.nodes[at].rewrite(&config.text());
        nodes.nodes[at].ask("POST", "/reload").expect(200);
    }
    for _ in 0..2 {
        assert_eq!(nodes.check_files(0), u64::from(FILES));
    }
    assert_eq!(nodes.asked(FILES as usize), [1; FILES as usize]);
    assert_eq!(nodes.nodes[0].metrics().count("weir_store_entries"), 0);
    let text = nodes.nodes[1].ask("GET", "/cluster").expect(200).text();
    assert!(text.contains("front-end"), "{text}");
}
