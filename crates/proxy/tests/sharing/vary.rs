//! Variants (RFC 9111 §4.1): a response is shared by those it was chosen for, and by no other.

use super::FRESH;
use crate::support::{OriginConnection, RawClient, Way, pattern};
use weir_measure::{Joined, Metric};

fn get(way: &Way, language: &str) -> String {
    way.head(
        "GET",
        "/",
        "1.1",
        &format!("Accept-Language: {language}\r\n"),
    )
}

/// Long enough not to be whole with its head; each language has its own.
fn content(language: &str) -> Vec<u8> {
    let mut content = language.as_bytes().to_vec();
    content.extend(pattern(150_000));
    content.extend(language.as_bytes());
    content
}

/// The first bytes of the response for what `hop` was asked.
fn begin(hop: &mut OriginConnection, language: &str) {
    let length = content(language).len();
    hop.send(format!(
        "{FRESH}Vary: Accept-Language\r\nContent-Length: {length}\r\n\r\n{language}"
    ));
}

/// The rest of them.
fn end(mut hop: OriginConnection, language: &str) {
    hop.send(&content(language)[2..]);
}

fn expect_content(clients: Vec<RawClient>, language: &str) {
    for mut client in clients {
        assert!(
            client.read_response().body == content(language),
            "{language}"
        );
    }
}

#[test]
fn in_flight_variant_is_shared_only_by_requests_it_matches() {
    Way::each(|way| {
        let (german, mut german_hop) = way.lead(&get(way, "de"));
        let mut germans = way.follow(2, &get(way, "de"));
        let french = way.follow(4, &get(way, "fr"));
        begin(&mut german_hop, "de");
        // the first response has not ended: one asks for the other variant, and those with it wait
        // for that one
        let mut french_hop = way.origin.accept();
        assert_eq!(french_hop.read_head().field("accept-language"), Some("fr"));
        way.proxy.wait_for(Metric::FollowersWaiting, 3);
        begin(&mut french_hop, "fr");
        way.proxy.wait_for(Metric::FollowersWaiting, 0);
        // both arrive: who comes now joins its own
        let french_late = way.proxy.asking(2, &get(way, "fr"));
        let german_late = way.proxy.asking(2, &get(way, "de"));
        for (client, language) in french_late
            .into_iter()
            .map(|client| (client, "fr"))
            .chain(german_late.into_iter().map(|client| (client, "de")))
        {
            let mut client = client;
            assert_eq!(
                client.read_head().cache_status(),
                "hit;ttl=60;detail=delayed"
            );
            client.expect(language);
        }
        end(french_hop, "fr");
        end(german_hop, "de");
        germans.push(german);
        expect_content(germans, "de");
        expect_content(french, "fr");
        way.origin.expect_untouched();
        way.proxy.wait_for(Metric::Joined(Joined::Collapsed), 5);
        for language in ["de", "fr"] {
            let stored = way.proxy.client().ask(get(way, language));
            assert_eq!(stored.head.cache_status(), "hit;ttl=60");
            assert!(stored.body == content(language));
        }
    });
}

#[test]
fn small_variant_is_shared_only_by_requests_it_matches() {
    Way::each(|way| {
        let answer = |language: &str| {
            format!("{FRESH}Vary: Accept-Language\r\nContent-Length: 2\r\n\r\n{language}")
        };
        let (mut german, mut hop) = way.lead(&get(way, "de"));
        let french = way.follow(3, &get(way, "fr"));
        hop.send(answer("de"));
        assert_eq!(german.read_response().text(), "de");
        // on the same connection, which is idle by now
        assert_eq!(hop.read_head().field("accept-language"), Some("fr"));
        way.proxy.wait_for(Metric::FollowersWaiting, 2);
        hop.send(answer("fr"));
        for mut client in french {
            let response = client.read_response();
            assert_eq!(response.text(), "fr");
            assert!(response.head.cache_status().starts_with("fwd=uri-miss"));
        }
        hop.expect_nothing_more();
        way.origin.expect_untouched();
    });
}

#[test]
fn followers_of_other_variants_ask_at_once_after_one_mismatch() {
    let way = Way::gateway();
    let languages = ["de", "fr", "en", "it"];
    let (_first, mut hop) = way.lead(&get(&way, "es"));
    let mut followers: Vec<(RawClient, &str)> = Vec::new();
    for language in languages {
        let two = way.follow(2, &get(&way, language));
        followers.extend(two.into_iter().map(|client| (client, language)));
    }
    begin(&mut hop, "es");
    let mut hops = vec![hop];
    // none of them waits for one of the others, but one of each language for the other one
    let mut asked: Vec<String> = Vec::new();
    for _ in languages {
        let mut hop = way.origin.accept();
        let head = hop.read_head();
        asked.push(head.field("accept-language").expect("as sent").to_owned());
        hops.push(hop);
    }
    way.proxy.wait_for(Metric::FollowersWaiting, 4);
    for (hop, language) in hops[1..].iter_mut().zip(&asked) {
        begin(hop, language);
    }
    for (mut client, language) in followers {
        client.read_head();
        client.expect(language);
    }
    asked.sort_unstable();
    assert_eq!(asked, ["de", "en", "fr", "it"]);
    way.origin.expect_untouched();
}
