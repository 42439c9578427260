use super::*;
use weir_semantics::{FieldLine, Timestamp};

fn lines<'a>(fields: &[(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
    fields
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

fn check(method: Method, target: &str, fields: &[(&str, &str)], expected: Option<Uncachable1998>) {
    let request = RequestFacts::gather(method, target, &lines(fields));
    let cause = Profile::Http1998.bypass(&request);
    assert_eq!(cause, expected, "{target} {fields:?}");
    assert_eq!(Profile::Rfc9111.bypass(&request), None);
}

#[test]
fn http1998_bypass_reason_is_the_first_cause_in_paper_order() {
    use Uncachable1998::{
        Authorization, CgiBin, ClientCacheControl, Cookie, Method as ByMethod, Query,
    };
    let cookie = ("Cookie", "a");
    let credentials = ("Authorization", "a");
    let control = ("Cache-Control", "max-age=1");
    check(Method::Get, "/", &[], None);
    check(Method::Head, "/a", &[("Accept", "a")], None);
    check(Method::Get, "/", &[cookie], Some(Cookie));
    check(Method::Get, "/?", &[], Some(Query));
    check(Method::Get, "/", &[control], Some(ClientCacheControl));
    check(
        Method::Get,
        "/",
        &[("Pragma", "a")],
        Some(ClientCacheControl),
    );
    check(Method::Get, "/cgi-bin/", &[], Some(CgiBin));
    check(Method::Post, "/", &[], Some(ByMethod));
    check(Method::Get, "/", &[credentials], Some(Authorization));
    // the first in the paper's order, where several hold
    let all = [credentials, control, cookie];
    check(Method::Post, "/cgi-bin/?a", &all, Some(Cookie));
    check(Method::Post, "/cgi-bin/?a", &all[..2], Some(Query));
    check(
        Method::Post,
        "/cgi-bin/",
        &all[..2],
        Some(ClientCacheControl),
    );
    check(Method::Post, "/cgi-bin/", &all[..1], Some(CgiBin));
    check(Method::Post, "/", &all[..1], Some(ByMethod));
}

#[test]
fn http1998_refuses_responses_with_cookies_or_cache_control_fields() {
    use Uncachable1998::{Cookie, ServerCacheControl};
    for (fields, expected) in [
        (&[][..], None),
        (&[("ETag", "\"a\""), ("Date", "a")], None),
        (&[("Set-Cookie", "a")], Some(Cookie)),
        (&[("Set-Cookie", "a"), ("Expires", "0")], Some(Cookie)),
        (&[("Cache-Control", "")], Some(ServerCacheControl)),
        (&[("Expires", "0")], Some(ServerCacheControl)),
        (&[("Pragma", "no-cache")], Some(ServerCacheControl)),
    ] {
        let response = ResponseFacts::gather(200, &lines(fields), Timestamp(0));
        assert_eq!(Profile::Http1998.refuses(&response), expected, "{fields:?}");
        assert_eq!(Profile::Rfc9111.refuses(&response), None);
    }
}

#[test]
fn profile_name_parses_exactly_and_default_is_rfc9111() {
    assert_eq!("rfc9111".parse(), Ok(Profile::Rfc9111));
    assert_eq!("http-1998".parse(), Ok(Profile::Http1998));
    for name in ["", "rfc-9111", "HTTP-1998", "http-1998 "] {
        assert!(name.parse::<Profile>().is_err(), "{name:?}");
    }
    assert_eq!(Profile::default(), Profile::Rfc9111);
}
