//! Random traces, reckoned again in the most simple way.

use super::super::{Cause, Spread, Summary};
use super::summary;
use crate::{AbortedBy, Row, TraceMethod};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weir_workload::Chance;

/// Rows whose targets come again and whose causes are rare enough for hits.
fn rows(seed: u64, count: usize, targets: u64) -> Vec<Row> {
    let mut chance = Chance::new(seed, 0);
    (0..count).map(|_| row(&mut chance, targets)).collect()
}

fn row(chance: &mut Chance, targets: u64) -> Row {
    let rare = |chance: &mut Chance| {
        let (is_said, is_so) = (chance.is(0.9), chance.is(0.1));
        is_said.then_some(is_so)
    };
    let some = |chance: &mut Chance, end: u64| {
        let number = chance.below(end);
        chance.is(0.8).then_some(number)
    };
    let statuses = [200, 200, 200, 301, 302, 304];
    let methods = [
        TraceMethod::Get,
        TraceMethod::Get,
        TraceMethod::Head,
        TraceMethod::Post,
    ];
    let pick =
        |chance: &mut Chance, end: usize| usize::try_from(chance.below(end as u64)).unwrap_or(0);
    let ends = [AbortedBy::Neither, AbortedBy::Client, AbortedBy::Server];
    Row {
        arrival_us: chance.below(1 << 40).cast_signed(),
        target: chance.below(targets),
        client: some(chance, 5),
        server: some(chance, 3),
        connection: some(chance, 20),
        method: Some(methods[pick(chance, methods.len())]),
        status: Some(statuses[pick(chance, statuses.len())]),
        has_cookie: rare(chance),
        has_set_cookie: rare(chance),
        has_query: rare(chance),
        has_cgi_bin: rare(chance),
        has_authorization: rare(chance),
        request_directives: rare(chance).map(u32::from),
        response_directives: rare(chance).map(u32::from),
        declared_bytes: some(chance, 4),
        received_bytes: some(chance, 4),
        setup_us: some(chance, 5_000_000),
        aborted_by: Some(ends[pick(chance, 3)]),
        ..Row::default()
    }
}

fn has(row: &Row, cause: Cause) -> bool {
    match cause {
        Cause::Cookie => row.has_cookie == Some(true) || row.has_set_cookie == Some(true),
        Cause::Query => row.has_query == Some(true),
        Cause::ClientCacheControl => row.request_directives == Some(1),
        Cause::CgiBin => row.has_cgi_bin == Some(true),
        Cause::Method => row.method == Some(TraceMethod::Post),
        Cause::Authorization => row.has_authorization == Some(true),
        Cause::ServerCacheControl => row.response_directives == Some(1),
    }
}

fn hits(rows: &[Row], obeys_cookies: bool) -> (u64, u64) {
    let may = |row: &&Row| {
        let mut causes = Cause::ALL.iter().filter(|cause| has(row, **cause));
        causes.all(|cause| *cause == Cause::Cookie && !obeys_cookies)
    };
    let (mut hits, mut bytes) = (0, 0);
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| may(row)) {
        let mut earlier = rows[..index].iter().filter(may);
        let is_hit = earlier.any(|other| {
            other.target == row.target
                && other.method == Some(TraceMethod::Get)
                && matches!(other.status, Some(200 | 301))
        });
        hits += u64::from(is_hit);
        bytes += if is_hit {
            row.received_bytes.or(row.declared_bytes).unwrap_or(0)
        } else {
            0
        };
    }
    (hits, bytes)
}

fn k1(rows: &[Row]) -> (u64, u64, u64, u64) {
    let size = |row: &Row| row.received_bytes.or(row.declared_bytes).unwrap_or(0);
    let kept = rows.iter().filter(|row| {
        row.method == Some(TraceMethod::Get) && row.status == Some(200) && size(row) > 0
    });
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    let mut found = (0, 0, 0, 0);
    for row in kept {
        let known = first.get(&row.target).copied();
        let bytes = *first.entry(row.target).or_insert(size(row));
        found.1 += 1;
        found.3 += bytes;
        if known.is_some() {
            found.0 += 1;
            found.2 += bytes;
        }
    }
    found
}

