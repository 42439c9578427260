//! Every lie of a proxy makes the run invalid, and is named.

use super::support::{self, Liar, Lie};
use super::{plan, run};

#[track_caller]
fn check(lie: Lie, kind: &str) {
    let liar = Liar::forward(Lie::None);
    liar.tell_once(30, lie);
    // a fault of this kind is no error that the scenario wants
    let record = run(
        &plan(
            support::wpb(&["workload.sizes=constant(10KB)"]),
            Some(liar.address()),
        ),
        1,
    );
    assert!(!record.is_valid, "{lie:?}: {record:#?}");
    let counted = record.total.client.wrong.get(kind).copied();
    assert_eq!(
        counted,
        Some(1),
        "{lie:?}: {:?} {:?}",
        record.total.client,
        record.reasons
    );
    assert!(
        record.reasons.iter().any(|reason| reason.contains(kind)),
        "{:?}",
        record.reasons
    );
    let [found] = record.lies.as_slice() else {
        panic!("{lie:?}: {:#?}", record.lies);
    };
    assert_eq!(found.kind, kind);
    assert!(
        found.path.ends_with(".html") && !found.detail.is_empty(),
        "{found:#?}"
    );
    assert!(!found.phase.is_empty(), "{found:#?}");
    let table = weir_bench::record::text(&record);
    assert!(
        table.contains("NOT VALID") && table.contains(&found.path),
        "{table}"
    );
}

#[test]
fn byte_that_was_changed_is_believed() {
    check(Lie::WrongByte { offset: 4321 }, "wrong-byte");
}

#[test]
fn content_that_is_too_long_is_believed() {
    check(Lie::Long { added: 10 }, "long-body");
}

#[test]
fn response_of_another_target_is_believed() {
    check(Lie::Swapped, "swapped");
}

#[test]
fn status_that_answers_nothing_is_believed() {
    check(Lie::Status(304), "wrong-status");
}

#[test]
fn content_that_is_too_short_is_believed() {
    check(Lie::ShortFramed { missing: 10 }, "short-body");
}

#[test]
fn word_of_the_proxy_is_taken_for_a_hit() {
    let liar = Liar::forward(Lie::FalseHit);
    let record = run(&plan(support::wpb(&[]), Some(liar.address())), 1);
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
