use super::*;

const NOW: Timestamp = Timestamp(1_767_225_600);
const EARLY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATE: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn lines<'a>(lines: &[(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
    lines
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

fn request(target: &str, fields: &[(&str, &str)]) -> RequestFacts {
    RequestFacts::gather(Method::Get, target, &lines(fields))
}

fn response(fields: &[(&str, &str)]) -> ResponseFacts {
    ResponseFacts::gather(200, &lines(fields), NOW)
}

/// A request with this field differs from one without by exactly what `change` does.
fn check(name: &str, value: &str, change: impl FnOnce(&mut RequestFacts)) {
    let mut expected = request("/", &[]);
    change(&mut expected);
    assert_eq!(request("/", &[(name, value)]), expected, "{name}: {value}");
}

fn check_age(values: &[&str], expected: Option<u32>) {
    let fields: Vec<_> = values.iter().map(|value| ("Age", *value)).collect();
    assert_eq!(
        response(&fields).age.map(DeltaSeconds::as_secs),
        expected,
        "{values:?}"
    );
}

fn check_expires(values: &[&str], expected: Expires) {
    let fields: Vec<_> = values.iter().map(|value| ("Expires", *value)).collect();
    assert_eq!(response(&fields).expires, Some(expected), "{values:?}");
}

#[test]
fn each_request_field_sets_only_its_own_facts() {
    check("Accept", "*/*", |_| {});
    check("AUTHORIZATION", "x", |facts| facts.has_authorization = true);
    check("cookie", "a=b", |facts| facts.has_cookie = true);
    check("Range", "", |facts| facts.has_range = true);
    check("Range", "bytes=0-1", |facts| {
        facts.has_range = true;
        facts.range = RangeKind::One;
    });
    check("If-Range", "x", |facts| facts.has_if_range = true);
    check("Expect", "100-Continue", |facts| {
        facts.expects_continue = true
    });
    check("Expect", "100-continued", |_| {});
    check("Pragma", "foo", |facts| facts.has_pragma = true);
    for name in [
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
    ] {
        check(name, "x", |facts| facts.preconditions = true);
    }
    check("Cache-Control", "no-store", |facts| {
        facts.directives.any = true;
        facts.directives.no_store = true;
    });
}

#[test]
fn range_kind_is_set_only_for_byte_ranges_of_a_get() {
    let kind = |method, values: &[&str]| {
        let fields: Vec<_> = values.iter().map(|value| ("Range", *value)).collect();
        RequestFacts::gather(method, "/", &lines(&fields)).range
    };
    assert_eq!(kind(Method::Get, &["bytes=0-1"]), RangeKind::One);
    assert_eq!(kind(Method::Get, &["bytes=0-1,3-4"]), RangeKind::Many);
    assert_eq!(
        kind(Method::Get, &["bytes=0-1", "bytes=0-1"]),
        RangeKind::Many
    );
    assert_eq!(kind(Method::Get, &["lines=0-1"]), RangeKind::None);
    assert_eq!(kind(Method::Head, &["bytes=0-1"]), RangeKind::None);
    assert_eq!(kind(Method::Post, &["bytes=0-1"]), RangeKind::None);
}

#[test]
fn request_for_whole_or_part_does_not_keep_the_client_range() {
    let whole = request("/", &[("Cookie", "a")]);
    for fields in [
        &[("Range", "bytes=0-1")][..],
        &[("Range", "bytes=0-1,3-4"), ("If-Range", "x")],
        &[("Range", "x")],
        &[],
    ] {
        let facts = request("/", &[fields, &[("Cookie", "a")]].concat());
        assert_eq!(facts.for_whole(), whole, "{fields:?}");
        let part = request("/", &[("Range", "bytes=7-8"), ("Cookie", "a")]);
        assert_eq!(facts.for_part(), part, "{fields:?}");
    }
}

#[test]
fn only_a_single_satisfied_content_range_is_used() {
    let part = ("Content-Range", "bytes 0-1/3");
    let parsed = ContentRange::parse(part.1.as_bytes());
    assert_eq!(response(&[part]).content_range, parsed);
    for fields in [
        &[part, part][..],
        &[("Content-Range", "x"), part],
        &[part, ("Content-Range", "x")],
        &[("Content-Range", "bytes */3")],
        &[("Content-Range", "x")],
        &[],
    ] {
        assert_eq!(response(fields).content_range, None, "{fields:?}");
    }
    assert!(response(&[part, part]).has_content_range);
}

