//! Both sides of each gap, what is refused, and a reference model.

use super::{ConnectionTrace, GroupedRequest, Grouping, GroupingError, GroupingRules};
use crate::{Column, Fault, Meta, Reader, Row, TraceError, TraceMethod, Writer};
use proptest::prelude::*;

/// A request of a client for a target.
fn row(client: u64, at_ms: i64, target: u64) -> Row {
    Row {
        arrival_us: at_ms * 1000,
        client: Some(client),
        target,
        method: Some(TraceMethod::Get),
        status: Some(200),
        received_bytes: Some(100 + target),
        ..Row::default()
    }
}

fn on(connection: u64, row: Row) -> Row {
    Row {
        connection: Some(connection),
        ..row
    }
}

fn grouped(rows: &[Row]) -> Result<ConnectionTrace, GroupingError> {
    ConnectionTrace::read(rows.iter().cloned().map(Ok), GroupingRules::default())
}

/// Targets: `|` before a connection, `,` before any other batch.
fn text(requests: impl Iterator<Item = GroupedRequest>) -> String {
    let parts = requests.map(|request| {
        let before = match (request.begins_connection, request.begins_batch) {
            (true, true) => "|",
            (false, true) => ",",
            (false, false) => " ",
            (true, false) => "connection without a batch ",
        };
        format!("{before}{}", request.target)
    });
    parts.collect()
}

#[track_caller]
fn check(rows: &[Row], expected: &str) {
    assert_eq!(text(grouped(rows).unwrap().iter()), expected);
}

#[test]
fn gap_of_15_s_begins_a_connection_and_a_shorter_one_does_not() {
    check(
        &[row(1, 0, 1), row(1, 14_999, 2), row(1, 29_998, 3)],
        "|1,2,3",
    );
    check(&[row(1, 0, 1), row(1, 15_000, 2)], "|1|2");
    // the gap is to the latest request, whatever the length of the connection
    let each_10_s: Vec<Row> = (0..4).map(|n| row(1, n * 10_000, 7)).collect();
    check(&each_10_s, "|7,7,7,7");
}

#[test]
fn gap_of_5_s_begins_a_batch_and_a_shorter_one_does_not() {
    let rows = [
        row(1, 0, 1),
        row(1, 100, 2),
        row(1, 5099, 3),
        row(1, 10_099, 4),
    ];
    check(&rows, "|1,2 3,4");
    // each is within 5 s of the one before it: one batch, however long
    let each_4_s: Vec<Row> = (0..4).map(|n| row(1, n * 4000, 7)).collect();
    check(&each_4_s, "|7,7 7 7");
}

#[test]
fn first_request_of_a_connection_is_a_batch_alone() {
    check(
        &[row(1, 0, 1), row(1, 0, 2), row(1, 0, 3), row(2, 1, 4)],
        "|1,2 3|4",
    );
    let traced = [row(1, 0, 1), row(1, 0, 2), row(1, 1, 3)].map(|row| on(9, row));
    check(&traced, "|1,2 3");
}

#[test]
fn gaps_are_those_of_the_rules() {
    let rules = GroupingRules {
        connection_gap_ms: 1000,
        batch_gap_ms: 10,
    };
    let rows = [
        row(1, 0, 1),
        row(1, 1, 2),
        row(1, 10, 3),
        row(1, 20, 4),
        row(1, 1020, 5),
    ];
    let trace = ConnectionTrace::read(rows.into_iter().map(Ok), rules).unwrap();
    assert_eq!(text(trace.iter()), "|1,2 3,4|5");
    assert_eq!(
        trace.description(),
        "connections: reconstructed (client, gaps below 1 s); batches: gaps below 0.01 s"
    );
}

#[test]
fn requests_of_a_connection_are_together_in_order_of_the_first_ones() {
    let rows = [
        row(2, 0, 1),
        row(1, 1, 2),
        row(2, 2, 3),
        row(3, 3, 4),
        row(1, 4, 5),
    ];
    check(&rows, "|1,3|2,5|4");
}

