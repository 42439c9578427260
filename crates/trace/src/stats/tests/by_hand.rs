//! Small traces, reckoned by hand.

use super::super::{Cause, EndCounts, Ratios, Share, text};
use super::summary;
use crate::{
    AbortedBy, Anonymisation, Meta, RequestBit, ResponseBit, Row, TraceMethod, TraceScheme,
    TraceVersion,
};

/// A GET that has nothing against it.
fn plain(target: u64, bytes: u64) -> Row {
    Row {
        target,
        method: Some(TraceMethod::Get),
        status: Some(200),
        has_cookie: Some(false),
        has_set_cookie: Some(false),
        has_authorization: Some(false),
        has_query: Some(false),
        has_cgi_bin: Some(false),
        request_directives: Some(0),
        response_directives: Some(0),
        received_bytes: Some(bytes),
        ..Row::default()
    }
}

const fn share(yes: u64, said: u64) -> Option<Share> {
    Some(Share { yes, said })
}

#[test]
fn each_cause_is_counted_exactly_where_it_applies() {
    let base = || plain(1, 10);
    let rows = [
        base(),
        Row {
            has_cookie: Some(true),
            ..base()
        },
        Row {
            has_set_cookie: Some(true),
            has_cookie: Some(true),
            ..base()
        },
        Row {
            has_set_cookie: Some(true),
            ..base()
        },
        Row {
            has_query: Some(true),
            has_cgi_bin: Some(true),
            ..base()
        },
        Row {
            request_directives: Some(RequestBit::PragmaNoCache.bit()),
            ..base()
        },
        Row {
            request_directives: Some(RequestBit::IfNoneMatch.bit()),
            ..base()
        },
        Row {
            method: Some(TraceMethod::Head),
            ..base()
        },
        Row {
            method: Some(TraceMethod::Post),
            ..base()
        },
        Row {
            has_authorization: Some(true),
            ..base()
        },
        Row {
            expires_s: Some(5),
            ..base()
        },
        Row {
            response_directives: Some(ResponseBit::Public.bit()),
            ..base()
        },
    ];
    let found = summary(&rows);
    let expected = [
        (Cause::Cookie, 3),
        (Cause::Query, 1),
        (Cause::ClientCacheControl, 1),
        (Cause::CgiBin, 1),
        (Cause::Method, 1),
        (Cause::Authorization, 1),
        (Cause::ServerCacheControl, 2),
    ];
    for (cause, (expected, requests)) in found.causes.each.iter().zip(expected) {
        assert_eq!(
            (cause.cause, cause.requests),
            (expected, share(requests, 12))
        );
    }
    assert_eq!(found.causes.union, share(9, 12));
    // of the nine the POST and what is not permitted to be shared may not be stored; of all, the
    // HEAD neither
    assert_eq!(found.causes.union_storable, share(7, 9));
    let storable = found.storable.expect("the trace says");
    assert_eq!(storable.storable, Share { yes: 9, said: 12 });
    let reasons: Vec<(&str, u64)> = storable
        .reasons
        .iter()
        .map(|reason| (reason.reason, reason.requests))
        .collect();
    assert_eq!(reasons, [("method", 2), ("authorization", 1)]);
}

