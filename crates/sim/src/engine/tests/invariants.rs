//! What must hold for every trace: nothing is lost on the way, and what the papers say.

use super::world::*;
use crate::network::tcp::Tcp;
use crate::results::outcome::Outcome;
use crate::settings::{Caching, Keep, Network, Path, Settings};
use proptest::prelude::*;
use weir_policy::Profile;
use weir_policy::admission::Rule;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_trace::{AbortedBy, RequestBit, ResponseBit, Row, TraceMethod};
use weir_workload::Chance;

/// Anything that a trace may hold, much of it at the same time and for few targets.
pub(super) fn wild(seed: u64, rows: usize) -> Vec<Row> {
    let chance = &mut Chance::new(seed, 1);
    let mut at_ms = 0;
    (0..rows)
        .map(|_| {
            at_ms += i64::try_from(chance.below(3000)).unwrap();
            if chance.is(0.02) {
                at_ms += 3_600_000;
            }
            let target = chance.below(12) * 700;
            let doublings = chance.below(13);
            let bytes = chance.below(64 << doublings);
            any_row(chance, at_ms, target, bytes)
        })
        .collect()
}

fn any_row(chance: &mut Chance, at_ms: i64, target: u64, bytes: u64) -> Row {
    let mut row = row(at_ms, target, bytes);
    row.client = Some(chance.below(4));
    row.setup_us = chance.is(0.7).then(|| chance.below(300_000));
    row.etag = chance.is(0.6).then(|| chance.below(2));
    row.etag_is_weak = Some(chance.is(0.2));
    row.last_modified_s = chance.is(0.4).then_some(START_S - 100_000);
    row.max_age_s = chance
        .is(0.6)
        .then(|| u32::try_from(chance.below(7200)).unwrap());
    row.stale_while_revalidate_s = chance.is(0.3).then_some(3600);
    row.stale_if_error_s = chance.is(0.2).then_some(36_000);
    row.has_set_cookie = Some(chance.is(0.1));
    row.is_persistent_client = Some(chance.is(0.7));
    row.is_persistent_server = Some(chance.is(0.7));
    let bits = [
        RequestBit::NoCache,
        RequestBit::NoStore,
        RequestBit::OnlyIfCached,
        RequestBit::IfNoneMatch,
    ];
    if chance.is(0.2) {
        row.request_directives = Some(bits[usize::try_from(chance.below(4)).unwrap()].bit());
    }
    if chance.is(0.1) {
        row.response_directives = Some(ResponseBit::NoCache.bit());
    }
    if chance.is(0.2) {
        row.vary = Some(5);
        row.variant = Some(chance.below(3));
    }
    if chance.is(0.15) {
        row.range_first = Some(chance.below(bytes + 1));
        row.status = Some(206);
        row.declared_bytes = Some(bytes / 2 + 1);
        row.received_bytes = Some(bytes / 2 + 1);
        row.range_last = chance
            .is(0.5)
            .then(|| row.range_first.unwrap_or(0) + bytes / 2);
    }
    match chance.below(20) {
        0 => row.method = Some(TraceMethod::Post),
        1 => row.method = Some(TraceMethod::Head),
        2 => row.status = Some(304),
        3 => row.status = Some(503),
        4 => (row.status, row.aborted_by) = (None, Some(AbortedBy::Server)),
        5 => row.status = Some(404),
        6..=9 => row.received_bytes = Some(chance.below(bytes + 1)),
        10 => {
            row.received_bytes = Some(chance.below(bytes + 1));
            row.aborted_by = Some(AbortedBy::Server);
        }
        _ => {}
    }
    row
}

