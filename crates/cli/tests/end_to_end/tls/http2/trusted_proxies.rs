//! Connections of a trusted proxy, with the requests of several clients: what is reset counts for
//! the client that it was for.

use super::Clear;
use super::frames::{
    DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE,
    RST_STREAM, block, frame, get,
};
use crate::support::{Config, content};

/// Requests at once, within the limit of a connection.
const REQUESTS: u32 = 90;

/// Batches of so many requests, more than one client may have reset at once and meanwhile.
const BATCHES: u32 = 200;

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

/// Whether the next request that is answered, or refused, is answered.
#[track_caller]
fn is_answered(client: &mut Frames) -> bool {
    loop {
        let frame = client.next().expect("the connection goes on");
        match frame.kind {
            HEADERS => return true,
            RST_STREAM => {
                assert_eq!(frame.error(), ENHANCE_YOUR_CALM);
                return false;
            }
            kind => assert_ne!(kind, GOAWAY),
        }
    }
}

/// Whether a request of a client is answered now, behind a batch. It is reset then.
#[track_caller]
fn is_served(client: &mut Frames, batch: u32, name: &str) -> bool {
    let stream = streams(batch + 1).next().expect("a stream") - 2;
    client.write(&request(stream, LARGE, &of(name)));
    let is_served = is_answered(client);
    client.write(&reset(stream));
    is_served
}

/// Sends batches until one client is refused; others are not.
#[track_caller]
fn expect_refusal(client: &mut Frames, mut send: impl FnMut(&mut Frames, u32)) {
    let refused = (0..BATCHES).find(|batch| {
        send(client, *batch);
        !is_served(client, *batch, "192.0.2.1")
    });
    let refused = refused.expect("it is refused");
    assert!(is_served(client, refused + 1, "192.0.2.2"));
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
        for batch in 0..30 {
            let both = |stream| [request(stream, LARGE, claim), reset(stream)].concat();
            client.write(&streams(batch).map(both).collect::<Vec<_>>().concat());
            let last = streams(batch + 1).next().expect("a stream") - 2;
            client.write(&request(last, LARGE, claim));
            assert!(is_answered(&mut client), "{claim:?}");
            client.write(&reset(last));
        }
    }
}

#[test]
fn requests_that_are_reset_with_their_heads_count_for_their_client() {
    let clear = trusting(|config| config);
    expect_refusal(&mut connect(&clear), |client, batch| {
        let both = |stream| [request(stream, LARGE, &of("192.0.2.1")), reset(stream)].concat();
        client.write(&streams(batch).map(both).collect::<Vec<_>>().concat());
    });
}

#[test]
fn streams_that_end_with_their_connection_count_for_no_client() {
    // one of the clients ends it by resets, or by what ends it in any case
    let clear = trusting(|config| config.set("forwarded.clients_per_connection", "1"));
    for number in 0..30 {
        let mut client = connect(&clear);
        let requests = streams(0).map(|stream| request(stream, LARGE, &of("192.0.2.1")));
        client.write(&requests.collect::<Vec<_>>().concat());
        for _ in 0..REQUESTS {
            assert!(is_answered(&mut client));
        }
        if number % 2 == 0 {
            // DATA on no stream (RFC 9113 §6.1)
            client.send(DATA, 0, 0, b"content");
        } else {
            let both = |stream| [request(stream, LARGE, &of("192.0.2.2")), reset(stream)].concat();
            let resets = (1..5).flat_map(streams).map(both);
            client.write(&resets.collect::<Vec<_>>().concat());
        }
        client.goaway();
    }
    assert!(is_served(&mut connect(&clear), 0, "192.0.2.1"));
}
