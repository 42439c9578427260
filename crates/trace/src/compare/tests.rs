use super::*;
use crate::{Anonymiser, Writer};

/// A row of `target` that arrived then and was handled so.
fn row(arrival_us: i64, target: u64, verdict: &str) -> Row {
    Row {
        arrival_us,
        target,
        verdict: Some(verdict.to_owned()),
        request_us: Some(10),
        response_us: Some(110),
        received_bytes: Some(1000),
        next_hop_bytes: Some(if verdict == "hit" { 0 } else { 1000 }),
        ..Row::default()
    }
}

const SETTINGS: CompareSettings = CompareSettings {
    tolerance_us: 0,
    examples: 2,
};

fn compared(a: &[Row], b: &[Row]) -> Differences {
    let mut comparison = Comparison::new(SETTINGS);
    for place in 0..a.len().max(b.len()) {
        comparison
            .add(place as u64, a.get(place), b.get(place))
            .expect("few rows");
    }
    comparison.finish()
}

fn pairs(found: &Differences) -> (u64, u64, u64, u64) {
    (
        found.pairs_by_place,
        found.pairs_by_target,
        found.without_partner.a,
        found.without_partner.b,
    )
}

#[test]
fn trace_is_equal_to_itself() {
    let rows = [row(1, 7, "uri-miss"), row(2, 7, "hit"), row(2, 8, "bypass")];
    let found = compared(&rows, &rows);
    assert_eq!(pairs(&found), (3, 0, 0, 0));
    assert_eq!((found.verdicts.equal, found.verdicts.different), (3, 0));
    assert_eq!(found.from_cache.bytes, Sides { a: 1000, b: 1000 });
    assert_eq!(found.received.bytes, Sides { a: 3000, b: 3000 });
    for aspect in [Aspect::Verdicts, Aspect::Bytes, Aspect::Times] {
        assert!(found.is_said(aspect) && found.different(aspect) == 0);
    }
    assert_eq!(found.examples, Examples::default());
}

#[test]
fn pairs_of_verdicts_are_counted_and_the_first_are_shown() {
    let a = [
        row(1, 7, "hit"),
        row(2, 7, "hit"),
        row(3, 7, "hit"),
        row(4, 9, "stale"),
    ];
    let b = [
        row(1, 7, "hit"),
        row(2, 7, "miss"),
        row(3, 7, "miss"),
        row(4, 9, "miss"),
    ];
    let found = compared(&a, &b);
    let counted = found.verdicts.pairs.iter();
    let counted: Vec<_> = counted
        .map(|pair| (&*pair.a, &*pair.b, pair.requests))
        .collect();
    let expected = [("hit", "miss", 2), ("hit", "hit", 1), ("stale", "miss", 1)];
    assert_eq!(counted, expected);
    assert_eq!(found.different(Aspect::Verdicts), 3);
    assert_eq!(found.different(Aspect::Bytes), 2);
    let shown: Vec<u64> = found
        .examples
        .verdicts
        .iter()
        .map(|example| example.rows.b.row)
        .collect();
    assert_eq!(shown, [1, 2], "no more than were asked for");
    assert_eq!(found.examples.verdicts[0].target, 7);
}

#[test]
fn rows_at_different_places_are_paired_by_target_and_order() {
    // the second recording began an hour later, and has its rows in another order
    let a = [
        row(1, 7, "uri-miss"),
        row(2, 8, "uri-miss"),
        row(3, 7, "hit"),
        row(4, 7, "stale"),
    ];
    let late = 3_600_000_000;
    let b = [
        row(late, 8, "uri-miss"),
        row(late + 1, 7, "uri-miss"),
        row(late + 2, 7, "hit"),
        row(late + 3, 9, "bypass"),
        row(late + 4, 7, "stale"),
        row(late + 5, 7, "hit"),
    ];
    let found = compared(&a, &b);
    assert_eq!(pairs(&found), (0, 4, 0, 2));
    assert_eq!((found.verdicts.equal, found.verdicts.different), (4, 0));
    let mirrored = compared(&b, &a);
    assert_eq!(pairs(&mirrored), (0, 4, 2, 0));
    assert_eq!(
        (mirrored.verdicts.equal, mirrored.verdicts.different),
        (4, 0)
    );
}

#[test]
fn pairing_by_place_precedes_pairing_by_target() {
    let a = [row(1, 7, "uri-miss"), row(2, 7, "hit")];
    let b = [row(1, 9, "uri-miss"), row(2, 7, "hit")];
    let found = compared(&a, &b);
    assert_eq!(pairs(&found), (1, 0, 1, 1));
    assert_eq!(found.verdicts.equal, 1);
}

#[test]
fn value_absent_from_one_row_is_neither_equal_nor_different() {
    let silent = Row {
        arrival_us: 1,
        target: 7,
        ..Row::default()
    };
    let found = compared(&[silent], &[row(1, 7, "hit")]);
    let unsaid = (
        found.verdicts.unsaid,
        found.received.unsaid,
        found.from_cache.unsaid,
        found.response_times.unsaid,
    );
    assert_eq!(unsaid, (1, 1, 1, 1));
    for aspect in [Aspect::Verdicts, Aspect::Bytes, Aspect::Times] {
        assert!(!found.is_said(aspect) && found.different(aspect) == 0);
    }
}

#[test]
fn differing_bytes_and_times_have_separate_examples() {
    let same = row(1, 7, "hit");
    let shorter = Row {
        received_bytes: Some(900),
        ..row(1, 7, "hit")
    };
    let slower = Row {
        response_us: Some(500),
        ..row(1, 7, "hit")
    };
    let found = compared(&[same.clone(), same], &[shorter, slower]);
    assert_eq!(found.examples.verdicts.len(), 0);
    assert_eq!(found.examples.bytes.len(), 1);
    assert_eq!(found.examples.times[0].rows.b.response_time_us, Some(490));
    assert_eq!(found.response_times.median_difference_us, Some(0));
    assert_eq!(found.response_times.p90_difference_us, Some(390));
}

#[test]
fn traces_with_different_keys_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, meta: Meta| {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path, meta).expect("a writer");
        writer.push(row(1, 7, "hit")).expect("a row");
        writer.finish().expect("written");
        Reader::open(&path).expect("a trace")
    };
    let keyed = |key: u8| Anonymiser::keyed([key; 16]).meta("a test");
    let (one, two) = (write("1", keyed(1)), write("2", keyed(2)));
    let unknown = write("3", Meta::default());
    let error = compare(&one, &two, SETTINGS).expect_err("two keys");
    assert_eq!(error.fault, Fault::Usage);
    assert!(error.cause.contains("different keys"), "{error}");
    assert!(compare(&one, &one, SETTINGS).is_ok());
    assert!(compare(&one, &unknown, SETTINGS).is_ok());
}
