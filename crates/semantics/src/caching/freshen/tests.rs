use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::time::DeltaSeconds;

const NOW: Timestamp = Timestamp(784_111_777);
const RECEIVED: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";

fn lines<'a>(texts: &[&'a str]) -> Vec<FieldLine<'a>> {
    texts
        .iter()
        .map(|text| {
            let (name, value) = text.split_once(": ").unwrap_or((text, ""));
            FieldLine::new(name, value.as_bytes())
        })
        .collect()
}

fn texts(fields: &[FieldLine<'_>]) -> Vec<String> {
    fields
        .iter()
        .map(|line| format!("{}: {}", line.name, String::from_utf8_lossy(line.value)))
        .collect()
}

fn merged<'a>(stored: &[&'a str], update: &[&'a str]) -> MergedFields<'a> {
    merge(&lines(stored), &lines(update), RECEIVED)
}

/// Updated by a response with a Date, so that none is put in.
#[track_caller]
fn check(stored: &[&str], update: &[&str], expected: &[&str]) {
    let date = "Date: Sun, 06 Nov 1994 08:49:00 GMT";
    let (update, expected) = ([update, &[date]].concat(), [expected, &[date]].concat());
    let merged = merge(&lines(stored), &lines(&update), RECEIVED);
    assert_eq!(texts(&merged.stored), expected);
}

#[test]
fn updated_field_replaces_all_stored_lines_of_its_name() {
    check(&["A: 1", "B: 1"], &[], &["A: 1", "B: 1"]);
    check(&["Age: 9", "B: 1"], &[], &["B: 1"]);
    check(&["Age: 9", "B: 1"], &["Age: 7"], &["B: 1", "Age: 7"]);
    check(
        &["A: 1", "B: 1", "a: 2"],
        &["a: 3", "C: 4", "A: 5"],
        &["B: 1", "a: 3", "C: 4", "A: 5"],
    );
}

#[test]
fn fields_describing_the_stored_content_are_not_updated() {
    let stored = ["Content-Length: 1", "Content-Encoding: gzip"];
    let update = [
        "Content-Length: 2",
        "Content-Encoding: br",
        "Content-Range: bytes 0-1/2",
    ];
    check(&stored, &update, &stored);
    // means nothing in a 200, and is kept (RFC 9110 §14.4)
    let stored = ["Content-Range: bytes */9"];
    check(&stored, &["Content-Range: bytes 0-1/2"], &stored);
}

#[test]
fn hop_by_hop_fields_of_the_update_are_not_merged() {
    let update = [
        "Connection: X-One, keep-alive, Cache-Control",
        "X-One: 1",
        "Keep-Alive: timeout=5",
        "Proxy-Authenticate: Basic",
        "Cache-Control: private",
        "X-Two: 2",
    ];
    check(
        &["X-One: 0"],
        &update,
        &["X-One: 0", "Cache-Control: private", "X-Two: 2"],
    );
}

#[test]
fn cookies_of_the_update_are_sent_only_to_its_own_client() {
    for field in [
        "Set-Cookie: user=b",
        "SET-COOKIE2: user=b",
        "Clear-Site-Data: \"cookies\"",
    ] {
        let merged = merged(&["A: 1"], &["B: 2", field, "Connection: set-cookie2"]);
        assert_eq!(texts(&merged.own), [field]);
        assert!(!texts(&merged.stored).contains(&field.to_owned()));
        assert!(texts(&merged.for_client()).contains(&field.to_owned()));
        assert!(
            !merged
                .facts(200, NOW, &TargetedFields::none())
                .has_set_cookie
        );
    }
    let merged = merged(
        &["Set-Cookie: all=1", "A: 1"],
        &["Set-Cookie: user=b", "Set-Cookie: c=d"],
    );
    assert_eq!(texts(&merged.stored)[..2], ["Set-Cookie: all=1", "A: 1"]);
    let for_client = texts(&merged.for_client());
    assert!(!for_client.contains(&"Set-Cookie: all=1".to_owned()));
    assert!(for_client.ends_with(&[
        "Set-Cookie: user=b".to_owned(),
        "Set-Cookie: c=d".to_owned(),
        "Cache-Control: private".to_owned()
    ]));
    assert!(
        merged
            .facts(200, NOW, &TargetedFields::none())
            .has_set_cookie
    );
}

#[test]
fn no_other_cache_may_share_a_response_with_cookies_of_the_update() {
    let stored = [
        "Cache-Control: public, max-age=60",
        "CDN-Cache-Control: public",
        "cdn-cache-control: max-age=9",
        "Surrogate-Control: max-age=60",
        "Cache-Controls: a",
    ];
    let targeted = TargetedFields::new(["CDN-Cache-Control", "Surrogate-Control"]);
    let with_cookie = merged(&stored, &["Set-Cookie: user=b"]).for_client();
    let facts = ResponseFacts::gather(200, &with_cookie, NOW).targeted(&with_cookie, &targeted);
    assert!(facts.directives.private, "{with_cookie:?}");
    assert!(texts(&with_cookie).contains(&"Cache-Controls: a".to_owned()));
    // of an update without cookies, all stays
    let without = merged(&stored, &["B: 2"]).for_client();
    assert_eq!(texts(&without)[..5], stored);
}

#[test]
fn update_without_date_gets_its_time_of_receipt_as_date() {
    let stored = ["Date: Sun, 06 Nov 1994 00:00:00 GMT", "A: 1"];
    let merged = merged(&stored, &[]);
    assert_eq!(
        texts(&merged.stored),
        ["A: 1", "Date: Sun, 06 Nov 1994 08:49:37 GMT"]
    );
}

#[test]
fn change_of_the_fields_nominated_by_vary_is_detected() {
    let changes =
        |stored: &[&'static str], update: &[&'static str]| merged(stored, update).changes_vary;
    assert!(changes(&[], &["Vary: Cookie"]));
    assert!(changes(&["Vary: Accept"], &["Vary: Accept, Cookie"]));
    assert!(changes(&["Vary: Accept, Cookie"], &["Vary: Accept"]));
    assert!(changes(&["Vary: Accept"], &["Vary: "]));
    assert!(changes(&["Vary: Accept"], &["Vary: *"]));
    assert!(!changes(&["Vary: Accept"], &[]));
    assert!(!changes(&[], &[]));
    assert!(!changes(
        &["Vary: Accept, Cookie"],
        &["Vary: cookie", "Vary: , ACCEPT, accept"]
    ));
}

/// With a stored date of [`NOW`].
#[track_caller]
fn check_validates(stored: Option<&str>, update: &[&str], expected: Fits) {
    let compared = StoredValidators {
        entity_tag: stored.map(str::as_bytes),
        last_modified: Some(NOW),
        complete_length: None,
    };
    let update = lines(update);
    let facts = ResponseFacts::gather(304, &update, NOW);
    let fits = compared.validated_by(&update, &facts);
    assert_eq!(fits, expected, "{stored:?} {update:?}");
}

const SAME_DATE: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";

const OTHER_DATE: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT";

#[test]
fn not_modified_with_another_last_modified_and_no_equal_tag_does_not_fit() {
    for (stored, update) in [
        (None, &[SAME_DATE][..]),
        (Some("\"a\""), &[SAME_DATE]),
        // the tag decides where there is one
        (Some("\"a\""), &["ETag: \"a\"", OTHER_DATE]),
        (Some("\"a\""), &["ETag: W/\"a\"", OTHER_DATE]),
        (None, &["Last-Modified: yesterday"]),
    ] {
        check_validates(stored, update, Fits::Same);
    }
    for (stored, update) in [
        (None, &[OTHER_DATE][..]),
        (Some("\"a\""), &[OTHER_DATE]),
        (None, &["ETag: a", OTHER_DATE]),
    ] {
        check_validates(stored, update, Fits::Other);
    }
    let undated = StoredValidators {
        entity_tag: None,
        last_modified: None,
        complete_length: None,
    };
    let update = lines(&[SAME_DATE]);
    let facts = ResponseFacts::gather(304, &update, NOW);
    assert_eq!(undated.validated_by(&update, &facts), Fits::Other);
}

#[test]
fn not_modified_with_another_entity_tag_does_not_fit() {
    for (stored, update) in [
        (Some("\"a\""), &["ETag: \"a\""][..]),
        (Some("\"a\""), &["ETag: W/\"a\""]),
        (Some("W/\"a\""), &["ETag: W/\"a\""]),
        (Some("a"), &["ETag: a"]),
        (Some("\"a\""), &[]),
        (None, &[]),
        (None, &["ETag: a"]),
    ] {
        check_validates(stored, update, Fits::Same);
    }
    for (stored, update) in [
        (Some("\"a\""), &["ETag: \"b\""][..]),
        (Some("\"a\""), &["ETag: W/\"b\""]),
        (Some("W/\"a\""), &["ETag: W/\"b\""]),
        (Some("W/\"a\""), &["ETag: \"a\""]),
        (Some("\"a\""), &["ETag: a"]),
        (Some("a"), &["ETag: \"a\""]),
        (Some("\"a\""), &["ETag: \"a\"", "ETag: \"b\""]),
        (None, &["ETag: \"a\""]),
        (None, &["ETag: W/\"a\""]),
    ] {
        check_validates(stored, update, Fits::Other);
    }
}

#[test]
fn head_response_fits_only_if_its_validators_and_length_match() {
    let date = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    let stored = StoredValidators {
        entity_tag: Some(b"\"a\""),
        last_modified: Some(NOW),
        complete_length: Some(9),
    };
    let fits = |stored: &StoredValidators<'_>, head: &[&str]| {
        let head = lines(head);
        stored.fits(&head, &ResponseFacts::gather(200, &head, NOW))
    };
    for head in [&[][..], &["Content-Length: 9"], &["Last-Modified: today"]] {
        assert_eq!(fits(&stored, head), Fits::Unknown, "{head:?}");
    }
    for head in [
        &["ETag: \"a\""][..],
        &[date],
        &["ETag: \"a\"", date, "Content-Length: 9"],
    ] {
        assert_eq!(fits(&stored, head), Fits::Same, "{head:?}");
    }
    for head in [
        &["ETag: \"b\""][..],
        &["ETag: W/\"a\""],
        &["Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT"],
        &["Content-Length: 8"],
        &["Content-Length: +9"],
        &["Content-Length: 99999999999999999999999"],
        &["ETag: \"a\"", "Content-Length: 8"],
    ] {
        assert_eq!(fits(&stored, head), Fits::Other, "{head:?}");
    }
    let bare = StoredValidators {
        entity_tag: None,
        last_modified: None,
        complete_length: None,
    };
    assert_eq!(fits(&bare, &["Content-Length: 8"]), Fits::Unknown);
    assert_eq!(fits(&bare, &["ETag: \"a\""]), Fits::Other);
    assert_eq!(fits(&bare, &[date]), Fits::Other);
}

