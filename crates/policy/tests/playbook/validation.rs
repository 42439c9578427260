//! A stored response is validated (RFC 9111 §4.3).

use crate::script::check;

#[test]
fn successful_validation_does_not_serve_what_was_validated() {
    for validator in [
        "ETag: \"a\"",
        "ETag: W/\"a\"",
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60 | {validator} => forward validate
             61 response 304 => freshen
             61 freshened 200 | Cache-Control: max-age=60 | {validator} => serve age=0
             = stale fwd-status=304 stored ttl=60",
        ));
    }
    check(
        "HEAD /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 response 304 => freshen
         61 freshened 200 | Cache-Control: max-age=60 | ETag: \"a\" => serve age=0
         = stale fwd-status=304 stored ttl=60",
    );
}

#[test]
fn response_stale_again_after_validation_is_not_served() {
    for directives in ["max-age=0", "no-cache", "max-age=0, must-revalidate"] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: {directives} | ETag: \"a\" => forward validate
             61 response 304 => freshen
             61 freshened 200 | Cache-Control: {directives} | ETag: \"a\" => serve age=0
             = stale fwd-status=304 stored ttl=0",
        ));
    }
}

#[test]
fn not_modified_without_validation_freshens() {
    // to the client's own precondition: nothing is stored
    check(
        "GET / | If-None-Match: \"a\"
         0 request => look-up
         0 missing target => forward
         1 response 304 | Cache-Control: max-age=60 => relay
         = uri-miss fwd-status=304 not-stored=status-not-understood",
    );
    // what is stored has no validator, so the 304 is about what the client has
    check(
        "GET / | If-None-Match: \"a\"
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         61 response 304 | Cache-Control: max-age=60 => relay
         = stale fwd-status=304 not-stored=status-not-understood",
    );
    check(
        "GET / | If-None-Match: \"a\"
         0 request unshared => forward
         1 response 304 | Cache-Control: max-age=60 => relay
         = bypass fwd-status=304 not-stored=bypass",
    );
}

#[test]
fn another_representation_leaves_the_outdated_one() {
    // stored: it takes the place
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 response 200 | Cache-Control: max-age=70 | ETag: \"b\" => relay, store lifetime=70 age=1
         = stale fwd-status=200 stored",
    );
    // not stored: the old one goes
    for status in [200, 204, 301, 302, 404, 410] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             61 response {status} | Cache-Control: no-store => relay, drop
             = stale fwd-status={status} not-stored=response-no-store",
        ));
    }
    check(
        "GET / | Cache-Control: no-store
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         61 response 200 | Cache-Control: max-age=60 => relay, drop
         = stale fwd-status=200 not-stored=request-no-store",
    );
}

#[test]
fn answer_for_this_client_alone_drops_what_is_stored() {
    for status in [400, 401, 403, 407, 412, 416, 429, 500, 501, 503] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             61 response {status} => relay
             = stale fwd-status={status} not-stored={}",
            if status == 501 {
                "no-lifetime"
            } else {
                "no-explicit-lifetime"
            },
        ));
    }
    check(
        "GET / | Range: bytes=0-1
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 response 206 | Content-Range: bytes 0-1/9 => relay
         = stale fwd-status=206 not-stored=partial-content",
    );
    // a HEAD shows no representation
    check(
        "HEAD /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 response 200 | Cache-Control: max-age=60 => relay
         = stale fwd-status=200 not-stored=method",
    );
}

#[test]
fn nothing_stored_is_dropped() {
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         1 response 200 | Cache-Control: no-store => relay
         = uri-miss fwd-status=200 not-stored=response-no-store",
    );
}

#[test]
fn not_modified_about_another_response_is_called_stored() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 response 304 | ETag: \"b\" => freshen
         61 not-freshened 200 | Cache-Control: max-age=60 | ETag: \"a\" => serve age=61
         = stale fwd-status=304 ttl=-1",
    );
}