#[test]
fn columns_absent_from_every_row_give_no_figure() {
    let rows = [
        Row {
            target: 1,
            ..Row::default()
        },
        Row {
            target: 1,
            ..Row::default()
        },
    ];
    let found = summary(&rows);
    assert!(
        found
            .causes
            .each
            .iter()
            .all(|cause| cause.requests.is_none())
    );
    assert_eq!((found.causes.union, &found.storable), (None, &None));
    assert_eq!((found.aborts.by_length, found.aborts.by_whom), (None, None));
    assert_eq!(found.volume.received_bytes, None);
    assert_eq!(found.population.clients, None);
    assert_eq!(found.connections.client.connections, None);
    assert_eq!(found.times.setup_us, None);
    assert_eq!(found.infinite.obeying_cookies.hits, 1);
    assert_eq!(found.infinite.obeying_cookies.byte_hit_ratio(), None);
    let shown = text("a.parquet", &Meta::default(), &found);
    for line in [
        "statuses      not in this trace",
        "URL has ?             not in this trace",
        "clients       not in this trace",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let empty = summary(&[]);
    assert_eq!((empty.requests, empty.span), (0, None));
    assert!(text("a.parquet", &Meta::default(), &empty).contains("a.parquet: 0 requests"));
}

#[test]
fn table_says_what_became_of_names_as_far_as_the_trace_does() {
    let check = |anonymisation, key_id: Option<&str>, expected: &str| {
        let meta = Meta {
            anonymisation,
            key_id: key_id.map(str::to_owned),
            ..Meta::default()
        };
        let shown = text("a.parquet", &meta, &summary(&[]));
        assert!(
            shown.contains(&format!("names         {expected}\n")),
            "{shown}"
        );
    };
    let keyed = Some(Anonymisation::Keyed);
    check(keyed, Some("0011"), "hashed under key 0011");
    // as `weir trace make` writes it
    check(keyed, None, "hashed, with a key that has no name");
    check(Some(Anonymisation::None), None, "as they are");
    check(None, None, "not said");
}

#[test]
fn share_of_a_cause_counts_only_rows_that_record_it() {
    let unknown = Row {
        has_query: None,
        ..plain(1, 1)
    };
    let query = Row {
        has_query: Some(true),
        ..plain(1, 1)
    };
    let found = summary(&[unknown.clone(), unknown, query, plain(1, 1)]);
    assert_eq!(found.causes.each[1].requests, share(1, 2));
    // never answered: no Set-Cookie is known
    let silent = Row {
        has_set_cookie: None,
        status: None,
        ..plain(1, 1)
    };
    assert_eq!(Cause::Cookie.of(&silent), Some(false));
}

#[test]
fn only_cachable_requests_hit_or_are_stored() {
    let cookie = |target, bytes| Row {
        has_cookie: Some(true),
        ..plain(target, bytes)
    };
    let with_status = |status, row| Row {
        status: Some(status),
        ..row
    };
    let rows = [
        plain(1, 100),  // kept
        plain(1, 100),  // hit
        cookie(1, 100), // hit only if cookies are ignored
        cookie(2, 10),  // kept only then
        plain(2, 10),   // hit only then, kept in the other
        plain(2, 10),   // hit
        Row {
            has_query: Some(true),
            ..plain(3, 1000)
        },
        plain(3, 1000),                // kept
        with_status(304, plain(3, 0)), // hit: it could have been answered
        with_status(302, plain(4, 5)), // not kept
        with_status(302, plain(4, 5)),
        Row {
            method: Some(TraceMethod::Head),
            ..plain(5, 0)
        }, // nothing to keep
        plain(5, 7), // kept
        Row {
            method: Some(TraceMethod::Head),
            ..plain(5, 0)
        }, // hit
    ];
    let found = summary(&rows).infinite;
    let bytes = 2347;
    let ratios = |hits, hit_bytes| Ratios {
        hits,
        requests: 14,
        hit_bytes,
        bytes,
    };
    assert_eq!(found.obeying_cookies, ratios(4, 110));
    assert_eq!(found.ignoring_cookies, ratios(6, 220));
    assert!((found.obeying_cookies.hit_ratio() - 4.0 / 14.0).abs() < 1e-12);
    // K1: eight rows count; 1 again twice, 2 twice, 3 once
    let k1 = Ratios {
        hits: 5,
        requests: 9,
        hit_bytes: 200 + 20 + 1000,
        bytes: 300 + 30 + 2000 + 7,
    };
    assert_eq!(found.k1, k1);
}

#[test]
fn k1_size_of_a_target_is_its_first_nonzero_size() {
    let declared = Row {
        received_bytes: None,
        declared_bytes: Some(9),
        ..plain(2, 0)
    };
    let rows = [
        plain(1, 0),
        plain(1, 4),
        plain(1, 400),
        plain(2, 0),
        declared,
    ];
    let found = summary(&rows).infinite.k1;
    assert_eq!(
        found,
        Ratios {
            hits: 1,
            requests: 3,
            hit_bytes: 4,
            bytes: 4 + 4 + 9
        }
    );
}

#[test]
fn response_without_content_is_not_counted_as_an_abort() {
    let transfer = |declared, received| Row {
        declared_bytes: Some(declared),
        ..plain(1, received)
    };
    let rows = [
        transfer(100, 100),
        transfer(100, 40),
        transfer(10, 10),
        transfer(10, 11),
        Row {
            method: Some(TraceMethod::Head),
            ..transfer(100, 0)
        },
        Row {
            status: Some(304),
            ..transfer(100, 0)
        },
        Row {
            declared_bytes: None,
            aborted_by: Some(AbortedBy::Client),
            ..transfer(0, 3)
        },
        Row {
            aborted_by: Some(AbortedBy::Neither),
            ..transfer(0, 0)
        },
    ];
    let found = summary(&rows).aborts;
    let by_length = found.by_length.expect("some");
    let lines = by_length.map(|line| (line.transfers, line.declared_bytes, line.received_bytes));
    assert_eq!(lines, [(3, 110, 110), (1, 100, 40), (1, 10, 11)]);
    assert!((by_length[1].received_mean() - 40.0).abs() < 1e-12);
    assert_eq!(
        found.by_whom,
        Some(EndCounts {
            complete: 1,
            client: 1,
            server: 0
        })
    );
}

#[test]
fn each_connection_is_counted_once() {
    let on = |connection, sequence, persistent| Row {
        connection: Some(connection),
        connection_sequence: sequence,
        is_persistent_client: Some(persistent),
        next_hop_connection: Some(9),
        client: Some(connection % 2),
        server: Some(1),
        ..plain(1, 1)
    };
    let rows = [
        on(1, Some(1), true),
        on(1, Some(2), true),
        on(2, None, true),
        on(2, None, false),
        on(7, Some(3), false),
    ];
    let found = summary(&rows);
    let client = found.connections.client;
    assert_eq!(
        (client.persistent, client.reused),
        (share(3, 5), share(3, 5))
    );
    assert_eq!(client.connections, Some(3));
    assert!((client.requests_per_connection.expect("known") - 5.0 / 3.0).abs() < 1e-12);
    let next_hop = found.connections.next_hop;
    assert_eq!(
        (next_hop.persistent, next_hop.reused, next_hop.connections),
        (None, share(4, 5), Some(1))
    );
    assert_eq!(
        (found.population.clients, found.population.servers),
        (Some(2), Some(1))
    );
}

#[test]
fn set_up_of_exactly_half_the_time_counts_as_half() {
    let timed = |setup, total| Row {
        setup_us: Some(setup),
        last_byte_us: Some(total),
        ..plain(1, 1)
    };
    let reused = Row {
        setup_us: None,
        last_byte_us: Some(10),
        ..plain(1, 1)
    };
    let backward = Row {
        request_us: Some(9),
        response_us: Some(8),
        ..plain(1, 1)
    };
    let forward = Row {
        request_us: Some(9),
        response_us: Some(12),
        ..plain(1, 1)
    };
    let found = summary(&[
        timed(5, 10),
        timed(5, 11),
        timed(4, 10),
        reused,
        backward,
        forward,
    ])
    .times;
    assert_eq!(found.setup_is_half, share(1, 3));
    assert_eq!(
        found.setup_us.map(|spread| (spread.count, spread.p50)),
        Some((3, 5))
    );
    assert_eq!(
        found.response_us.map(|spread| (spread.count, spread.max)),
        Some((1, 3))
    );
}

#[test]
fn span_is_from_the_earliest_to_the_latest_arrival() {
    let at = |seconds: i64| Row {
        arrival_us: seconds * 1_000_000,
        ..plain(1, 1)
    };
    let found = summary(&[at(100), at(90), at(95), at(130), at(119)])
        .span
        .expect("rows");
    assert_eq!((found.first_us, found.last_us), (90_000_000, 130_000_000));
    assert_eq!(found.out_of_order, 2);
    // 60 s to 119 s
    assert_eq!(found.busiest_minute, 4);
    assert_eq!(found.requests_per_s, Some(5.0 / 40.0));
    assert_eq!(
        summary(&[at(1), at(1)]).span.expect("rows").requests_per_s,
        None
    );
}

#[test]
fn table_equals_its_expected_text() {
    let row = |index: i64| Row {
        arrival_us: index * 60_000_000,
        client: Some(1),
        scheme: Some(TraceScheme::Http),
        version: Some(TraceVersion::Http11),
        declared_bytes: Some(20_000),
        has_cookie: Some(index % 4 == 0),
        setup_us: Some(1_300_000),
        last_byte_us: Some(2_000_000),
        verdict: Some("TCP_MISS".into()),
        ..plain(index.cast_unsigned() % 2, 12_000)
    };
    let rows: Vec<Row> = (0..12).map(row).collect();
    let meta = Meta {
        source: "a test".into(),
        anonymisation: Some(Anonymisation::None),
        dropped: [("no target".to_owned(), 12_345)].into(),
        ..Meta::default()
    };
    let shown = text("week.parquet", &meta, &summary(&rows));
    let expected = include_str!("by_hand.txt");
    assert!(shown == expected, "{shown}");
}
