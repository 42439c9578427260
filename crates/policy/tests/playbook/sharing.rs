//! One response for several requests: who waits, who leads, who is answered by another's.

use crate::script::check;

const STORED: &str = "200 | Cache-Control: max-age=60 | ETag: \"a\"";

#[test]
fn follower_is_reported_as_collapsed_with_its_forward_reason() {
    for (before, fwd) in [
        ("0 missing target => forward", "uri-miss"),
        ("0 missing variant => forward", "vary-miss"),
        (
            "60 found 200 | Cache-Control: max-age=60 => forward",
            "stale",
        ),
        (
            "0 found-part lacking 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward complete",
            "partial",
        ),
    ] {
        check(&format!(
            "GET /
             0 request => look-up
             {before}
             0 follows => yes
             9 joined waited {STORED} => serve age=9
             = {fwd} ttl=51 collapsed",
        ));
    }
    // the driver that waits before it tells what the look-up found
    check(&format!(
        "GET /
         0 request => look-up
         9 joined waited {STORED} => serve age=9
         = uri-miss ttl=51 collapsed",
    ));
}

#[test]
fn fresh_in_flight_response_is_reported_as_delayed_hit() {
    check(&format!(
        "GET /
         0 request => look-up
         59 joined in-flight {STORED} => serve age=59
         = hit delayed ttl=1",
    ));
    // an arrival may outlast its freshness
    check(&format!(
        "GET /
         0 request => look-up
         60 joined in-flight {STORED} => forward
         = stale",
    ));
    check(&format!(
        "GET / | Cache-Control: max-stale
         0 request => look-up
         60 joined in-flight {STORED} => serve age=60
         = hit max-stale ttl=0",
    ));
    check(
        "GET /
         0 request => look-up
         60 joined in-flight 200 | Cache-Control: max-age=60, stale-while-revalidate=9 => serve age=60
         = hit stale-while-revalidate ttl=0",
    );
}

#[test]
fn follower_is_served_only_responses_reusable_from_the_store() {
    for (request, stored, fwd) in [
        (
            "Accept: */*",
            "Cache-Control: max-age=0 | ETag: \"a\"",
            "stale",
        ),
        (
            "Accept: */*",
            "Cache-Control: no-cache | ETag: \"a\"",
            "stale",
        ),
        ("Accept: */*", "Cache-Control: max-age=9", "stale"),
        (
            "Cache-Control: max-age=8",
            "Cache-Control: max-age=60",
            "request",
        ),
        (
            "Cache-Control: min-fresh=52",
            "Cache-Control: max-age=60",
            "request",
        ),
        (
            "Cache-Control: no-cache",
            "Cache-Control: max-age=60",
            "request",
        ),
    ] {
        for joined in ["waited", "in-flight"] {
            check(&format!(
                "GET / | {request}
                 0 request => look-up
                 0 missing target => forward
                 9 joined {joined} 200 | {stored} => forward
                 = {fwd}",
            ));
        }
    }
    for request in ["max-age=9", "min-fresh=51"] {
        check(&format!(
            "GET / | Cache-Control: {request}
             0 request => look-up
             9 joined waited {STORED} => serve age=9
             = uri-miss ttl=51 collapsed",
        ));
    }
}

#[test]
fn request_that_could_not_join_is_not_reported_as_collapsed() {
    check(&format!(
        "GET /
         0 request => look-up
         0 missing target => forward
         50 joined waited 200 | Cache-Control: no-cache | ETag: \"a\" => forward
         51 response {STORED} => relay, store lifetime=60 age=1
         = stale fwd-status=200 stored",
    ));
    // told so when it stops waiting
    check(&format!(
        "GET /
         0 request => look-up
         50 missing target => forward
         51 response {STORED} => relay, store lifetime=60 age=1
         = uri-miss fwd-status=200 stored",
    ));
    // what it could not join is not served in place of an error either
    check(
        "GET /
         0 request => look-up
         9 joined in-flight 200 | Cache-Control: max-age=9, stale-if-error=99 => forward
         9 response 503 => relay
         = stale fwd-status=503 not-stored=no-explicit-lifetime",
    );
    check(
        "GET / | Cache-Control: only-if-cached
         0 request => look-up
         9 joined in-flight 200 | Cache-Control: max-age=9 => answer only-if-cached
         = refused only-if-cached",
    );
}

#[test]
fn request_follows_only_if_response_to_another_can_answer_it() {
    for (request, follows) in [
        ("GET /", "yes"),
        ("HEAD /", "no"),
        ("GET / | Cache-Control: no-cache", "no"),
        ("GET / | Pragma: no-cache", "no"),
        ("GET / | Cache-Control: only-if-cached", "no"),
        ("GET / | Cache-Control: no-store", "yes"),
        ("GET / | Cache-Control: max-age=0", "yes"),
        ("GET / | Authorization: x", "yes"),
        ("GET / | If-None-Match: \"a\"", "yes"),
        ("GET / | Range: bytes=0-1", "yes"),
        ("GET / | Range: bytes=0-1 | If-Range: \"a\"", "yes"),
        ("GET / | Range: bytes=0-1,3-4", "no"),
        ("GET / | Range: lines=0-1", "yes"),
    ] {
        check(&format!(
            "{request}
             0 request => look-up
             0 follows => {follows}
             = bypass",
        ));
    }
    for (request, event) in [("GET", "request unshared"), ("POST", "request")] {
        let fwd = if request == "GET" { "bypass" } else { "method" };
        check(&format!(
            "{request} /
             0 {event} => forward
             0 follows => no
             0 leads => no
             = {fwd}",
        ));
    }
}

#[test]
fn request_leads_only_if_its_response_can_be_shared() {
    for (request, leads) in [
        ("GET /", "yes"),
        ("HEAD /", "no"),
        ("GET / | Cache-Control: no-cache", "yes"),
        ("GET / | Cache-Control: no-store", "no"),
        ("GET / | Authorization: x", "no"),
        ("GET / | If-None-Match: \"a\"", "no"),
        ("GET / | Range: bytes=0-1", "yes"),
        ("GET / | Range: bytes=0-1 | If-Range: \"a\"", "no"),
        ("GET / | Range: bytes=0-1,3-4", "no"),
        ("GET / | Range: lines=0-1", "yes"),
        ("GET / | If-Range: \"a\"", "yes"),
    ] {
        check(&format!(
            "{request}
             0 request => look-up
             0 missing target => forward
             0 leads => {leads}
             = uri-miss",
        ));
    }
    // where our own question takes the place of the client's, the answer is for all
    for (found, forward) in [
        ("found", "forward validate"),
        ("found-part lacking", "forward complete"),
    ] {
        check(&format!(
            "GET / | If-None-Match: \"b\" | Range: bytes=0-1 | If-Range: \"b\"
             0 request => look-up
             60 {found} {STORED} => {forward}
             60 leads => yes
             = stale",
        ));
    }
}