/// What goes in comes out, on every link.
fn balance(settings: &Settings, outcome: &Outcome, rows: usize) {
    let traffic = &outcome.traffic;
    let header = u64::from(settings.network.tcp.header_bytes);
    let rows = rows as u64;
    assert_eq!(outcome.requests.count, rows);
    assert_eq!(outcome.client_connections.requests, rows);
    assert_eq!(
        outcome.latency.total.count, rows,
        "every request comes to an end"
    );
    assert_eq!(
        traffic.to_clients_wire_bytes,
        traffic.to_clients_bytes
            + traffic.to_clients_head_bytes
            + header * traffic.to_clients_packets,
    );
    assert_eq!(
        traffic.from_servers_wire_bytes,
        traffic.from_servers_bytes
            + traffic.from_servers_head_bytes
            + header * traffic.from_servers_packets,
    );
    assert!(outcome.requests.content_bytes <= traffic.to_clients_bytes);
    assert!(outcome.requests.hit_bytes <= outcome.requests.content_bytes);
    if settings.path == Path::Proxy {
        assert_eq!(
            outcome.verdicts.values().sum::<u64>(),
            rows,
            "one verdict a request"
        );
        assert_eq!(
            traffic.from_servers_bytes,
            traffic.relayed_bytes + traffic.wasted_bytes,
            "what came from servers was relayed or wasted"
        );
    }
}

pub(super) fn all_settings() -> Vec<Settings> {
    let modem = settings();
    let research = Settings::of(Network::RESEARCH, Profile::Http1998);
    let fast = Settings::of(
        Network {
            tcp: Tcp::LINUX,
            ..Network::RESEARCH
        },
        Profile::Rfc9111,
    );
    vec![
        modem.clone(),
        modem.without_proxy(),
        modem.without_caches(),
        research.clone(),
        research.without_proxy(),
        Settings {
            read_ahead: ReadAhead::Unbounded,
            abort: AbortPolicy::Stop,
            ..modem.clone()
        },
        Settings {
            read_ahead: ReadAhead::Bytes(1),
            abort: AbortPolicy::SQUID,
            ..modem.clone()
        },
        Settings {
            abort: AbortPolicy::Finish,
            background_bytes_s: 500,
            ..modem.clone()
        },
        Settings {
            abort: AbortPolicy::Finish,
            background_bytes_s: 0,
            ..fast.clone()
        },
        Settings {
            cache_bytes: 40_000,
            admission: Rule::SecondRequest,
            ..fast.clone()
        },
        Settings {
            hit_overhead: Some("exp(1s)".parse().unwrap()),
            miss_overhead: Some("exp(1s)".parse().unwrap()),
            ..fast.clone()
        },
        Settings {
            client_connections: Keep::Never,
            server_connections: Keep::AsInTrace,
            ..fast
        },
    ]
}

#[test]
fn random_traces_lose_no_byte_or_request_and_are_reproducible() {
    for seed in 0..16 {
        let rows = wild(seed, 150);
        for (number, settings) in all_settings().iter().enumerate() {
            let once = run(settings, &rows);
            balance(settings, &once, rows.len());
            if seed < 3 {
                let again = run(settings, &rows);
                let texts = [&once, &again].map(|it| serde_json::to_string(it).unwrap());
                assert_eq!(texts[0], texts[1], "settings {number}, seed {seed}");
            }
        }
    }
}

#[test]
fn fetched_bytes_never_decrease_as_the_read_ahead_limit_grows() {
    let mut lost = Vec::new();
    for read_ahead in [
        ReadAhead::Bytes(16 * 1024),
        ReadAhead::DEFAULT,
        ReadAhead::Bytes(512 * 1024),
        ReadAhead::Unbounded,
    ] {
        let settings = Settings {
            read_ahead,
            abort: AbortPolicy::Stop,
            ..settings()
        };
        let total: u64 = (0..10)
            .map(|seed| run(&settings, &aborting(seed)).traffic.from_servers_bytes)
            .sum();
        lost.push(total);
    }
    assert!(lost.is_sorted(), "{lost:?}");
}

#[test]
fn finishing_fetches_of_distinct_targets_costs_at_least_as_much_as_stopping() {
    for seed in 0..10 {
        let rows: Vec<Row> = aborting(seed)
            .into_iter()
            .enumerate()
            .map(|(n, row)| Row {
                target: n as u64,
                ..row
            })
            .collect();
        let bytes = |abort| {
            let settings = Settings {
                abort,
                read_ahead: ReadAhead::Unbounded,
                background_bytes_s: 1 << 40,
                ..settings()
            };
            run(&settings, &rows).traffic.from_servers_bytes
        };
        assert!(
            bytes(AbortPolicy::Finish) >= bytes(AbortPolicy::Stop),
            "{seed}"
        );
    }
}