/// Lines of which facts are made; each alone says what is seen by [`ResponseFacts::updated_by`].
const TELLING: &[&str] = &[
    "Cache-Control: max-age=60",
    "Cache-Control: private",
    "Cache-Control: no-store, s-maxage=5",
    "Expires: Sun, 06 Nov 1994 09:49:37 GMT",
    "Expires: 0",
    "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT",
    "ETag: \"a\"",
    "ETag: W/\"b\"",
    "Vary: Accept",
    "Vary: *",
    "Set-Cookie: a=b",
    "Date: Sun, 06 Nov 1994 08:00:00 GMT",
    "Pragma: no-cache",
    "Age: 9",
    "Our-Cache-Control: max-age=7",
    "CDN-Cache-Control: no-store",
    "CDN-Cache-Control: max-age=30, stale-if-error=5",
    "X-Other: 1",
];

fn telling() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(TELLING, 0..TELLING.len())
}

/// Which directives and `Expires` are in force after an update, by the merge of fields and by the
/// merge of facts.
fn check_in_force(stored: &[&str], update: &[&str], max_age: u32, expires: bool, by: DecidedBy) {
    let targets = TargetedFields::new(["Our-Cache-Control", "CDN-Cache-Control"]);
    let (stored, update) = (lines(stored), lines(update));
    let gather = |fields: &[FieldLine<'_>]| {
        ResponseFacts::gather(200, fields, NOW).targeted(fields, &targets)
    };
    let merged = merge(&stored, &update, RECEIVED).facts(200, NOW, &targets);
    let updated = gather(&stored).updated_by(&gather(&update), NOW);
    for facts in [merged, updated] {
        let said = (
            facts.directives.max_age,
            facts.expires.is_some(),
            facts.decided_by,
        );
        let expected = (Some(DeltaSeconds(max_age)), expires, by);
        assert_eq!(said, expected, "{stored:?} {update:?}");
    }
}

