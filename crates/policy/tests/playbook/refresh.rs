//! Validation in the background, after a stale response was served (RFC 5861 §3).

use crate::script::check;

#[test]
fn refresh_is_conditional_only_if_a_validator_is_stored() {
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 update same 304 | Cache-Control: max-age=70 => freshen lifetime=70 age=1, serve-merged age=1
         = stale fwd-status=304 stored ttl=69",
    );
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 => forward
         72 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=2
         = stale fwd-status=200 stored",
    );
}

#[test]
fn refresh_replaces_or_drops_an_outdated_response() {
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 200 | Cache-Control: no-store => relay, drop
         = stale fwd-status=200 not-stored=response-no-store",
    );
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 404 | Cache-Control: max-age=5 => relay, store lifetime=5 age=1
         = stale fwd-status=404 stored",
    );
}

#[test]
fn failed_refresh_keeps_the_stored_response() {
    // also where the error has a lifetime: all are served the stored response meanwhile
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 500 | Cache-Control: max-age=100 => relay
         = stale fwd-status=500 not-stored=stored-is-usable",
    );
    // not beyond the time for which it may be served
    check(
        "GET /
         120 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         121 response 500 | Cache-Control: max-age=100 => relay, store lifetime=100 age=1
         = stale fwd-status=500 stored",
    );
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 503 => relay
         = stale fwd-status=503 not-stored=stored-is-usable",
    );
    check(
        "disconnected-max 5
         GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 failed disconnected => answer next-hop
         = error next-hop",
    );
}

#[test]
fn refresh_triggered_by_head_stores_the_response() {
    check(
        "HEAD /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 => forward
         71 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=1
         = stale fwd-status=200 stored",
    );
}

#[test]
fn refresh_is_forwarded_despite_only_if_cached() {
    check(
        "GET / | Cache-Control: only-if-cached
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 => forward
         70 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=0
         = stale fwd-status=200 stored",
    );
}

#[test]
fn refresh_by_an_unstorable_304_drops_the_stored_response() {
    for (update, why) in [
        ("Cache-Control: private", "private"),
        ("Cache-Control: no-store", "response-no-store"),
        ("Vary: *", "vary-changed"),
    ] {
        check(&format!(
            "GET /
             70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
             70 update same 304 | {update} => drop, serve-merged age=0
             = stale fwd-status=304 not-stored={why} ttl={}",
            if update.starts_with("Vary") { 60 } else { 0 },
        ));
    }
    // the request's credentials are those of one client: it says nothing of what is stored for all
    check(
        "GET / | Authorization: x
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         70 update same 304 => serve-merged age=0
         = stale fwd-status=304 not-stored=authorization ttl=60",
    );
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         70 update other 304 => drop, forward-again
         = stale",
    );
}

#[test]
fn incomplete_refresh_keeps_no_part_in_place_of_the_whole() {
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 200 | Cache-Control: max-age=60 | ETag: \"b\" => relay, store lifetime=60 age=1
         72 incomplete => nothing
         = stale fwd-status=200 not-stored=incomplete",
    );
}

#[test]
fn refresh_that_nothing_has_asked_for_replaces_no_servable_response_by_an_error() {
    for response in [
        "302 | Cache-Control: max-age=60 | Location: /login",
        "403 | Cache-Control: max-age=60",
        "404",
        "404 | Cache-Control: max-age=60",
        "410 | Cache-Control: max-age=60",
        "503 | Cache-Control: max-age=60",
    ] {
        let status = &response[..3];
        // fresh, and stale within what permits to serve it
        for second in [10, 160] {
            check(&format!(
                "GET /
                 {second} refresh 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
                 {second} unasked => nothing
                 {second} response {response} => relay
                 = stale fwd-status={status} not-stored=stored-is-usable",
            ));
        }
    }
    // beyond it, and what may not be served stale
    for stored in [
        "200 | Cache-Control: max-age=59 | ETag: \"a\"",
        "200 | Cache-Control: max-age=60, must-revalidate | ETag: \"a\"",
    ] {
        check(&format!(
            "GET /
             160 refresh {stored} => forward validate
             160 unasked => nothing
             160 response 404 | Cache-Control: no-store => relay, drop
             = stale fwd-status=404 not-stored=response-no-store",
        ));
    }
}

#[test]
fn refresh_that_nothing_has_asked_for_brings_what_the_origin_has() {
    check(
        "GET /
         10 refresh 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         10 unasked => nothing
         11 response 200 | Cache-Control: max-age=60 | ETag: \"b\" => relay, store lifetime=60 age=1
         = stale fwd-status=200 stored",
    );
    // an update that is about another response says nothing
    check(
        "GET /
         10 refresh 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         10 unasked => nothing
         11 update other 304 => forward-again
         = stale",
    );
}
