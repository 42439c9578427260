//! What one connection may take.

use super::super::attacks::resident_bytes;
use super::Clear;
use super::frames::{
    CANCEL, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, HEADERS, INITIAL_WINDOW_SIZE,
    PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM, WINDOW_UPDATE, block, frame, get,
};
use crate::support::content;
use std::time::{Duration, Instant};

/// The head of a response with status 200 begins with its place in the static table (RFC 7541
/// appendix A).
const STATUS_200: u8 = 0x88;

#[test]
fn stream_101_is_refused() {
    let clear = Clear::start();
    clear.nginx.file("large", &content(3, 100_000));
    // no stream ends, as none may send content
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    for stream in (1..=201).step_by(2) {
        client.get(stream, "/large");
    }
    let mut heads = 0;
    loop {
        let frame = client.next().expect("a frame");
        match frame.kind {
            HEADERS => heads += 1,
            RST_STREAM => {
                assert_eq!((frame.stream, frame.error()), (201, REFUSED_STREAM));
                break;
            }
            DATA => assert_eq!(frame.payload.len(), 0),
            _ => {}
        }
    }
    while heads < 100 {
        assert_eq!(client.until(HEADERS).kind, HEADERS);
        heads += 1;
    }
    clear.expect_others_are_served();
}

#[test]
fn requests_of_all_connections_are_bounded_beside_one_of_each() {
    // two beside one of each connection, at one worker
    let clear = Clear::with(|config| config.set("limits.clients_max", "2").set("workers", "1"));
    clear.nginx.file("large", &content(3, 100_000));
    let stopped = || Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    let (mut first, mut second) = (stopped(), stopped());
    for stream in [1, 3, 5] {
        first.get(stream, "/large");
        assert_eq!(first.until(HEADERS).stream, stream);
    }
    first.get(7, "/large");
    let reset = first.until(RST_STREAM);
    assert_eq!((reset.stream, reset.error()), (7, REFUSED_STREAM));
    second.get(1, "/large");
    assert_eq!(second.until(HEADERS).stream, 1);
    second.get(3, "/large");
    let reset = second.until(RST_STREAM);
    assert_eq!((reset.stream, reset.error()), (3, REFUSED_STREAM));
    clear.expect_resets("streams", 2);
    // a place is given back once its request has ended
    first.send(RST_STREAM, 0, 3, &8_u32.to_be_bytes());
    let mut stream = 9;
    first.get(stream, "/large");
    loop {
        let frame = first.next().expect("a frame");
        match frame.kind {
            HEADERS => break assert_eq!(frame.stream, stream),
            RST_STREAM => {
                assert_eq!((frame.stream, frame.error()), (stream, REFUSED_STREAM));
                stream += 2;
                first.get(stream, "/large");
            }
            _ => {}
        }
    }
}

#[test]
fn stored_responses_that_are_not_read_are_not_copied() {
    const CONNECTIONS: u64 = 10;
    const STREAMS: u32 = 100;
    const CONTENT: usize = 16_000;
    let clear = Clear::with(|config| config.set("workers", "1"));
    clear.nginx.file("stored/small", &content(3, CONTENT));
    let url = clear.weir.url("/stored/small");
    Clear::curl().fetch(&url).reply().expect(200);
    let before = resident_bytes(clear.weir.id());
    let authority = clear.weir.address().to_string();
    let clients: Vec<Frames> = (0..CONNECTIONS)
        .map(|_| {
            let settings = [(INITIAL_WINDOW_SIZE, 0)];
            let mut client = Frames::with_settings(clear.weir.address(), &settings);
            for number in 0..STREAMS {
                let path = (":path", "/stored/small");
                let head = [(":method", "GET"), (":scheme", "http"), path];
                let fields = [&head[..], &[(":authority", &authority)]].concat();
                client.request(2 * number + 1, &fields);
            }
            for _ in 0..STREAMS {
                assert_eq!(client.until(HEADERS).kind, HEADERS);
            }
            client
        })
        .collect();
    let grown = resident_bytes(clear.weir.id()).saturating_sub(before);
    let copied = CONNECTIONS * u64::from(STREAMS) * CONTENT as u64;
    assert!(grown < copied * 2 / 3, "{grown} of {copied}");
    drop(clients);
    clear.expect_others_are_served();
}