#[test]
fn connection_of_the_trace_counts_and_no_gap_separates_it() {
    // one client with two connections at a time, and an hour between requests
    let rows = [
        on(1, row(7, 0, 1)),
        on(2, row(7, 1, 2)),
        on(1, row(7, 3_600_000, 3)),
        on(2, row(7, 3_600_001, 4)),
    ];
    let trace = grouped(&rows).unwrap();
    assert_eq!(text(trace.iter()), "|1,3|2,4");
    assert_eq!(trace.grouping(), Grouping::AsTraced);
    assert_eq!(
        (trace.len(), trace.connections(), trace.targets()),
        (4, 2, 4)
    );
    assert_eq!(
        trace.description(),
        "connections: as in the trace; batches: gaps below 5 s"
    );
}

#[test]
fn target_has_the_size_with_which_it_came_first() {
    let mut later = row(1, 1, 5);
    later.received_bytes = Some(9);
    let trace = grouped(&[row(1, 0, 4), row(1, 0, 5), later]).unwrap();
    let all: Vec<_> = trace
        .iter()
        .map(|it| (it.number, it.target, it.bytes))
        .collect();
    assert_eq!(all, [(0, 4, 104), (1, 5, 105), (1, 5, 105)]);
    assert_eq!(trace.get(3), None);
}

#[test]
fn row_that_does_not_count_neither_is_a_request_nor_extends_a_connection() {
    let with = |change: &dyn Fn(&mut Row)| {
        let mut row = row(1, 10_000, 2);
        change(&mut row);
        row
    };
    let others = [
        with(&|row| row.method = Some(TraceMethod::Post)),
        with(&|row| row.status = Some(304)),
        with(&|row| row.received_bytes = Some(0)),
        with(&|row| row.received_bytes = None),
    ];
    for other in others {
        check(&[row(1, 0, 1), other, row(1, 16_000, 3)], "|1|3");
    }
    let sparse = Row {
        method: None,
        status: None,
        received_bytes: None,
        declared_bytes: Some(1),
        ..row(1, 0, 1)
    };
    check(&[sparse], "|1");
}

#[track_caller]
fn refused(rows: &[Row], error: &GroupingError, names: &str) {
    let found = grouped(rows).unwrap_err();
    assert_eq!(found, *error);
    assert!(found.to_string().contains(names), "{found}");
}

#[test]
fn trace_without_clients_is_refused_with_the_column() {
    let mut bare = row(1, 0, 1);
    bare.client = None;
    refused(&[bare.clone()], &GroupingError::NoClients, "`client`");
    refused(&[bare], &GroupingError::NoClients, "`connection`");
}

#[test]
fn trace_without_times_is_refused_with_the_column() {
    let rows = [row(1, 7, 1), row(1, 7, 2)];
    refused(&rows, &GroupingError::NoTimes, "`arrival_us`");
    assert!(GroupingError::NoTimes.hint().unwrap().contains("HTTP/1.0"));
}

#[test]
fn trace_with_connections_and_without_times_has_a_batch_each_request() {
    let rows = [row(1, 7, 1), row(1, 7, 2), row(1, 7, 3)].map(|row| on(9, row));
    let trace = grouped(&rows).unwrap();
    assert_eq!(text(trace.iter()), "|1,2,3");
    assert!(!trace.has_batches());
    assert!(trace.description().contains("has no times"));
}

#[test]
fn row_that_lacks_what_the_first_one_has_is_named() {
    let rows = [on(1, row(1, 0, 1)), row(1, 1, 2)];
    refused(
        &rows,
        &GroupingError::Missing(Column::connection, 1),
        "`connection` has no value in row 1",
    );
    let mut bare = row(1, 1, 2);
    bare.client = None;
    let rows = [row(1, 0, 1), row(1, 1, 2), bare];
    refused(
        &rows,
        &GroupingError::Missing(Column::client, 2),
        "`client` has no value in row 2",
    );
}

#[test]
fn trace_of_which_no_row_counts_is_refused() {
    let mut other = row(1, 0, 1);
    other.status = Some(404);
    refused(&[], &GroupingError::NoRequests, "no row");
    refused(&[other], &GroupingError::NoRequests, "no row");
}

