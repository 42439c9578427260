//! A response came from the next hop: is it stored, and if not, why?

use crate::script::check;

#[track_caller]
fn check_miss(request: &str, response: &str, commands: &str, storing: &str) {
    let status = &response[..3];
    check(&format!(
        "{request}
         0 request => look-up
         0 missing target => forward
         0 response {response} => {commands}
         = uri-miss fwd-status={status} {storing}",
    ));
}

#[track_caller]
fn check_stored(response: &str, lifetime: u32) {
    let commands = format!("relay, store lifetime={lifetime} age=0");
    check_miss("GET /", response, &commands, "stored");
}

#[track_caller]
fn check_left(request: &str, response: &str, why: &str) {
    check_miss(request, response, "relay", &format!("not-stored={why}"));
}

#[test]
fn storable_response_is_stored_with_its_lifetime() {
    check_stored("200 | Cache-Control: max-age=1", 1);
    check_stored("200 | Cache-Control: max-age=0 | ETag: \"a\"", 0);
    check_stored("200 | ETag: \"a\"", 0);
    check_stored("404 | Cache-Control: max-age=9", 9);
    check_stored("500 | Cache-Control: max-age=9", 9);
    check_stored("200 | Expires: Sun, 06 Nov 1994 08:49:38 GMT", 1);
    check_stored("200 | Last-Modified: Sun, 06 Nov 1994 08:49:27 GMT", 1);
    check_stored(
        "200 | Cache-Control: max-age=0, stale-while-revalidate=1",
        0,
    );
    check_stored("200 | Cache-Control: max-age=0, stale-if-error=1", 0);
}

#[test]
fn unstorable_response_is_reported_with_the_rule_that_forbids_it() {
    let fresh = "200 | Cache-Control: max-age=60";
    check_left("HEAD /", fresh, "method");
    check_left("GET / | Cache-Control: no-store", fresh, "request-no-store");
    check_left("GET / | Authorization: x", fresh, "authorization");
    check_left(
        "GET /",
        "200 | Cache-Control: no-store",
        "response-no-store",
    );
    check_left(
        "GET /",
        "200 | Cache-Control: private, max-age=60",
        "private",
    );
    check_left(
        "GET /",
        "200 | Cache-Control: max-age=60 | Vary: *",
        "vary-star",
    );
    check_left(
        "GET /",
        "206 | Cache-Control: max-age=60",
        "partial-content",
    );
    check_left("GET /", "302", "no-explicit-lifetime");
}

#[test]
fn response_without_freshness_or_validator_is_not_stored() {
    check_left("GET /", "200", "no-lifetime");
    check_left("GET /", "200 | Cache-Control: max-age=0", "no-lifetime");
    check_left(
        "GET /",
        "200 | Cache-Control: max-age=60 | Age: 60",
        "no-lifetime",
    );
    check_miss(
        "GET /",
        "200 | Cache-Control: max-age=60 | Age: 59",
        "relay, store lifetime=60 age=59",
        "stored",
    );
}

#[test]
fn heuristic_freshness_applies_to_404_and_410_but_not_405_414_or_501() {
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT";
    for status in [405, 414, 501] {
        check_left("GET /", &format!("{status} | {modified}"), "no-lifetime");
    }
    for status in [404, 410] {
        check_stored(&format!("{status} | {modified}"), 10);
    }
}

#[test]
fn responses_412_416_and_417_are_not_stored() {
    for status in [412, 416, 417] {
        let answer = format!("{status} | Cache-Control: public, max-age=60");
        check_left("GET / | Range: bytes=9-", &answer, "conditional");
    }
}

#[test]
fn set_cookie_response_is_stored_only_with_explicit_permission() {
    let cookie = "Set-Cookie: a=b";
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT";
    let expires = "Expires: Sun, 06 Nov 1994 09:49:37 GMT";
    for response in [
        format!("200 | {cookie} | {modified}"),
        format!("200 | {cookie} | {expires}"),
        format!("200 | {cookie} | Cache-Control: max-age=60"),
        format!("200 | {cookie} | Cache-Control: max-age=60, must-revalidate"),
        "200 | Set-Cookie2: a=b | Cache-Control: max-age=60".to_owned(),
    ] {
        check_left("GET /", &response, "set-cookie");
    }
    check_stored(&format!("200 | {cookie} | Cache-Control: s-maxage=60"), 60);
    check_stored(
        &format!("200 | {cookie} | Cache-Control: public, max-age=60"),
        60,
    );
    // as RFC 9111 §7.3 has it
    for (response, lifetime) in [
        (format!("200 | {cookie} | Cache-Control: max-age=60"), 60),
        (format!("200 | {cookie} | {modified}"), 10),
    ] {
        check(&format!(
            "set-cookie rfc9111
             GET /
             0 request => look-up
             0 missing target => forward
             0 response {response} => relay, store lifetime={lifetime} age=0
             = uri-miss fwd-status=200 stored",
        ));
    }
}

#[test]
fn unadmitted_or_incomplete_response_is_reported_as_not_stored() {
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         0 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=0
         0 not-admitted => nothing
         = uri-miss fwd-status=200 not-stored=no-slot",
    );
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         0 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=0
         9 incomplete => nothing
         = uri-miss fwd-status=200 not-stored=incomplete",
    );
}
