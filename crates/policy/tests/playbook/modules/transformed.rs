//! Responses whose content modules change before they are stored.

use crate::script::check;

const FRESH: &str = "200 | Cache-Control: max-age=60 | ETag: \"a\"";

#[test]
fn transformed_response_is_stored_as_one() {
    check(&format!(
        "GET /
         0 request => look-up
         0 missing variant => forward
         0 transformed => nothing
         0 response {FRESH} => relay, store lifetime=60 age=0 transformed
         = vary-miss fwd-status=200 stored",
    ));
}

#[test]
fn part_of_a_transformed_response_is_not_kept() {
    for (transformed, kept, verdict) in [
        ("0 follows => yes", "keep-part", "stored"),
        (
            "0 transformed => nothing",
            "nothing",
            "not-stored=incomplete",
        ),
    ] {
        let facts = if kept == "nothing" {
            " transformed"
        } else {
            ""
        };
        check(&format!(
            "GET /
             0 request => look-up
             0 missing target => forward
             {transformed}
             0 response {FRESH} => relay, store lifetime=60 age=0{facts}
             1 incomplete => {kept}
             = uri-miss fwd-status=200 {verdict}",
        ));
    }
}

#[test]
fn transformed_part_is_not_completed_by_a_range() {
    check(&format!(
        "GET /
         0 request => look-up
         1 found-part lacking {FRESH} => forward complete
         = partial",
    ));
    check(&format!(
        "GET /
         0 request => look-up
         1 found-part lacking transformed {FRESH} => forward
         = partial",
    ));
}

#[test]
fn validated_response_stays_transformed_and_one_that_was_not_stays_so() {
    check(&format!(
        "GET /
         0 request => look-up
         60 found transformed {FRESH} => forward validate
         60 update same 304 => freshen lifetime=60 age=0 transformed, serve-merged age=0
         = stale fwd-status=304 stored ttl=60",
    ));
    check(&format!(
        "GET /
         0 request => look-up
         60 found {FRESH} => forward validate
         60 transformed => nothing
         60 update same 304 => freshen lifetime=60 age=0, serve-merged age=0
         = stale fwd-status=304 stored ttl=60",
    ));
}

#[test]
fn transformed_response_that_has_changed_is_replaced_by_what_comes() {
    check(&format!(
        "GET /
         0 request => look-up
         60 found transformed {FRESH} => forward validate
         60 response {FRESH} => relay, store lifetime=60 age=0
         = stale fwd-status=200 stored",
    ));
}

#[test]
fn request_sent_for_the_whole_leads_whatever_its_client_asks() {
    for fields in [
        "If-None-Match: \"a\"",
        "Range: bytes=0-3",
        "Range: bytes=0-3 | If-Range: \"a\"",
    ] {
        check(&format!(
            "GET / | {fields}
             0 fetch-whole => nothing
             0 request => look-up
             0 missing target => forward
             0 follows => yes
             0 leads => yes
             0 response {FRESH} => relay, store lifetime=60 age=0
             = uri-miss fwd-status=200 stored",
        ));
    }
    // no next hop was asked for a part
    check(
        "GET / | Range: bytes=0-3
         0 fetch-whole => nothing
         0 request => look-up
         0 missing target => forward
         0 response 206 | Cache-Control: max-age=60 | ETag: \"a\" | Content-Range: bytes 0-3/10 => relay
         = uri-miss fwd-status=206 not-stored=partial-content",
    );
}
