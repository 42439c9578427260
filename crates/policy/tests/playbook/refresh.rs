//! Validation in the background, after a stale response was served (RFC 5861 §3).

use crate::script::check;

#[test]
fn refresh_validates_without_a_validator_or_does_not_with_one() {
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
fn refresh_keeps_what_the_origin_has_replaced() {
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
fn refresh_that_fails_drops_what_is_stored() {
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 503 => relay
         = stale fwd-status=503 not-stored=no-explicit-lifetime",
    );
    check(
        "disconnected-max 5
         GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 failed disconnected => answer next-hop
         = refused next-hop",
    );
}

#[test]
fn refresh_for_a_head_stores_nothing() {
    check(
        "HEAD /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 => forward
         71 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=1
         = stale fwd-status=200 stored",
    );
}

#[test]
fn refresh_is_refused_for_only_if_cached() {
    check(
        "GET / | Cache-Control: only-if-cached
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 => forward
         70 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=0
         = stale fwd-status=200 stored",
    );
}

#[test]
fn refresh_by_a_304_that_may_not_be_stored_drops_what_is_stored() {
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
    // the request's credentials are those of one client
    check(
        "GET / | Authorization: x
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         70 update same 304 => drop, serve-merged age=0
         = stale fwd-status=304 not-stored=authorization ttl=60",
    );
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         70 update other 304 => drop, ask-again
         = stale",
    );
}

#[test]
fn refresh_that_breaks_off_leaves_no_part_in_the_place_of_the_whole() {
    check(
        "GET /
         70 refresh 200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\" => forward validate
         71 response 200 | Cache-Control: max-age=60 | ETag: \"b\" => relay, store lifetime=60 age=1
         72 incomplete => nothing
         = stale fwd-status=200 not-stored=incomplete",
    );
}
