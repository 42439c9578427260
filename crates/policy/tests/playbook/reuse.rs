//! A stored response was found: may it be used at once?

use crate::script::check;

#[test]
fn stored_response_is_reused_only_while_freshness_remains() {
    check(
        "GET /
         0 request => look-up
         59 found 200 | Cache-Control: max-age=60 => serve age=59
         = hit ttl=1",
    );
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         60 response 200 | Cache-Control: max-age=60 => relay, store lifetime=60 age=0
         = stale fwd-status=200 stored",
    );
    // the age it came with counts
    check(
        "HEAD /
         0 request => look-up
         9 found 200 | Cache-Control: max-age=60 | Age: 50 => serve age=59
         = hit ttl=1",
    );
    check(
        "GET /
         0 request => look-up
         10 found 200 | Cache-Control: max-age=60 | Age: 50 => forward
         = stale",
    );
}

#[test]
fn request_max_age_limits_the_age_of_a_reused_response() {
    check(
        "GET / | Cache-Control: max-age=10
         0 request => look-up
         10 found 200 | Cache-Control: max-age=60 => serve age=10
         = hit ttl=50",
    );
    check(
        "GET / | Cache-Control: max-age=10
         0 request => look-up
         11 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         = request",
    );
    // beside max-stale it still bounds the age
    check(
        "GET / | Cache-Control: max-age=61, max-stale
         0 request => look-up
         61 found 200 | Cache-Control: max-age=60 => serve age=61
         = hit max-stale ttl=-1",
    );
    check(
        "GET / | Cache-Control: max-age=61, max-stale
         0 request => look-up
         62 found 200 | Cache-Control: max-age=60 => forward
         = stale",
    );
}

#[test]
fn min_fresh_requires_remaining_freshness_of_a_reused_response() {
    check(
        "GET / | Cache-Control: min-fresh=10
         0 request => look-up
         50 found 200 | Cache-Control: max-age=60 => serve age=50
         = hit ttl=10",
    );
    check(
        "GET / | Cache-Control: min-fresh=10
         0 request => look-up
         51 found 200 | Cache-Control: max-age=60 => forward
         = request",
    );
    // who wants it fresh does not want it stale
    check(
        "GET / | Cache-Control: min-fresh=10
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-while-revalidate=60 => forward
         = stale",
    );
}

#[test]
fn max_stale_allows_stale_reuse_up_to_its_limit() {
    check(
        "GET / | Cache-Control: max-stale=5
         0 request => look-up
         65 found 200 | Cache-Control: max-age=60 => serve age=65
         = hit max-stale ttl=-5",
    );
    check(
        "GET / | Cache-Control: max-stale=5
         0 request => look-up
         66 found 200 | Cache-Control: max-age=60 => forward
         = stale",
    );
    check(
        "GET / | Cache-Control: max-stale
         0 request => look-up
         100000 found 200 | Cache-Control: max-age=60 => serve age=100000
         = hit max-stale ttl=-99940",
    );
    // stale begins when nothing is left
    check(
        "GET / | Cache-Control: max-stale=0
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => serve age=60
         = hit max-stale ttl=0",
    );
}

#[test]
fn must_revalidate_and_s_maxage_forbid_serving_stale() {
    for directive in [
        "max-age=60, must-revalidate",
        "max-age=60, proxy-revalidate",
        "s-maxage=60",
        "max-age=60, must-revalidate, stale-while-revalidate=100",
    ] {
        for request in ["max-stale", "max-stale=1", "foo"] {
            check(&format!(
                "GET / | Cache-Control: {request}
                 0 request => look-up
                 60 found 200 | Cache-Control: {directive} => forward
                 = stale",
            ));
            check(&format!(
                "GET / | Cache-Control: {request}
                 0 request => look-up
                 59 found 200 | Cache-Control: {directive} => serve age=59
                 = hit ttl=1",
            ));
        }
    }
}

#[test]
fn response_with_no_cache_is_always_validated() {
    for directive in ["no-cache", "no-cache=\"set-cookie\""] {
        for request in ["max-stale", "foo"] {
            check(&format!(
                "GET / | Cache-Control: {request}
                 0 request => look-up
                 0 found 200 | Cache-Control: max-age=60, {directive} | ETag: \"a\" => forward validate
                 = stale",
            ));
        }
    }
}

#[test]
fn request_with_no_cache_is_always_forwarded() {
    for field in [
        "Cache-Control: no-cache",
        "Pragma: no-cache",
        "Cache-Control: no-cache, max-stale",
    ] {
        check(&format!(
            "GET / | {field}
             0 request => look-up
             0 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             = request",
        ));
    }
}

#[test]
fn stale_while_revalidate_allows_stale_hits_within_its_window_only() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-while-revalidate=10 => serve age=60, refresh
         = hit stale-while-revalidate ttl=0",
    );
    check(
        "GET /
         0 request => look-up
         70 found 200 | Cache-Control: max-age=60, stale-while-revalidate=10 => serve age=70, refresh
         = hit stale-while-revalidate ttl=-10",
    );
    check(
        "GET /
         0 request => look-up
         71 found 200 | Cache-Control: max-age=60, stale-while-revalidate=10 => forward
         = stale",
    );
    // fresh: nothing to do in the background
    check(
        "GET /
         0 request => look-up
         59 found 200 | Cache-Control: max-age=60, stale-while-revalidate=10 => serve age=59
         = hit ttl=1",
    );
    // a client that sets an age does not want it stale
    check(
        "GET / | Cache-Control: max-age=100
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-while-revalidate=10 => forward
         = stale",
    );
    // max-stale needs no background
    check(
        "GET / | Cache-Control: max-stale=5
         0 request => look-up
         65 found 200 | Cache-Control: max-age=60, stale-while-revalidate=10 => serve age=65
         = hit max-stale ttl=-5",
    );
}

#[test]
fn age_is_capped_at_2_to_the_31_seconds() {
    // 2^31 seconds are as good as for ever (RFC 9111 §1.2.2)
    check(
        "GET / | Cache-Control: max-stale
         0 request => look-up
         3000000000 found 200 | Cache-Control: max-age=60 => serve age=2147483648
         = hit max-stale ttl=-2147483588",
    );
}
