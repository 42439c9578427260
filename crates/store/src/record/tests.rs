use super::*;
use crate::content::StoredContent;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use weir_policy::rule::StoringIgnored;
use weir_policy::{Secret, StoredFacts, Tick};
use weir_semantics::{DeltaSeconds, Timestamp};

fn now(wall: i64, tick_ms: u64) -> Now {
    Now {
        wall: Timestamp(wall),
        tick: Tick(tick_ms),
    }
}

fn seconds() -> impl Strategy<Value = DeltaSeconds> {
    (0..=DeltaSeconds::MAX.0).prop_map(DeltaSeconds)
}

fn facts() -> impl Strategy<Value = StoredFacts> {
    (
        (200_u16..600).prop_filter("never a part", |status| *status != 206),
        any::<[bool; 4]>(),
        (seconds(), seconds()),
        0_u64..1 << 40,
        (option::of(seconds()), option::of(seconds())),
    )
        .prop_map(|(status, bits, (lifetime, age), tick, stale)| StoredFacts {
            status,
            has_validator: bits[0],
            strong_tag: bits[1],
            is_transformed: bits[1] != bits[2],
            keeps_lifetime: bits[0] != bits[3],
            ignored: StoringIgnored::from_bits(if bits[2] { 1 << 4 | 1 << 13 } else { 0 })
                .expect("known bits"),
            is_permitted: false,
            no_cache: bits[2],
            must_revalidate: bits[3],
            freshness_lifetime: lifetime,
            corrected_initial_age: age,
            response_tick: Tick(tick),
            stale_while_revalidate: stale.0,
            stale_if_error: stale.1,
        })
}

fn rule() -> impl Strategy<Value = VaryRule> {
    proptest::collection::btree_set("[a-z][a-z-]{0,12}", 1..6)
        .prop_map(|names| VaryRule(names.into_iter().map(String::into_boxed_str).collect()))
}

fn body() -> impl Strategy<Value = StoredContent> {
    (vec(any::<u8>(), 0..200), any::<bool>(), 0_u64..1000).prop_map(
        |(bytes, whole, undelivered)| {
            let body = if whole {
                StoredContent::from(&bytes[..])
            } else {
                crate::InFlightContent::new(None, Some(&StoredContent::from(&bytes[..]))).finish()
            };
            body.with_undelivered(undelivered)
        },
    )
}

prop_compose! {
    fn response()(
        facts in facts(),
        fields in vec("[A-Za-z-]{1,10}: [ -~]{0,30}\r\n", 0..6),
        entity_tag in option::of(vec(any::<u8>(), 0..40)),
        last_modified in option::of(any::<i64>()),
        date in any::<i64>(),
        body in body(),
    ) -> StoredResponse {
        StoredResponse {
            head: format!("HTTP/1.1 {} X\r\n{}", facts.status, fields.concat()).into_bytes().into(),
            facts,
            entity_tag: entity_tag.map(Into::into),
            last_modified: last_modified.map(Timestamp),
            date: Timestamp(date),
            body,
        }
    }
}