fn check_spread(found: Option<Spread>, mut values: Vec<u64>) {
    values.sort_unstable();
    let Some(found) = found else {
        assert!(values.is_empty());
        return;
    };
    assert_eq!(found.count, values.len() as u64);
    assert_eq!(
        (found.min, found.max),
        (values[0], values[values.len() - 1])
    );
    let sum: u64 = values.iter().sum();
    let mean = sum as f64 / values.len() as f64;
    assert!((found.mean - mean).abs() < 1e-6 * mean.max(1.0));
    for (share, quantile) in [
        (10, found.p10),
        (50, found.p50),
        (90, found.p90),
        (99, found.p99),
    ] {
        let place = (values.len() * share).div_ceil(100).max(1) - 1;
        let off = quantile.abs_diff(values[place]);
        assert!(
            off <= values[place] / 1000 + 1,
            "{share}: {quantile} and not {}",
            values[place]
        );
    }
}

fn check_counts(found: &Summary, rows: &[Row]) {
    let different = |of: fn(&Row) -> Option<u64>| {
        let set: BTreeSet<u64> = rows.iter().filter_map(of).collect();
        (!set.is_empty()).then_some(set.len() as u64)
    };
    assert_eq!(found.population.clients, different(|row| row.client));
    assert_eq!(found.population.servers, different(|row| row.server));
    assert_eq!(
        found.connections.client.connections,
        different(|row| row.connection)
    );
    let mut by_target: BTreeMap<u64, u64> = BTreeMap::new();
    for row in rows {
        *by_target.entry(row.target).or_default() += 1;
    }
    let population = &found.population;
    assert_eq!(population.targets, by_target.len() as u64);
    let once = by_target.values().filter(|count| **count == 1).count();
    assert_eq!(population.targets_once, once as u64);
    assert_eq!(
        population.popularity.most,
        by_target.values().copied().max().unwrap_or(0)
    );
    let out_of_order = rows
        .windows(2)
        .filter(|pair| pair[1].arrival_us < pair[0].arrival_us);
    let found_out_of_order = found.span.map_or(0, |span| span.out_of_order);
    assert_eq!(found_out_of_order, out_of_order.count() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn statistics_agree_with_a_naive_reference_model(seed: u64, count in 0_usize..300, targets in 1_u64..80) {
        let rows = rows(seed, count, targets);
        let found = summary(&rows);
        for share in &found.causes.each {
            let yes = rows.iter().filter(|row| has(row, share.cause)).count() as u64;
            let said = rows.iter().filter(|row| share.cause.of(row).is_some()).count() as u64;
            prop_assert_eq!(share.requests.map_or((0, 0), |share| (share.yes, share.said)), (yes, said));
        }
        let any = |row: &&Row| Cause::ALL.iter().any(|cause| has(row, *cause));
        let union = found.causes.union.map_or(0, |share| share.yes);
        prop_assert_eq!(union, rows.iter().filter(any).count() as u64);
        let infinite = found.infinite;
        for (ratios, obeys) in [(infinite.obeying_cookies, true), (infinite.ignoring_cookies, false)] {
            prop_assert_eq!((ratios.hits, ratios.hit_bytes), hits(&rows, obeys));
            prop_assert_eq!(ratios.requests, count as u64);
        }
        let ratios = infinite.k1;
        prop_assert_eq!((ratios.hits, ratios.requests, ratios.hit_bytes, ratios.bytes), k1(&rows));
        check_spread(found.times.setup_us, rows.iter().filter_map(|row| row.setup_us).collect());
        check_spread(found.volume.size, rows.iter().filter_map(Row::content_bytes).collect());
        check_counts(&found, &rows);
    }
}
