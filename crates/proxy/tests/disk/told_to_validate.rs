//! What a member has told a node to validate.

use super::setup::DiskSetup;
use crate::support::{Representation, span, tell_to_validate};
use std::net::SocketAddr;
use std::path::Path;
use weir_disk::files::Files as _;
use weir_proxy::config::{Config, Listener, ListenerKind, Member};

/// Node `c` of a cluster; node `a` is another member.
fn as_member(config: &mut Config) {
    config.listeners.push(Listener {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        mode: ListenerKind::Peer,
        name: None,
        tls: None,
        http2: None,
        proxy_protocol: Vec::new(),
    });
    config.cluster.node = Some("c".to_owned());
    config.cluster.join_time = span("0s");
    config.cluster.state_interval = span("0s");
    config.cluster.digest_memory = "0".parse().expect("a size");
    // nothing is asked there
    let member = |name: &str, port: u16| Member {
        name: name.to_owned(),
        url: format!("http://127.0.0.1:{port}").parse().expect("a URL"),
        weight: 100,
        front_end: false,
    };
    config.cluster.members = vec![member("a", 9), member("c", 10)];
}

/// `what` is validated, and the origin still has it.
fn validate(setup: &DiskSetup, what: &Representation) {
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
    hop.send(
        "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=3600\r\nConnection: close\r\n\r\n",
    );
    let response = client.read_response();
    what.check_whole(&response);
    let verdict = response.verdict();
    assert!(verdict.contains("fwd-status=304"), "{verdict}");
    setup.rest();
}

#[test]
fn what_a_node_was_told_to_validate_it_validates_once_after_a_restart() {
    let mut setup = DiskSetup::real(as_member);
    let small = Representation::new("/small", 1000);
    let large = Representation::new("/large", 2_500_000);
    let later = Representation::new("/later", 1000);
    for what in [&small, &large] {
        setup.store_whole(what);
    }
    assert!(tell_to_validate(setup.proxy().listener(1)));
    setup.restart_later(5);
    setup.store_whole(&later);
    for what in [&small, &large] {
        validate(&setup, what);
        setup.hit(what, "");
    }
    setup.restart_later(10);
    for what in [&small, &large, &later] {
        setup.hit(what, "");
    }
}

/// The file that keeps it, on a simulated machine.
fn valid_since() -> &'static Path {
    Path::new("/store/valid-since")
}

#[test]
fn node_whose_disk_is_full_validates_after_a_crash_what_it_was_told_to() {
    let mut setup = DiskSetup::simulated(as_member);
    let small = Representation::new("/small", 1000);
    setup.store_whole(&small);
    let space = setup.files().space(&setup.store()).expect("it is known");
    setup.files().limit_space(space.total - space.free);
    assert!(tell_to_validate(setup.proxy().listener(1)));
    setup.kill_then(|files| files.limit_space(u64::MAX));
    validate(&setup, &small);
    setup.hit(&small, "");
}

#[test]
fn node_that_cannot_write_down_that_it_validates_says_so_until_it_can() {
    let setup = DiskSetup::simulated(as_member);
    let small = Representation::new("/small", 1000);
    setup.store_whole(&small);
    // its room is gone, and there is no other
    let cut = setup.files().damage(valid_since(), Vec::clear);
    cut.expect("a file");
    setup.files().limit_space(0);
    for _ in 0..2 {
        assert!(!tell_to_validate(setup.proxy().listener(1)));
    }
    validate(&setup, &small);
    setup.files().limit_space(u64::MAX);
    assert!(tell_to_validate(setup.proxy().listener(1)));
}

#[test]
fn order_to_validate_holds_for_what_was_stored_while_the_clock_was_ahead() {
    let mut setup = DiskSetup::simulated(as_member);
    setup.restart_later(1000);
    let early = Representation::new("/early", 1000);
    setup.store_whole(&early);
    setup.restart();
    assert!(tell_to_validate(setup.proxy().listener(1)));
    setup.restart();
    validate(&setup, &early);
}

#[test]
fn damaged_file_has_all_validated_once() {
    let mut setup = DiskSetup::simulated(as_member);
    let small = Representation::new("/small", 1000);
    let later = Representation::new("/later", 1000);
    setup.store_whole(&small);
    setup.stop();
    let damaged = setup.files().damage(valid_since(), |bytes| bytes.fill(7));
    damaged.expect("a file");
    setup.begin_again();
    validate(&setup, &small);
    setup.store_whole(&later);
    setup.restart_later(10);
    for what in [&small, &later] {
        setup.hit(what, "");
    }
}
