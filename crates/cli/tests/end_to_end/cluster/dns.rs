//! Members that a real name server lists, whose records change under load.

use super::{NAMES, Nodes, under_load, wait_for_more};
use crate::support::Dnsmasq;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// SRV records of these members, each of which has a name.
fn records(members: &[(&str, SocketAddr)]) -> String {
    let mut text = String::new();
    for (name, address) in members {
        let (ip, port) = (address.ip(), address.port());
        let _infallible = writeln!(
            text,
            "host-record={name}.weir.test,{ip}\nsrv-host=_weir._tcp.weir.test,{name}.weir.test,{port},0,10"
        );
    }
    text
}

#[test]
fn nodes_find_each_other_by_srv_records_that_change_under_load() {
    let mut dnsmasq = Dnsmasq::start();
    let servers = format!("[\"{}\"]", dnsmasq.address);
    let nodes = Nodes::start_listed(|_, config| {
        config
            .set("cluster.members", "\"dns-srv:_weir._tcp.weir.test\"")
            .set("dns.servers", &servers)
            // what a name server does not know yet is asked for again soon
            .set("dns.negative_ttl", "\"1s\"")
    });
    dnsmasq.set(&records(&nodes.members));
    for (at, (name, address)) in nodes.members.iter().enumerate() {
        nodes.wait_for_members(at, NAMES.len());
        let own = format!("node {name}.weir.test:{}, policy hash", address.port());
        nodes.wait_for_cluster(at, &own);
    }
    assert!(nodes.check_files(2) > 0, "others are asked");
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        dnsmasq.set(&records(&nodes.members[..2]));
        for at in 0..2 {
            nodes.wait_for_members(at, 2);
        }
        wait_for_more(count, 100);
        // no answer, and then an empty one
        let errors = |at: usize| {
            let metrics = nodes.nodes[at].metrics();
            metrics.count("weir_member_source_errors_total")
        };
        let step = |dnsmasq: &mut Dnsmasq, records: Option<&str>| {
            let before = [errors(0), errors(1)];
            match records {
                None => dnsmasq.kill(),
                Some(records) => dnsmasq.set(records),
            }
            for (at, before) in before.into_iter().enumerate() {
                nodes.nodes[at].until("an error", |metrics| {
                    metrics.count("weir_member_source_errors_total") > before
                });
                nodes.wait_for_members(at, 2);
            }
            wait_for_more(count, 100);
        };
        step(&mut dnsmasq, None);
        // the hosts have addresses, but there is no service
        let records_of_hosts = records(&nodes.members);
        let hosts = records_of_hosts.lines();
        let hosts = hosts.filter(|line| line.starts_with("host-record"));
        let hosts: Vec<&str> = hosts.collect();
        step(&mut dnsmasq, Some(&hosts.join("\n")));
        dnsmasq.set(&records(&nodes.members));
        for at in 0..2 {
            nodes.wait_for_members(at, 3);
        }
        wait_for_more(count, 100);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    assert!(nodes.check_files(0) > 0, "others are asked");
}
