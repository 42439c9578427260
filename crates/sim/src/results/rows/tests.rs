use super::*;
use crate::results::compare::Comparing;
use crate::settings::{Network, Settings};
use weir_policy::Profile;
use weir_trace::TraceMethod;

/// Requests by 40 clients for 50 targets; every hundredth is large, and ends behind many that
/// arrive later.
fn requests() -> Vec<Row> {
    let row = |n: u64| {
        let bytes = if n.is_multiple_of(100) { 900_000 } else { 700 };
        Row {
            arrival_us: 1_000_000 + i64::try_from(n).unwrap() * 40_000,
            target: if n.is_multiple_of(100) {
                1000 + n
            } else {
                n % 50
            },
            client: Some(n % 40),
            server: Some(1),
            connection: Some(n),
            method: Some(TraceMethod::Get),
            status: Some(200),
            max_age_s: Some(60),
            response_directives: Some(0),
            declared_bytes: Some(bytes),
            received_bytes: Some(if n % 100 == 7 { 10 } else { bytes }),
            verdict: Some("of-the-trace".to_owned()),
            node_choice: Some("in-turn".to_owned()),
            next_hop_choice: Some("in-turn".to_owned()),
            ..Row::default()
        }
    };
    (0..6000).map(row).collect()
}

fn write(path: &Path, rows: &[Row]) -> Reader {
    let mut writer = Writer::create(path, Meta::default()).unwrap();
    rows.iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
    Reader::open(path).unwrap()
}

#[test]
fn rows_add_up_to_the_outcome_and_are_in_the_order_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let requests = requests();
    let trace = write(&folder.path().join("trace.parquet"), &requests);
    let path = folder.path().join("rows.parquet");
    let meta = Meta {
        source: "a test".to_owned(),
        ..Meta::default()
    };
    let simulated = SimulatedRows::create(&path, meta).unwrap();
    let settings = Settings::of(Network::MODEM, Profile::Rfc9111);
    let mut comparing = Comparing::with_results(&settings, Some(simulated.sink())).unwrap();
    requests.iter().for_each(|row| comparing.push(row));
    let outcome = comparing.finish().run;
    assert_eq!(simulated.write(&trace).unwrap().rows, 6000);

    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.meta().source, "a test");
    let rows: Vec<Row> = reader.rows(Columns::ALL).map(Result::unwrap).collect();
    let mut words = std::collections::BTreeMap::new();
    for (row, request) in rows.iter().zip(&requests) {
        let is_same = (row.arrival_us, row.target) == (request.arrival_us, request.target);
        assert!(is_same && row.declared_bytes == request.declared_bytes);
        assert_eq!((&row.node_choice, &row.next_hop_choice), (&None, &None));
        *words.entry(row.verdict.clone().unwrap()).or_insert(0) += 1;
        let times = [row.request_us, row.response_us, row.last_byte_us];
        assert!(
            times.iter().all(Option::is_some) && times.is_sorted(),
            "{row:?}"
        );
        assert_eq!(row.connection, None);
    }
    let mut expected = std::collections::BTreeMap::new();
    for (word, count) in &outcome.verdicts {
        let word = word.split('/').next().unwrap_or_default();
        *expected.entry(word.to_owned()).or_insert(0) += count;
    }
    assert_eq!(words, expected);
    assert!(words.len() > 1, "{words:?}");
    let sum = |of: fn(&Row) -> Option<u64>| rows.iter().filter_map(of).sum::<u64>();
    let received = sum(|row| row.received_bytes);
    assert_eq!(received, outcome.requests.content_bytes);
    assert_eq!(
        received - sum(|row| row.next_hop_bytes),
        outcome.requests.hit_bytes
    );
    let response = sum(|row| Some(row.response_us? - row.request_us?));
    let mean = response as f64 / rows.len() as f64;
    assert!((mean - outcome.latency.response.mean_us).abs() < 1.0);
    let left = rows
        .iter()
        .filter(|row| row.aborted_by == Some(AbortedBy::Client));
    assert_eq!(left.count() as u64, outcome.aborts.by_clients);
    assert!(outcome.aborts.by_clients > 0);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 2, "results are gone");
}

#[test]
fn unfinished_run_leaves_no_files_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    drop(SimulatedRows::create(&path, Meta::default()).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = folder.path().join("not-there/rows.parquet");
    let error = SimulatedRows::create(&nowhere, Meta::default()).unwrap_err();
    assert_eq!(error.fault, Fault::Outside);
}
