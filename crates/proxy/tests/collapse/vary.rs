//! Variants (RFC 9111 §4.1): a response is shared by those it was chosen for, and by no other.

use super::FRESH;
use crate::support::{OriginConnection, RawClient, Setup, pattern};
use weir_measure::{Joined, Metric};

fn get(setup: &Setup, language: &str) -> String {
    setup.head(
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
    Setup::each(|setup| {
        let (german, mut german_hop) = setup.lead(&get(setup, "de"));
        let mut germans = setup.follow(2, &get(setup, "de"));
        let french = setup.follow(4, &get(setup, "fr"));
        begin(&mut german_hop, "de");
        // the first response has not ended: one asks for the other variant, and those with it wait
        // for that one
        let mut french_hop = setup.origin.accept();
        assert_eq!(french_hop.read_head().field("accept-language"), Some("fr"));
        setup.proxy.wait_for(Metric::FollowersWaiting, 3);
        begin(&mut french_hop, "fr");
        setup.proxy.wait_for(Metric::FollowersWaiting, 0);
        // both arrive: who comes now joins its own
        let french_late = setup.proxy.asking(2, &get(setup, "fr"));
        let german_late = setup.proxy.asking(2, &get(setup, "de"));
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
        setup.origin.expect_untouched();
        setup.proxy.wait_for(Metric::Joined(Joined::Collapsed), 5);
        for language in ["de", "fr"] {
            let stored = setup.proxy.client().ask(get(setup, language));
            assert_eq!(stored.head.cache_status(), "hit;ttl=60");
            assert!(stored.body == content(language));
        }
    });
}

#[test]
fn small_variant_is_shared_only_by_requests_it_matches() {
    Setup::each(|setup| {
        let answer = |language: &str| {
            format!("{FRESH}Vary: Accept-Language\r\nContent-Length: 2\r\n\r\n{language}")
        };
        let (mut german, mut hop) = setup.lead(&get(setup, "de"));
        let french = setup.follow(3, &get(setup, "fr"));
        hop.send(answer("de"));
        assert_eq!(german.read_response().text(), "de");
        // on the same connection, which is idle by now
        assert_eq!(hop.read_head().field("accept-language"), Some("fr"));
        setup.proxy.wait_for(Metric::FollowersWaiting, 2);
        hop.send(answer("fr"));
        for mut client in french {
            let response = client.read_response();
            assert_eq!(response.text(), "fr");
            assert!(response.head.cache_status().starts_with("fwd=uri-miss"));
        }
        hop.expect_nothing_more();
        setup.origin.expect_untouched();
    });
}

#[test]
fn followers_of_other_variants_ask_at_once_after_one_mismatch() {
    let setup = Setup::gateway();
    let languages = ["de", "fr", "en", "it"];
    let (_first, mut hop) = setup.lead(&get(&setup, "es"));
    let mut followers: Vec<(RawClient, &str)> = Vec::new();
    for language in languages {
        let two = setup.follow(2, &get(&setup, language));
        followers.extend(two.into_iter().map(|client| (client, language)));
    }
    begin(&mut hop, "es");
    let mut hops = vec![hop];
    // none of them waits for one of the others, but one of each language for the other one
    let mut asked: Vec<String> = Vec::new();
    for _ in languages {
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        asked.push(head.field("accept-language").expect("as sent").to_owned());
        hops.push(hop);
    }
    setup.proxy.wait_for(Metric::FollowersWaiting, 4);
    for (hop, language) in hops[1..].iter_mut().zip(&asked) {
        begin(hop, language);
    }
    for (mut client, language) in followers {
        client.read_head();
        client.expect(language);
    }
    asked.sort_unstable();
    assert_eq!(asked, ["de", "en", "fr", "it"]);
    setup.origin.expect_untouched();
}