/// Behind a proxy, what some users have stopped stops no upload of another one.
#[test]
fn connection_of_a_trusted_proxy_has_room_for_what_all_its_streams_may_hold() {
    let window = |trusted: &str| {
        let clear = Clear::with(|config| config.set("forwarded.trusted_proxies", trusted));
        // of the connection: it begins with 65,535 bytes (RFC 9113 §6.9.2)
        let update = clear.frames().until(WINDOW_UPDATE);
        let more = update.payload.try_into().map(u32::from_be_bytes);
        assert_eq!(update.stream, 0);
        65_535 + more.expect("4 bytes")
    };
    assert_eq!(window("[]"), 256 << 10);
    assert_eq!(window("[\"127.0.0.1\"]"), 100 * 65_535);
}

#[test]
fn connection_of_a_trusted_proxy_outlives_the_resets_of_one_of_its_users() {
    let trusted = |config: crate::support::Config| {
        let config = config.set("forwarded.trusted_proxies", "[\"127.0.0.1\"]");
        config.set("forwarded.clients_per_connection", "4")
    };
    let clear = Clear::with(trusted);
    let mut client = clear.frames();
    let mut stream = 1;
    let mut reset = |client: &mut Frames, count: u32| {
        for _ in 0..count {
            client.get(stream, "/private");
            client.send(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
            stream += 2;
        }
        // for a request that is not reset
        stream += 2;
        stream - 2
    };
    // of one client it is too many
    let next = reset(&mut client, 600);
    client.get(next, "/cached");
    while client.until(HEADERS).stream != next {}
    // and 4 times as many are
    reset(&mut client, 4000);
    let code = client.goaway();
    assert!(matches!(code, Some(ENHANCE_YOUR_CALM) | None), "{code:?}");
    clear.expect_ends("resets", 1);
    clear.expect_others_are_served();
}

#[test]
fn client_behind_a_trusted_proxy_that_resets_too_much_is_refused_and_others_are_not() {
    let trusted = |config: crate::support::Config| {
        let config = config.set("forwarded.trusted_proxies", "[\"127.0.0.1\"]");
        config.set("workers", "1")
    };
    let clear = Clear::with(trusted);
    clear.nginx.file("stored/large", &content(3, 100_000));
    let url = clear.weir.url("/stored/large");
    let stored = Clear::curl().args(["-H", "Host: a.test"]);
    stored.fetch(&url).reply().expect(200);
    // no response ends, as none may have content
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    let get_for = |stream, user| {
        let fields = [&get("/stored/large")[..], &[("x-forwarded-for", user)]].concat();
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&fields))
    };
    let answered = |client: &mut Frames, streams: &[u32]| loop {
        let frame = client.next().expect("the connection goes on");
        match frame.kind {
            HEADERS if streams.contains(&frame.stream) => break true,
            RST_STREAM if streams.contains(&frame.stream) => {
                assert_eq!(frame.error(), ENHANCE_YOUR_CALM);
                break false;
            }
            _ => {}
        }
    };
    let reset = |stream| frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
    // what was used up comes back by the time that a busy machine takes for a few requests: so most
    // are reset at once, and those that are not come right behind
    let has_been_refused = (0..100).any(|batch| {
        let of_batch = |number: u32| 2 * (90 * batch + number) + 1;
        let (given_up, kept) = (0..60, 60..90);
        let mut frames = Vec::new();
        for stream in given_up.map(of_batch) {
            frames.extend(get_for(stream, "192.0.2.1"));
            frames.extend(reset(stream));
        }
        let kept: Vec<u32> = kept.map(of_batch).collect();
        for stream in &kept {
            frames.extend(get_for(*stream, "192.0.2.1"));
        }
        client.write(&frames);
        let refused = kept
            .iter()
            .filter(|_| !answered(&mut client, &kept))
            .count();
        let resets = kept.iter().map(|stream| reset(*stream));
        client.write(&resets.collect::<Vec<_>>().concat());
        refused > 0
    });
    assert!(has_been_refused);
    client.write(&get_for(100_001, "192.0.2.2"));
    assert!(answered(&mut client, &[100_001]));
    let ends = clear.weir.metrics();
    assert_eq!(
        ends.count("weir_http2_connections_total{end=\"client-resets\"}"),
        0
    );
    assert!(ends.count("weir_http2_resets_total{cause=\"client-resets\"}") > 0);
}

