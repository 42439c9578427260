//! Hit, miss, validation, delayed hit, parts, aborts, idle connections: what each comes to.

use super::world::*;
use crate::settings::{Caching, Keep, Network, Settings};
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_policy::{Handling, Hit, Profile};
use weir_semantics::Fwd;
use weir_trace::{AbortedBy, RequestBit, Row, TraceMethod};

const MINUTE_MS: i64 = 60_000;

fn check(rows: &[Row], expected: &[(&str, u64)]) {
    let outcome = run(&settings(), rows);
    assert_eq!(verdicts(&outcome), expected);
}

#[test]
fn fresh_response_is_a_hit_and_a_stale_one_is_forwarded() {
    let at = |s: i64| row(s * 1000, 1, 500);
    // received in second 0, fresh for 3600
    check(&[at(0), at(3599)], &[("hit", 1), ("uri-miss", 1)]);
    check(&[at(0), at(3601)], &[("stale", 1), ("uri-miss", 1)]);
}

#[test]
fn successful_validation_transfers_no_content_and_freshens_the_response() {
    let tagged = |at_ms| Row {
        etag: Some(7),
        ..row(at_ms, 1, 50_000)
    };
    let outcome = run(
        &settings(),
        &[
            tagged(0),
            tagged(2 * 3_600_000),
            tagged(2 * 3_600_000 + MINUTE_MS),
        ],
    );
    assert_eq!(
        verdicts(&outcome),
        [("hit", 1), ("stale", 1), ("uri-miss", 1)]
    );
    assert_eq!(outcome.requests.validated, 1);
    assert_eq!(outcome.traffic.from_servers_bytes, 50_000);
    assert_eq!(outcome.traffic.from_servers_head_bytes, 500);
    assert_eq!(outcome.requests.hit_bytes, 100_000);
}

#[test]
fn failed_validation_replaces_the_stored_response() {
    let tagged = |at_ms, etag, bytes| Row {
        etag: Some(etag),
        ..row(at_ms, 1, bytes)
    };
    let rows = [
        tagged(0, 7, 1000),
        tagged(2 * 3_600_000, 8, 3000),
        tagged(2 * 3_600_000 + MINUTE_MS, 8, 3000),
    ];
    let outcome = run(&settings(), &rows);
    assert_eq!(outcome.requests.validated, 0);
    assert_eq!(outcome.traffic.from_servers_bytes, 4000);
    assert_eq!(outcome.requests.hit_bytes, 3000);
    assert_eq!(outcome.stored_bytes, 3250);
}

#[test]
fn condition_met_by_the_stored_response_is_answered_as_a_hit_without_content() {
    let tagged = |at_ms| Row {
        etag: Some(7),
        ..row(at_ms, 1, 50_000)
    };
    let conditional = Row {
        status: Some(304),
        request_directives: Some(RequestBit::IfNoneMatch.bit()),
        declared_bytes: None,
        received_bytes: Some(0),
        ..tagged(MINUTE_MS)
    };
    let outcome = run(&settings(), &[tagged(0), conditional]);
    assert_eq!(verdicts(&outcome), [("hit", 1), ("uri-miss", 1)]);
    assert_eq!(
        outcome.traffic.to_clients_bytes, 50_000,
        "a 304 has no content"
    );
}

#[test]
fn concurrent_requests_for_a_target_share_one_request_to_the_server() {
    // the second comes while the first waits for the head, the third while the content arrives
    let rows = [
        row(0, 1, 100_000),
        by(2, row(100, 1, 100_000)),
        by(3, row(3000, 1, 100_000)),
    ];
    let outcome = run(&settings(), &rows);
    assert_eq!(
        verdicts(&outcome),
        [
            ("collapsed/uri-miss", 1),
            ("hit/delayed", 1),
            ("uri-miss", 1)
        ]
    );
    assert_eq!(outcome.requests.delayed_hits, 1);
    assert_eq!(outcome.requests.collapsed, 1);
    assert_eq!(outcome.requests.hits, 1, "a collapsed request is no hit");
    assert_eq!(outcome.traffic.from_servers_bytes, 100_000);
    assert_eq!(outcome.traffic.to_clients_bytes, 300_000);
    assert_eq!(outcome.requests.hit_bytes, 200_000);
    assert_eq!(outcome.server_connections.requests, 1);
}

