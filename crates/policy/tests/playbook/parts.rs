//! Parts: kept, served from, asked for the rest of, joined (RFC 9111 §3.3, §3.4).

use crate::script::check;

const PART: &str = "206 | Cache-Control: max-age=60 | ETag: \"a\" | Content-Range: bytes 0-3/10";
const STORED: &str = "200 | Cache-Control: max-age=60 | ETag: \"a\"";
const REST: &str = "206 | Cache-Control: max-age=60 | ETag: \"a\" | Content-Range: bytes 4-9/10";

#[test]
fn part_is_stored_only_if_it_can_be_joined_later() {
    check(&format!(
        "GET / | Range: bytes=0-3
         0 request => look-up
         0 missing target => forward
         1 response {PART} => relay, store lifetime=60 age=1
         = uri-miss fwd-status=206 stored",
    ));
    // no one range, an If-Range, no strong tag, no length
    for (request, response) in [
        ("Range: bytes=0-1,3-3", PART),
        ("Range: lines=0-3", PART),
        ("Accept: */*", PART),
        ("Range: bytes=0-3 | If-Range: \"a\"", PART),
        (
            "Range: bytes=0-3",
            "206 | Cache-Control: max-age=60 | ETag: W/\"a\" | Content-Range: bytes 0-3/10",
        ),
        (
            "Range: bytes=0-3",
            "206 | Cache-Control: max-age=60 | Content-Range: bytes 0-3/10",
        ),
        (
            "Range: bytes=0-3",
            "206 | Cache-Control: max-age=60 | ETag: \"a\" | Content-Range: bytes 0-3/*",
        ),
    ] {
        check(&format!(
            "GET / | {request}
             0 request => look-up
             0 missing target => forward
             0 response {response} => relay
             = uri-miss fwd-status=206 not-stored=partial-content",
        ));
    }
    check(
        "GET / | Range: bytes=0-3
         0 request => look-up
         0 missing target => forward
         0 response 206 | Cache-Control: no-store | ETag: \"a\" | Content-Range: bytes 0-3/10 => relay
         = uri-miss fwd-status=206 not-stored=response-no-store",
    );
}

#[test]
fn part_replaces_a_stored_whole_only_if_the_range_was_requested() {
    // we asked for the whole, with a validator
    check(&format!(
        "GET / | Range: bytes=0-3
         0 request => look-up
         60 found {STORED} => forward validate
         60 response {PART} => relay
         = stale fwd-status=206 not-stored=partial-content",
    ));
    check(&format!(
        "GET / | Range: bytes=0-3
         0 refresh {STORED} => forward validate
         0 response {PART} => relay
         = stale fwd-status=206 not-stored=partial-content",
    ));
    check(&format!(
        "GET / | Range: bytes=0-3
         0 refresh 200 | Cache-Control: max-age=60 => forward
         0 response {PART} => relay
         = stale fwd-status=206 not-stored=partial-content",
    ));
    // without one the client's range is asked for, and what comes is of more use than what is stale
    // for good
    check(&format!(
        "GET / | Range: bytes=0-3
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         60 response {PART} => relay, store lifetime=60 age=0
         = stale fwd-status=206 stored",
    ));
}

#[test]
fn part_that_covers_the_request_is_reused_by_the_rules_for_a_whole() {
    for request in [
        "GET / | Range: bytes=0-3",
        "HEAD /",
        "GET / | If-None-Match: \"a\"",
    ] {
        check(&format!(
            "{request}
             0 request => look-up
             59 found-part wanted {STORED} => serve age=59
             = hit ttl=1",
        ));
        check(&format!(
            "{request}
             0 request => look-up
             60 found-part wanted {STORED} => forward validate
             60 update same 304 => freshen lifetime=60 age=0, serve-merged age=0
             = stale fwd-status=304 stored ttl=60",
        ));
    }
    check(
        "GET / | Range: bytes=0-3
         0 request => look-up
         60 found-part wanted 200 | Cache-Control: max-age=60, stale-while-revalidate=9 | ETag: \"a\" => serve age=60, refresh
         = hit stale-while-revalidate ttl=0",
    );
    check(
        "GET / | Range: bytes=0-3
         0 request => look-up
         60 found-part wanted 200 | Cache-Control: max-age=60, stale-if-error=9 | ETag: \"a\" => forward validate
         69 response 503 => serve age=69
         = stale stale-if-error fwd-status=503 ttl=-9",
    );
}