proptest! {
    #[test]
    fn response_record_round_trips_and_keeps_its_age(
        response in response(),
        vary in option::of((rule(), any::<(u64, u64)>())),
        target in option::of("http://[a-z.]{1,20}/[a-z?&=]{0,30}"),
        resident_ms in 0_u64..1 << 40,
    ) {
        let vary = vary.map(|(rule, digest)| (rule, Digest(digest.0, digest.1)));
        let then = now(1_000_000_000_000, response.facts.response_tick.0 + resident_ms);
        let meta = encode(&response, vary.as_ref(), target.as_deref(), then);
        // in the same second, by a process that has just begun
        let decoded = Record::decode(&meta, now(1_000_000_000_000, 0));
        let Ok(Record::Response(record)) = decoded else {
            panic!("{decoded:?}");
        };
        prop_assert_eq!(&record.vary, &vary);
        prop_assert_eq!(record.target.as_deref(), target.as_deref());
        prop_assert_eq!(record.complete_length, response.body.complete_length());
        let again = record.with_body(response.body.clone());
        prop_assert_eq!(&again.head, &response.head);
        prop_assert_eq!(&again.entity_tag, &response.entity_tag);
        prop_assert_eq!(again.last_modified, response.last_modified);
        prop_assert_eq!(again.date, response.date);
        prop_assert_eq!(again.body.undelivered_bytes(), response.body.undelivered_bytes());
        let before = response.facts.current_age(then).0;
        let after = again.facts.current_age(now(1_000_000_000_000, 0)).0;
        prop_assert!(before <= after && after <= before + 1, "{} s, then {} s", before, after);
        let timeless = |facts: StoredFacts| StoredFacts {
            corrected_initial_age: DeltaSeconds::ZERO,
            response_tick: Tick(0),
            ..facts
        };
        prop_assert_eq!(timeless(again.facts), timeless(response.facts));
    }

    #[test]
    fn vary_rules_record_round_trips(line in any::<u64>(), rules in vec(rule(), 1..=crate::RULES_MAX)) {
        let record = RulesRecord { line: Line(line), rules };
        let decoded = Record::decode(&record.encode(), now(0, 0));
        prop_assert_eq!(decoded, Ok(Record::Rules(record)));
    }

    #[test]
    fn truncated_or_extended_record_is_refused(response in response(), at in any::<proptest::sample::Index>()) {
        let meta = encode(&response, None, None, now(0, 0));
        let cut = at.index(meta.len());
        prop_assert!(Record::decode(&meta[..cut], now(0, 0)).is_err());
        let mut longer = meta;
        longer.push(0);
        let at = longer.len() - 1;
        prop_assert_eq!(Record::decode(&longer, now(0, 0)), Err(RecordError::Surplus { at }));
    }

    #[test]
    fn record_decoder_does_not_panic_on_arbitrary_bytes(bytes in vec(any::<u8>(), 0..300), kind in 0_u8..4) {
        let mut meta = vec![VERSION, kind];
        meta.extend(bytes);
        let _ = Record::decode(&meta, now(0, 0));
    }
}

fn small() -> StoredResponse {
    StoredResponse {
        head: b"HTTP/1.1 200 OK\r\nDate: x\r\n"[..].into(),
        facts: StoredFacts {
            status: 200,
            has_validator: false,
            strong_tag: false,
            is_transformed: false,
            keeps_lifetime: false,
            ignored: StoringIgnored::NONE,
            is_permitted: false,
            no_cache: false,
            must_revalidate: false,
            freshness_lifetime: DeltaSeconds(60),
            corrected_initial_age: DeltaSeconds(5),
            response_tick: Tick(10_000),
            stale_while_revalidate: None,
            stale_if_error: None,
        },
        entity_tag: None,
        last_modified: None,
        date: Timestamp(0),
        body: StoredContent::default(),
    }
}

/// Ages by the reader's clock, of what was 25 s old when it was written at second 1000.
#[test]
fn clock_set_back_before_the_response_was_received_makes_it_stale() {
    let meta = encode(&small(), None, None, now(1000, 30_000));
    let age_at = |wall, tick| {
        let Ok(Record::Response(record)) = Record::decode(&meta, now(wall, tick)) else {
            panic!("not a response");
        };
        record.facts.current_age(now(wall, tick)).0
    };
    for tick in [0, 1, 999, 20_000, 20_001, 90_000] {
        assert_eq!(age_at(1000, tick), 25);
        assert_eq!(age_at(1034, tick), 59);
        assert_eq!(age_at(980, tick), 5);
        assert_eq!(age_at(979, tick), DeltaSeconds::MAX.0);
        assert_eq!(age_at(i64::MIN, tick), DeltaSeconds::MAX.0);
        assert_eq!(age_at(i64::MAX, tick), DeltaSeconds::MAX.0);
    }
}

