//! Targeted cache control fields (RFC 9213): who reads them, and what Cache-Status says of it.

use crate::support::Setup;
use weir_proxy::config::FieldName;

fn answer(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok")
}

fn names(names: &[&str]) -> Vec<FieldName> {
    let names = names.iter().map(|name| name.parse().expect("a field name"));
    names.collect()
}

/// The Cache-Status of a response with these fields, and whether the next request was a hit.
fn fetch(setup: &Setup, path: &str, fields: &str) -> (String, bool) {
    let (response, mut hop) = setup.fetch(path, &answer(fields));
    for line in fields.lines() {
        let (name, value) = line.split_once(": ").expect("a field line");
        assert!(response.head.all(name).contains(&value), "{line} is lost");
    }
    let mut client = setup.proxy.client();
    client.send(setup.get(path));
    // what is asked for next shows whether that was forwarded
    client.send(setup.get("/last"));
    let head = hop.answer(answer("Cache-Control: no-store\r\n"));
    let is_hit = head.start_line().contains("/last");
    if !is_hit {
        hop.answer(answer("Cache-Control: no-store\r\n"));
    }
    assert_eq!(client.read_response().is_hit(), is_hit);
    client.read_response();
    (response.verdict(), is_hit)
}

const PRIVATE: &str = "Cache-Control: max-age=60\r\nCDN-Cache-Control: private, max-age=60\r\n";

#[test]
fn gateway_obeys_cdn_cache_control_and_cache_status_names_it() {
    let (verdict, is_hit) = fetch(&Setup::gateway(), "/", PRIVATE);
    assert!(
        verdict.ends_with("detail=private/CDN-Cache-Control"),
        "{verdict}"
    );
    assert!(!is_hit);
    let fields = "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60\r\n";
    let (verdict, is_hit) = fetch(&Setup::gateway(), "/", fields);
    assert!(verdict.contains(";stored"), "{verdict}");
    assert!(verdict.ends_with("detail=CDN-Cache-Control"), "{verdict}");
    assert!(is_hit);
    // where it is invalid nothing speaks of it
    let fields = "Cache-Control: max-age=60\r\nCDN-Cache-Control: Private\r\n";
    let (verdict, is_hit) = fetch(&Setup::gateway(), "/", fields);
    assert!(!verdict.contains("detail"), "{verdict}");
    assert!(is_hit);
}

#[test]
fn forward_proxy_obeys_only_the_configured_targeted_fields() {
    let (verdict, is_hit) = fetch(&Setup::forward(), "/", PRIVATE);
    assert!(!verdict.contains("detail"), "{verdict}");
    assert!(is_hit);
    let setup = Setup::forward_with(|config| {
        config.cache.forward_targeted_fields = names(&["Office-Cache-Control"]);
    });
    assert!(fetch(&setup, "/", PRIVATE).1);
    let setup = Setup::forward_with(|config| {
        config.cache.forward_targeted_fields = names(&["Office-Cache-Control"]);
    });
    let fields = "Cache-Control: max-age=60\r\nOffice-Cache-Control: no-store\r\n";
    let (verdict, is_hit) = fetch(&setup, "/", fields);
    let expected = "detail=response-no-store/Office-Cache-Control";
    assert!(verdict.ends_with(expected), "{verdict}");
    assert!(!is_hit);
}

#[test]
fn gateway_obeys_its_targeted_fields_in_the_configured_order() {
    let setup = || {
        Setup::gateway_with(|config| {
            config.cache.gateway_targeted_fields =
                names(&["Edge-Cache-Control", "CDN-Cache-Control"]);
        })
    };
    let fields = "CDN-Cache-Control: max-age=60\r\nEdge-Cache-Control: no-store\r\n";
    let (verdict, is_hit) = fetch(&setup(), "/", fields);
    let expected = "detail=response-no-store/Edge-Cache-Control";
    assert!(verdict.ends_with(expected), "{verdict}");
    assert!(!is_hit);
    let fields = "CDN-Cache-Control: max-age=60\r\nEdge-Cache-Control: \r\n";
    let (response, _) = setup().fetch("/", &answer(fields));
    assert!(response.verdict().ends_with("detail=CDN-Cache-Control"));
    // and with an empty list none
    let setup = Setup::gateway_with(|config| config.cache.gateway_targeted_fields.clear());
    assert!(fetch(&setup, "/", PRIVATE).1);
}
