//! Heavy hitters, misses and their names over several workers.

use super::accumulator::{Accumulator, CountedRequest};
use super::fetch_names::FetchNames;
use super::recent_misses::MISSES_MAX;
use super::tops::{HALVING_S, Tops};
use super::{MissFacts, TargetName, Weights};
use crate::config::{Admin, TopClients, TopQueries};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use weir_measure::live::{NAME_BYTES_MAX, TopBy, TopOf, TopTable};
use weir_measure::sketch::COUNTERS_MAX;
use weir_measure::{Counters, Metric, Verdict};
use weir_policy::Digest;
use weir_semantics::Scheme;

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 7));
const BOB: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn tops(workers: usize) -> (Arc<Tops>, Arc<Counters>) {
    let counters = Arc::new(Counters::new());
    (Arc::new(Tops::new(workers, &counters)), counters)
}

fn shows_all() -> Admin {
    Admin {
        top_clients: TopClients::Addresses,
        top_queries: TopQueries::Whole,
        ..Admin::default()
    }
}

/// A digest of a small number, as keys of targets are.
fn digest(number: u64) -> Digest {
    Digest(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0)
}

fn target(path: &str) -> TargetName<'_> {
    TargetName::new(Scheme::Http, b"example.org", 80, Some(path))
}

fn request(target: TargetName<'_>, client: IpAddr, to_clients: u64) -> CountedRequest<'_> {
    CountedRequest {
        target: Some(target),
        key: None,
        client: Some(client),
        next_hop: None,
        weights: Weights {
            requests: 1,
            to_clients,
            ..Weights::default()
        },
        miss: None,
    }
}

fn rows(table: &TopTable) -> Vec<(&str, u64)> {
    let rows = table.rows.iter();
    rows.map(|row| (row.name.as_str(), row.count)).collect()
}

#[test]
fn row_that_is_cut_off_is_in_the_bound_of_what_is_not_listed() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    for (number, path) in [(1, "/a"), (2, "/b"), (3, "/c")] {
        sums.hit(&admin, digest(number), || target(path), 100 * number);
    }
    sums.tick();
    let listed = |rows_max| {
        let table = tops.table(TopOf::Urls, TopBy::ToClients, rows_max, &admin);
        (table.rows.len(), table.unlisted_max)
    };
    assert_eq!(
        [listed(3), listed(2), listed(0)],
        [(3, 0), (2, 100), (0, 300)]
    );
}

#[test]
fn hits_of_one_target_at_two_workers_are_one_row() {
    let (tops, counters) = tops(2);
    let admin = Admin::default();
    for worker in 0..2 {
        let mut sums = Accumulator::new(&tops, worker);
        for _ in 0..3 {
            sums.hit(&admin, digest(1), || target("/a"), 1_000);
        }
        sums.hit(&admin, digest(2), || target("/b"), 10);
        sums.tick();
    }
    let table = tops.table(TopOf::Urls, TopBy::ToClients, 10, &admin);
    let expected = [
        ("http://example.org/a", 6_000),
        ("http://example.org/b", 20),
    ];
    assert_eq!(rows(&table), expected);
    assert_eq!((table.total, table.resolution), (6_020, 0));
    assert!(table.rows.iter().all(|row| row.certain && row.error == 0));
    let hosts = tops.table(TopOf::Hosts, TopBy::Requests, 10, &admin);
    assert_eq!(rows(&hosts), [("example.org", 8)]);
    assert_eq!(counters.get(Metric::TopDropped), 0);
}

#[test]
fn target_that_takes_the_place_of_another_loses_no_hit() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    for round in 0..3_u64 {
        for number in 0..900 {
            let path = format!("/{number}");
            let target = TargetName::new(Scheme::Http, b"example.org", 80, Some(&path));
            sums.hit(&admin, digest(number), || target, round + 1);
        }
    }
    sums.tick();
    let table = tops.table(TopOf::Urls, TopBy::ToClients, 1_000, &admin);
    assert_eq!(table.rows.len(), 900);
    assert!(
        table.rows.iter().all(|row| row.count == 6),
        "1 + 2 + 3 each"
    );
}

#[test]
fn queries_are_cut_and_counted_as_one_url_unless_told_otherwise() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    for query in ["/s?q=secret", "/s?q=other", "/s"] {
        sums.count(&admin, &request(target(query), ALICE, 1));
    }
    let table = tops.table(TopOf::Urls, TopBy::Requests, 10, &admin);
    assert_eq!(rows(&table), [("http://example.org/s", 3)]);
    let whole = shows_all();
    sums.count(&whole, &request(target("/s?q=secret"), ALICE, 1));
    let table = tops.table(TopOf::Urls, TopBy::Requests, 10, &whole);
    let expected = [
        ("http://example.org/s", 3),
        ("http://example.org/s?q=secret", 1),
    ];
    assert_eq!(rows(&table), expected);
    // what was counted under other settings is not shown under those of now
    let table = tops.table(TopOf::Urls, TopBy::Requests, 10, &admin);
    assert!(
        rows(&table).iter().all(|(name, _)| !name.contains('?')),
        "{table:?}"
    );
}

