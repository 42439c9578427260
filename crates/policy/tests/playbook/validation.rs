//! A stored response is validated (RFC 9111 §4.3).

use crate::script::check;

#[test]
fn successful_validation_freshens_and_serves_stored_response() {
    for validator in [
        "ETag: \"a\"",
        "ETag: W/\"a\"",
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        for method in ["GET", "HEAD"] {
            check(&format!(
                "{method} /
                 0 request => look-up
                 60 found 200 | Cache-Control: max-age=60 | {validator} => forward validate
                 60 update same 304 => freshen lifetime=60 age=0, serve-merged age=0
                 = stale fwd-status=304 stored ttl=60",
            ));
        }
    }
}

#[test]
fn response_stale_again_after_validation_is_served() {
    for directives in ["max-age=0", "no-cache", "max-age=0, must-revalidate"] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: {directives} | ETag: \"a\" => forward validate
             60 update same 304 => freshen lifetime=0 age=0, serve-merged age=0
             = stale fwd-status=304 stored ttl=0",
        ));
    }
}

#[test]
fn response_made_unstorable_by_a_304_is_served_and_dropped() {
    for (update, why) in [
        ("Cache-Control: private, max-age=60", "private"),
        ("Cache-Control: no-store, max-age=60", "response-no-store"),
        ("Vary: *", "vary-changed"),
        ("Vary: Cookie", "vary-changed"),
    ] {
        for method in ["GET", "HEAD"] {
            check(&format!(
                "{method} /
                 0 request => look-up
                 60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
                 60 update same 304 | {update} => drop, serve-merged age=0
                 = stale fwd-status=304 not-stored={why} ttl={}",
                if update.contains("max-age") || update.contains("Vary") {
                    60
                } else {
                    0
                },
            ));
        }
    }
    check(
        "profile http-1998
         GET /
         0 request => look-up
         60 found 200 | ETag: \"a\" => forward validate
         60 update same 304 | Cache-Control: public, max-age=70 => drop, serve-merged age=0
         = stale fwd-status=304 not-stored=1998-server-cache-control ttl=70",
    );
}

/// Any client can send such a request, and would empty the store for the others.
#[test]
fn update_refused_because_of_its_request_leaves_the_stored_response_as_it_is() {
    let stored = "200 | Cache-Control: public, max-age=60 | ETag: \"a\"";
    for (at, handling, request) in [(60, "stale", ""), (20, "request", ", no-cache")] {
        for (request, why) in [
            (
                format!("Authorization: x | Cache-Control: x{request}"),
                "authorization",
            ),
            (
                format!("Cache-Control: no-store{request}"),
                "request-no-store",
            ),
        ] {
            check(&format!(
                "GET / | {request}
                 0 request => look-up
                 {at} found {stored} => forward validate
                 {at} update same 304 => serve-merged age=0
                 = {handling} fwd-status=304 not-stored={why} ttl=60",
            ));
            check(&format!(
                "HEAD / | {request}
                 0 request => look-up
                 {at} found {stored} => forward validate
                 {at} update same 200 | ETag: \"a\" => relay
                 = {handling} fwd-status=200 not-stored={why}",
            ));
        }
    }
    // what a user gets, others may not
    for (update, why) in [
        ("304 | Cache-Control: private, max-age=9", "private"),
        (
            "304 | Cache-Control: no-store, max-age=9",
            "response-no-store",
        ),
        ("304 | Vary: *", "vary-changed"),
    ] {
        check(&format!(
            "GET / | Authorization: x
             0 request => look-up
             60 found {stored} => forward validate
             60 update same {update} => serve-merged age=0
             = stale fwd-status=304 not-stored={why} ttl={}",
            if why == "vary-changed" { 60 } else { 9 },
        ));
    }
    check(
        "HEAD / | Authorization: x
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         60 update other 200 | ETag: \"b\" => relay
         = stale fwd-status=200 not-stored=method",
    );
}

