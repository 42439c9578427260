//! Attacks of a few bytes (R55 to R58): the connection ends, and others are served.

use super::Clear;
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, GOAWAY, HEADERS,
    NO_ERROR, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, block, frame, get,
};
use crate::support::ClientsEnd;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Sends what `make` makes for each number until the connection is closed or GOAWAY came; the code
/// of that.
fn flood(client: &mut Frames, most: u32, make: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut bytes = Vec::new();
    for number in 0..most {
        bytes.extend(make(number));
        if bytes.len() > 32 * 1024 {
            if !client.write(&bytes) {
                break;
            }
            bytes.clear();
        }
    }
    client.write(&bytes);
    client.goaway()
}

#[track_caller]
fn expect_calm(code: Option<u32>) {
    // the reset of a connection that has closed may overtake the code
    assert!(matches!(code, Some(ENHANCE_YOUR_CALM) | None), "{code:?}");
}

#[test]
fn rapid_reset_ends_the_connection() {
    let clear = Clear::start();
    let mut client = clear.frames();
    let head = block(&get("/private"));
    let code = flood(&mut client, 20_000, |number| {
        let stream = 2 * number + 1;
        let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &head);
        let reset = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        [request, reset].concat()
    });
    expect_calm(code);
    clear.expect_others_are_served();
    let requests = clear.weir.metrics().all_requests();
    assert!(requests < 300, "{requests} requests were begun");
}

#[test]
fn resets_of_one_read_are_judged_by_the_budget_of_the_connection() {
    let clear = Clear::start();
    // GET, http and / of the static table (RFC 7541 appendix A)
    let head = b"\x82\x86\x84\x01\x06a.test";
    for (resets, ends) in [(150, None), (240, Some(ENHANCE_YOUR_CALM))] {
        let mut client = clear.frames();
        client.send(PING, 0, 0, &[1; 8]);
        client.until(PING);
        let both = (0..resets).map(|number| {
            let stream = 2 * number + 1;
            let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, head);
            [request, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
        });
        client.write(&both.collect::<Vec<_>>().concat());
        client.send(PING, 0, 0, &[2; 8]);
        match ends {
            None => assert_eq!(client.until(PING).kind, PING),
            Some(_) => expect_calm(client.goaway()),
        }
    }
    clear.expect_ends("resets", 1);
    clear.expect_others_are_served();
}

#[test]
fn streams_that_the_server_is_made_to_reset_end_the_connection() {
    let clear = Clear::start();
    let mut client = clear.frames();
    let head = block(&get("/private"));
    let code = flood(&mut client, 20_000, |number| {
        let stream = 2 * number + 1;
        let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &head);
        // a window larger than there may be one (RFC 9113 §6.9.1)
        let update = frame(WINDOW_UPDATE, 0, stream, &0x7fff_ffff_u32.to_be_bytes());
        [request, update].concat()
    });
    expect_calm(code);
    clear.expect_others_are_served();
    let requests = clear.weir.metrics().all_requests();
    assert!(requests < 300, "{requests} requests were begun");
}

/// Sends this on a connection of its own, until it has been looked at.
fn reset_some(address: SocketAddr, requests: &[u8]) {
    let mut client = Frames::connect(address);
    client.write(requests);
    client.send(PING, 0, 0, &[7; 8]);
    while client
        .next()
        .is_some_and(|it| it.kind != PING && it.kind != GOAWAY)
    {}
}