#[test]
fn followers_of_a_response_with_set_cookie_are_each_forwarded() {
    let private = |client, at_ms| Row {
        has_set_cookie: Some(true),
        max_age_s: None,
        ..by(client, row(at_ms, 1, 1000))
    };
    let rows = [
        private(1, 0),
        private(2, 100),
        private(3, 110),
        private(4, 20_000),
        private(5, 20_001),
    ];
    let outcome = run(&settings(), &rows);
    assert_eq!(verdicts(&outcome), [("uri-miss/set-cookie", 5)]);
    assert_eq!(outcome.server_connections.requests, 5);
    assert_eq!(outcome.requests.delayed_hits, 0);
    assert_eq!(outcome.requests.collapsed, 0);
}

#[test]
fn cookie_prevents_a_hit_in_the_1998_profile_unless_ignored() {
    let with_cookie = |at_ms| Row {
        has_cookie: Some(true),
        max_age_s: None,
        last_modified_s: Some(START_S - 10_000_000),
        ..row(at_ms, 1, 1000)
    };
    let rows = [with_cookie(0), with_cookie(MINUTE_MS)];
    let settings = Settings::of(Network::MODEM, Profile::Http1998);
    assert_eq!(run(&settings, &rows).requests.hits, 0);
    let ignoring = Settings {
        caching: Caching::IgnoringCookies,
        ..settings.clone()
    };
    assert_eq!(
        verdicts(&run(&ignoring, &rows)),
        [("hit", 1), ("uri-miss", 1)]
    );
    let off = Settings {
        caching: Caching::Off,
        ..settings
    };
    assert_eq!(verdicts(&run(&off, &rows)), [("bypass/bypass", 2)]);
}

#[test]
fn unsafe_request_invalidates_the_stored_response() {
    let post = Row {
        method: Some(TraceMethod::Post),
        max_age_s: None,
        ..row(MINUTE_MS, 1, 10)
    };
    check(
        &[row(0, 1, 500), post, row(2 * MINUTE_MS, 1, 500)],
        &[("method/bypass", 1), ("uri-miss", 2)],
    );
}

#[test]
fn varying_request_is_served_only_its_own_variant() {
    let varying = |at_ms, variant| Row {
        vary: Some(99),
        variant: Some(variant),
        ..row(at_ms, 1, 500)
    };
    check(
        &[
            varying(0, 1),
            varying(MINUTE_MS, 2),
            varying(2 * MINUTE_MS, 1),
            varying(3 * MINUTE_MS, 2),
        ],
        &[("hit", 2), ("uri-miss", 1), ("vary-miss", 1)],
    );
}

/// One client leaves at 20 kB of 1 MB; ten minutes later another one wants all of it.
fn aborted(abort: AbortPolicy, read_ahead: ReadAhead, is_tagged: bool) -> crate::Outcome {
    let tag = |row| Row {
        etag: is_tagged.then_some(7),
        ..row
    };
    let rows = [
        tag(leaving_after(20_000, row(0, 1, 1_000_000))),
        tag(by(2, row(10 * MINUTE_MS, 1, 1_000_000))),
    ];
    let settings = Settings {
        abort,
        read_ahead,
        ..settings()
    };
    run(&settings, &rows)
}

#[test]
fn abort_policy_decides_how_a_fetch_ends_after_client_disconnect() {
    let stopped = aborted(AbortPolicy::Stop, ReadAhead::DEFAULT, false);
    assert_eq!(stopped.aborts.fetches["stop-always"], 1);
    assert_eq!(stopped.aborts.by_clients, 1);
    assert_eq!(verdicts(&stopped), [("uri-miss", 2)]);
    assert_eq!(stopped.aborts.parts_kept, 0);

    let kept = aborted(AbortPolicy::Stop, ReadAhead::DEFAULT, true);
    assert_eq!(verdicts(&kept), [("partial", 1), ("uri-miss", 1)]);
    assert_eq!(kept.aborts.parts_kept, 1);
    assert!(
        kept.aborts.completed_bytes >= 20_000,
        "{}",
        kept.aborts.completed_bytes
    );
    assert!(kept.traffic.from_servers_bytes < 1_000_000 + 64 * 1024);
    assert!(kept.traffic.from_servers_bytes >= 1_000_000);

    let finished = aborted(AbortPolicy::Finish, ReadAhead::DEFAULT, false);
    assert_eq!(finished.aborts.fetches["go-on-always"], 1);
    assert_eq!(verdicts(&finished), [("hit", 1), ("uri-miss", 1)]);
    assert_eq!(finished.traffic.from_servers_bytes, 1_000_000);

    let squid = aborted(AbortPolicy::SQUID, ReadAhead::DEFAULT, false);
    assert_eq!(squid.aborts.fetches["stop-much-left"], 1);
    let value = aborted(AbortPolicy::VALUE, ReadAhead::DEFAULT, true);
    assert_eq!(
        value.aborts.fetches.keys().copied().collect::<Vec<_>>(),
        ["stop-not-worth-it"]
    );
}