/// Plain requests of several clients, a tenth of which leave early.
pub(super) fn aborting(seed: u64) -> Vec<Row> {
    let chance = &mut Chance::new(seed, 2);
    let mut at_ms = 0;
    (0..300)
        .map(|_| {
            at_ms += i64::try_from(chance.below(20_000)).unwrap();
            let target = chance.below(100) * 1000;
            let is_aborted = chance.is(0.15);
            let bytes = if is_aborted {
                30_000 << (target / 1000 % 6)
            } else {
                500 + target / 10
            };
            let row = by(
                chance.below(30),
                row(at_ms, target + u64::from(is_aborted), bytes),
            );
            if is_aborted {
                leaving_after(12_000, row)
            } else {
                row
            }
        })
        .collect()
}

#[test]
fn read_ahead_limit_removes_more_than_half_of_the_bytes_wasted_by_aborts() {
    let rows: Vec<Row> = (0..4).flat_map(aborting).collect();
    let mut rows = rows;
    rows.sort_by_key(|row| row.arrival_us);
    let none = run(&settings().without_proxy(), &rows)
        .traffic
        .from_servers_bytes;
    let bytes = |read_ahead| {
        let settings = Settings {
            read_ahead,
            abort: AbortPolicy::Stop,
            caching: Caching::Off,
            ..settings()
        };
        run(&settings, &rows).traffic.from_servers_bytes
    };
    let (unbounded, bounded) = (bytes(ReadAhead::Unbounded), bytes(ReadAhead::DEFAULT));
    // the paper: -8 % where the proxy reads as fast as it can, and that loss is gone at 64 KB
    assert!(unbounded > none + none / 20, "{unbounded} {none}");
    assert!(bounded < unbounded, "{bounded} {unbounded}");
    assert!(
        bounded - none < (unbounded - none) / 2,
        "{bounded} {unbounded} {none}"
    );
}

/// Requests as people made them in 1997: most responses fit a packet, a fifth of them come on the
/// connection of the one before, some targets are asked for again.
fn browsing(clients: u64) -> Vec<Row> {
    let chance = &mut Chance::new(3, 3);
    let mut at_ms = 0;
    let mut rows: Vec<Row> = Vec::new();
    let mut target = 0;
    let mut client = 0;
    for _ in 0..2000 {
        let goes_on = chance.is(0.5);
        if !goes_on {
            client = chance.below(clients);
            let is_popular = chance.is(0.3);
            target = if is_popular {
                chance.below(30) * 500
            } else {
                100_000 + chance.below(100_000)
            };
        }
        at_ms += i64::try_from(2500 + chance.below(2000)).unwrap();
        let doublings = chance.below(6);
        let is_large = chance.is(0.2);
        let bytes = if is_large {
            1000 << doublings
        } else {
            100 + chance.below(1000)
        };
        let mut row = by(client, row(at_ms, target, bytes));
        row.server = Some(target / 1000);
        row.setup_us = Some(200_000 + chance.below(1_000_000));
        row.response_us = row.request_us.map(|at| at + 1_200_000);
        row.is_persistent_client = Some(chance.is(0.6));
        rows.push(row);
        target += 1;
    }
    rows
}

/// Mean latency without a proxy, with nothing cached, with data, with connections, with both.
fn latencies(network: Network, rows: &[Row]) -> [f64; 5] {
    let all = Settings::of(network, Profile::Rfc9111);
    let connections = Settings {
        caching: Caching::Off,
        ..all.clone()
    };
    let data = Settings {
        client_connections: Keep::Never,
        server_connections: Keep::Never,
        ..all.clone()
    };
    [
        all.without_proxy(),
        all.without_caches(),
        data,
        connections,
        all,
    ]
    .map(|settings| run(&settings, rows).latency.total.mean_us)
}

#[test]
fn connection_caching_saves_more_latency_than_data_caching_at_21_kbit_s() {
    let [none, plain, data, connections, both] = latencies(Network::MODEM, &browsing(20));
    assert!(
        plain > none,
        "a proxy without caches makes it slower: {plain} {none}"
    );
    assert!(connections < data, "{connections} {data}");
    assert!(
        both < connections && data < plain,
        "{both} {connections} {data} {plain}"
    );
}