#[test]
fn streams_that_time_out_here_do_not_end_the_connection() {
    let clear = Clear::with(|config| config.set("limits.client_silence", "\"100ms\""));
    clear.nginx.file("large", &content(3, 100_000));
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    let mut stream = 1;
    // more than may be reset at once for errors of the client
    for _ in 0..3 {
        for _ in 0..90 {
            client.get(stream, "/large");
            stream += 2;
        }
        for _ in 0..90 {
            let reset = client.until(RST_STREAM);
            assert_eq!((reset.kind, reset.error()), (RST_STREAM, CANCEL));
        }
    }
    client.get(stream, "/large");
    assert_eq!(client.until(HEADERS).kind, HEADERS);
    clear.expect_ends("resets", 0);
}

#[test]
fn window_that_stays_closed_ends_its_stream_alone() {
    let clear = Clear::with(|config| config.set("limits.client_silence", "\"300ms\""));
    clear.nginx.file("large", &content(3, 100_000));
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    for (stream, path) in [(1, "/large"), (3, "/cached")] {
        client.get(stream, path);
        let reset = client.until(RST_STREAM);
        assert_eq!(reset.stream, stream, "{reset:?}");
    }
    clear.expect_resets("window", 2);
    // the connection is as good as before
    client.send(WINDOW_UPDATE, 0, 0, &1_000_000_u32.to_be_bytes());
    client.get(5, "/cached");
    assert_eq!(client.until(HEADERS).stream, 5);
    client.send(WINDOW_UPDATE, 0, 5, &1000_u32.to_be_bytes());
    let data = client.until(DATA);
    assert_eq!(
        (data.payload.len(), data.flags & END_STREAM),
        (32, END_STREAM)
    );
}

#[test]
fn client_that_takes_nothing_of_its_connection_is_cut() {
    // from the store, and from the next hop
    for path in ["/stored/large", "/large"] {
        takes_nothing_of(path);
    }
}

fn takes_nothing_of(path: &str) {
    let clear = Clear::with(|config| config.set("limits.client_silence", "\"300ms\""));
    clear.nginx.file(&path[1..], &content(3, 6 << 20));
    let url = clear.weir.url(path);
    let fetch = || Clear::curl().args(["-H", "Host: a.test"]).fetch(&url);
    fetch().reply().expect(200);
    // windows that stop nothing, and a response that is behind a more urgent one: its own limit
    // does not run
    let windows = [(INITIAL_WINDOW_SIZE, (1 << 31) - 1)];
    let mut client = Frames::with_settings(clear.weir.address(), &windows).with_small_buffer();
    client.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    for (stream, priority) in [(1, "u=0"), (3, "u=5")] {
        let fields = [&get(path)[..], &[("priority", priority)]].concat();
        client.request(stream, &fields);
    }
    clear.expect_ends("silent", 1);
    clear.expect_others_are_served();
    drop(client);
}

