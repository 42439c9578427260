//! The next hop breaks its response off: everybody who reads it can tell, and it is not stored as
//! if it were whole (R27).

use super::{FRESH, chunk};
use crate::support::{OriginConnection, RawClient, Setup, pattern};
use weir_measure::Metric;

/// How long what comes of the content is.
const PART: usize = 100_000;

/// How the content is framed: field lines, and the part.
fn framings() -> [(&'static str, Vec<u8>); 3] {
    let part = pattern(PART);
    [
        ("Content-Length: 200000\r\n", part.clone()),
        ("Transfer-Encoding: chunked\r\n", chunk(&part)),
        ("", part),
    ]
}

/// How the next hop breaks off.
type Break = fn(OriginConnection);

/// All read the part, then the next hop breaks off: no client has a whole response.
fn expect_cut(
    readers: Vec<RawClient>,
    hop: OriginConnection,
    broken: impl FnOnce(OriginConnection),
) {
    let mut begun = Vec::new();
    for mut reader in readers {
        let head = reader.read_head();
        assert_eq!(head.status(), 200);
        let part = if head.is_chunked() {
            reader.read_chunks_of(PART)
        } else {
            reader.read_exactly(PART)
        };
        assert!(part == pattern(PART));
        begun.push((reader, head));
    }
    broken(hop);
    for (mut reader, mut head) in begun {
        // what is left of the content is all but the part
        if let Some(length) = head.length() {
            head.text = head
                .text
                .replace(&length.to_string(), &(length - PART).to_string());
        }
        assert_eq!(reader.read_cut(&head), b"");
    }
}

#[test]
fn truncated_response_is_detectable_by_every_client_sharing_it() {
    Setup::each(|setup| {
        for (at, (framing, part)) in framings().into_iter().enumerate() {
            // content that ends with its connection is cut by a reset only
            let breaks: &[Break] = if framing.is_empty() {
                &[|hop| hop.into_peer().reset()]
            } else {
                &[drop, |hop| hop.into_peer().reset()]
            };
            for (how, broken) in breaks.iter().enumerate() {
                let path = format!("/{at}/{how}");
                let request = |version| setup.head("GET", &path, version, "");
                let (leader, mut hop) = setup.lead(&request("1.1"));
                let mut readers = setup.follow(2, &request("1.0"));
                readers.extend(setup.follow(2, &request("1.1")));
                readers.push(leader);
                hop.send(format!("{FRESH}{framing}\r\n"));
                hop.send(&part);
                setup.proxy.wait_for(Metric::FollowersWaiting, 0);
                readers.extend(setup.proxy.asking(1, &request("1.0")));
                readers.extend(setup.proxy.asking(1, &request("1.1")));
                expect_cut(readers, hop, *broken);
                assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
                // who comes now asks for all of it
                let (late, mut hop) = setup.lead(&request("1.1"));
                hop.send(format!("{FRESH}Connection: close\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n"));
                drop(late);
                hop.expect_end();
            }
        }
        setup.origin.expect_untouched();
    });
}

#[test]
fn malformed_chunk_truncates_the_response_for_clients_sharing_it() {
    Setup::each(|setup| {
        for (at, garbage) in [
            "x\r\n",
            "0\n\n",
            "ffffffffffffffffff\r\n",
            "0\r\nX y: z\r\n\r\n",
        ]
        .iter()
        .enumerate()
        {
            let path = format!("/{at}");
            let (leader, mut hop) = setup.lead(&setup.get(&path));
            let mut readers = setup.follow(1, &setup.head("GET", &path, "1.0", ""));
            readers.push(leader);
            hop.send(format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n"));
            hop.send(chunk(&pattern(PART)));
            setup.proxy.wait_for(Metric::FollowersWaiting, 0);
            readers.extend(setup.proxy.asking(1, &setup.get(&path)));
            expect_cut(readers, hop, |mut hop| {
                hop.send(garbage);
                hop.expect_end();
            });
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        }
    });
}

#[test]
fn next_hop_silence_truncates_the_response_for_clients_sharing_it() {
    let setup =
        Setup::gateway_with(|config| config.limits.next_hop_silence = crate::support::span("1s"));
    for (at, (framing, part)) in framings().into_iter().enumerate().take(2) {
        let path = format!("/{at}");
        let (leader, mut hop) = setup.lead(&setup.get(&path));
        let mut readers = setup.follow(2, &setup.get(&path));
        readers.push(leader);
        hop.send(format!("{FRESH}{framing}\r\n"));
        hop.send(&part);
        expect_cut(readers, hop, |mut hop| {
            hop.expect_end();
        });
    }
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
}

#[test]
fn truncated_response_with_strong_entity_tag_is_stored_as_a_part() {
    Setup::each(|setup| {
        let body = pattern(200_000);
        let tag = "ETag: \"a\"\r\n";
        let (leader, mut hop) = setup.lead(&setup.get("/"));
        let mut readers = setup.follow(2, &setup.get("/"));
        readers.push(leader);
        hop.send(format!("{FRESH}{tag}Content-Length: 200000\r\n\r\n"));
        hop.send(&body[..PART]);
        expect_cut(readers, hop, drop);
        setup.proxy.wait_for(Metric::PartsStored, 1);
        assert_eq!(setup.proxy.count(Metric::Stored), 0);
        // two who want the whole ask once for what is missing
        let mut first = setup.proxy.client();
        first.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert_eq!(head.field("range"), Some("bytes=100000-199999"));
        assert_eq!(head.field("if-range"), Some("\"a\""));
        let mut second = setup.follow(1, &setup.get("/")).remove(0);
        hop.send(format!(
            "HTTP/1.1 206 Partial Content\r\n{tag}Cache-Control: max-age=60\r\nContent-Range: bytes 100000-199999/200000\r\nContent-Length: 100000\r\n\r\n"
        ));
        hop.send(&body[PART..]);
        for client in [&mut first, &mut second] {
            let response = client.read_response();
            assert!(
                response.head.cache_status().starts_with("fwd=partial"),
                "{:?}",
                response.head
            );
            assert!(response.body == body);
        }
        setup.origin.expect_untouched();
        assert_eq!(
            setup.proxy.client().ask(setup.get("/")).head.cache_status(),
            "hit;ttl=60"
        );
    });
}
