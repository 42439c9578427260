//! Links: how long transfers take, and that unread bytes stay with the sender.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::SockRef;
use weir_bench::client::Form;
use weir_workload::{Link, Scenario};

use crate::rig::{Counter, direct, nowhere, plan, run_until, total};
use crate::support::{TestOrigin, hits};

fn with_link(mut scenario: Scenario, link: Link) -> Scenario {
    scenario.clients.link = Some(link);
    scenario
}

fn link(down_bits_per_s: Option<u64>, delay_ms: f64) -> Link {
    Link {
        down_bits_per_s,
        up_bits_per_s: down_bits_per_s,
        delay_ms,
        loss: 0.0,
    }
}

#[test]
fn response_takes_at_least_its_transmission_time_on_the_link() {
    // 10 000 bytes of content at 400 kbit/s are 0.2 s, its head a few milliseconds
    let scenario = hits(&[
        "workload.connections=2",
        "workload.targets=2",
        "workload.duration=4s",
    ]);
    let scenario = with_link(scenario, link(Some(400_000), 0.0));
    let served = TestOrigin::new(scenario.clone());
    let result = direct(&served, &scenario);
    let times = &result.phases[1].response_time.all;
    assert!(times.count() >= 8, "{}", times.count());
    let least = times.min_us().expect("some");
    assert!(least >= 200_000, "{least}");
    let median = times.quantile_us(0.5);
    assert!((200_000..240_000).contains(&median), "{median}");
    assert_eq!(total(&result).client.wrong_count(), 0);
}

#[test]
fn new_connection_pays_link_delay_four_times_a_persistent_one_twice() {
    // a new connection: two to set it up, one for the request, one for the response
    let assignments = [
        "workload.connections=2",
        "workload.targets=2",
        "workload.duration=1s",
        "clients.keep_alive=false",
    ];
    let scenario = with_link(hits(&assignments), link(None, 20.0));
    let served = TestOrigin::new(scenario.clone());
    let result = direct(&served, &scenario);
    let times = &result.phases[1].response_time;
    let (least, connect) = (
        times.all.min_us().expect("some"),
        times.connect.min_us().expect("some"),
    );
    assert!((80_000..110_000).contains(&least), "{least}");
    assert!((40_000..60_000).contains(&connect), "{connect}");
    // one that is kept: only the last two
    let scenario = with_link(hits(&assignments[..3]), link(None, 20.0));
    let served = TestOrigin::new(scenario.clone());
    let least = direct(&served, &scenario).phases[1]
        .response_time
        .all
        .min_us();
    assert!(
        (40_000..60_000).contains(&least.expect("some")),
        "{least:?}"
    );
}

/// Answers one request, for ever, and counts what the kernel has taken.
fn send_for_ever(mut stream: TcpStream, counter: &Counter, stop_at: u64) {
    // bytes on this side do not count
    SockRef::from(&stream)
        .set_send_buffer_size(4096)
        .expect("a small buffer");
    let mut request = [0; 4096];
    let _ = stream.read(&mut request);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    let mut piece = &head[..];
    let content = [b'x'; 1024];
    while let Ok(bytes) = stream.write(piece) {
        counter.add(bytes as u64, stop_at);
        piece = &content;
    }
}

#[test]
fn slow_link_applies_backpressure_to_the_sender() {
    const STOP_AT: u64 = 150_000;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server: SocketAddr = listener.local_addr().expect("its address");
    let counter = Counter::default();
    let scenario = hits(&["workload.connections=2", "workload.targets=1"]);
    let scenario = with_link(scenario, link(Some(400_000), 10.0));
    let plan = plan(
        &scenario,
        nowhere(),
        Form::Direct {
            servers: vec![server],
        },
    );
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().expect("a client");
            send_for_ever(stream, &counter, STOP_AT);
        });
        run_until(&plan, &counter.stop)
    });
    let read = total(&result).client.content_bytes;
    let seconds = result.phases[0].seconds();
    // in the receiver's buffer, two packets of it being double for the kernel's own use, and in the
    // sender's too
    let unread = STOP_AT - read.min(STOP_AT);
    assert!(unread < 24_000, "{unread} bytes sent and not taken");
    let rate = read as f64 / seconds;
    // never faster than the link, and slower only where the generator says that it could not keep
    // up
    let says_so = result
        .health
        .reasons()
        .iter()
        .any(|reason| reason.contains("link was") || reason.contains("links were"));
    let least = if says_so { 0.0 } else { 44_000.0 };
    assert!((least..50_500.0).contains(&rate), "{rate} bytes a second");
}