/// The same of a response that would take its place.
#[test]
fn response_refused_because_of_its_request_leaves_a_fresh_stored_response_as_it_is() {
    for (request, why) in [
        (
            "Authorization: x | Cache-Control: no-cache",
            "authorization",
        ),
        ("Cache-Control: no-cache, no-store", "request-no-store"),
    ] {
        for validator in ["ETag: \"a\"", "X: 1"] {
            let forward = if validator.starts_with('E') {
                "forward validate"
            } else {
                "forward"
            };
            check(&format!(
                "GET / | {request}
                 0 request => look-up
                 20 found 200 | Cache-Control: max-age=60 | {validator} => {forward}
                 20 response 200 | Cache-Control: max-age=60 | X: 2 => relay
                 = request fwd-status=200 not-stored={why}",
            ));
        }
    }
    // a stale one is of no use beside what came
    check(
        "GET / | Authorization: x
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         60 response 200 | Cache-Control: max-age=60 | X: 2 => relay, drop
         = stale fwd-status=200 not-stored=authorization",
    );
    // unless its origin has it served for longer
    for (request, why) in [
        ("Authorization: x", "authorization"),
        ("Cache-Control: no-store", "request-no-store"),
    ] {
        for (extension, commands) in [
            ("stale-if-error=30", "relay"),
            ("stale-if-error=29", "relay, drop"),
            ("stale-if-error=30, must-revalidate", "relay, drop"),
        ] {
            check(&format!(
                "GET / | {request}
                 0 request => look-up
                 90 found 200 | Cache-Control: max-age=60, {extension} => forward
                 90 response 200 | Cache-Control: max-age=60 | X: 2 => {commands}
                 = stale fwd-status=200 not-stored={why}",
            ));
        }
    }
}

/// It has the Cache-Control of a 200 (RFC 9110 §15.4.5): what it does not say is not inherited.
#[test]
fn response_to_credentials_updates_only_by_its_own_permission() {
    for (permission, lifetime) in [
        ("public, max-age=70", 70),
        ("s-maxage=70", 70),
        ("must-revalidate, max-age=70", 70),
    ] {
        check(&format!(
            "GET / | Authorization: x
             0 request => look-up
             60 found 200 | Cache-Control: public, max-age=60 | ETag: \"a\" => forward validate
             60 update same 304 | Cache-Control: {permission} => freshen lifetime={lifetime} age=0, serve-merged age=0
             = stale fwd-status=304 stored ttl={lifetime}",
        ));
    }
}

#[test]
fn set_cookie_in_a_304_does_not_prevent_freshening() {
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         60 update same 304 | Set-Cookie: a=b => freshen lifetime=60 age=0, serve-merged age=0
         = stale fwd-status=304 stored ttl=60",
    );
    // one that is stored is no longer permitted
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: public, max-age=60 | ETag: \"a\" | Set-Cookie: a=b => forward validate
         60 update same 304 | Cache-Control: max-age=60 => drop, serve-merged age=0
         = stale fwd-status=304 not-stored=set-cookie ttl=60",
    );
}