#[test]
fn error_of_the_reader_ends_the_reading() {
    let error = TraceError {
        fault: Fault::Outside,
        what: "cannot read trace `a`".into(),
        cause: "it is damaged".into(),
        hint: None,
    };
    let rows = [Ok(row(1, 0, 1)), Err(error.clone())];
    let found = ConnectionTrace::read(rows, GroupingRules::default()).unwrap_err();
    assert_eq!(found, GroupingError::Trace(error));
}

#[test]
fn each_request_is_a_connection_where_that_is_wanted_and_needs_no_column() {
    let mut bare = row(1, 0, 1);
    bare.client = None;
    let rows = [on(3, row(1, 0, 5)), bare.clone(), bare];
    let trace = ConnectionTrace::read_single(rows.into_iter().map(Ok)).unwrap();
    assert_eq!(text(trace.iter()), "|5|1|1");
    assert_eq!(trace.grouping(), Grouping::Single);
    assert_eq!(
        trace.description(),
        "connections: one request each; batches: one request each"
    );
}

#[test]
fn columns_that_are_read_suffice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = Writer::create(&path, Meta::default()).unwrap();
    for row in [
        on(1, row(7, 0, 1)),
        on(2, row(7, 1, 2)),
        on(1, row(7, 2, 3)),
    ] {
        writer.push(&row).unwrap();
    }
    writer.finish().unwrap();
    let rows = Reader::open(&path).unwrap().rows(ConnectionTrace::COLUMNS);
    let trace = ConnectionTrace::read(rows, GroupingRules::default()).unwrap();
    assert_eq!(text(trace.iter()), "|1,3|2");
}

/// What the rules say, without a thought of cost: each client by itself.
fn naive(rows: &[Row], rules: GroupingRules) -> Vec<(u64, bool, bool)> {
    let mut connections: Vec<(usize, Vec<&Row>)> = Vec::new();
    let mut clients: Vec<u64> = rows.iter().filter_map(|row| row.client).collect();
    clients.sort_unstable();
    clients.dedup();
    let gap_ms = |before: &Row, row: &Row| (row.arrival_us - before.arrival_us) / 1000;
    for client in clients {
        let mut before: Option<&Row> = None;
        for (place, row) in rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.client == Some(client))
        {
            let limit_ms = i64::from(rules.connection_gap_ms);
            if before.is_none_or(|before| gap_ms(before, row) >= limit_ms) {
                connections.push((place, Vec::new()));
            }
            connections.last_mut().unwrap().1.push(row);
            before = Some(row);
        }
    }
    connections.sort_by_key(|(place, _)| *place);
    let mut all = Vec::new();
    for (_, rows) in connections {
        for (place, row) in rows.iter().enumerate() {
            let is_late =
                place > 1 && gap_ms(rows[place - 1], row) >= i64::from(rules.batch_gap_ms);
            all.push((row.target, place == 0, place < 2 || is_late));
        }
    }
    all
}

proptest! {
    #[test]
    fn grouping_of_any_interleaving_equals_the_reference_model(
        // per row: the client, and the time since its row before; around both limits
        steps in prop::collection::vec((0_u64..5, prop_oneof![
            Just(0_i64), Just(4999), Just(5000), Just(14_999), Just(15_000), 0_i64..20_000
        ]), 2..80),
    ) {
        let mut clocks = [0_i64, 1, 2, 3, 4];
        let rows: Vec<Row> = (0..).zip(&steps).map(|(target, (client, gap_ms))| {
            let clock = &mut clocks[usize::try_from(*client).unwrap()];
            *clock += gap_ms;
            row(*client, *clock, target)
        }).collect();
        prop_assume!(rows.iter().any(|row| row.arrival_us != rows[0].arrival_us));
        let rules = GroupingRules::default();
        let trace = grouped(&rows).unwrap();
        let found: Vec<_> = trace
            .iter()
            .map(|it| (it.target, it.begins_connection, it.begins_batch))
            .collect();
        prop_assert_eq!(found, naive(&rows, rules));
        // the same connections, numbered by the trace
        let mut connection = 0;
        let numbered: Vec<Row> = trace.iter().map(|it| {
            connection += u64::from(it.begins_connection);
            on(connection, rows[usize::try_from(it.target).unwrap()].clone())
        }).collect();
        let again = grouped(&numbered).unwrap();
        prop_assert_eq!(text(again.iter()), text(trace.iter()));
    }
}
