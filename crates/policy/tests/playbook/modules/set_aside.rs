//! Responses that a failed module let pass: they are not stored, and remove nothing that is.

use crate::script::check;

const FRESH: &str = "200 | Cache-Control: max-age=60 | ETag: \"a\"";
const PRIVATE: &str = "200 | Cache-Control: private, max-age=60";

#[test]
fn response_that_would_replace_the_stored_one_goes_to_its_client_alone() {
    for (fields, at_s, reason) in [
        ("", 60, "stale"),
        (" | Cache-Control: no-cache", 10, "request"),
    ] {
        for response in [
            FRESH,
            "404 | Cache-Control: max-age=60",
            "301 | Cache-Control: max-age=60",
        ] {
            let status = &response[..3];
            if reason == "request" && status == "404" {
                // an error does not replace a fresh response in any case
                continue;
            }
            check(&format!(
                "GET /{fields}
                 0 request => look-up
                 {at_s} found {FRESH} => forward validate
                 {at_s} keep-stored => nothing
                 {at_s} response {response} => relay
                 = {reason} fwd-status={status} not-stored=module",
            ));
        }
    }
}

#[test]
fn response_without_a_validator_and_a_part_of_it_stay_too() {
    check(&format!(
        "GET /
         0 request => look-up
         60 found 200 | Cache-Control: max-age=60 => forward
         60 keep-stored => nothing
         60 response {FRESH} => relay
         = stale fwd-status=200 not-stored=module",
    ));
    check(&format!(
        "GET /
         0 request => look-up
         1 found-part lacking {FRESH} => forward complete
         1 keep-stored => nothing
         1 response {FRESH} => relay
         = partial fwd-status=200 not-stored=module",
    ));
}

#[test]
fn validation_serves_the_merged_response_and_leaves_the_stored_one_as_it_was() {
    check(&format!(
        "GET /
         0 request => look-up
         60 found {FRESH} => forward validate
         60 keep-stored => nothing
         60 update same 304 => serve-merged age=0
         = stale fwd-status=304 not-stored=module ttl=60",
    ));
    check(&format!(
        "HEAD /
         0 request => look-up
         60 found {FRESH} => forward validate
         60 keep-stored => nothing
         60 update same {FRESH} => relay
         = stale fwd-status=200 not-stored=module",
    ));
}

#[test]
fn part_that_would_complete_the_stored_one_is_requested_again_as_the_whole() {
    check(&format!(
        "GET /
         0 request => look-up
         1 found-part lacking {FRESH} => forward complete
         1 keep-stored => nothing
         1 update same 206 | Cache-Control: max-age=60 | ETag: \"a\" | Content-Range: bytes 4-9/10 => forward-again
         1 response {FRESH} => relay
         = partial fwd-status=200 not-stored=module",
    ));
}

#[test]
fn refresh_in_the_background_leaves_the_stored_response_as_it_was() {
    let stored = "200 | Cache-Control: max-age=60, stale-while-revalidate=60 | ETag: \"a\"";
    check(&format!(
        "GET /
         70 refresh {stored} => forward validate
         70 keep-stored => nothing
         70 response {FRESH} => relay
         = stale fwd-status=200 not-stored=module",
    ));
}

#[test]
fn response_that_the_rules_do_not_store_drops_the_stored_one_as_without_modules() {
    for kept in ["60 keep-stored => nothing\n", ""] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found {FRESH} => forward validate
             {kept}60 response {PRIVATE} => relay, drop
             = stale fwd-status=200 not-stored=private",
        ));
        check(&format!(
            "GET /
             0 request => look-up
             60 found {FRESH} => forward validate
             {kept}60 update same 304 | Cache-Control: private => drop, serve-merged age=0
             = stale fwd-status=304 not-stored=private ttl=0",
        ));
    }
}

#[test]
fn response_that_a_module_forbids_to_store_drops_the_stored_one() {
    for kept in ["60 keep-stored => nothing\n", ""] {
        check(&format!(
            "GET /
             0 request => look-up
             60 found {FRESH} => forward validate
             60 forbid-storing => nothing
             {kept}60 response {FRESH} => relay, drop
             = stale fwd-status=200 not-stored=module",
        ));
    }
}

#[test]
fn unsafe_request_invalidates_whatever_modules_do() {
    check(
        "POST /
         0 request => forward
         0 keep-stored => nothing
         0 response 200 => relay, invalidate
         = method fwd-status=200 not-stored=bypass",
    );
}

#[test]
fn validator_of_another_response_drops_the_stored_one_whatever_modules_do() {
    check(&format!(
        "GET /
         0 request => look-up
         60 found {FRESH} => forward validate
         60 keep-stored => nothing
         60 update other 304 | ETag: \"b\" => drop, forward-again
         60 response {FRESH} => relay
         = stale fwd-status=200 not-stored=module",
    ));
}