#[test]
fn pragma_no_cache_applies_only_without_cache_control() {
    assert!(
        request("/", &[("Pragma", "foo, No-Cache")])
            .directives
            .no_cache
    );
    assert!(
        !request("/", &[("Pragma", "no-cache"), ("Cache-Control", "")])
            .directives
            .no_cache
    );
    assert!(
        !request(
            "/",
            &[("Cache-Control", "max-age=1"), ("Pragma", "no-cache")]
        )
        .directives
        .no_cache
    );
}

#[test]
fn query_and_cgi_bin_are_recognized_in_the_target() {
    for (target, query, cgi_bin) in [
        ("/", false, false),
        ("/?", true, false),
        ("/a?b?c", true, false),
        ("/cgi-bin/x", false, true),
        ("/x/cgi-bin", false, true),
        ("/cgi-bi/-bin/cgi-", false, false),
        ("-bin", false, false),
        ("/x?cgi-bin", true, false),
        ("*", false, false),
    ] {
        let facts = request(target, &[]);
        assert_eq!(
            (facts.has_query, facts.has_cgi_bin),
            (query, cgi_bin),
            "{target:?}"
        );
    }
}

#[test]
fn age_is_the_first_member_of_the_first_field_line() {
    check_age(&["7200"], Some(7200));
    check_age(&["0"], Some(0));
    check_age(&["2147483649"], Some(1 << 31));
    check_age(&["7200, 0"], Some(7200));
    check_age(&["0, 7200"], Some(0));
    check_age(&["7200", "0"], Some(7200));
    check_age(&["0", "7200"], Some(0));
    for invalid in ["abc", "-7200", "7200.0", "7200;foo=bar", "", "\"1\"", "+1"] {
        check_age(&[invalid], None);
        check_age(&[invalid, "1"], None);
    }
    check_age(&[], None);
}

#[test]
fn earliest_expires_applies_and_one_invalid_value_voids_it() {
    check_expires(&[EARLY], Expires::At(Timestamp(784_111_777)));
    check_expires(&[EARLY, LATE], Expires::At(Timestamp(784_111_777)));
    check_expires(&[LATE, EARLY], Expires::At(Timestamp(784_111_777)));
    for values in [&["0"][..], &["-1"], &[""], &[EARLY, "0"], &["0", EARLY]] {
        check_expires(values, Expires::Invalid);
    }
    assert_eq!(response(&[]).expires, None);
}

#[test]
fn invalid_dates_and_validators_count_as_absent() {
    let facts = response(&[
        ("Date", EARLY),
        ("Last-Modified", LATE),
        ("ETag", "W/\"a\""),
    ]);
    assert_eq!(facts.date, Some(Timestamp(784_111_777)));
    assert_eq!(facts.last_modified, Some(Timestamp(784_111_778)));
    assert_eq!(facts.entity_tag, Some(Strength::Weak));
    assert!(facts.has_validator() && !facts.has_explicit_lifetime());
    let facts = response(&[("Date", "foo"), ("Last-Modified", "0"), ("ETag", "a")]);
    assert_eq!(
        (facts.date, facts.last_modified, facts.entity_tag),
        (None, None, None)
    );
    assert!(!facts.has_validator());
    assert_eq!(
        response(&[("ETag", "\"\"")]).entity_tag,
        Some(Strength::Strong)
    );
}

#[test]
fn each_response_field_sets_its_own_facts() {
    let facts = response(&[
        ("Set-Cookie", "a=b"),
        ("Pragma", "no-cache"),
        ("Vary", "a"),
        ("Vary", "*"),
    ]);
    assert!(facts.has_set_cookie && facts.has_pragma);
    assert_eq!(facts.vary, VaryKind::Star);
    let names = |count: usize| vec!["a"; count].join(", ");
    for (count, expected) in [
        (NOMINATED_FIELDS_MAX, VaryKind::Fields),
        (NOMINATED_FIELDS_MAX + 1, VaryKind::Star),
    ] {
        assert_eq!(
            response(&[("Vary", &names(count))]).vary,
            expected,
            "{count}"
        );
    }
    assert!(response(&[("Content-Range", "bytes 0-1/2")]).has_content_range);
    assert!(!response(&[("Content-Range", "foo")]).has_content_range);
    assert!(!response(&[("Content-Range", "bytes */2")]).has_content_range);
    for name in ["Cache-Control", "Expires"] {
        assert!(response(&[(name, "max-age")]).has_explicit_lifetime());
    }
    assert!(response(&[("Cache-Control", "s-maxage=1")]).has_explicit_lifetime());
    assert!(!response(&[("Cache-Control", "public")]).has_explicit_lifetime());
}
