//! Records as files.

use weir_measure::record::{FORMAT, Record, VERSION};

/// Made up in every number; its shape is that of a short run of the Wisconsin Proxy Benchmark.
const MADE_UP: &str = include_str!("data/record-wpb.json");

fn made_up() -> Record {
    serde_json::from_str(MADE_UP).expect("it is a record")
}

#[test]
fn record_survives_the_json_round_trip() {
    let record = made_up();
    assert_eq!((record.format.as_str(), record.version), (FORMAT, VERSION));
    let text = serde_json::to_string(&record).expect("a record is JSON");
    let again: Record = serde_json::from_str(&text).expect("it was just written");
    assert_eq!(again, record);
}

#[test]
fn unknown_field_in_a_record_is_ignored() {
    let text = MADE_UP.replacen('{', "{ \"added_later\": 1,", 1);
    let record: Record = serde_json::from_str(&text).expect("what is not known is left out");
    assert_eq!(record, made_up());
}

#[test]
fn example_record_total_is_the_sum_of_its_phases() {
    let record = made_up();
    let requests: u64 = record
        .phases
        .iter()
        .map(|phase| phase.client.requests)
        .sum();
    assert_eq!(record.total.client.requests, requests);
    let responses: u64 = record.series.iter().map(|second| second.responses).sum();
    assert_eq!(responses, requests);
    assert_eq!(record.total.response_time.all.count, requests);
    let hit_ratio = record.total.hit_ratio().expect("there were requests");
    assert!((hit_ratio - 226.0 / 960.0).abs() < 1e-9, "{hit_ratio}");
}