#[test]
fn targeted_field_applies_until_one_of_higher_precedence_is_received() {
    let plain = "Cache-Control: max-age=1";
    let (ours, cdn) = (
        "Our-Cache-Control: max-age=2",
        "CDN-Cache-Control: max-age=3",
    );
    let (first, second) = (DecidedBy::Targeted(0), DecidedBy::Targeted(1));
    check_in_force(&[cdn], &[plain, "Expires: 0"], 3, false, second);
    check_in_force(&[cdn, "Expires: 0"], &[plain], 3, false, second);
    check_in_force(&[cdn], &["CDN-Cache-Control: max-age=9"], 9, false, second);
    check_in_force(&[cdn], &[ours], 2, false, first);
    check_in_force(&[ours], &[cdn], 2, false, first);
    check_in_force(&[plain, "Expires: 0"], &[cdn], 3, false, second);
    check_in_force(
        &["Cache-Control: max-age=9"],
        &[plain, "Expires: 0"],
        1,
        true,
        DecidedBy::CacheControl,
    );
}

proptest! {
    #[test]
    fn merging_facts_gives_the_facts_of_the_merged_fields(
        stored in telling(),
        update in telling(),
        status in select(&[200_u16, 301, 404][..]),
    ) {
        let (stored, update) = (lines(&stored), lines(&update));
        let targets = TargetedFields::new(["Our-Cache-Control", "CDN-Cache-Control"]);
        let gather = |status, fields: &[FieldLine<'_>]| {
            ResponseFacts::gather(status, fields, NOW).targeted(fields, &targets)
        };
        let merged = merge(&stored, &update, RECEIVED).facts(status, NOW, &targets);
        let facts = gather(status, &stored).updated_by(&gather(304, &update), NOW);
        prop_assert_eq!(merged, facts);
    }

    #[test]
    fn set_cookie_of_the_update_is_never_stored(
        stored in telling(),
        update in telling(),
    ) {
        let (stored, update) = (lines(&stored), lines(&update));
        let cookies = |fields: &[FieldLine<'_>]| {
            lines_named(fields, "set-cookie").map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let merged = merge(&stored, &update, RECEIVED);
        prop_assert_eq!(cookies(&merged.stored), cookies(&stored));
        let has_cookies = !cookies(&update).is_empty();
        let expected = if has_cookies { &update } else { &stored };
        prop_assert_eq!(cookies(&merged.for_client()), cookies(expected));
    }
}
