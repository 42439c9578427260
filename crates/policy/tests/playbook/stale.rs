//! The next hop fails: may the stale stored response be served (RFC 5861 §4, RFC 9111 §4.2.4)?

use crate::script::check;

#[test]
fn stale_if_error_serves_stale_within_its_window_only() {
    for status in [500, 502, 503, 504] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60, stale-if-error=10 | ETag: \"a\" => forward validate
             70 response {status} => serve age=70
             = stale stale-if-error fwd-status={status} ttl=-10",
        ));
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60, stale-if-error=10 | ETag: \"a\" => forward validate
             71 response {status} => relay
             = stale fwd-status={status} not-stored=no-explicit-lifetime",
        ));
    }
    // without a validator there is nothing to validate with, and as much to serve
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-if-error=0 => forward
         60 response 500 => serve age=60
         = stale stale-if-error fwd-status=500 ttl=0",
    );
}

#[test]
fn error_is_relayed_without_permission_to_serve_stale() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         60 response 500 => relay
         = stale fwd-status=500 not-stored=no-explicit-lifetime",
    );
    for forbidding in ["must-revalidate", "proxy-revalidate", "no-cache"] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60, stale-if-error=10, {forbidding} => forward
             60 response 500 => relay
             = stale fwd-status=500 not-stored=no-explicit-lifetime",
        ));
    }
    // these are no errors of the next hop
    for status in [501, 505, 403, 429] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60, stale-if-error=10 => forward
             60 response {status} | Cache-Control: no-store => relay
             = stale fwd-status={status} not-stored=response-no-store",
        ));
    }
}

#[test]
fn disconnected_next_hop_allows_stale_up_to_configured_limit() {
    check(
        "disconnected-max 10
         GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         70 failed disconnected => serve age=70
         = stale disconnected ttl=-10",
    );
    check(
        "disconnected-max 10
         GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         71 failed disconnected => answer next-hop
         = error next-hop",
    );
    check(
        "disconnected-max 0
         GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         60 failed disconnected => serve age=60
         = stale disconnected ttl=0",
    );
}

#[test]
fn spent_link_has_stale_responses_served_where_its_setting_permits_that() {
    let asked = |age: u32, control: &str, failure: &str, expected: &str| {
        check(&format!(
            "disconnected-max 1000
             GET /
             0 request => look-up
             60 found 200 | Cache-Control: {control} => forward
             {age} failed {failure} => {expected}"
        ));
    };
    let stale = "serve age=160
         = hit link-spent ttl=-100";
    let refused = "answer link-spent
         = refused link-spent";
    asked(160, "max-age=60", "link-spent-stale", stale);
    asked(161, "max-age=60", "link-spent-stale", refused);
    asked(61, "max-age=60", "link-spent", refused);
    asked(61, "max-age=60, stale-if-error=100", "link-spent", refused);
    asked(
        61,
        "max-age=60, must-revalidate",
        "link-spent-stale",
        refused,
    );
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         0 failed link-spent-stale => answer link-spent
         = refused link-spent",
    );
}

#[test]
fn stale_if_error_overrides_configured_disconnected_limit() {
    // shorter
    check(
        "disconnected-max 100
         GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-if-error=5 => forward
         66 failed disconnected => answer next-hop
         = error next-hop",
    );
    // longer
    check(
        "disconnected-max 0
         GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-if-error=5 => forward
         65 failed disconnected => serve age=65
         = stale disconnected ttl=-5",
    );
}

#[test]
fn refusal_is_must_revalidate_only_if_next_hop_is_disconnected() {
    for forbidding in ["must-revalidate", "proxy-revalidate", "s-maxage=60"] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60, {forbidding} => forward
             60 failed disconnected => answer must-revalidate
             = error must-revalidate",
        ));
    }
    for (directives, failure) in [
        ("no-cache", "disconnected"),
        ("must-revalidate", "protocol"),
    ] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60, {directives} => forward
             60 failed {failure} => answer next-hop
             = error next-hop",
        ));
    }
}

#[test]
fn explicit_stale_windows_apply_beside_s_maxage() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: s-maxage=60, stale-if-error=10 => forward
         70 response 503 => serve age=70
         = stale stale-if-error fwd-status=503 ttl=-10",
    );
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: s-maxage=60, stale-if-error=10 => forward
         70 failed disconnected => serve age=70
         = stale disconnected ttl=-10",
    );
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: s-maxage=60, stale-if-error=10 => forward
         71 failed disconnected => answer must-revalidate
         = error must-revalidate",
    );
    check(
        "GET /
         0 request => look-up
         69 found 200 | Cache-Control: s-maxage=60, stale-while-revalidate=10 => serve age=69, refresh
         = hit stale-while-revalidate ttl=-9",
    );
    // what is explicit forbids; and the client may not lengthen it
    for directives in [
        "s-maxage=60, stale-while-revalidate=10, must-revalidate",
        "s-maxage=60, stale-while-revalidate=10, proxy-revalidate",
        "s-maxage=60, stale-while-revalidate=10, no-cache",
        "s-maxage=60, stale-if-error=10",
    ] {
        check(&format!(
            "GET / | Cache-Control: max-stale
             0 request => look-up
             61 found 200 | Cache-Control: {directives} => forward
             61 response 503 | Cache-Control: no-store => {}
             = stale {}",
            if directives.contains("if-error") {
                "serve age=61"
            } else {
                "relay"
            },
            if directives.contains("if-error") {
                "stale-if-error fwd-status=503 ttl=-1"
            } else {
                "fwd-status=503 not-stored=response-no-store"
            },
        ));
    }
}

#[test]
fn protocol_failure_allows_stale_only_by_stale_if_error() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         60 failed protocol => answer next-hop
         = error next-hop",
    );
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-if-error=5 => forward
         65 failed protocol => serve age=65
         = stale stale-if-error ttl=-5",
    );
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-if-error=5 => forward
         66 failed protocol => answer next-hop
         = error next-hop",
    );
}

#[test]
fn local_overload_does_not_allow_serving_stale() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60, stale-if-error=50 => forward
         60 failed ours => answer overloaded
         = refused overloaded",
    );
}