#[test]
fn window_of_a_connection_that_stays_closed_ends_all_its_streams() {
    // by an exchange each, as what is on disk alone, or comes from a next hop, has
    let clear = Clear::with(|config| config.set("limits.client_silence", "\"500ms\""));
    clear.nginx.file("large", &content(3, 1 << 20));
    let windows = [(INITIAL_WINDOW_SIZE, (1 << 31) - 1)];
    let mut client = Frames::with_settings(clear.weir.address(), &windows);
    let priorities = ["u=5", "u=0", "u=7", "u=7", "u=3"];
    for (stream, priority) in (1..).step_by(2).zip(priorities) {
        let fields = [&get("/large")[..], &[("priority", priority)]].concat();
        client.request(stream, &fields);
    }
    let mut ended: Vec<u32> = priorities.map(|_| client.until(RST_STREAM).stream).into();
    ended.sort_unstable();
    assert_eq!(ended, [1, 3, 5, 7, 9]);
    clear.expect_resets("window", 5);
    clear.expect_others_are_served();
}

#[test]
fn window_that_is_opened_byte_by_byte_ends_its_stream() {
    let clear = Clear::with(|config| config.set("limits.client_silence", "\"500ms\""));
    clear.nginx.file("large", &content(3, 100_000));
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get(1, "/large");
    client.until(HEADERS);
    let mut got = 0;
    loop {
        client.send(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
        let frame = client.next().expect("a frame");
        match frame.kind {
            DATA => got += frame.payload.len(),
            RST_STREAM => break,
            _ => {}
        }
        assert!(got < 100_000, "the response is served byte by byte");
    }
    clear.expect_resets("window", 1);
    clear.expect_others_are_served();
}

#[test]
fn windows_that_are_opened_byte_by_byte_have_their_bytes_sent_together() {
    let clear = Clear::start();
    clear.nginx.file("large", &content(3, 100_000));
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get(1, "/large");
    client.until(HEADERS);
    let (mut got, mut frames) = (0, 0);
    for opened in [300, 600, 900] {
        let update = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
        client.write(&update.repeat(300));
        while got < opened {
            got += client.until(DATA).payload.len();
            frames += 1;
        }
        assert_eq!(got, opened);
    }
    // 200 and what the time has permitted since; three that have waited at least
    assert!(frames < 450, "{frames} frames");
    clear.expect_others_are_served();
}

/// To be sent the rest of each window, and to open the window by as little for it, is to have ever
/// more short frames, of which a connection has a few.
#[test]
fn window_that_is_opened_for_each_frame_stops_no_response() {
    const SIZE: usize = 32 << 20;
    let clear = Clear::start();
    clear.nginx.file("stored/large", &content(3, SIZE));
    let url = clear.weir.url("/stored/large");
    let stored = Clear::curl().args(["-H", "Host: a.test"]);
    stored.fetch(&url).reply().expect(200);
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 16_399)]);
    // that of the connection stops nothing
    client.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    client.get(1, "/stored/large");
    client.until(HEADERS);
    let began = Instant::now();
    let (mut got, mut unopened) = (0, 0);
    while got < SIZE {
        let data = client.until(DATA).payload.len();
        got += data;
        unopened += u32::try_from(data).expect("a frame");
        // all but what a whole frame has left
        if unopened > 16_000 {
            client.send(WINDOW_UPDATE, 0, 1, &unopened.to_be_bytes());
            unopened = 0;
        }
    }
    // less than 2.5 ms for each of 2000 windows, where the shortest wait is 20
    let elapsed = began.elapsed();
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[test]
fn small_windows_are_used_whole() {
    let clear = Clear::start();
    let large = content(3, 30_000);
    clear.nginx.file("large", &large);
    let mut client = Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 100)]);
    client.get(1, "/large");
    let mut got = Vec::new();
    loop {
        let data = client.until(DATA);
        got.extend_from_slice(&data.payload);
        if data.flags & END_STREAM > 0 {
            break;
        }
        assert_eq!(data.payload.len(), 100);
        client.send(WINDOW_UPDATE, 0, 1, &100_u32.to_be_bytes());
    }
    assert!(got == large);
}

