//! The profile `http-1998`: each cause by which a request goes around the cache or a response is
//! not stored.

use crate::script::check;

#[track_caller]
fn check_bypass(request: &str) {
    check(&format!(
        "profile http-1998
         {request}
         0 request => forward
         0 response 200 | Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT => relay
         = bypass fwd-status=200 not-stored=bypass",
    ));
    // the same by the RFC
    let request = request.replace("no-cache", "foo");
    check(&format!(
        "{request}
         0 request => look-up
         0 found 200 | Cache-Control: max-age=60 => serve age=0
         = hit ttl=60",
    ));
}

#[test]
fn http1998_uncachable_request_bypasses_the_cache() {
    check_bypass("GET / | Cookie: a=b");
    check_bypass("HEAD / | Cookie: a=b");
    check_bypass("GET /?a");
    check_bypass("GET /cgi-bin/a");
    check_bypass("GET / | Cache-Control: max-stale");
    check_bypass("GET / | Pragma: no-cache");
    check_bypass("GET / | Authorization: x");
}

#[test]
fn http1998_post_is_reported_with_reason_method() {
    check(
        "profile http-1998
         POST /
         0 request => forward
         0 response 200 => relay, invalidate
         = method fwd-status=200 not-stored=bypass",
    );
}

#[test]
fn http1998_stores_plain_responses_and_no_uncachable_ones() {
    for (fields, commands, storing) in [
        ("", "relay, store lifetime=10 age=0", "stored"),
        ("| Set-Cookie: a=b", "relay", "not-stored=1998-cookie"),
        (
            "| Cache-Control: max-age=60",
            "relay",
            "not-stored=1998-server-cache-control",
        ),
        (
            "| Expires: Sun, 06 Nov 1994 09:49:37 GMT",
            "relay",
            "not-stored=1998-server-cache-control",
        ),
        (
            "| Pragma: foo",
            "relay",
            "not-stored=1998-server-cache-control",
        ),
        // what the RFC forbids is told as the RFC's
        (
            "| Cache-Control: no-store",
            "relay",
            "not-stored=response-no-store",
        ),
    ] {
        check(
            &format!(
                "profile http-1998
             GET /
             0 request => look-up
             0 missing target => forward
             0 response 200 | Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT {fields} => {commands}
             = uri-miss fwd-status=200 {storing}",
            )
            .replace("GMT  =>", "GMT =>"),
        );
    }
}

#[test]
fn http1998_plain_request_is_a_hit() {
    check(
        "profile http-1998
         GET /cgi-bi/x
         0 request => look-up
         9 found 200 | Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT => serve age=9
         = hit ttl=1",
    );
}
