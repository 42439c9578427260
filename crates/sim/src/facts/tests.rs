use super::*;
use weir_policy::{Profile, Uncachable1998};
use weir_semantics::{ByteRange, ContentRange, RangeKind};
use weir_trace::{RequestBit, ResponseBit, TraceMethod};

fn ask(row: &Row) -> Ask {
    Ask::of(row, 0, &mut Assumptions::default())
}

#[test]
fn empty_row_is_a_plain_get_and_its_assumptions_are_counted() {
    let mut assumed = Assumptions::default();
    let ask = Ask::of(&Row::default(), 0, &mut assumed);
    assert_eq!(
        (ask.request.method, ask.response.status),
        (Method::Get, 200)
    );
    assert_eq!(Profile::Http1998.bypass(&ask.request), None);
    assert_eq!(Profile::Http1998.refuses(&ask.response), None);
    let named: Vec<Assumption> = assumed.iter().map(|(assumed, _)| assumed).collect();
    assert!(named.contains(&Assumption::Method) && named.contains(&Assumption::ContentBytes));
    assert!(!named.contains(&Assumption::Variant));
}

#[test]
fn every_1998_reason_against_caching_is_read_from_the_row() {
    let check = |row: Row, expected: Uncachable1998| {
        let ask = ask(&row);
        let cause = Profile::Http1998.bypass(&ask.request);
        let cause = cause.or_else(|| Profile::Http1998.refuses(&ask.response));
        assert_eq!(cause, Some(expected), "{row:?}");
    };
    let row = Row::default;
    check(
        Row {
            has_cookie: Some(true),
            ..row()
        },
        Uncachable1998::Cookie,
    );
    check(
        Row {
            has_set_cookie: Some(true),
            ..row()
        },
        Uncachable1998::Cookie,
    );
    check(
        Row {
            has_query: Some(true),
            ..row()
        },
        Uncachable1998::Query,
    );
    check(
        Row {
            has_cgi_bin: Some(true),
            ..row()
        },
        Uncachable1998::CgiBin,
    );
    check(
        Row {
            has_authorization: Some(true),
            ..row()
        },
        Uncachable1998::Authorization,
    );
    check(
        Row {
            method: Some(TraceMethod::Post),
            ..row()
        },
        Uncachable1998::Method,
    );
    for bit in [
        RequestBit::NoCache,
        RequestBit::Extension,
        RequestBit::PragmaNoCache,
    ] {
        let bits = Row {
            request_directives: Some(bit.bit()),
            ..row()
        };
        check(bits, Uncachable1998::ClientCacheControl);
    }
    for bit in [
        ResponseBit::Public,
        ResponseBit::Extension,
        ResponseBit::ExpiresInvalid,
        ResponseBit::PragmaNoCache,
    ] {
        let bits = Row {
            response_directives: Some(bit.bit()),
            ..row()
        };
        check(bits, Uncachable1998::ServerCacheControl);
    }
    check(
        Row {
            expires_s: Some(1),
            ..row()
        },
        Uncachable1998::ServerCacheControl,
    );
}

#[test]
fn precondition_of_a_request_does_not_count_as_cache_control() {
    let bits = RequestBit::IfModifiedSince.bit();
    let ask = ask(&Row {
        request_directives: Some(bits),
        ..Row::default()
    });
    assert!(ask.request.preconditions && !ask.request.directives.any);
}

#[test]
fn abort_is_inferred_from_the_lengths_unless_the_row_states_it() {
    let check = |declared, received, aborted_by, expected: (u64, Option<u64>, Option<u64>)| {
        let ask = ask(&Row {
            declared_bytes: declared,
            received_bytes: received,
            aborted_by,
            ..Row::default()
        });
        assert_eq!((ask.content_bytes, ask.leaves_at, ask.cut_at), expected);
    };
    check(Some(100), Some(100), None, (100, None, None));
    check(Some(100), Some(99), None, (100, Some(99), None));
    check(
        Some(100),
        Some(0),
        Some(AbortedBy::Client),
        (100, Some(0), None),
    );
    check(
        Some(100),
        Some(99),
        Some(AbortedBy::Server),
        (100, None, Some(99)),
    );
    check(
        Some(100),
        Some(99),
        Some(AbortedBy::Neither),
        (100, None, None),
    );
    check(Some(100), Some(131), None, (131, None, None));
    check(None, Some(7), None, (7, None, None));
    check(Some(7), None, None, (7, None, None));
}

#[test]
fn head_204_and_304_responses_have_no_content() {
    for (method, status) in [
        (TraceMethod::Head, 200),
        (TraceMethod::Get, 304),
        (TraceMethod::Get, 204),
    ] {
        let row = Row {
            method: Some(method),
            status: Some(status),
            declared_bytes: Some(9),
            received_bytes: Some(0),
            ..Row::default()
        };
        let ask = ask(&row);
        assert_eq!((ask.content_bytes, ask.leaves_at), (0, None), "{status}");
    }
}

