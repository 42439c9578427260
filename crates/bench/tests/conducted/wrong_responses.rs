//! Every wrong response of a proxy makes the run invalid, and is named.

use super::support::{self, Fault, FaultyProxy};
use super::{plan, run};
use weir_bench::report::{self, RecordFile};
use weir_measure::record::Record;

/// One fault in a Wisconsin benchmark: found once, with the name of its kind.
#[track_caller]
fn check(fault: Fault, kind: &str) {
    let faulty_proxy = FaultyProxy::forward(Fault::None);
    faulty_proxy.tell_once(30, fault);
    // a fault of this kind is no error that the scenario wants
    let record = run(
        &plan(
            support::wpb(&["workload.sizes=constant(10KB)"]),
            Some(faulty_proxy.address()),
        ),
        1,
    );
    let counted = record.total.client.wrong.get(kind).copied();
    assert_eq!(
        counted,
        Some(1),
        "{fault:?}: {:?} {:?}",
        record.total.client,
        record.reasons
    );
    assert_eq!(
        record.wrong_responses.len(),
        1,
        "{fault:?}: {:#?}",
        record.wrong_responses
    );
    assert!(
        record.wrong_responses[0].path.ends_with(".html"),
        "{:#?}",
        record.wrong_responses
    );
    is_named(record, kind);
}

/// Record, table and page say that the run is not valid, and why: all wrong responses are of this
/// kind.
#[track_caller]
fn is_named(record: Record, kind: &str) {
    assert!(!record.is_valid, "{kind}: {record:#?}");
    let wrong = &record.total.client.wrong;
    assert_eq!(wrong.keys().collect::<Vec<_>>(), [kind], "{wrong:?}");
    let names_it = |reason: &String| reason.contains(&format!("{kind} {}", wrong[kind]));
    assert!(record.reasons.iter().any(names_it), "{:?}", record.reasons);
    for found in &record.wrong_responses {
        assert_eq!(found.kind, kind, "{found:#?}");
        assert!(
            !found.detail.is_empty() && !found.phase.is_empty(),
            "{found:#?}"
        );
    }
    let table = weir_bench::record::text(&record);
    let path = record.wrong_responses[0].path.clone();
    for part in ["NOT VALID", kind, &path] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = folder.path().join("report.html");
    let named = RecordFile {
        file: "record.json".into(),
        record,
    };
    report::write(&[named], &page, None).expect("a page");
    let page = std::fs::read_to_string(page).expect("it was written");
    for part in ["not valid", kind, &path] {
        assert!(page.contains(part), "no {part} on the page");
    }
}

#[test]
fn changed_byte_makes_the_run_invalid_and_is_named() {
    check(Fault::WrongByte { offset: 4321 }, "wrong-byte");
}

#[test]
fn surplus_content_makes_the_run_invalid_and_is_named() {
    check(Fault::Long { added: 10 }, "long-body");
}

#[test]
fn response_of_another_target_makes_the_run_invalid_and_is_named() {
    check(Fault::Swapped, "swapped");
}

#[test]
fn unexpected_status_makes_the_run_invalid_and_is_named() {
    check(Fault::Status(304), "wrong-status");
}

#[test]
fn missing_content_makes_the_run_invalid_and_is_named() {
    check(Fault::ShortFramed { missing: 10 }, "short-body");
}

#[test]
fn wrong_content_length_makes_the_run_invalid_and_is_named() {
    check(Fault::WrongLength { by: 1 }, "wrong-length");
}

#[test]
fn unreadable_response_makes_the_run_invalid_and_is_named() {
    check(Fault::Unreadable, "unreadable");
}

#[test]
fn stale_version_makes_the_run_invalid_and_is_named() {
    // all targets change every second, and a cache has to ask each time
    let scenario = support::web(&[
        "workload.agents=8",
        "workload.targets=3",
        "workload.rate_per_s=100",
        "workload.warm_up=1s",
        "workload.measured=5s",
        "workload.lifetime=constant(0s)",
        "workload.life_cycle.length=constant(1s)",
        "workload.life_cycle.variance=0%",
        "workload.cache_control=[{ share = 1.0, max_age = true, directives = \"must-revalidate\" }]",
        "clients.queue_max=1000",
    ]);
    let faulty_proxy = FaultyProxy::forward(Fault::Stale);
    let record = run(&plan(scenario, Some(faulty_proxy.address())), 1);
    assert!(
        record.wrong_responses.len() > 10,
        "{:?}",
        record.total.client
    );
    is_named(record, "stale-version");
}

#[test]
fn false_cache_status_hit_is_not_counted_and_gives_a_warning() {
    let faulty_proxy = FaultyProxy::forward(Fault::FalseHit);
    let record = run(&plan(support::wpb(&[]), Some(faulty_proxy.address())), 1);
    assert!(record.is_valid, "{:#?}", record.reasons);
    assert_eq!(
        (record.total.client.hits, record.total.hit_ratio()),
        (0, Some(0.0))
    );
    assert_eq!(record.total.client.cache_status.disagree, 80);
    assert!(
        record
            .warnings
            .iter()
            .any(|warning| warning.contains("differs from the origin's marks")),
        "{:?}",
        record.warnings
    );
}