#[test]
fn client_is_shown_by_its_address_only_if_told_so() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    sums.answered(ALICE, 2, 300);
    sums.answered(BOB, 1, 50);
    sums.count(&admin, &request(target("/a"), ALICE, 7));
    sums.tick();
    let table = tops.table(TopOf::Clients, TopBy::ToClients, 10, &admin);
    let shown = rows(&table);
    assert_eq!([shown[0].1, shown[1].1], [307, 50]);
    for (name, _) in shown {
        assert!(name.starts_with("client-") && name.len() == 19, "{name}");
        assert!(!name.contains("192") || !name.contains("168.1"), "{name}");
    }
    let table = tops.table(TopOf::Clients, TopBy::Requests, 10, &shows_all());
    assert_eq!(rows(&table), [("192.168.1.7", 3), ("::1", 1)]);
}

#[test]
fn what_a_fetch_brings_is_counted_for_its_target_and_next_hop_without_a_client() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let sums = Accumulator::new(&tops, 0);
    let next_hop = "198.51.100.1:80".parse().expect("an address");
    let fetch = FetchNames::new(&sums, &admin, &target("/big?x"), Some(next_hop));
    assert!(fetch.received(1 << 20));
    fetch.wasted(1 << 10);
    for (of, name) in [
        (TopOf::Urls, "http://example.org/big"),
        (TopOf::Hosts, "example.org"),
        (TopOf::NextHops, "198.51.100.1:80"),
    ] {
        let table = tops.table(of, TopBy::FromNextHops, 10, &admin);
        assert_eq!(rows(&table), [(name, 1 << 20)]);
        let table = tops.table(of, TopBy::Wasted, 10, &admin);
        assert_eq!(rows(&table), [(name, 1 << 10)]);
    }
    let clients = tops.table(TopOf::Clients, TopBy::FromNextHops, 10, &admin);
    assert_eq!(rows(&clients), []);
}

#[test]
fn worker_does_not_wait_for_a_reader_and_counts_what_it_drops() {
    let (tops, counters) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    let fetch = FetchNames::new(&sums, &admin, &target("/a"), None);
    let reader = tops.try_lock(0).expect("nobody else");
    sums.count(&admin, &request(target("/a"), ALICE, 1));
    assert!(!fetch.received(1));
    sums.hit(&admin, digest(1), || target("/b"), 5);
    // keeps its sum for the next second
    sums.tick();
    assert_eq!(counters.get(Metric::TopDropped), 1);
    drop(reader);
    sums.tick();
    let table = tops.table(TopOf::Urls, TopBy::ToClients, 10, &admin);
    assert_eq!(rows(&table), [("http://example.org/b", 5)]);
}

#[test]
fn counts_are_halved_each_ten_minutes() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    sums.hit(&admin, digest(1), || target("/a"), 1_000);
    (0..HALVING_S - 1).for_each(|_| sums.tick());
    let count = || {
        let table = tops.table(TopOf::Urls, TopBy::ToClients, 10, &admin);
        table.rows[0].count
    };
    assert_eq!(count(), 1_000);
    sums.tick();
    assert_eq!(count(), 500);
    (0..HALVING_S).for_each(|_| sums.tick());
    assert_eq!(count(), 250);
}

#[test]
fn forwarded_requests_are_counted_once_each_whatever_targets_share_a_place() {
    let (tops, _) = tops(1);
    let admin = shows_all();
    let mut sums = Accumulator::new(&tops, 0);
    let mut at_unix_ms = 0;
    let mut count = |sums: &mut Accumulator, number: u64, path: &str| {
        at_unix_ms += 1;
        sums.count(
            &admin,
            &CountedRequest {
                key: Some(Digest(number, 0)),
                miss: Some(MissFacts {
                    at_unix_ms,
                    method: "GET",
                    client: ALICE,
                    why: Verdict::UriMiss,
                    status: 200,
                    not_stored: None,
                    refused: None,
                }),
                ..request(target(path), ALICE, 100)
            },
        );
    };
    let places = 256;
    for _ in 0..5 {
        count(&mut sums, 1, "/a");
    }
    count(&mut sums, 1 + places, "/b");
    count(&mut sums, 1, "/a");
    count(&mut sums, 2, "/c");
    count(&mut sums, 2, "/c");
    sums.tick();
    let table = tops.table(TopOf::Urls, TopBy::Requests, 5, &admin);
    let url = |path: &str| format!("http://example.org{path}");
    let (a, b, c) = (url("/a"), url("/b"), url("/c"));
    assert_eq!(rows(&table), [(&*a, 6), (&*c, 2), (&*b, 1)]);
    let misses = tops.misses(&admin).misses;
    let urls: Vec<&str> = misses.iter().map(|miss| miss.url.as_str()).collect();
    let expected = [&c, &c, &a, &b, &a, &a, &a, &a, &a];
    assert_eq!(urls, expected.map(String::as_str));
}