#[test]
fn complete_length_of_a_206_is_known_only_for_an_open_ended_range() {
    let row = Row {
        status: Some(206),
        range_first: Some(10),
        declared_bytes: Some(5),
        ..Row::default()
    };
    let expected = |complete_length| ContentRange::Part {
        range: ByteRange {
            first: 10,
            last: 14,
        },
        complete_length,
    };
    assert_eq!(ask(&row).response.content_range, Some(expected(Some(15))));
    let bounded = Row {
        range_last: Some(14),
        ..row.clone()
    };
    assert_eq!(ask(&bounded).response.content_range, Some(expected(None)));
    let several = Row {
        range_first: None,
        ..row
    };
    assert_eq!(ask(&several).request.range, RangeKind::Many);
    assert_eq!(ask(&several).response.content_range, None);
}

#[test]
fn origin_response_time_is_unknown_if_the_next_hop_sent_no_bytes() {
    let row = |next_hop_bytes| Row {
        request_us: Some(10),
        response_us: Some(100),
        next_hop_bytes,
        ..Row::default()
    };
    let expected = ask(&row(None)).response_time;
    assert_eq!(ask(&row(Some(1))).response_time, expected);
    assert_eq!(expected, Some(90_000));
    assert_eq!(ask(&row(Some(0))).response_time, None);
}

#[test]
fn next_hop_timings_override_those_seen_by_the_client() {
    let row = Row {
        request_us: Some(40),
        response_us: Some(100),
        setup_us: Some(30),
        ..Row::default()
    };
    assert_eq!(
        (ask(&row).setup, ask(&row).response_time),
        (Some(30_000), Some(60_000))
    );
    let both = Row {
        next_hop_response_us: Some(50),
        next_hop_setup_us: Some(20),
        ..row
    };
    assert_eq!(
        (ask(&both).setup, ask(&both).response_time),
        (Some(20_000), Some(50_000))
    );
}

#[test]
fn missing_validator_means_changed_only_if_all_validators_are_known() {
    let tag = |etag, etag_is_weak| Validators {
        etag,
        etag_is_weak,
        last_modified_s: None,
        are_all: false,
    };
    let all = |validators| Validators {
        are_all: true,
        ..validators
    };
    let dated = Validators {
        last_modified_s: Some(9),
        ..tag(None, false)
    };
    assert!(!tag(Some(1), false).still_hold(all(tag(None, false))));
    assert!(!tag(Some(1), false).still_hold(all(dated)));
    assert!(!dated.still_hold(all(tag(None, false))));
    assert!(dated.still_hold(tag(None, false)) && dated.still_hold(all(dated)));
    assert!(tag(None, false).still_hold(all(tag(Some(1), false))));
    assert!(tag(Some(1), false).still_hold(tag(Some(1), true)));
    assert!(!tag(Some(1), false).still_hold(tag(Some(2), false)));
    assert!(tag(Some(1), false).still_hold(tag(None, false)));
    assert!(tag(Some(1), false).same_strongly(tag(Some(1), false)));
    assert!(!tag(Some(1), false).same_strongly(tag(Some(1), true)));
    assert!(!tag(None, false).same_strongly(tag(None, false)));
}

#[test]
fn response_without_known_header_section_gets_the_assumed_lifetime() {
    let of = |row: &Row, lifetime: Option<DeltaSeconds>| {
        let mut assumed = Assumptions::default();
        let ask = Ask::of(row, 0, &mut assumed).assuming(row, lifetime, &mut assumed);
        let named: Vec<Assumption> = assumed.iter().map(|(assumed, _)| assumed).collect();
        (ask.response.directives.max_age, named)
    };
    let day = Some(DeltaSeconds(86_400));
    let log = Row {
        status: Some(200),
        ..Row::default()
    };
    let (max_age, named) = of(&log, day);
    assert_eq!(max_age, day);
    assert!(
        named.contains(&Assumption::Lifetime) && !named.contains(&Assumption::ResponseDirectives)
    );
    let (max_age, named) = of(&log, None);
    assert_eq!(max_age, None);
    assert!(named.contains(&Assumption::NoLifetime));
    // an error is not fresh by our choice, and a head that is known has the say
    for row in [
        Row {
            status: Some(500),
            ..Row::default()
        },
        Row {
            response_directives: Some(0),
            ..log.clone()
        },
        Row {
            last_modified_s: Some(1),
            ..log
        },
    ] {
        assert_eq!(of(&row, day).0, None, "{row:?}");
    }
}