#[test]
fn lacking_part_is_completed_with_reason_partial_stale_or_request() {
    for (second, request, fwd) in [
        (59, "Accept: */*", "partial"),
        (60, "Accept: */*", "stale"),
        (60, "Cache-Control: max-stale", "partial"),
        (59, "Cache-Control: no-cache", "request"),
        (59, "Cache-Control: max-age=58", "request"),
        (59, "Cache-Control: max-age=59", "partial"),
        (59, "Range: bytes=2-5", "partial"),
        (59, "Range: bytes=2-5 | If-Range: \"b\"", "partial"),
        (59, "Range: lines=2-5", "partial"),
        (59, "If-None-Match: \"b\"", "partial"),
        (59, "Authorization: x", "partial"),
    ] {
        check(&format!(
            "GET / | {request}
             0 request => look-up
             {second} found-part lacking {STORED} => forward complete
             = {fwd}",
        ));
    }
    // nothing is done in the background: what comes says whether it is still the same
    check(
        "GET /
         0 request => look-up
         60 found-part lacking 200 | Cache-Control: max-age=60, stale-while-revalidate=9 | ETag: \"a\" => forward complete
         = partial",
    );
    check(&format!(
        "GET / | Cache-Control: only-if-cached
         0 request => look-up
         0 found-part lacking {STORED} => answer only-if-cached
         = refused only-if-cached",
    ));
}

#[test]
fn part_that_cannot_be_joined_is_forwarded_without_completion() {
    // several ranges, and a request that forbids to store
    for request in ["Range: bytes=0-1,5-6", "Cache-Control: no-store"] {
        check(&format!(
            "GET / | {request}
             0 request => look-up
             0 found-part lacking {STORED} => forward
             = partial",
        ));
        check(&format!(
            "GET / | {request}
             0 request => look-up
             60 found-part lacking {STORED} => forward
             = stale",
        ));
    }
    check(&format!(
        "GET / | Range: bytes=0-1,5-6
         0 request => look-up
         0 found-part lacking {STORED} => forward
         0 response 206 | ETag: \"a\" => relay
         = partial fwd-status=206 not-stored=partial-content",
    ));
    // its tag became weak by a 304
    check(&format!(
        "GET / | Range: bytes=0-3
         0 request => look-up
         0 found-part lacking 200 | Cache-Control: max-age=60 | ETag: W/\"a\" => forward
         0 response {PART} => relay, store lifetime=60 age=0
         = partial fwd-status=206 stored",
    ));
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking 404 | Cache-Control: max-age=60 | ETag: \"a\" => forward
         0 response {STORED} => relay, store lifetime=60 age=0
         = partial fwd-status=200 stored",
    ));
}

#[test]
fn fitting_206_is_combined_with_the_stored_part() {
    for (second, fwd) in [(59, "partial"), (60, "stale")] {
        check(&format!(
            "GET /
             0 request => look-up
             {second} found-part lacking {STORED} => forward complete
             {second} update same {REST} => relay, combine lifetime=60 age=0
             = {fwd} fwd-status=206 stored",
        ));
    }
    check(&format!(
        "GET / | Range: bytes=2-5
         0 request => look-up
         1 found-part lacking {STORED} => forward complete
         4 update same {REST} => relay, combine lifetime=60 age=3
         = partial fwd-status=206 stored",
    ));
}

#[test]
fn mismatched_206_or_416_drops_the_part_and_repeats_the_request() {
    for request in ["Accept: */*", "Range: bytes=2-5"] {
        for event in [
            format!("update other {REST}"),
            // it is not known to fit
            format!("response {REST}"),
            "response 416 | Content-Range: bytes */4".to_owned(),
            "update same 416".to_owned(),
        ] {
            check(&format!(
                "GET / | {request}
                 0 request => look-up
                 0 found-part lacking {STORED} => forward complete
                 0 {event} => drop, forward-again
                 = partial",
            ));
        }
    }
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 update other {REST} => drop, forward-again
         9 response 200 | Cache-Control: max-age=70 | ETag: \"b\" => relay, store lifetime=70 age=9
         = partial fwd-status=200 stored",
    ));
    // now it is what the client asked for
    check(&format!(
        "GET / | Range: bytes=0-3
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         5 update other {REST} => drop, forward-again
         9 response {PART} => relay, store lifetime=60 age=4
         = partial fwd-status=206 stored",
    ));
}

