//! A response that turns out too large for the store while it arrives: its readers have it, within
//! bounds.

use super::{FRESH, chunk};
use crate::support::{OriginConnection, RawClient, Setup, pattern};
use weir_measure::{Aborted, Metric, NotStored};
use weir_policy::fetch::AbortKind;
use weir_proxy::config::{ByteSize, Config, Span};

fn change(config: &mut Config) {
    config.cache.largest_response = ByteSize::from_kib(64);
    config.fetch.half_closed = Span::ZERO;
}

/// Content in chunks.
fn chunks(content: &[u8]) -> Vec<u8> {
    content.chunks(40_000).flat_map(chunk).collect()
}

/// One whose readers have read `length` bytes, all there are, of content that goes on.
fn begun(setup: &Setup, followers: usize, content: &[u8]) -> (Vec<RawClient>, OriginConnection) {
    let (leader, mut hop) = setup.lead(&setup.get("/"));
    let mut readers = setup.follow(followers, &setup.get("/"));
    readers.push(leader);
    hop.send(format!(
        "{FRESH}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    hop.send(chunks(content));
    for reader in &mut readers {
        assert_eq!(reader.read_head().status(), 200);
        assert!(reader.read_chunks_of(content.len()) == content);
    }
    (readers, hop)
}

/// All of `content` comes and is read, with no reader further behind than the proxy holds content.
fn in_step(
    mut hop: OriginConnection,
    readers: &mut [RawClient],
    content: &[u8],
) -> OriginConnection {
    for piece in content.chunks(500_000) {
        let sending = hop.sending(chunks(piece));
        for reader in &mut *readers {
            assert!(reader.read_chunks_of(piece.len()) == piece);
        }
        hop = sending.join().expect("sent");
    }
    hop
}

#[test]
fn response_that_outgrows_the_store_is_forwarded_whole_and_not_stored() {
    Setup::each_with(change, |setup| {
        let body = pattern(2_000_000);
        // as much as may be kept, then one byte more
        let (mut readers, mut hop) = begun(setup, 1, &body[..65_536]);
        let joined = setup.proxy.asking(1, &setup.get("/")).remove(0).read_head();
        assert_eq!(joined.cache_status(), "hit;ttl=60;detail=delayed");
        assert_eq!(setup.proxy.count(Metric::PassedThrough), 0);
        hop.send(chunk(&body[65_536..65_537]));
        for reader in &mut readers {
            assert!(reader.read_chunks_of(1) == body[65_536..65_537]);
        }
        assert_eq!(setup.proxy.count(Metric::PassedThrough), 1);
        // no other request joins
        let (_newcomer, mut other) = setup.lead(&setup.get("/"));
        let mut hop = in_step(hop, &mut readers, &body[65_537..]);
        hop.send("0\r\n\r\n");
        for reader in &mut readers {
            assert!(reader.read_chunks().0.is_empty());
        }
        hop.expect_end();
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        assert_eq!(setup.proxy.count(Metric::Stored), 0);
        other.send(format!(
            "{FRESH}Connection: close\r\nContent-Length: 0\r\n\r\n"
        ));
        setup.proxy.wait_for(Metric::StoreEntries, 1);
        setup
            .proxy
            .wait_for(Metric::ResponsesNotStored(NotStored::TooLarge), 1);
    });
}

#[test]
fn reader_too_far_behind_is_truncated_without_delaying_the_others() {
    let setup = Setup::gateway_with(change);
    let body = pattern(6_000_000);
    let mut stopped = RawClient::connect_small(setup.proxy.address());
    let (mut readers, hop) = begun(&setup, 0, &body[..10]);
    stopped.send(setup.get("/"));
    assert_eq!(
        stopped.read_head().cache_status(),
        "hit;ttl=60;detail=delayed"
    );
    // another one keeps up with the fastest
    let mut close = setup.proxy.asking(1, &setup.get("/")).remove(0);
    close.read_head();
    close.read_chunks_of(10);
    readers.push(close);
    let mut hop = in_step(hop, &mut readers, &body[10..]);
    hop.send("0\r\n\r\n");
    for reader in &mut readers {
        assert!(reader.read_chunks().0.is_empty());
    }
    hop.expect_end();
    // what its kernel had taken, then what it was about to be given, then an honest end
    let (rest, _) = stopped.read_to_end();
    assert!(rest.len() < body.len());
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    assert_eq!(setup.proxy.count(Metric::PassedThrough), 1);
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
}

#[test]
fn response_that_outgrew_the_store_is_aborted_without_readers() {
    // it is not kept without readers, whatever is configured
    for abort in [AbortKind::Finish, AbortKind::Squid, AbortKind::Value] {
        let setup = Setup::gateway_with(|config| {
            change(config);
            config.fetch.abort = abort;
            config.fetch.squid_min = ByteSize::from_gib(1);
        });
        let (readers, mut hop) = begun(&setup, 1, &pattern(100_000));
        assert_eq!(setup.proxy.count(Metric::PassedThrough), 1);
        drop(readers);
        hop.expect_end();
        setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
        let stopped = Metric::FetchesAbandoned(Aborted::StopNotKept);
        assert_eq!(setup.proxy.count(stopped), 1);
    }
}

#[test]
fn background_fetch_is_aborted_when_it_outgrows_the_store() {
    // it is judged before it outgrows the store, and goes on
    let setup = Setup::gateway_with(|config| {
        change(config);
        config.fetch.abort = AbortKind::Finish;
        config.fetch.background_rate = ByteSize::from_gib(1);
    });
    let (readers, mut hop) = begun(&setup, 1, &pattern(1000));
    drop(readers);
    let on = Metric::FetchesAbandoned(Aborted::GoOnAlways);
    setup.proxy.wait_for(on, 1);
    hop.send(chunks(&pattern(100_000)));
    hop.expect_end();
    setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
}
