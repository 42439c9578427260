//! What the origin says it was asked and what it sent, to the byte.

use std::net::Shutdown;

use weir_bench::origin::PhaseCounts;

use crate::support::{Reply, TestOrigin, Wire, hits, ports, target};

fn ask(wire: &mut Wire, served: &TestOrigin, mark: &str, more: &[&str]) -> Reply {
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    let mut lines = vec![line.as_str(), "Host: a"];
    lines.extend(more);
    let mark = format!("Weir-Bench: {mark}");
    if !mark.ends_with(' ') {
        lines.push(&mark);
    }
    wire.ask(&lines)
}

#[test]
fn request_is_counted_in_the_phase_of_its_id_and_by_kind() {
    let served = TestOrigin::new(hits(&[]));
    let mut wire = served.wire();
    let mut head_bytes = 0;
    let mut say = |mark, more: &[&str]| {
        let reply = ask(&mut wire, &served, mark, more);
        head_bytes += reply.head_bytes as u64;
    };
    say("0-0-0", &[]);
    say("0-1-0", &[]);
    say("0-0-0", &[]);
    say("", &[]);
    say("0-2-0", &[]);
    let counts = served.counts();
    let expected = PhaseCounts {
        requests: 5,
        distinct: 2,
        repeated: 1,
        without_id: 2,
        content_bytes: 50_000,
        head_bytes,
        ok: 5,
        connections_opened: 1,
        connection_requests_max: 5,
        ..PhaseCounts::default()
    };
    assert_eq!(counts.phases, [expected]);
    assert_eq!(counts.connections_open, 1);
    // without an id: of the newest phase
    ask(&mut wire, &served, "2-0-0", &["Range: bytes=0-9"]);
    ask(&mut wire, &served, "", &["Range: bytes=0-99"]);
    ask(&mut wire, &served, "1-0-0", &["If-None-Match: *"]);
    let counts = served.counts();
    assert_eq!(counts.phases.len(), 3);
    let [_, one, two] = &counts.phases[..] else {
        panic!("{counts:?}");
    };
    assert_eq!((one.requests, one.distinct, one.not_modified), (1, 1, 1));
    assert_eq!((one.content_bytes, one.connections_opened), (0, 0));
    assert_eq!((two.requests, two.distinct, two.without_id), (2, 1, 1));
    assert_eq!((two.partial, two.content_bytes), (2, 110));
    let total = counts.total();
    assert_eq!(
        total.requests,
        total.distinct + total.repeated + total.without_id
    );
    assert_eq!(served.origin.stop(), {
        let mut after = counts;
        after.connections_open = 0;
        after
    });
}

#[test]
fn client_disconnect_is_counted_with_only_the_bytes_sent() {
    let served = TestOrigin::new(hits(&["workload.size=constant(500MB)"]));
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    let mut wire = served.wire();
    wire.send(format!("{line}\r\nHost: a\r\n\r\n").as_bytes())
        .expect("sent");
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut wire.stream(), &mut first).expect("an answer");
    wire.stream().shutdown(Shutdown::Both).expect("shut");
    drop(wire);
    // hears of it when the kernel does
    while served.counts().connections_open > 0 {
        std::thread::yield_now();
    }
    let phase = &served.counts().phases[0];
    assert_eq!((phase.requests, phase.ok, phase.left), (1, 1, 1));
    assert!(phase.content_bytes < 100 << 20, "{}", phase.content_bytes);
}

#[test]
fn counts_of_all_threads_are_summed() {
    let served = TestOrigin::on(hits(&[]), ports(), 3);
    let mut wires: Vec<Wire> = (0..12).map(|_| served.wire()).collect();
    for (number, wire) in wires.iter_mut().enumerate() {
        for repeat in 0..3 {
            let number = number * 2 + repeat % 2;
            assert_eq!(
                ask(wire, &served, &format!("0-0-{number:x}"), &[]).status,
                200
            );
        }
    }
    let counts = served.counts();
    let phase = &counts.phases[0];
    assert_eq!(
        (phase.requests, phase.distinct, phase.repeated),
        (36, 24, 12)
    );
    assert_eq!(
        (phase.content_bytes, phase.connections_opened),
        (360_000, 12)
    );
    assert_eq!(counts.connections_open, 12);
}