#[test]
fn completion_is_retried_only_once() {
    for event in [
        format!("update same {REST}"),
        format!("update other {REST}"),
        format!("response {REST}"),
    ] {
        check(&format!(
            "GET /
             0 request => look-up
             0 found-part lacking {STORED} => forward complete
             0 update other {REST} => drop, forward-again
             0 {event} => relay
             = partial fwd-status=206 not-stored=partial-content",
        ));
    }
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 update other {REST} => drop, forward-again
         0 response 416 => relay
         = partial fwd-status=416 not-stored=no-explicit-lifetime",
    ));
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 update other {REST} => drop, forward-again
         0 failed disconnected => answer next-hop
         = error next-hop",
    ));
}

#[test]
fn part_that_may_not_be_stored_is_not_combined() {
    let refused = |request: &str, directives: &str, commands: &str, then: &str, why: &str| {
        check(&format!(
            "GET / | {request}
             0 request => look-up
             0 found-part lacking {STORED} => forward complete
             0 update same 206 | Cache-Control: {directives} | ETag: \"a\" | Content-Range: bytes 4-9/10 => {commands}
             0 response 200 | Cache-Control: {directives} | ETag: \"a\" => {then}
             = partial fwd-status=200 not-stored={why}",
        ));
    };
    for (directives, why) in [("no-store", "response-no-store"), ("private", "private")] {
        refused(
            "Accept: */*",
            directives,
            "drop, forward-again",
            "relay",
            why,
        );
    }
    // nothing is wrong with the stored part
    let (request, why) = ("Authorization: x", "authorization");
    refused(request, "max-age=60", "forward-again", "relay, drop", why);
    // what is stored may be shared, and the 206 does not say so of itself
    check(
        "GET / | Authorization: x
         0 request => look-up
         0 found-part lacking 200 | Cache-Control: public, max-age=60 | ETag: \"a\" => forward complete
         0 update same 206 | ETag: \"a\" | Content-Range: bytes 4-9/10 => forward-again
         = partial",
    );
    check(&format!(
        "GET / | Authorization: x
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 update same 206 | Cache-Control: public | ETag: \"a\" | Content-Range: bytes 4-9/10 => relay, combine lifetime=0 age=0
         = partial fwd-status=206 stored",
    ));
}

#[test]
fn part_with_set_cookie_is_combined_only_if_declared_public() {
    let sets = |directives: &str, commands: &str| {
        format!(
            "GET /
             0 request => look-up
             0 found-part lacking {STORED} => forward complete
             0 update same 206 | Set-Cookie: a=b{directives} | ETag: \"a\" | Content-Range: bytes 4-9/10 => {commands}"
        )
    };
    let script = sets(" | Cache-Control: max-age=60", "drop, forward-again");
    check(&format!("{script}\n = partial"));
    let script = sets(
        " | Cache-Control: public, max-age=60",
        "relay, combine lifetime=60 age=0",
    );
    check(&format!("{script}\n = partial fwd-status=206 stored"));
}

#[test]
fn changed_representation_drops_the_old_part_and_an_error_keeps_it() {
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 response 200 | Cache-Control: max-age=70 | ETag: \"b\" => relay, drop, store lifetime=70 age=0
         = partial fwd-status=200 stored",
    ));
    for status in [200, 404, 410] {
        check(&format!(
            "GET /
             0 request => look-up
             0 found-part lacking {STORED} => forward complete
             0 response {status} | Cache-Control: no-store => relay, drop
             = partial fwd-status={status} not-stored=response-no-store",
        ));
    }
    for status in [304, 403, 503] {
        let why = if status == 304 {
            "status-not-understood"
        } else {
            "no-explicit-lifetime"
        };
        check(&format!(
            "GET /
             0 request => look-up
             0 found-part lacking {STORED} => forward complete
             0 response {status} => relay
             = partial fwd-status={status} not-stored={why}",
        ));
    }
}

