//! What a made log must be, whatever its numbers, and its numbers.

use super::maker::SiteMaker;
use super::page_law::Pages;
use super::profile::SiteProfile;
use crate::Row;
use crate::generator::Measurement;
use crate::generator::measurement::figure::{Figure, Quantity};
use crate::grouping::{ConnectionTrace, Grouping, GroupingRules};
use std::collections::HashMap;
use weir_workload::{Chance, mix};

fn profile() -> SiteProfile {
    SiteProfile::built_in("rice-1999").unwrap()
}

fn rows(requests: u64, seed: u64) -> impl Iterator<Item = Row> {
    SiteMaker::new(&profile(), requests, seed)
}

#[track_caller]
fn check_published(measurement: &Measurement, about: &str) {
    let published = profile().published;
    assert_eq!(published.len(), 5);
    let figures = measurement.figures(&published);
    let off: Vec<&Figure> = figures.iter().filter(|figure| !figure.holds()).collect();
    assert!(off.is_empty(), "{about}: {off:#?}");
}

#[test]
fn rice_1999_trace_has_the_published_figures() {
    let profile = profile();
    let mut measurement = Measurement::new();
    rows(profile.requests, 1).for_each(|row| measurement.add(&row));
    check_published(&measurement, "seed 1");
    assert_eq!(measurement.rows(), profile.requests);
    // the longest of them too: no target is lost at the end
    assert_eq!(measurement.of(Quantity::Targets), Some(31_000.0));
}

/// The numbers without an order and times: the law alone.
#[test]
fn rice_1999_has_the_published_bytes_of_97_98_99_percent_for_any_seed() {
    let profile = profile();
    for seed in 1..=20 {
        let pages = Pages::new(&profile, &mut Chance::new(seed, 1));
        let visits = pages.visits(&profile.visits, profile.requests);
        let mut requests = vec![0_u64; profile.targets.count as usize];
        for (page, visits) in visits.iter().enumerate() {
            requests[pages.target(page) as usize] += visits;
            for image in pages.images(page) {
                requests[image as usize] += visits;
            }
        }
        let mut targets: Vec<(u64, u64)> = (0..)
            .zip(&requests)
            .map(|(target, requests)| (*requests, pages.bytes(target)))
            .collect();
        targets.sort_unstable_by_key(|(requests, _)| std::cmp::Reverse(*requests));
        let all: u64 = requests.iter().sum();
        for (percent, published) in [(97, 526e6), (98, 619e6), (99, 745e6)] {
            let mut reached = 0;
            let bytes: u64 = targets
                .iter()
                .take_while(|(requests, _)| {
                    let is_before = reached * 100 < all * percent;
                    reached += requests;
                    is_before
                })
                .map(|(_, bytes)| bytes)
                .sum();
            let off = bytes as f64 / published - 1.0;
            assert!(
                off.abs() < 0.03,
                "seed {seed}, {percent} %: {bytes} bytes, {off:+.4}"
            );
        }
    }
}

#[test]
fn same_seed_makes_the_same_trace_and_another_seed_another() {
    let trace = |seed| rows(3000, seed).collect::<Vec<_>>();
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}

#[test]
fn generated_trace_has_the_pinned_digest() {
    // changes only when the profile or the maker does, and traces made before can no longer be made
    // again
    let digest = rows(20_000, 1).fold(0, |digest, row| {
        let words = [
            row.arrival_us.unsigned_abs(),
            row.target,
            row.client.unwrap_or(0),
            row.connection.unwrap_or(0),
            row.received_bytes.unwrap_or(0),
        ];
        words
            .into_iter()
            .fold(digest, |digest, word| mix(digest ^ word))
    });
    assert_eq!(digest, PINNED);
}

const PINNED: u64 = 15_510_252_064_055_578_172;

#[test]
fn trace_has_exactly_the_requested_number_of_requests() {
    for requests in [0, 1, 2, 777] {
        let maker = SiteMaker::new(&profile(), requests, 1);
        assert_eq!(maker.size_hint().0 as u64, requests);
        assert_eq!(maker.count() as u64, requests);
    }
}

#[test]
fn shorter_trace_is_the_beginning_of_the_one_of_the_default_length() {
    let whole = rows(profile().requests, 4);
    assert!(rows(5000, 4).eq(whole.take(5000)));
}