#[test]
fn resets_are_counted_over_all_connections_of_a_client() {
    let clear = Clear::with(|config| config.set("workers", "1"));
    let head = block(&get("/private"));
    let window = 0x7fff_ffff_u32.to_be_bytes();
    let requests = |resets: &dyn Fn(u32) -> Vec<u8>, count: u32| {
        let each = (0..count).map(|number| {
            let stream = 2 * number + 1;
            let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &head);
            [request, resets(stream)].concat()
        });
        each.collect::<Vec<_>>().concat()
    };
    let rapid = |stream| frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
    let made = |stream| frame(WINDOW_UPDATE, 0, stream, &window);
    let address = clear.weir.address();
    // each connection stays within its own limit, of 200
    for number in 0..100 {
        match number % 2 {
            0 => reset_some(address, &requests(&rapid, 90)),
            _ => reset_some(address, &requests(&made, 90)),
        }
    }
    let metrics = clear.weir.metrics();
    let ended = metrics.count("weir_http2_connections_total{end=\"client-resets\"}");
    assert!((1..100).contains(&ended), "{ended}");
    assert_eq!(
        metrics.count("weir_http2_connections_total{end=\"resets\"}"),
        0
    );
    // what was reset in one read with its head has begun nothing
    let begun = metrics.all_requests();
    let abandoned = metrics.count("weir_http2_abandoned_requests_total");
    assert!(begun < 200 && abandoned > 1000, "{begun}, {abandoned}");
    // requests that are not reset are served on a further connection
    let mut client = clear.frames();
    client.get(1, "/cached");
    assert_eq!(client.until(HEADERS).kind, HEADERS);
    clear.expect_others_are_served();
}

#[test]
fn requests_under_way_outlive_the_resets_of_neighbours() {
    let clear = Clear::with(|config| config.set("workers", "1"));
    std::fs::create_dir(clear.nginx.path("put")).expect("a folder");
    let mut neighbour = clear.frames();
    let upload = block(&[&get("/put/a")[1..], &[(":method", "PUT")]].concat());
    neighbour.send(HEADERS, END_HEADERS, 1, &upload);
    neighbour.send(DATA, 0, 1, b"begin");
    let head = block(&get("/private"));
    let resets = (0..90).map(|number| {
        let stream = 2 * number + 1;
        let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &head);
        let reset = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        [request, reset].concat()
    });
    let resets = resets.collect::<Vec<_>>().concat();
    let address = clear.weir.address();
    for _ in 0..30 {
        reset_some(address, &resets);
    }
    let is_over = AtomicBool::new(false);
    let goaway = thread::scope(|scope| {
        let _end = ClientsEnd::new(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                reset_some(address, &resets);
            }
        });
        // one of few resets finds nothing left
        let goaway = (1..1000).find_map(|number| {
            let stream = 2 * number + 1;
            neighbour.get(stream, "/private");
            neighbour.send(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
            neighbour.send(PING, 0, 0, &[7; 8]);
            let frame = neighbour.until(PING);
            (frame.kind == GOAWAY).then_some(frame)
        });
        goaway.expect("the connection is closed")
    });
    assert_eq!(goaway.error(), NO_ERROR);
    neighbour.send(DATA, END_STREAM, 1, b", end");
    loop {
        let frame = neighbour.next().expect("a response");
        match frame.kind {
            GOAWAY => assert_eq!(frame.error(), NO_ERROR),
            HEADERS if frame.stream == 1 => break,
            kind => assert_ne!((kind, frame.stream), (RST_STREAM, 1)),
        }
    }
    let stored = std::fs::read(clear.nginx.path("put/a")).expect("stored");
    assert_eq!(stored, b"begin, end");
    clear.expect_others_are_served();
}

#[test]
fn floods_of_frames_without_requests_end_the_connection() {
    let clear = Clear::start();
    let head = block(&get("/put/a"));
    let floods: [(&str, Vec<u8>); 5] = [
        ("control", frame(PING, 0, 0, &[0; 8])),
        ("control", frame(SETTINGS, 0, 0, &[])),
        ("control", frame(2, 0, 1, &[0, 0, 0, 0, 9])),
        (
            "window-updates",
            frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()),
        ),
        ("control", frame(0xbe, 0, 0, &[])),
    ];
    for (_, bytes) in &floods {
        let mut client = clear.frames();
        expect_calm(flood(&mut client, 20_000, |_| bytes.clone()));
    }
    // content of nothing, which goes on
    let mut client = clear.frames();
    client.send(HEADERS, END_HEADERS, 1, &head);
    expect_calm(flood(&mut client, 20_000, |_| frame(DATA, 0, 1, &[])));
    clear.expect_ends("window-updates", 1);
    clear.expect_others_are_served();
}

