//! When a response is over for the numbers: when the kernel has its last byte.

use crate::support::{RawClient, Running, ScriptedOrigin, pattern};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use weir_measure::{HopOutcome, Metric, Source, Verdict};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// More than socket buffers hold of responses of 2 KiB.
const HITS: u64 = 12_000;

#[test]
fn time_of_a_hit_ends_when_the_kernel_has_its_last_byte() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let stream = TcpStream::connect(proxy.address()).expect("the proxy listens");
    let mut sender = stream.try_clone().expect("a socket");
    let mut client = RawClient::from_stream(stream);
    client.send(GET);
    let body = String::from_utf8_lossy(&pattern(2000)).into_owned();
    origin.answer(&*format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.read_response();
    let sending = std::thread::spawn(move || {
        for _ in 0..HITS {
            sender.write_all(GET.as_bytes()).expect("sent");
        }
    });
    let figures = || {
        let snapshot = proxy.snapshot();
        let hits = snapshot.get(Metric::Requests(Verdict::Hit));
        (hits, snapshot.response_time(Source::Store).count())
    };
    // the kernel takes no more: those that wait for it are counted, and take time
    let began = std::time::Instant::now();
    let mut same = 0;
    let mut before = figures();
    while same < 100 {
        assert!(began.elapsed() < crate::support::PATIENCE, "{before:?}");
        std::thread::yield_now();
        let now = figures();
        let is_stuck = now == before && now.0 > now.1;
        same = if is_stuck { same + 1 } else { 0 };
        before = now;
    }
    assert!(before.0 < HITS, "{before:?}");
    for _ in 0..HITS {
        assert_eq!(client.read_response().status(), 200);
    }
    sending.join().expect("sent");
    proxy.wait_for(Metric::Requests(Verdict::Hit), HITS);
    let began = std::time::Instant::now();
    while figures() != (HITS, HITS) {
        assert!(
            began.elapsed() < crate::support::PATIENCE,
            "{:?}",
            figures()
        );
        std::thread::yield_now();
    }
}

#[test]
fn refusing_next_hop_stays_avoided_after_a_reload() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let _answering = origin.answering(|_, _| {
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
            .into()
    });
    // bound and not listening: it refuses
    let closed =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    closed
        .bind(&std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
        .expect("a port");
    let dead = closed.local_addr().expect("bound");
    let dead = dead.as_socket().expect("an address");
    let proxy = Running::gateway_with(address, |config| {
        let hop = format!("http://{dead}").parse().expect("a next hop");
        config.routes[0].next_hops.insert(0, hop);
    });
    let ask = |count: usize| {
        for _ in 0..count {
            assert_eq!(proxy.client().ask(GET).status(), 200);
        }
        proxy.count(Metric::NextHopConnections(HopOutcome::Refused))
    };
    assert_eq!(ask(4), 1, "it rests after the first refusal");
    // by another number
    proxy.reload(|config| config.routes[0].next_hops.reverse());
    assert_eq!(ask(4), 1, "it was asked again after the reload");
}