#[test]
fn record_with_a_malformed_header_section_is_refused() {
    let check = |head: &[u8], expected: bool| {
        let response = StoredResponse {
            head: head.into(),
            ..small()
        };
        let decoded = Record::decode(
            &encode(&response, None, None, now(0, 10_000)),
            now(0, 10_000),
        );
        assert_eq!(decoded.is_ok(), expected, "{}", head.escape_ascii());
    };
    check(b"HTTP/1.1 200 OK\r\n", true);
    check(b"HTTP/1.1 200 OK\r\nA: b\r\n", true);
    check(b"", false);
    check(b"HTTP/1.1 200 OK", false);
    check(b"HTTP/1.1 200 OK\n", false);
    check(b"HTTP/2 200\r\n", false);
    check(b"HTTP/1.1 200 OK\r\n\r\n", false);
    check(b"HTTP/1.1 200 OK\r\n\r\nA: b\r\n", false);
    check(b"HTTP/1.1 200 OK\r\nA: b\rc: d\r\n", false);
    check(b"HTTP/1.1 200 OK\r\nA: \0\r\n", false);
}

/// The two bytes of flags stand behind version and kind; the bit is in the second.
#[test]
fn stale_windows_of_an_older_record_count_only_if_no_directive_forbids_them() {
    const FLAGS_AT: usize = 2;
    const WINDOWS_COUNT: u16 = 1 << 11;
    let check = |no_cache, must_revalidate, has_flag: bool| {
        let mut response = small();
        response.facts.no_cache = no_cache;
        response.facts.must_revalidate = must_revalidate;
        response.facts.stale_while_revalidate = Some(DeltaSeconds(7));
        response.facts.stale_if_error = Some(DeltaSeconds(8));
        let mut meta = encode(&response, None, None, now(0, 10_000));
        let flags = u16::from_le_bytes([meta[FLAGS_AT], meta[FLAGS_AT + 1]]);
        let forbids = no_cache || must_revalidate;
        assert_eq!(flags & WINDOWS_COUNT != 0, forbids);
        if !has_flag {
            let before = flags & !WINDOWS_COUNT;
            meta[FLAGS_AT..FLAGS_AT + 2].copy_from_slice(&before.to_le_bytes());
        }
        let Ok(Record::Response(record)) = Record::decode(&meta, now(0, 10_000)) else {
            panic!("not a response");
        };
        let expected = if forbids && !has_flag {
            StoredFacts {
                stale_while_revalidate: None,
                stale_if_error: None,
                ..response.facts
            }
        } else {
            response.facts
        };
        assert_eq!(record.facts, expected);
        assert_eq!(record.head, response.head);
    };
    for has_flag in [true, false] {
        check(false, false, has_flag);
        check(true, false, has_flag);
        check(false, true, has_flag);
        check(true, true, has_flag);
    }
}

#[test]
fn record_of_another_version_or_kind_is_refused() {
    let meta = encode(&small(), None, None, now(0, 10_000));
    let changed = |at: usize, byte: u8| {
        let mut meta = meta.clone();
        meta[at] = byte;
        Record::decode(&meta, now(0, 0))
    };
    assert_eq!(changed(0, 2), Err(RecordError::Version(2)));
    assert_eq!(changed(1, 3), Err(RecordError::Kind(3)));
    assert!(changed(1, 2).is_err());
    // a part is never a 206 in the store
    assert!(changed(4, 206).is_err());
}

#[test]
fn variant_key_depends_on_target_line_and_selecting_fields() {
    let secret = Secret([7; 16]);
    let keys = [
        (Digest(1, 2), Line(1), Digest(3, 4)),
        (Digest(1, 2), Line(2), Digest(3, 4)),
        (Digest(1, 2), Line(1), Digest(4, 3)),
        (Digest(2, 1), Line(1), Digest(3, 4)),
    ];
    let keys =
        keys.map(|(primary, line, selecting)| variant_key(&secret, primary, line, selecting));
    for (at, key) in keys.iter().enumerate() {
        assert!(!keys[..at].contains(key));
    }
}
