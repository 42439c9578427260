//! Nothing usable is stored, or nothing is looked for: the request is forwarded, or answered here.

use crate::script::check;

#[test]
fn only_if_cached_without_usable_response_is_never_forwarded() {
    for (missing, _) in [("target", "uri-miss"), ("variant", "vary-miss")] {
        check(&format!(
            "GET / | Cache-Control: only-if-cached
             0 request => look-up
             0 missing {missing} => answer only-if-cached
             = refused only-if-cached",
        ));
    }
    for stored in [
        "max-age=60",
        "max-age=60, must-revalidate",
        "max-age=1000, no-cache",
    ] {
        check(&format!(
            "GET / | Cache-Control: only-if-cached
             0 request => look-up
             60 found 200 | Cache-Control: {stored} | ETag: \"a\" => answer only-if-cached
             = refused only-if-cached",
        ));
    }
    check(
        "GET / | Cache-Control: only-if-cached, no-cache
         0 request => look-up
         0 found 200 | Cache-Control: max-age=60 => answer only-if-cached
         = refused only-if-cached",
    );
}

#[test]
fn only_if_cached_is_served_from_a_usable_stored_response() {
    check(
        "GET / | Cache-Control: only-if-cached
         0 request => look-up
         59 found 200 | Cache-Control: max-age=60 => serve age=59
         = hit ttl=1",
    );
    check(
        "GET / | Cache-Control: only-if-cached, max-stale
         0 request => look-up
         61 found 200 | Cache-Control: max-age=60 => serve age=61
         = hit max-stale ttl=-1",
    );
    check(
        "GET / | Cache-Control: only-if-cached
         0 request => look-up
         61 found 200 | Cache-Control: max-age=60, stale-while-revalidate=9 => serve age=61
         = hit stale-while-revalidate ttl=-1",
    );
}

#[test]
fn only_if_cached_is_never_forwarded_by_requests_that_bypass_the_cache() {
    check(
        "POST / | Cache-Control: only-if-cached
         0 request => answer only-if-cached
         = refused only-if-cached",
    );
    check(
        "GET / | Cache-Control: only-if-cached
         0 request unshared => answer only-if-cached
         = refused only-if-cached",
    );
}

#[test]
fn miss_is_reported_as_uri_miss_or_vary_miss() {
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         1 response 200 => relay
         = uri-miss fwd-status=200 not-stored=no-lifetime",
    );
    check(
        "GET /
         0 request => look-up
         0 missing variant => forward
         1 response 200 | Cache-Control: max-age=60 | Vary: foo => relay, store lifetime=60 age=1
         = vary-miss fwd-status=200 stored",
    );
}

#[test]
fn next_hop_failure_on_a_miss_or_bypass_is_answered_locally() {
    for (failure, answer, verdict) in [
        ("disconnected", "next-hop", "error"),
        ("protocol", "next-hop", "error"),
        ("ours", "overloaded", "refused"),
    ] {
        check(&format!(
            "GET /
             0 request => look-up
             0 missing target => forward
             9 failed {failure} => answer {answer}
             = {verdict} {answer}",
        ));
        for (method, event) in [("GET", "request unshared"), ("POST", "request")] {
            check(&format!(
                "{method} /
                 0 {event} => forward
                 9 failed {failure} => answer {answer}
                 = {verdict} {answer}",
            ));
        }
    }
}

#[test]
fn unsafe_method_invalidates_on_2xx_and_3xx_only() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "BREW"] {
        for (status, answer) in [
            (200, "relay, invalidate"),
            (204, "relay, invalidate"),
            (303, "relay, invalidate"),
            (399, "relay, invalidate"),
            (400, "relay"),
            (404, "relay"),
            (500, "relay"),
        ] {
            check(&format!(
                "{method} /
                 0 request => forward
                 0 response {status} | Cache-Control: max-age=60 => {answer}
                 = method fwd-status={status} not-stored=bypass",
            ));
        }
    }
}

#[test]
fn safe_method_does_not_invalidate() {
    for method in ["OPTIONS", "TRACE"] {
        check(&format!(
            "{method} /
             0 request => forward
             0 response 200 | Cache-Control: max-age=60 => relay
             = method fwd-status=200 not-stored=bypass",
        ));
    }
}

#[test]
fn unshared_request_bypasses_the_cache() {
    check(
        "GET /
         0 request unshared => forward
         0 response 200 | Cache-Control: max-age=60 => relay
         = bypass fwd-status=200 not-stored=bypass",
    );
    check(
        "GET / | Upgrade: websocket
         0 request unshared => forward
         0 response 101 => relay
         0 tunnel => nothing
         = tunnel fwd-status=101",
    );
}

#[test]
fn response_replaced_by_a_local_answer_is_reported_as_not_stored() {
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         1 response 200 | Cache-Control: max-age=60 | ETag: \"a\" => relay, store lifetime=60 age=1
         1 failed protocol => answer next-hop
         = error next-hop fwd-status=200 not-stored=incomplete",
    );
}