#[test]
fn part_is_not_served_for_the_whole_when_next_hop_fails() {
    let excused = "200 | Cache-Control: max-age=60, stale-if-error=99 | ETag: \"a\"";
    check(&format!(
        "GET /
         0 request => look-up
         60 found-part lacking {excused} => forward complete
         60 response 503 => relay
         = stale fwd-status=503 not-stored=no-explicit-lifetime",
    ));
    check(&format!(
        "GET /
         0 request => look-up
         60 found-part lacking {excused} => forward complete
         60 failed disconnected => answer next-hop
         = error next-hop",
    ));
    check(&format!(
        "GET / | Range: bytes=0-1,4-5
         0 request => look-up
         60 found-part lacking {excused} => forward
         60 failed disconnected => answer next-hop
         = error next-hop",
    ));
}

#[test]
fn incomplete_response_is_kept_as_part_only_if_it_can_be_completed() {
    let ended = |response: &str, commands: &str, storing: &str| {
        check(&format!(
            "GET / | Range: bytes=0-3
             0 request => look-up
             0 missing target => forward
             0 response {response} => relay, store lifetime=60 age=0
             9 incomplete => {commands}
             = uri-miss fwd-status={} {storing}",
            &response[..3],
        ));
    };
    ended(STORED, "keep-part", "stored");
    ended(PART, "keep-part", "stored");
    for lost in [
        "200 | Cache-Control: max-age=60 | ETag: W/\"a\"",
        "200 | Cache-Control: max-age=60 | Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
        "404 | Cache-Control: max-age=60 | ETag: \"a\"",
        "203 | Cache-Control: max-age=60 | ETag: \"a\"",
    ] {
        ended(lost, "nothing", "not-stored=incomplete");
    }
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 update same {REST} => relay, combine lifetime=60 age=0
         9 incomplete => keep-part
         = partial fwd-status=206 stored",
    ));
}

#[test]
fn incomplete_response_replaces_no_whole_one_that_can_be_served() {
    for tag in ["a", "b"] {
        let new = format!("200 | Cache-Control: max-age=60 | ETag: \"{tag}\"");
        check(&format!(
            "GET / | Cache-Control: no-cache
             0 request => look-up
             20 found 200 | Cache-Control: max-age=60 | ETag: \"a\" => forward validate
             20 response {new} => relay, store lifetime=60 age=0
             22 incomplete => nothing
             = request fwd-status=200 not-stored=incomplete",
        ));
        let excused = "200 | Cache-Control: max-age=60, stale-if-error=60 | ETag: \"a\"";
        check(&format!(
            "GET /
             0 request => look-up
             90 found {excused} => forward validate
             90 response {new} => relay, store lifetime=60 age=0
             92 incomplete => nothing
             = stale fwd-status=200 not-stored=incomplete",
        ));
        check(&format!(
            "GET /
             0 request => look-up
             130 found {excused} => forward validate
             130 response {new} => relay, store lifetime=60 age=0
             132 incomplete => keep-part
             = stale fwd-status=200 stored",
        ));
    }
}

#[test]
fn incomplete_response_that_was_not_stored_is_not_kept_as_part() {
    check(&format!(
        "GET /
         0 request => look-up
         0 missing target => forward
         0 response {STORED} => relay, store lifetime=60 age=0
         1 not-admitted => nothing
         9 incomplete => nothing
         = uri-miss fwd-status=200 not-stored=no-slot",
    ));
    check(
        "GET /
         0 request => look-up
         0 missing target => forward
         0 response 200 | Cache-Control: no-store | ETag: \"a\" => relay
         9 incomplete => nothing
         = uri-miss fwd-status=200 not-stored=response-no-store",
    );
}

#[test]
fn part_that_nothing_has_asked_for_is_completed_or_stays() {
    check(&format!(
        "GET /
         0 request => look-up
         0 found-part lacking {STORED} => forward complete
         0 unasked => nothing
         1 update same {REST} => relay, combine lifetime=60 age=1
         = partial fwd-status=206 stored",
    ));
    let private = REST.replace("max-age=60", "private, max-age=60");
    for event in [
        format!("update other {REST}"),
        format!("update same {private}"),
        "response 200 | Cache-Control: max-age=60 | ETag: \"b\"".to_owned(),
        "response 302 | Location: /login".to_owned(),
        "response 404".to_owned(),
        "response 404 | Cache-Control: max-age=60".to_owned(),
        "response 416".to_owned(),
        "response 429".to_owned(),
        "response 503 | Cache-Control: max-age=60".to_owned(),
    ] {
        check(&format!(
            "GET /
             0 request => look-up
             0 found-part lacking {STORED} => forward complete
             0 unasked => nothing
             1 {event} => forward-again
             = partial",
        ));
    }
}