#[test]
fn names_stay_within_their_bounds_at_a_flood_of_urls() {
    let (tops, _) = tops(1);
    let admin = shows_all();
    let mut sums = Accumulator::new(&tops, 0);
    let long = "ü".repeat(8 << 10);
    for number in 0..20_000_u32 {
        let path = format!("/{number}/{long}");
        let host = format!("h{number}.{}.example", "x".repeat(200));
        let miss = MissFacts {
            at_unix_ms: u64::from(number),
            method: "GET",
            client: ALICE,
            why: Verdict::UriMiss,
            status: 200,
            not_stored: None,
            refused: None,
        };
        sums.count(
            &admin,
            &CountedRequest {
                weights: Weights {
                    requests: 1,
                    to_clients: 1 + u64::from(number % 7),
                    from_next_hops: 1 + u64::from(number % 5),
                    wasted: 1,
                    misses: 1,
                    errors: 1,
                },
                miss: Some(miss),
                ..request(
                    TargetName::new(Scheme::Http, host.as_bytes(), 80, Some(&path)),
                    ALICE,
                    0,
                )
            },
        );
    }
    let mut top = tops.try_lock(0).expect("nobody else");
    for of in [TopOf::Urls, TopOf::Hosts] {
        let names = top.ranking(of).names_count();
        assert!(
            (COUNTERS_MAX..=6 * COUNTERS_MAX).contains(&names),
            "{names}"
        );
    }
    drop(top);
    let table = tops.table(TopOf::Urls, TopBy::Requests, usize::MAX, &admin);
    assert_eq!(table.rows.len(), COUNTERS_MAX, "no row lacks its name");
    assert!(
        table
            .rows
            .iter()
            .all(|row| row.name.len() <= NAME_BYTES_MAX && row.name.ends_with('…'))
    );
    assert!(
        table.rows.iter().all(|row| !row.certain),
        "all weigh the same"
    );
    let hosts = tops.table(TopOf::Hosts, TopBy::Requests, 1, &admin);
    assert!(hosts.rows[0].name.len() <= 128);
    let misses = tops.misses(&admin).misses;
    assert_eq!(misses.len(), MISSES_MAX);
    assert_eq!(misses[0].at_unix_ms, 19_999, "the latest first");
    assert!(misses.iter().all(|miss| miss.url.len() <= NAME_BYTES_MAX));
}

#[test]
fn long_urls_that_differ_behind_the_cut_are_two_rows() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    let long = "a".repeat(300);
    for end in ["x", "y"] {
        let path = format!("/{long}{end}");
        let target = TargetName::new(Scheme::Http, b"example.org", 80, Some(&path));
        sums.count(&admin, &request(target, ALICE, 1));
    }
    let table = tops.table(TopOf::Urls, TopBy::Requests, 10, &admin);
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.rows[0].name, table.rows[1].name);
}

#[test]
fn tunnel_is_named_by_host_and_port() {
    let (tops, _) = tops(1);
    let admin = Admin::default();
    let mut sums = Accumulator::new(&tops, 0);
    let tunnel = TargetName::new(Scheme::Http, b"example.org", 443, None);
    sums.count(&admin, &request(tunnel, ALICE, 9));
    for of in [TopOf::Urls, TopOf::Hosts] {
        let table = tops.table(of, TopBy::ToClients, 10, &admin);
        assert_eq!(rows(&table), [("example.org:443", 9)]);
    }
}

#[test]
fn idle_proxy_has_no_memory_for_heavy_hitters() {
    let (tops, _) = tops(1);
    let mut sums = Accumulator::new(&tops, 0);
    (0..2 * HALVING_S).for_each(|_| sums.tick());
    let mut top = tops.try_lock(0).expect("nobody else");
    assert_eq!(top.ranking(TopOf::Urls).names_count(), 0);
    let sketch = top.ranking(TopOf::Urls).sketch(TopBy::Requests);
    assert_eq!((sketch.total(), sketch.rows().count()), (0, 0));
}