#[test]
fn not_modified_for_client_precondition_is_relayed_and_not_stored() {
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
fn new_representation_replaces_or_drops_the_outdated_one() {
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
fn error_or_206_to_validation_keeps_the_stored_response() {
    for status in [400, 401, 403, 407, 412, 416, 429, 500, 501, 503] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             61 response {status} => relay
             = stale fwd-status={status} not-stored={}",
            match status {
                // of one hop alone
                407 => "status-not-understood",
                501 => "no-lifetime",
                _ => "no-explicit-lifetime",
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
}

#[test]
fn head_response_freshens_or_drops_the_stored_response() {
    // with and without a validator of ours
    for (validator, forward) in [("ETag: \"a\"", "forward validate"), ("X: 1", "forward")] {
        let begin = format!(
            "HEAD /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60 | {validator} => {forward}"
        );
        check(&format!(
            "{begin}
             60 update same 200 | Cache-Control: max-age=70 => relay, freshen lifetime=70 age=0
             = stale fwd-status=200 stored",
        ));
        check(&format!(
            "{begin}
             60 update other 200 | Cache-Control: max-age=70 => relay, drop
             = stale fwd-status=200 not-stored=method",
        ));
        check(&format!(
            "{begin}
             60 update same 200 | Cache-Control: private => relay, drop
             = stale fwd-status=200 not-stored=private",
        ));
        for status in [404, 405, 500] {
            check(&format!(
                "{begin}
                 60 response {status} => relay
                 = stale fwd-status={status} not-stored=method",
            ));
        }
    }
}

/// A response to GET would say so, too (RFC 9110 §9.3.2): only what a 304 leaves out is inherited.
#[test]
fn head_response_without_own_permission_to_share_updates_nothing() {
    for permission in ["public", "s-maxage=60"] {
        let stored = format!("200 | Cache-Control: max-age=60, {permission} | ETag: \"a\"");
        for (request, update, commands, why) in [
            (
                "HEAD / | Authorization: x",
                "ETag: \"a\"",
                "relay",
                "authorization",
            ),
            ("HEAD /", "Set-Cookie: a=b", "relay, drop", "set-cookie"),
        ] {
            check(&format!(
                "{request}
                 0 request => look-up
                 60 found {stored} => forward validate
                 60 update same 200 | {update} => {commands}
                 = stale fwd-status=200 not-stored={why}",
            ));
            check(&format!(
                "{request}
                 0 request => look-up
                 60 found {stored} => forward validate
                 60 update same 200 | {update} | Cache-Control: max-age=60, {permission} => relay, freshen lifetime=60 age=0
                 = stale fwd-status=200 stored",
            ));
        }
    }
}

#[test]
fn no_response_is_dropped_if_none_is_stored() {
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         1 response 200 | Cache-Control: no-store => relay
         = uri-miss fwd-status=200 not-stored=response-no-store",
    );
}

#[test]
fn mismatched_304_drops_stored_response_and_repeats_the_request() {
    for method in ["GET", "HEAD"] {
        check(&format!(
            "{method} /
             0 request => look-up
             60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             61 update other 304 => drop, forward-again
             62 response 304 => relay
             = stale fwd-status=304 not-stored={}",
            if method == "GET" {
                "status-not-understood"
            } else {
                "method"
            },
        ));
    }
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 update other 304 => drop, forward-again
         65 response 200 | Cache-Control: max-age=60 | ETag: \"b\" => relay, store lifetime=60 age=4
         = stale fwd-status=200 stored",
    );
    check(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         61 update other 304 => drop, forward-again
         62 failed disconnected => answer next-hop
         = error next-hop",
    );
}

#[test]
fn error_to_client_forced_validation_keeps_a_fresh_stored_response() {
    for bypass in ["no-cache", "max-age=0", "min-fresh=50"] {
        for answer in [
            "400 | Cache-Control: max-age=600",
            "404",
            "404 | Cache-Control: max-age=600",
            "410 | Cache-Control: no-store",
            "500 | Cache-Control: public, max-age=600",
            "503",
            "301",
            "302 | ETag: \"b\"",
            "308 | Cache-Control: public",
        ] {
            let status = &answer[..3];
            check(&format!(
                "GET / | Cache-Control: {bypass}
                 0 request => look-up
                 20 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
                 21 response {answer} => relay
                 = request fwd-status={status} not-stored=stored-is-usable",
            ));
        }
        // an answer to the same question
        check(&format!(
            "GET / | Cache-Control: {bypass}
             0 request => look-up
             20 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             20 response 301 | Cache-Control: max-age=70 => relay, store lifetime=70 age=0
             = request fwd-status=301 stored",
        ));
        check(&format!(
            "GET / | Cache-Control: {bypass}
             0 request => look-up
             20 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             20 response 204 | Cache-Control: no-store => relay, drop
             = request fwd-status=204 not-stored=response-no-store",
        ));
    }
    // with its last second of freshness over it is as any stale response
    check(
        "GET / | Cache-Control: no-cache
         0 request => look-up
         59 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         59 response 404 | Cache-Control: max-age=600 => relay
         = request fwd-status=404 not-stored=stored-is-usable",
    );
    check(
        "GET / | Cache-Control: no-cache
         0 request => look-up
         59 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
         60 response 404 => relay, drop
         = request fwd-status=404 not-stored=no-lifetime",
    );
    // a part of which some is missing
    check(
        "GET / | Cache-Control: no-cache
         0 request => look-up
         20 found-part lacking 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward complete
         20 response 416 => forward-again
         20 response 404 => relay
         = request fwd-status=404 not-stored=stored-is-usable",
    );
}
