//! Connections of a trusted proxy, with the requests of several clients: what is reset counts for
//! the client that it was for.

use super::Clear;
use super::frames::{
    DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE,
    RST_STREAM, block, frame, get,
};
use crate::support::{Config, content};

/// Requests at once, within the limit of a connection.
const REQUESTS: u32 = 60;

/// Batches, or connections, whose requests are more than one client may have reset at once, and
/// meanwhile.
const MANY: u32 = 3 * 2000 / REQUESTS;

/// Resets right before a request, as many as are permitted in 30 ms: of those that are refused
/// nothing is taken, so that one more is permitted every 3 ms.
const RIGHT_BEFORE: usize = 10;

/// How often a client sends so many before it is refused, at most. What is permitted while one is
/// on its way depends on how busy the machine is.
const TRIES: u32 = 200;

/// A response that is not sent at once.
const LARGE: &str = "/stored/large";

/// A gateway that trusts its client, with a stored response. It has one worker, since that counts
/// for itself.
fn trusting(change: impl FnOnce(Config) -> Config) -> Clear {
    let clear = Clear::with(|config| {
        let config = config.set("forwarded.trusted_proxies", "[\"127.0.0.1\"]");
        change(config.set("workers", "1"))
    });
    clear.nginx.file("stored/large", &content(3, 100_000));
    let stored = Clear::curl().args(["-H", "Host: a.test"]);
    stored.fetch(&clear.weir.url(LARGE)).reply().expect(200);
    clear
}

/// A connection on which no response ends that has content.
fn connect(clear: &Clear) -> Frames {
    Frames::with_settings(clear.weir.address(), &[(INITIAL_WINDOW_SIZE, 0)])
}

/// The streams of a batch, behind which one is left.
fn streams(batch: u32) -> impl Iterator<Item = u32> {
    (0..REQUESTS).map(move |number| 2 * ((REQUESTS + 1) * batch + number) + 1)
}

fn request(stream: u32, path: &str, claim: &[(&str, &str)]) -> Vec<u8> {
    let fields = [&get(path)[..], claim].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&fields))
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

fn of(client: &str) -> [(&'static str, &str); 1] {
    [("x-forwarded-for", client)]
}

/// The stream of the next request that is answered, or refused, and whether it is answered.
#[track_caller]
fn next_decided(client: &mut Frames) -> (u32, bool) {
    loop {
        let frame = client.next().expect("the connection goes on");
        match frame.kind {
            HEADERS => return (frame.stream, true),
            RST_STREAM => {
                assert_eq!(frame.error(), ENHANCE_YOUR_CALM);
                return (frame.stream, false);
            }
            kind => assert_ne!(kind, GOAWAY),
        }
    }
}

/// Whether the request on a stream is answered, or refused. Of those before it that are reset, some
/// may be decided before their reset comes.
#[track_caller]
fn is_answered(client: &mut Frames, stream: u32) -> bool {
    loop {
        match next_decided(client) {
            (decided, is_answered) if decided == stream => return is_answered,
            _ => {}
        }
    }
}

/// The stream behind a batch.
fn last(batch: u32) -> u32 {
    2 * (REQUESTS + 1) * batch + 2 * REQUESTS + 1
}

/// Requests on these streams, each with its reset.
fn reset_requests(streams: impl Iterator<Item = u32>, claim: &[(&str, &str)]) -> Vec<u8> {
    let both = |stream| [request(stream, LARGE, claim), reset(stream)].concat();
    streams.flat_map(both).collect()
}

/// Whether a request with this claim is answered that comes right behind the `before` of a batch.
/// It is reset then.
#[track_caller]
fn is_served(client: &mut Frames, batch: u32, before: Vec<u8>, claim: &[(&str, &str)]) -> bool {
    let stream = last(batch);
    client.write(&[before, request(stream, LARGE, claim)].concat());
    let is_served = is_answered(client, stream);
    client.write(&reset(stream));
    is_served
}

#[test]
fn proxy_that_names_no_client_is_refused_nothing_for_what_its_clients_have_reset() {
    let clear = trusting(|config| config);
    let claims: [&[(&str, &str)]; 3] = [
        &[],
        &[("x-forwarded-for", "unknown")],
        &[("forwarded", "for=_hidden")],
    ];
    for claim in claims {
        let mut client = connect(&clear);
        for batch in 0..MANY {
            let before = reset_requests(streams(batch), claim);
            assert!(is_served(&mut client, batch, before, claim), "{claim:?}");
        }
    }
}

#[test]
fn requests_that_are_reset_with_their_heads_count_for_their_client() {
    let clear = trusting(|config| config);
    let mut client = connect(&clear);
    let [one, another] = ["192.0.2.1", "192.0.2.2"].map(of);
    for batch in 0..MANY {
        client.write(&reset_requests(streams(batch), &one));
    }
    let refused = (MANY..MANY + TRIES).find(|batch| {
        let before = reset_requests(streams(*batch).take(RIGHT_BEFORE), &one);
        !is_served(&mut client, *batch, before, &one)
    });
    let refused = refused.expect("it is refused");
    assert!(is_served(&mut client, refused + 1, Vec::new(), &another));
}

#[test]
fn streams_that_end_with_their_connection_count_for_no_client() {
    // one of the clients ends it by resets, or by what ends it in any case
    let clear = trusting(|config| config.set("forwarded.clients_per_connection", "1"));
    let [one, another] = ["192.0.2.1", "192.0.2.2"].map(of);
    for number in 0..MANY {
        let mut client = connect(&clear);
        let requests = streams(0).flat_map(|stream| request(stream, LARGE, &one));
        client.write(&requests.collect::<Vec<_>>());
        for _ in 0..REQUESTS {
            assert!(next_decided(&mut client).1);
        }
        if number % 2 == 0 {
            // DATA on no stream (RFC 9113 §6.1)
            client.send(DATA, 0, 0, b"content");
        } else {
            let resets = (1..8).flat_map(|batch| reset_requests(streams(batch), &another));
            client.write(&resets.collect::<Vec<_>>());
        }
        client.goaway();
    }
    assert!(is_served(&mut connect(&clear), 0, Vec::new(), &one));
}
