//! A disk that is full (R08): clients get everything from the origin all the same.

use super::mount::Mount;
use super::{HOST, Parts, wait_for_entries, wait_until_loaded};
use crate::support::{RawClient, Reply, Weir};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

#[test]
fn full_disk_is_counted_and_responses_are_still_served_whole() {
    let parts = Parts::with_size("64MiB");
    let _small = Mount::memory(parts.path(), "64m");
    // another program has most of it
    let others = vec![1; 40 << 20];
    std::fs::write(parts.path().join("others"), others).expect("room for it");
    let weir = parts.serve();
    let target = |number: u32| format!("/{number}?size={}", 3_000_000 + number);
    for number in 0..20 {
        parts.get(&weir, &target(number));
    }
    assert_says_so(&weir);
    // what is small still fits memory
    for _ in 0..2 {
        parts.get(&weir, "/small?size=100");
    }
    assert_eq!(parts.origin.asked("/small?size=100"), 1);
}

fn assert_says_so(weir: &Weir) {
    weir.until("was it counted that the disk is full", |metrics| {
        metrics.disk_refusals() > 0
    });
}

/// The journal of purges needs room as well: segments are given up for it.
#[test]
fn purge_succeeds_and_is_durable_on_a_full_disk() {
    const TARGETS: u32 = 80;
    let parts = Parts::with_size("16MiB");
    let _small = Mount::memory(parts.path(), "16m");
    let weir = parts.serve();
    let target = |number: u32| format!("/{number}?size={}", 50_000 + number);
    for number in 0..TARGETS {
        parts.get(&weir, &target(number));
    }
    wait_for_entries(&weir, u64::from(TARGETS));
    fill(&parts.path().join("filler"));
    let versions: Vec<u64> = (0..TARGETS)
        .map(|number| {
            let version = parts.origin.change(&target(number));
            let url = format!("http://{HOST}{}", target(number));
            weir.ask("POST", &format!("/purge?url={url}")).expect(200);
            version
        })
        .collect();
    // it was in the way, or this shows nothing
    assert!(weir.metrics().count("weir_disk_errors_total") > 0);
    drop(weir);
    let weir = parts.serve();
    wait_until_loaded(&weir);
    for (number, version) in (0..TARGETS).zip(versions) {
        assert_eq!(parts.get(&weir, &target(number)).0, version);
    }
}

/// A member tells a node to validate what it has: that is written in place.
#[test]
fn order_to_validate_is_durable_on_a_full_disk() {
    let parts = Parts::with_size("16MiB");
    let _small = Mount::memory(parts.path(), "16m");
    let config = parts
        .config()
        .listener("127.0.0.1:0", "peer")
        .set("cluster.node", "\"c\"")
        .set("cluster.join_time", "\"0s\"")
        .set("cluster.state_interval", "\"0s\"")
        // nothing is asked there
        .set(
            "cluster.member",
            r#"[{ name = "a", url = "http://127.0.0.1:9" }, { name = "c", url = "http://127.0.0.1:10" }]"#,
        );
    let weir = Weir::serve(&config);
    let target = "/1?size=50000";
    parts.get(&weir, target);
    wait_for_entries(&weir, 1);
    let changed = parts.origin.change(target);
    fill(&parts.path().join("filler"));
    let answer = tell_to_validate(&weir);
    assert!(answer.contains("\ndurable 0"), "{answer}");
    // dropped: killed
    drop(weir);
    let weir = Weir::serve(&config);
    wait_until_loaded(&weir);
    assert_eq!(parts.get(&weir, target).0, changed);
}

/// What the node answers to member `a`.
fn tell_to_validate(weir: &Weir) -> String {
    let mut peer = RawClient::connect(weir.peer_listeners[0]);
    let mut tell = |session: &str, number: u64| -> Reply {
        let text = format!("purges 1 {session} {number}\nbehind x\nvalidate 0\n");
        let known = match session {
            "-" => String::new(),
            session => format!(", session=:{session}:"),
        };
        peer.send(format!(
            "PUT /weir/purges HTTP/1.1\r\nHost: c\r\n\
             Weir-Peer: node=a, mode=purges{known}, number={number}\r\n\
             Content-Length: {}\r\n\r\n{text}",
            text.len()
        ));
        peer.reply()
    };
    let refused = tell("-", 1).expect(409).text();
    let session = refused.split_whitespace().nth(2).expect("a session");
    tell(session, 1000).expect(200).text()
}

/// Takes all room that is left.
fn fill(path: &Path) {
    let mut filler = File::create(path).expect("a file");
    for size in [1 << 16, 1] {
        let piece = vec![0; size];
        while filler.write_all(&piece).is_ok() {}
    }
}
