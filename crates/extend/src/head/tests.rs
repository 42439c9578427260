//! Changes of heads, and what is refused.

use super::*;
use crate::fields::Fields;
use weir_semantics::FieldLine;

fn head() -> RequestHead<'static> {
    RequestHead::new("GET", "a.example", "/x?y", Fields::default())
}

#[test]
fn target_that_could_end_its_line_or_name_another_part_is_refused() {
    for path in [
        "",
        "x",
        "http://b/",
        "/a b",
        "/a\r\nX: 1",
        "/a#b",
        "/ä",
        "/\0",
    ] {
        let mut head = head();
        assert_eq!(head.set_path_and_query(path), Err(TargetError), "{path:?}");
        assert!(!head.is_changed());
    }
    for authority in ["", "a/b", "a b", "u@a", "a\r\n", "a#", "a?b", "a\\b", "a,b"] {
        let mut head = head();
        assert_eq!(
            head.set_authority(authority),
            Err(TargetError),
            "{authority:?}"
        );
        assert!(!head.is_changed());
    }
}

fn response(lines: &[(&'static str, &'static [u8])]) -> ResponseHead<'static> {
    ResponseHead::new(200, Fields::received(lines.iter().copied()))
}

struct Nothing;

impl Transform for Nothing {
    fn transform(&mut self, _: &mut crate::Piece<'_>) -> crate::Progress {
        crate::Progress::Done
    }
}

#[test]
fn changed_content_keeps_no_field_about_its_bytes() {
    let mut head = response(&[
        ("ETag", b"\"x\""),
        ("content-length", b"3"),
        ("Accept-Ranges", b"bytes"),
        ("Content-MD5", b"m"),
        ("Trailer", b"X-Sum"),
        ("Digest", b"d"),
        ("Content-Digest", b"c"),
        ("Repr-Digest", b"r"),
        ("Content-Type", b"text/html"),
    ]);
    assert_eq!(head.transform(Box::new(Nothing)), Ok(()));
    let lines: Vec<_> = head.fields.iter().collect();
    assert_eq!(
        lines,
        [("ETag", &b"\"x\""[..]), ("Content-Type", b"text/html")]
    );
    assert!(head.fields.is_changed() && head.changes_content());
    let (codings, _) = head.take_transform().expect("it was set");
    assert!(codings.is_empty());
    assert!(head.take_transform().is_none());
    let mut head = response(&[("ETag", b"W/\"x\"")]);
    assert_eq!(head.transform(Box::new(Nothing)), Ok(()));
    assert_eq!(head.fields.get("etag"), Some(&b"W/\"x\""[..]));
}

#[test]
fn content_is_kept_where_no_transform_says_so_and_where_it_is_a_part() {
    let mut head = response(&[("Cache-Control", b"max-age=1, no-transform")]);
    let refused = head.transform(Box::new(Nothing));
    assert_eq!(refused, Err(TransformError::NoTransform));
    let mut head = response(&[("ETag", b"\"x\"")]).keeping_content(true);
    let refused = head.transform(Box::new(Nothing));
    assert_eq!(refused, Err(TransformError::NoTransform));
    assert!(!head.fields.is_changed() && head.take_transform().is_none());
    let part = ResponseHead::new(206, Fields::default()).transform(Box::new(Nothing));
    assert_eq!(part, Err(TransformError::Part));
}

#[test]
fn no_transform_holds_after_a_module_has_removed_it() {
    const LINES: [FieldLine<'static>; 2] = [
        FieldLine::new("Host", b"a.example"),
        FieldLine::new("Cache-Control", b"no-transform"),
    ];
    let refused = Err(TransformError::NoTransform);
    let received = [
        HeadFields::of_lines(&LINES),
        HeadFields::of_section(b"Host: a.example\r\nCache-Control: no-transform\r\n"),
    ];
    for fields in received {
        let mut response = ResponseHead::new(200, fields.clone());
        assert_eq!(response.fields.remove("Cache-Control"), Ok(true));
        assert_eq!(response.saved().check_transform(), refused);
        assert_eq!(response.transform(Box::new(Nothing)), refused);
        assert_eq!(response.transform_plain(Box::new(Nothing)), refused);
        assert_eq!(response.into_owned().check_transform(), refused);
        let request = RequestHead::new("PUT", "a.example", "/", fields);
        let mut request = request.with_content(true);
        let set = request.fields.set("Cache-Control", b"max-age=1");
        assert_eq!(set, Ok(()));
        assert_eq!(request.saved().check_transform(), refused);
        assert_eq!(request.transform(Box::new(Nothing)), refused);
        let request = request.into_owned();
        assert_eq!(request.into_owned().check_transform(), refused);
    }
}

