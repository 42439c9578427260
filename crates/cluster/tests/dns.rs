//! Members that a real name server lists.

#![allow(dead_code, reason = "etcd is for other tests")]

#[path = "support/dnsmasq.rs"]
mod dnsmasq;
#[path = "support/etcd.rs"]
mod etcd;

use dnsmasq::Dnsmasq;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_cluster::{MemberList, MemberSink, MembersTask, OwnNode};
use weir_measure::Counters;
use weir_net::resolver::{Resolver, ResolverConfig};
use weir_policy::route::{NodeState, Weight};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a source says.
struct Lines(Mutex<Sender<String>>, AtomicBool);

impl Lines {
    fn say(&self, line: String) {
        let lines = self.0.lock().expect("no panic");
        let _test_has_ended = lines.send(line);
    }
}

impl MemberSink for Lines {
    fn put_in_force(&self, list: &MemberList) -> Result<(), String> {
        let members = list.members.iter();
        let members = members.map(|it| format!("{} {}", it.name, it.weight.get()));
        let own = list.own.map(|own| list.members[own].name.as_str());
        let members: Vec<String> = members.collect();
        self.1.store(true, Ordering::Release);
        self.say(format!("{} ({})", members.join(", "), own.unwrap_or("-")));
        Ok(())
    }

    fn has_members(&self) -> bool {
        self.1.load(Ordering::Acquire)
    }

    fn count_error(&self) {}

    fn tell(&self, line: &str) {
        self.say(line.to_owned());
    }
}

/// Follows `source`, as the node with a peer listener on port 4001 of 127.0.0.1.
fn follow(dnsmasq: &Dnsmasq, source: &str) -> (MembersTask, Receiver<String>) {
    let config = ResolverConfig {
        servers: vec![dnsmasq.address],
        ..ResolverConfig::default()
    };
    let resolver = Resolver::start(config, Arc::new(Counters::new())).expect("a thread");
    let own = OwnNode {
        name: None,
        listeners: vec!["127.0.0.1:4001".parse().expect("an address")],
        hop: None,
        weight: Weight::ONE,
    };
    let (sender, lines) = mpsc::channel();
    let sink = Arc::new(Lines(Mutex::new(sender), AtomicBool::new(false)));
    let source = source.parse().expect("a source");
    let task = MembersTask::start(source, own, NodeState::In, resolver, sink);
    (task.expect("a thread"), lines)
}

/// Waits for a line.
#[track_caller]
fn wait_for(lines: &Receiver<String>, expected: &str) {
    let until = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) if line == expected => return,
            Ok(line) => seen.push(line),
            Err(error) => panic!("never `{expected}` ({error}): {seen:#?}"),
        }
    }
}

const GOOD: &str = "the list of members is good again";

#[test]
fn addresses_of_a_name_are_members_of_both_families_and_stay_when_there_are_none() {
    let mut dnsmasq = Dnsmasq::start();
    let (task, lines) = follow(&dnsmasq, "dns:weir.test:4001");
    let none = "`weir.test`: the name does not exist or has no address";
    let alone = format!("there is no list yet: this node serves alone: {none}");
    wait_for(&lines, &alone);
    dnsmasq.set("host-record=weir.test,127.0.0.1,::1\nhost-record=weir.test,127.0.0.2\n");
    wait_for(
        &lines,
        "127.0.0.1:4001 100, 127.0.0.2:4001 100, [::1]:4001 100 (127.0.0.1:4001)",
    );
    wait_for(&lines, GOOD);
    dnsmasq.set("host-record=weir.test,127.0.0.2\n");
    wait_for(&lines, "127.0.0.2:4001 100 (-)");
    dnsmasq.set("");
    wait_for(&lines, &format!("the members stay as they are: {none}"));
    assert!(task.report().errors > 0 && task.report().age.is_some());
    dnsmasq.set("host-record=weir.test,127.0.0.2\n");
    wait_for(&lines, GOOD);
}

#[test]
fn services_are_members_with_their_weights_and_stay_when_the_name_server_is_away() {
    let mut dnsmasq = Dnsmasq::start();
    let (_task, lines) = follow(&dnsmasq, "dns-srv:_weir._tcp.weir.test");
    let hosts = "host-record=a.weir.test,127.0.0.1\nhost-record=b.weir.test,127.0.0.2\n";
    let service = |host: &str, priority: u32, weight: u32| {
        format!("srv-host=_weir._tcp.weir.test,{host}.weir.test,4001,{priority},{weight}\n")
    };
    let both = format!("{hosts}{}{}", service("a", 1, 7), service("b", 1, 0));
    dnsmasq.set(&both);
    let all = "a.weir.test:4001 7, b.weir.test:4001 1 (a.weir.test:4001)";
    wait_for(&lines, all);
    // one that is only for the case that all others are away
    dnsmasq.set(&format!(
        "{hosts}{}{}",
        service("a", 1, 7),
        service("b", 2, 9)
    ));
    wait_for(&lines, "a.weir.test:4001 7 (a.weir.test:4001)");
    dnsmasq.kill();
    let line = lines.recv_timeout(PATIENCE).expect("a line");
    assert!(line.starts_with("the members stay as they are: "), "{line}");
    dnsmasq.set(&both);
    wait_for(&lines, all);
    wait_for(&lines, GOOD);
}