#[test]
fn bounded_read_ahead_limits_wasted_bytes_and_unbounded_fetches_everything() {
    let bounded = aborted(AbortPolicy::Stop, ReadAhead::DEFAULT, false);
    // 64 KiB beyond what the client had, and what its own link held
    assert!(
        bounded.traffic.wasted_bytes <= 64 * 1024 + 20_000,
        "{}",
        bounded.traffic.wasted_bytes
    );
    let unbounded = aborted(AbortPolicy::Stop, ReadAhead::Unbounded, false);
    // at 45 Mbit/s all of it is there before the client leaves
    assert_eq!(unbounded.traffic.from_servers_bytes, 1_000_000);
    assert_eq!(verdicts(&unbounded), [("hit", 1), ("uri-miss", 1)]);
}

#[test]
fn response_cut_by_its_server_is_not_stored() {
    let cut = Row {
        aborted_by: Some(AbortedBy::Server),
        received_bytes: Some(3000),
        ..row(0, 1, 10_000)
    };
    let outcome = run(&settings(), &[cut, row(MINUTE_MS, 1, 10_000)]);
    assert_eq!(outcome.aborts.by_servers, 1);
    let expected = [("uri-miss", 1), ("uri-miss/incomplete", 1)];
    assert_eq!(verdicts(&outcome), expected);
    assert_eq!(outcome.traffic.from_servers_bytes, 13_000);
    assert_eq!(
        outcome.client_connections.opened, 2,
        "a cut response ends its connection"
    );
}

#[test]
fn requests_are_refused_when_the_server_never_answers() {
    let silent = |client, at_ms| Row {
        status: None,
        aborted_by: Some(AbortedBy::Server),
        declared_bytes: None,
        received_bytes: Some(0),
        ..by(client, row(at_ms, 1, 0))
    };
    let rows = [silent(1, 0), silent(2, 100), silent(3, 110)];
    let outcome = run(&settings(), &rows);
    assert_eq!(verdicts(&outcome), [("error/next-hop", 3)]);
    assert_eq!(
        outcome.server_connections.requests, 3,
        "two ask for all, then each for itself"
    );
}

#[test]
fn follower_waits_for_the_leader_no_longer_than_its_limit() {
    let slow = |client, at_ms, seconds: u64| Row {
        next_hop_setup_us: Some(10_000),
        next_hop_response_us: Some(seconds * 1_000_000),
        ..by(client, row(at_ms, 1, 250))
    };
    // the first is answered after 20 s, the others would be after one
    let rows = [slow(1, 0, 20), slow(2, 100, 1), slow(3, 110, 1)];
    let asked = |limit_ms| {
        let settings = Settings {
            follower_wait_ms: limit_ms,
            ..settings()
        };
        let outcome = run(&settings, &rows);
        let words = format!("{:?}", verdicts(&outcome));
        (words, outcome.server_connections.requests)
    };
    let each = r#"[("uri-miss", 3)]"#.to_owned();
    assert_eq!(asked(Some(5000)), (each, 3));
    for long in [None, Some(60_000)] {
        let waited = r#"[("collapsed/uri-miss", 2), ("uri-miss", 1)]"#.to_owned();
        assert_eq!(asked(long), (waited, 1));
    }
}