#[test]
fn head_of_too_many_fields_or_bytes_gets_431() {
    let clear = Clear::start();
    let names: Vec<String> = (0..200).map(|number| format!("x-{number}")).collect();
    let mut many = get("/cached").to_vec();
    many.extend(names.iter().map(|name| (name.as_str(), "a")));
    let long = "a".repeat(9000);
    let mut large = get("/cached").to_vec();
    large.extend(names[..8].iter().map(|name| (name.as_str(), long.as_str())));
    let mut client = clear.frames();
    for (stream, fields) in [(1, &many), (3, &large)] {
        let block = block(fields);
        let mut pieces = block.chunks(16_000).peekable();
        let mut kind = HEADERS;
        while let Some(piece) = pieces.next() {
            let ends = if pieces.peek().is_none() { 4 } else { 0 };
            let first = if kind == HEADERS { END_STREAM } else { 0 };
            client.write(&frame(kind, ends | first, stream, piece));
            kind = super::frames::CONTINUATION;
        }
        let head = client.until(HEADERS);
        assert_eq!(head.stream, stream, "{head:?}");
        assert_ne!(head.payload[0], STATUS_200);
    }
    assert_eq!(
        clear.weir.metrics().count("weir_next_hop_sent_bytes_total"),
        0
    );
    clear.expect_others_are_served();
}

#[test]
fn head_that_does_not_end_ends_the_connection_in_time() {
    let clear = Clear::with(|config| config.set("limits.request_head", "\"300ms\""));
    let mut client = clear.frames();
    client.send(HEADERS, END_STREAM, 1, &block(&get("/cached")));
    assert_eq!(client.goaway(), Some(ENHANCE_YOUR_CALM));
    clear.expect_ends("head", 1);
    // a preface that does not go on
    let mut client = Frames::connect(clear.weir.address());
    client.get(1, "/cached");
    client.until(HEADERS);
    drop(client);
    clear.expect_ends("client", 1);
}

#[test]
fn idle_connection_is_closed_in_time() {
    let clear = Clear::with(|config| config.set("limits.client_idle", "\"300ms\""));
    let mut client = clear.frames();
    client.get(1, "/cached");
    assert_eq!(client.goaway(), Some(0));
    clear.expect_ends("idle", 1);
}

#[test]
fn frames_that_are_none_of_http2_end_the_connection() {
    let clear = Clear::start();
    let mut client = clear.frames();
    // DATA on no stream (RFC 9113 §6.1)
    client.send(DATA, 0, 0, b"a");
    assert_eq!(client.goaway(), Some(PROTOCOL_ERROR));
    clear.expect_others_are_served();
}

#[test]
fn three_clients_that_stop_reading_leave_connections_to_others() {
    let clear = Clear::with(|config| config.behind("[\"127.0.0.1\"]"));
    clear.nginx.file("slow/large", &content(3, 1_000_000));
    // no stream takes content, so that each keeps the connection that its response comes by
    let client = |address: &str| {
        let header = format!("PROXY TCP4 {address} 192.0.2.9 1000 80\r\n");
        let closed = [(INITIAL_WINDOW_SIZE, 0)];
        Frames::behind(clear.weir.address(), &header, &closed)
    };
    let mut hostile: Vec<Frames> = (1..=3)
        .map(|number| {
            let mut client = client(&format!("192.0.2.{number}"));
            for stream in (1..=199).step_by(2) {
                client.get(stream, &format!("/slow/large?{number}-{stream}"));
            }
            client
        })
        .collect();
    // of the 300 requests at most 224 have connections: of 256, each takes half of what is left
    let held_back = "weir_connection_waits_total{reason=\"client-share\"}";
    clear
        .weir
        .until(held_back, |metrics| metrics.count(held_back) >= 76);
    let mut other = client("192.0.2.4");
    other.get(1, "/via");
    let head = other.until(HEADERS);
    assert_eq!((head.stream, head.payload[0]), (1, STATUS_200));
    let open = clear.weir.metrics().count("weir_next_hop_connections_open");
    assert!((192..=225).contains(&open), "{open}");
    // and those that wait are answered, each in its time
    for client in &mut hostile {
        assert_eq!(client.until(HEADERS).kind, HEADERS);
    }
}