#[test]
fn head_of_many_frames_ends_the_connection() {
    let clear = Clear::start();
    let mut client = clear.frames();
    client.send(HEADERS, END_STREAM, 1, &block(&get("/cached")));
    let code = flood(&mut client, 20_000, |_| {
        frame(CONTINUATION, 0, 1, &block(&[("x-a", "b")]))
    });
    expect_calm(code);
    clear.expect_ends("control", 1);
    clear.expect_others_are_served();
}

#[test]
fn requests_for_unknown_protocols_end_the_connection_that_has_too_many() {
    let clear = Clear::start();
    let mut client = clear.frames();
    let [_, scheme, path, authority] = get("/cached");
    let protocol = [(":method", "CONNECT"), (":protocol", "connect-udp")];
    let head = block(&[protocol.as_slice(), &[scheme, path, authority]].concat());
    // each would get 501
    let request = |number: u32| frame(HEADERS, END_HEADERS, 2 * number + 1, &head);
    expect_calm(flood(&mut client, 20_000, request));
    clear.expect_ends("control", 1);
    clear.expect_others_are_served();
}

#[test]
fn crumbs_of_cookies_end_the_connection_that_has_too_many() {
    let clear = Clear::start();
    let request = |crumbs: usize| {
        let mut head = block(&get("/cached"));
        // `cookie` of the static table, with an empty value
        head.extend(vec![0x80 | 32; crumbs]);
        move |number: u32| frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &head)
    };
    // a browser with many cookies, for some seconds
    let mut client = clear.frames();
    for number in 0..100 {
        client.write(&request(180)(number));
        while client.until(HEADERS).stream != 2 * number + 1 {}
    }
    let mut client = clear.frames();
    expect_calm(flood(&mut client, 100, request(1500)));
    // too large, so that the library refuses them
    let mut client = clear.frames();
    expect_calm(flood(&mut client, 100, request(1700)));
    // as trailers
    let mut client = clear.frames();
    let head = block(&get("/cached"));
    let trailers = [0x80 | 32; 1600];
    expect_calm(flood(&mut client, 100, |number| {
        let stream = 2 * number + 1;
        let head = frame(HEADERS, END_HEADERS, stream, &head);
        [
            head,
            frame(HEADERS, END_HEADERS | END_STREAM, stream, &trailers),
        ]
        .concat()
    }));
    clear.expect_ends("field-lines", 3);
    clear.expect_others_are_served();
}

#[test]
fn table_entry_that_is_named_many_times_is_bounded() {
    let clear = Clear::start();
    let mut client = clear.frames();
    // `x-a: ` with a long value enters the table, then is named by one byte each time
    let mut bomb = block(&get("/cached"));
    bomb.extend([0x40, 3]);
    bomb.extend(b"x-a");
    bomb.extend([127, 128 + 1, 29]);
    bomb.extend([b'a'; 127 + 1 + 29 * 128]);
    bomb.extend([0x80 | 62; 10_000]);
    let mut answers = 0;
    for number in 0..50 {
        let stream = 2 * number + 1;
        if !client.send(HEADERS, END_HEADERS | END_STREAM, stream, &bomb) {
            break;
        }
        match client.next() {
            Some(frame) if frame.kind == GOAWAY => break,
            None => break,
            Some(_) => answers += 1,
        }
    }
    assert!(answers <= 60, "{answers}");
    let resident = resident_bytes(clear.weir.id());
    assert!(resident < 300 << 20, "{resident} bytes");
    clear.expect_others_are_served();
}

/// The memory that a process has.
fn resident_bytes(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a number") * 1024
}
