use super::*;
use weir_semantics::FieldLine;

/// Sun, 06 Nov 1994 08:49:37 GMT.
const DATE: Timestamp = Timestamp(784_111_777);

fn at(after_date_s: i64, tick_ms: u64) -> Now {
    Now {
        wall: Timestamp(DATE.0 + after_date_s),
        tick: Tick(tick_ms),
    }
}

fn facts(fields: &[(&str, &str)], asked: i64, received: i64) -> StoredFacts {
    let lines: Vec<FieldLine<'_>> = fields
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect();
    let response = ResponseFacts::gather(200, &lines, DATE);
    StoredFacts::new(
        &response,
        at(asked, 0).wall,
        at(received, 0),
        &Heuristic::default(),
    )
}

const DATED: (&str, &str) = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
const FRESH: (&str, &str) = ("Cache-Control", "max-age=60");

#[test]
fn initial_age_counts_response_delay_date_and_age_fields() {
    let age = |fields: &[_], asked, received| facts(fields, asked, received).corrected_initial_age;
    assert_eq!(age(&[FRESH], 5, 5), DeltaSeconds(0), "no Date: made now");
    assert_eq!(age(&[FRESH], 5, 8), DeltaSeconds(3), "the delay");
    assert_eq!(age(&[FRESH, DATED], 5, 8), DeltaSeconds(8), "the Date");
    let aged = ("Age", "20");
    assert_eq!(age(&[FRESH, DATED, aged], 5, 8), DeltaSeconds(23));
    // our clock is behind the origin's
    assert_eq!(age(&[FRESH, DATED], -9, -9), DeltaSeconds(0));
}

#[test]
fn wall_clock_steps_do_not_change_remaining_freshness() {
    let facts = facts(&[FRESH, DATED], 0, 0);
    for stepped in [-100_000, 0, 100_000] {
        assert_eq!(facts.ttl(at(stepped, 59_999)), 1, "{stepped}");
        assert_eq!(facts.ttl(at(stepped, 60_000)), 0, "{stepped}");
    }
}

#[test]
fn age_is_capped_at_maximum_and_never_below_initial_age() {
    let facts = facts(&[FRESH, ("Age", "2147483648")], 0, 0);
    assert_eq!(facts.current_age(at(0, 5000)), DeltaSeconds::MAX);
    assert_eq!(facts.current_age(at(0, u64::MAX)), DeltaSeconds::MAX);
    let later = StoredFacts {
        response_tick: Tick(10_000),
        corrected_initial_age: DeltaSeconds(7),
        ..facts
    };
    assert_eq!(later.current_age(at(0, 0)), DeltaSeconds(7));
}

#[test]
fn response_without_freshness_validator_or_stale_window_is_useless() {
    let check = |control: &str, fields: &[(&str, &str)], expected| {
        let all = [&[("Cache-Control", control)], fields].concat();
        assert_eq!(facts(&all, 0, 0).is_useless(), expected, "{all:?}");
    };
    check("max-age=1", &[], false);
    check("max-age=0", &[], true);
    check("max-age=9", &[("Age", "8")], false);
    check("max-age=9", &[("Age", "9")], true);
    check("max-age=0", &[("ETag", "\"a\"")], false);
    check("max-age=0", &[("Last-Modified", DATED.1)], false);
    check("max-age=0, stale-while-revalidate=1", &[], false);
    check("max-age=0, stale-if-error=1", &[], false);
    check("", &[], true);
}

#[test]
fn stored_facts_keep_directives_that_forbid_serving_stale() {
    for (control, forbids) in [
        ("max-age=60", false),
        ("max-age=60, public, immutable", false),
        ("max-age=60, must-revalidate", true),
        ("max-age=60, proxy-revalidate", true),
        ("s-maxage=60", true),
        ("max-age=60, no-cache", true),
        ("max-age=60, no-cache=\"a\"", true),
    ] {
        let facts = facts(&[("Cache-Control", control)], 0, 0);
        assert_eq!(facts.forbids_stale(), forbids, "{control}");
    }
}

#[test]
fn part_is_stored_as_incomplete_200_and_requires_a_strong_tag() {
    let facts = |status, tag: &str| {
        let lines = [
            FieldLine::new("ETag", tag.as_bytes()),
            FieldLine::new("Content-Range", b"bytes 0-1/3"),
        ];
        let response = ResponseFacts::gather(status, &lines, DATE);
        StoredFacts::new(&response, DATE, at(0, 0), &Heuristic::default())
    };
    for (status, tag, stored, can_be_part) in [
        (206, "\"a\"", 200, true),
        (206, "W/\"a\"", 200, false),
        (200, "\"a\"", 200, true),
        (200, "W/\"a\"", 200, false),
        (200, "a", 200, false),
        (203, "\"a\"", 203, false),
        (404, "\"a\"", 404, false),
    ] {
        let facts = facts(status, tag);
        let found = (facts.status, facts.can_be_part());
        assert_eq!(found, (stored, can_be_part), "{status} {tag}");
    }
}

#[test]
fn facts_comply_with_directives_no_stricter_than_their_own() {
    let check = |made_of: &str, directives: &str, expected: bool| {
        let mut said = ResponseDirectives::default();
        said.add_line(directives.as_bytes());
        let facts = facts(&[("Cache-Control", made_of)], 0, 0);
        assert_eq!(
            facts.keep_to(&said),
            expected,
            "{made_of} under {directives}"
        );
    };
    for same in [
        "max-age=60",
        "s-maxage=60",
        "max-age=60, must-revalidate",
        "max-age=60, no-cache",
        "max-age=60, stale-while-revalidate=5, stale-if-error=9",
        "max-age=60, must-understand, no-store",
    ] {
        check(same, same, true);
    }
    check("max-age=60", "max-age=61", true);
    check("max-age=60", "public", true);
    check("max-age=60, must-revalidate", "max-age=60", true);
    for stricter in [
        "no-store",
        "private, max-age=60",
        "max-age=59",
        "max-age=60, no-cache",
        "max-age=60, must-revalidate",
        "max-age=60, proxy-revalidate",
        "s-maxage=60",
    ] {
        check("max-age=60", stricter, false);
    }
    check("max-age=60, stale-if-error=9", "max-age=60", false);
    check(
        "max-age=60, stale-while-revalidate=9",
        "max-age=60, stale-while-revalidate=8",
        false,
    );
}
