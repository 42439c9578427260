//! What varies, on disk (RFC 9111 §4.1).

use super::setup::DiskSetup;
use crate::support::Representation;

/// The variant for a language.
fn variant(language: &str, length: u64) -> Representation {
    let mut what = Representation::new("/a", length).with_fields(
        "Cache-Control: max-age=3600\r\nVary: Accept-Language\r\nConnection: close\r\n",
    );
    what.version = language.bytes().map(u64::from).sum();
    what.tag = Some(format!("\"{language}\""));
    what
}

fn accept(language: &str) -> String {
    format!("Accept-Language: {language}\r\n")
}

fn store(setup: &DiskSetup, language: &str, length: u64) {
    let what = variant(language, length);
    let before = setup.proxy().count(weir_measure::Metric::DiskStored);
    let mut client = setup.proxy().client();
    client.send(what.get(&accept(language)));
    let (mut hop, _) = setup.origin.answer(what.head());
    let head = client.read_head();
    assert!(head.cache_status().contains("fwd="), "{head:?}");
    let length = usize::try_from(what.length).expect("small");
    let content = hop.send_while(&what.bytes(0, what.length), || client.read_exactly(length));
    what.check(0, &content);
    setup.rest();
    setup.written(before + 1);
}

fn hit(setup: &DiskSetup, language: &str, length: u64) {
    let response = setup.hit(&variant(language, length), &accept(language));
    variant(language, length).check_whole(&response);
}

#[test]
fn each_variant_is_a_hit_for_its_own_request_after_a_restart() {
    let mut setup = DiskSetup::simulated(|_| {});
    store(&setup, "de", 1000);
    store(&setup, "fr", 2_000_000);
    setup.written(3);
    setup.restart();
    hit(&setup, "fr", 2_000_000);
    // another one joins those on disk, without all of them being in memory
    store(&setup, "it", 500);
    setup.kill();
    for (language, length) in [("de", 1000), ("it", 500), ("fr", 2_000_000)] {
        hit(&setup, language, length);
    }
    let mut client = setup.proxy().client();
    client.send(variant("es", 10).get(&accept("es")));
    let (_hop, _) = setup.origin.answer(variant("es", 10).whole());
    let response = client.read_response();
    assert!(response.verdict().starts_with("fwd=vary-miss"));
}

#[test]
fn purge_of_a_target_uri_covers_variants_known_only_to_the_disk() {
    let mut setup = DiskSetup::simulated(|_| {});
    store(&setup, "de", 1000);
    store(&setup, "fr", 1000);
    setup.written(3);
    setup.restart();
    setup.proxy().purge("http://a.example/a");
    // the rules come back with another variant; the old ones do not
    store(&setup, "it", 500);
    setup.written(2);
    for _ in 0..2 {
        hit(&setup, "it", 500);
        for language in ["de", "fr"] {
            let mut client = setup.proxy().client();
            client.send(variant(language, 10).get(&accept(language)));
            let (_hop, _) = setup.origin.answer(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            );
            let verdict = client.read_response().verdict();
            assert!(verdict.starts_with("fwd=vary-miss"), "{verdict}");
        }
        setup.kill();
    }
}

#[test]
fn response_without_vary_replaces_the_stored_variants() {
    let mut setup = DiskSetup::simulated(|_| {});
    store(&setup, "de", 1000);
    setup.written(2);
    setup.restart();
    let plain = Representation::new("/a", 700);
    let mut client = setup.proxy().client();
    client.send(plain.get(&accept("fr")));
    let (_hop, _) = setup.origin.answer(plain.whole());
    plain.check_whole(&client.read_response());
    setup.rest();
    setup.written(1);
    setup.kill();
    let response = setup.hit(&plain, &accept("de"));
    plain.check_whole(&response);
}

#[test]
fn only_the_variant_outdated_by_a_head_response_is_invalidated() {
    for is_in_memory in [true, false] {
        let mut setup = DiskSetup::simulated(|_| {});
        store(&setup, "de", 1000);
        store(&setup, "fr", 1000);
        setup.written(3);
        if !is_in_memory {
            setup.restart();
        }
        let what = variant("de", 1000);
        let mut client = setup.proxy().client();
        let fields = format!("{}Cache-Control: no-cache\r\n", accept("de"));
        client.send(what.ask("HEAD", &fields));
        setup.origin.answer(what.next(700).head());
        assert_eq!(
            client.read_head().field("etag"),
            what.next(700).tag.as_deref()
        );
        setup.kill();
        hit(&setup, "fr", 1000);
        let mut client = setup.proxy().client();
        client.send(what.get(&accept("de")));
        let (_hop, _) = setup.origin.answer(what.next(700).whole());
        let response = client.read_response();
        assert!(response.verdict().starts_with("fwd=vary-miss"));
        what.next(700).check_whole(&response);
    }
}