#[test]
fn followers_of_other_variants_ask_at_once_after_one_mismatch() {
    let varying = |client: u64, variant| Row {
        vary: Some(99),
        variant: Some(variant),
        next_hop_setup_us: Some(10_000),
        next_hop_response_us: Some(1_000_000),
        ..by(client, row(client.cast_signed(), 1, 250))
    };
    let rows = [1, 2, 3, 4, 5, 6].map(|client| varying(client, client.min(5)));
    let outcome = run(&settings(), &rows);
    assert_eq!(outcome.server_connections.requests, 5);
    let slowest_us = outcome.latency.total.max_us;
    assert!(
        (2_000_000..2_900_000).contains(&slowest_us),
        "{slowest_us} us"
    );
}

#[test]
fn idle_connection_is_reused_until_its_timeout_and_then_closed() {
    let opened = |between_ms: i64| {
        // the first response is complete with its client after less than 1.2 s
        let rows = [row(0, 1, 250), row(between_ms, 2, 250)];
        let outcome = run(&settings(), &rows);
        (
            outcome.client_connections.opened,
            outcome.server_connections.opened,
        )
    };
    assert_eq!(opened(29_000), (1, 1));
    assert_eq!(opened(32_000), (1, 2), "30 s to the server");
    assert_eq!(opened(179_000), (1, 2));
    assert_eq!(opened(182_000), (2, 2), "3 min to the client");
}

#[test]
fn connection_is_reused_only_as_the_keep_alive_setting_says() {
    let rows: Vec<Row> = (0..4).map(|n| row(n * 10_000, n as u64, 250)).collect();
    let opened = |client, server| {
        let settings = Settings {
            client_connections: client,
            server_connections: server,
            ..settings()
        };
        let outcome = run(&settings, &rows);
        (
            outcome.client_connections.opened,
            outcome.server_connections.opened,
        )
    };
    assert_eq!(opened(Keep::Always, Keep::Always), (1, 1));
    assert_eq!(opened(Keep::Never, Keep::Always), (4, 1));
    assert_eq!(opened(Keep::Always, Keep::Never), (1, 4));
    let in_trace: Vec<Row> = rows
        .iter()
        .enumerate()
        .map(|(n, row)| Row {
            is_persistent_client: Some(n < 2),
            ..row.clone()
        })
        .collect();
    let settings = Settings {
        client_connections: Keep::AsInTrace,
        ..settings()
    };
    assert_eq!(
        run(&settings, &in_trace).client_connections.opened,
        2,
        "the third closes, the fourth opens"
    );
}

#[test]
fn overhead_adds_latency_without_changing_verdicts() {
    let rows: Vec<Row> = (0..20)
        .map(|n| row(n * 10_000, n as u64 % 5, 250))
        .collect();
    let plain = run(&settings(), &rows);
    let slow = Settings {
        hit_overhead: Some("1s".parse().unwrap()),
        miss_overhead: Some("exp(2s)".parse().unwrap()),
        ..settings()
    };
    let outcome = run(&slow, &rows);
    assert_eq!(outcome.verdicts, plain.verdicts);
    let added = outcome.latency.total.mean_us - plain.latency.total.mean_us;
    assert!(added > 900_000.0, "{added}");
    let other = run(
        &Settings {
            seed: 2,
            ..slow.clone()
        },
        &rows,
    );
    assert!((other.latency.total.mean_us - outcome.latency.total.mean_us).abs() > 1.0);
    assert_eq!(run(&slow, &rows), outcome);
}

#[test]
fn verdicts_are_recorded_per_request_in_order_of_completion() {
    let rows = [
        row(0, 1, 100_000),
        by(2, row(100, 2, 10)),
        row(300_000, 1, 100_000),
    ];
    let mut simulator = crate::Simulator::new(settings()).unwrap();
    simulator.record_verdicts();
    for row in &rows {
        simulator.push(row);
    }
    simulator.settle_all();
    let verdicts = simulator.take_verdicts();
    let handlings: Vec<(u64, Handling)> = verdicts
        .iter()
        .map(|(row, it)| (*row, it.handling))
        .collect();
    // the second has its ten bytes long before the first has all of its own
    let miss = Handling::Forward(Fwd::UriMiss);
    assert_eq!(
        handlings,
        [(1, miss), (0, miss), (2, Handling::Hit(Hit::Fresh))]
    );
    let words: Vec<&str> = verdicts
        .iter()
        .map(|(_, it)| it.handling.as_str())
        .collect();
    let outcome = simulator.finish();
    for word in words {
        assert!(outcome.verdicts.contains_key(word), "{word}");
    }
}