#[test]
fn content_that_is_only_inspected_keeps_its_validators_whatever_the_directives() {
    let lines: [(&'static str, &'static [u8]); 4] = [
        ("ETag", b"\"x\""),
        ("Content-Length", b"3"),
        ("Repr-Digest", b"r"),
        ("Cache-Control", b"no-transform"),
    ];
    let mut head = ResponseHead::new(206, Fields::received(lines)).keeping_content(true);
    head.inspect(Box::new(Nothing));
    assert!(!head.changes_content());
    assert!(head.take_transform().is_some());
    assert_eq!(head.fields.get("etag"), Some(&b"\"x\""[..]));
    assert_eq!(head.fields.get("repr-digest"), Some(&b"r"[..]));
    assert_eq!(head.fields.get("content-length"), None);
    let fields = Fields::received(lines);
    let mut head = RequestHead::new("PUT", "a.example", "/", fields).with_content(true);
    head.inspect(Box::new(Nothing));
    assert!(head.take_transform().is_some() && head.is_changed());
    let mut head = RequestHead::new("GET", "a.example", "/", Fields::default());
    head.inspect(Box::new(Nothing));
    assert!(head.take_transform().is_none() && !head.is_changed());
}

#[test]
fn codings_are_undone_where_a_module_wants_plain_content() {
    let lines = [("Content-Encoding", &b"gzip"[..]), ("ETag", b"\"x\"")];
    let mut head = response(&lines);
    assert_eq!(head.transform_plain(Box::new(Nothing)), Ok(()));
    assert_eq!(head.fields.get("content-encoding"), None);
    let (codings, _) = head.take_transform().expect("it was set");
    assert_eq!(codings.iter().collect::<Vec<_>>(), [crate::Coding::Gzip]);
    let mut unknown = response(&[("Content-Encoding", b"aes128gcm")]);
    let refused = unknown.transform_plain(Box::new(Nothing));
    assert_eq!(refused, Err(TransformError::Coding));
    assert!(!unknown.fields.is_changed() && unknown.take_transform().is_none());
}

#[test]
fn status_that_decides_on_content_is_neither_left_nor_set() {
    for (from, to) in [(200, 403), (404, 200), (503, 599)] {
        let mut head = ResponseHead::new(from, Fields::default());
        assert_eq!(head.set_status(to), Ok(()));
        assert_eq!((head.status(), head.status_is_changed()), (to, true));
    }
    for (from, to) in [(206, 200), (200, 304), (204, 200), (200, 205), (200, 103)] {
        let mut head = ResponseHead::new(from, Fields::default());
        assert!(head.set_status(to).is_err(), "{from} {to}");
        assert_eq!((head.status(), head.status_is_changed()), (from, false));
    }
}

#[test]
fn content_of_a_request_is_changed_only_where_there_is_some() {
    let fields = || Fields::received([("Content-Length", &b"3"[..])]);
    let mut head = RequestHead::new("PUT", "a.example", "/", fields()).with_content(true);
    assert_eq!(head.transform(Box::new(Nothing)), Ok(()));
    assert!(head.take_transform().is_some());
    assert_eq!(head.fields.get("content-length"), None);
    let mut head = RequestHead::new("PUT", "a.example", "/", fields());
    assert_eq!(head.transform(Box::new(Nothing)), Ok(()));
    assert!(head.take_transform().is_none() && !head.is_changed());
    let part = Fields::received([("Content-Range", &b"bytes 0-2/9"[..])]);
    let mut head = RequestHead::new("PUT", "a.example", "/", part).with_content(true);
    assert_eq!(head.transform(Box::new(Nothing)), Err(TransformError::Part));
}

#[test]
fn tag_of_a_variant_is_a_short_token() {
    let mut head = head();
    for tag in ["", "a b", "a,b", &"x".repeat(VARIANT_BYTES_MAX + 1)] {
        assert_eq!(head.set_variant(tag), Err(VariantError), "{tag:?}");
    }
    assert_eq!(head.set_variant("webp-640"), Ok(()));
    assert_eq!(head.take_variant().as_deref(), Some("webp-640"));
    assert_eq!(head.take_variant(), None);
}

#[test]
fn authority_has_its_port_until_another_one_is_set() {
    let mut head = head().with_port(8080);
    assert_eq!(head.authority(), "a.example:8080");
    assert_eq!(head.set_authority("a.example:8080"), Ok(()));
    assert!(!head.is_changed());
    assert_eq!(head.set_authority("b.example"), Ok(()));
    let head = head.into_owned();
    assert_eq!(
        (head.authority(), head.target_is_changed()),
        ("b.example", true)
    );
}

#[test]
fn target_set_to_what_it_is_leaves_the_head_unchanged() {
    let mut head = head();
    assert_eq!(head.set_path_and_query("/x?y"), Ok(()));
    assert_eq!(head.set_authority("a.example"), Ok(()));
    assert!(!head.is_changed());
    assert_eq!(head.set_path_and_query("/z"), Ok(()));
    assert!(head.target_is_changed() && head.is_changed());
    assert_eq!(head.path_and_query(), "/z");
}