#[test]
fn data_caching_saves_more_latency_than_connection_caching_on_a_fast_link() {
    // the local network of the researchers: what costs time is the way to the servers
    let mut rows = browsing(20);
    for row in &mut rows {
        row.setup_us = Some(60_000);
        row.response_us = row.request_us.map(|at| at + 700_000);
    }
    let [_, plain, data, connections, both] = latencies(Network::RESEARCH, &rows);
    assert!(data < connections, "{data} {connections}");
    assert!(
        both < data && connections < plain,
        "{both} {data} {connections} {plain}"
    );
}

#[test]
fn proxy_without_caches_is_slower_than_no_proxy_for_one_packet_responses() {
    // a longer response begins slowly on two short ways instead of one long one, and that is a gain
    for seed in 0..20 {
        let chance = &mut Chance::new(seed, 4);
        let mut at_ms = 0;
        let rows: Vec<Row> = (0..200)
            .map(|_| {
                at_ms += i64::try_from(chance.below(5000)).unwrap();
                let mut row = by(
                    chance.below(5),
                    row(at_ms, chance.below(9) * 500, chance.below(1200)),
                );
                row.setup_us = Some(chance.below(1_000_000));
                row.is_persistent_client = Some(chance.is(0.5));
                row
            })
            .collect();
        let [none, plain, ..] = latencies(Network::MODEM, &rows);
        assert!(plain > none, "seed {seed}: {plain} {none}");
    }
}

#[test]
fn hit_ratio_never_rises_when_less_may_be_stored() {
    let rows: Vec<Row> = browsing(20)
        .into_iter()
        .enumerate()
        .map(|(n, row)| Row {
            has_cookie: Some(n % 3 == 0),
            max_age_s: None,
            last_modified_s: Some(START_S - 40_000_000),
            ..row
        })
        .collect();
    let ratio = |caching, cache_bytes| {
        let settings = Settings {
            caching,
            cache_bytes,
            ..Settings::of(Network::MODEM, Profile::Http1998)
        };
        run(&settings, &rows).requests.hit_ratio()
    };
    let (obeying, ignoring) = (
        ratio(Caching::On, 1 << 40),
        ratio(Caching::IgnoringCookies, 1 << 40),
    );
    assert!(obeying > 0.05 && obeying < ignoring, "{obeying} {ignoring}");
    assert!(ratio(Caching::On, 50_000) <= obeying);
    assert!(ratio(Caching::Off, 1 << 40).abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn closed_form_and_packet_by_packet_simulation_give_the_same_outcome(seed in 0_u64..1 << 40) {
        // a queue limit that is never reached has every packet sent one by one
        let rows = wild(seed, 60);
        for mut settings in [settings(), settings().without_proxy()] {
            let closed = run(&settings, &rows);
            settings.network.client_link.queue_limit_bytes = 1 << 40;
            let by_packets = run(&settings, &rows);
            prop_assert_eq!(closed, by_packets);
        }
    }

    #[test]
    fn plain_request_shortcut_gives_the_same_outcome_as_the_full_policy(seed in 0_u64..1 << 40) {
        let rows = wild(seed, 80);
        for settings in all_settings().iter().filter(|settings| settings.path == Path::Proxy) {
            let mut decided = crate::Simulator::new(settings.clone()).unwrap();
            decided.plain_is_allowed = false;
            for row in &rows {
                decided.push(row);
            }
            let (plain, decided) = (run(settings, &rows), decided.finish());
            prop_assert_eq!(&plain.aborts, &decided.aborts);
            prop_assert_eq!(&plain.traffic, &decided.traffic);
            prop_assert_eq!(&plain.verdicts, &decided.verdicts);
            prop_assert_eq!(plain, decided);
        }
    }
}

/// A reader that comes to a gap while it is given the bytes before it: the fetch that this begins
/// was once forgotten.
#[test]
fn every_request_and_fetch_ends_when_a_fetch_begins_during_a_read() {
    let rows = wild(1_059_456_117_972, 80);
    for settings in &all_settings() {
        let outcome = run(settings, &rows);
        balance(settings, &outcome, 80);
    }
}