#[test]
fn longer_trace_has_more_requests_for_the_same_targets() {
    let profile = profile();
    let requests = profile.requests * 3 / 2;
    let mut measurement = Measurement::new();
    rows(requests, 2).for_each(|row| measurement.add(&row));
    assert_eq!(measurement.rows(), requests);
    check_published(&measurement, "3 000 000 requests");
}

#[test]
fn row_is_in_order_and_says_nothing_beyond_its_columns() {
    let mut last_us = i64::MIN;
    for row in rows(20_000, 5) {
        assert!(row.arrival_us >= last_us, "out of order: {row:?}");
        last_us = row.arrival_us;
        assert!(
            row.received_bytes.is_some_and(|bytes| bytes >= 64),
            "{row:?}"
        );
        assert_eq!(row.received_bytes, row.declared_bytes);
        assert_eq!(row.is_persistent_client, Some(true));
        let rest = Row {
            arrival_us: 0,
            client: None,
            connection: None,
            connection_sequence: None,
            target: 0,
            method: None,
            version: None,
            status: None,
            content_type: None,
            declared_bytes: None,
            received_bytes: None,
            is_persistent_client: None,
            ..row
        };
        assert_eq!(rest, Row::default());
    }
}

#[test]
fn connection_has_one_client_consecutive_numbers_and_no_image_twice() {
    let mut known: HashMap<u64, (u64, Vec<(u64, bool)>)> = HashMap::new();
    for row in rows(30_000, 6) {
        let (client, requests) = known.entry(row.connection.unwrap()).or_default();
        if requests.is_empty() {
            *client = row.client.unwrap();
        }
        assert_eq!(row.client, Some(*client), "{row:?}");
        let is_page = row.content_type.as_deref() == Some("text/html");
        assert!(
            is_page || !requests.contains(&(row.target, false)),
            "{row:?}"
        );
        requests.push((row.target, is_page));
        assert_eq!(row.connection_sequence, u32::try_from(requests.len()).ok());
        assert!(
            is_page || requests.len() > 1,
            "an image before its page: {row:?}"
        );
    }
    let pages = known
        .values()
        .map(|(_, requests)| requests.iter().filter(|(_, is_page)| *is_page).count());
    let mean = pages.sum::<usize>() as f64 / known.len() as f64;
    assert!((mean - profile().connections.pages).abs() < 0.03, "{mean}");
}

#[test]
fn target_has_the_same_size_and_type_in_every_row() {
    let mut known = HashMap::new();
    for row in rows(30_000, 9) {
        let is = (row.received_bytes, row.content_type.clone());
        assert_eq!(known.entry(row.target).or_insert_with(|| is.clone()), &is);
    }
}

#[test]
fn reconstruction_finds_the_connections_and_batches_that_the_trace_has() {
    for seed in 1..4 {
        let read = |keeps: bool| {
            let rows = rows(60_000, seed).map(|row| {
                Ok(Row {
                    connection: row.connection.filter(|_| keeps),
                    ..row
                })
            });
            ConnectionTrace::read(rows, GroupingRules::default()).unwrap()
        };
        let (traced, reconstructed) = (read(true), read(false));
        assert_eq!(traced.grouping(), Grouping::AsTraced);
        assert_eq!(reconstructed.grouping(), Grouping::Reconstructed);
        assert!(traced.iter().eq(reconstructed.iter()), "seed {seed}");
    }
}

/// Each page of a connection and its images: the first page is a batch and its images another, a
/// later page and its images are one.
#[test]
fn batches_are_the_pages_with_their_images() {
    let kept: Vec<Row> = rows(40_000, 3).collect();
    let pages: HashMap<u64, bool> = kept
        .iter()
        .map(|row| (row.target, row.content_type.as_deref() == Some("text/html")))
        .collect();
    let trace = ConnectionTrace::read(kept.into_iter().map(Ok), GroupingRules::default()).unwrap();
    let mut place = 0;
    for request in trace.iter() {
        place = if request.begins_connection {
            0
        } else {
            place + 1
        };
        let begins = place < 2 || pages[&request.target];
        assert_eq!(request.begins_batch, begins, "{request:?}");
    }
}

#[test]
fn requests_waiting_in_the_maker_are_bounded() {
    let mut maker = SiteMaker::new(&profile(), 100_000, 1);
    let mut waiting = 0;
    while maker.next().is_some() {
        waiting = waiting.max(maker.waiting());
    }
    // those of the connections that are open at a time
    assert!((1..200).contains(&waiting), "{waiting}");
}
