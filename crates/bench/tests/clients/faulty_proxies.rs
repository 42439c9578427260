//! A faulty proxy is noticed, whatever its fault.

use weir_bench::check::WrongKind;
use weir_bench::client::ClientResult;
use weir_bench::tally::ErrorKind;

use crate::rig::{forward, total};
use crate::support::{Fault, FaultyProxy, TestOrigin, hits, web};

/// All wrong responses are of one of these kinds, none is missed, and the first is described.
fn check(fault: Fault, expected: &[WrongKind]) -> ClientResult {
    let scenario = hits(&["workload.connections=2", "workload.targets=20"]);
    let served = TestOrigin::new(scenario.clone());
    let proxy = FaultyProxy::forward(Fault::None);
    // the beginning is honest
    proxy.tell_after(10, fault);
    let result = forward(&served, &scenario, proxy.address());
    let total = total(&result);
    let wrong = &total.client.wrong;
    assert!(proxy.sent_faulty() > 10);
    let found: u64 = expected.iter().map(|kind| total.wrong_of(*kind)).sum();
    assert_eq!(
        found,
        proxy.sent_faulty(),
        "{wrong:?}, {:?}",
        result.wrong_responses.first()
    );
    assert_eq!(total.client.wrong_count(), found);
    assert!(
        result.wrong_responses[0].head.starts_with("HTTP/1.1 "),
        "{:?}",
        result.wrong_responses[0]
    );
    assert!(
        !result.wrong_responses[0].detail.is_empty() && !result.wrong_responses[0].id.is_empty()
    );
    result
}

#[test]
fn wrong_byte_is_detected_at_its_offset() {
    for offset in [0, 1, 4095, 4096, 9999] {
        let result = check(Fault::WrongByte { offset }, &[WrongKind::WrongByte]);
        assert!(
            result
                .wrong_responses
                .iter()
                .all(|wrong| wrong.offset == Some(offset as u64))
        );
    }
}

#[test]
fn short_content_is_detected() {
    check(Fault::ShortFramed { missing: 1 }, &[WrongKind::ShortBody]);
    check(
        Fault::ShortFramed { missing: 10_000 },
        &[WrongKind::ShortBody],
    );
}

#[test]
fn long_content_is_detected() {
    check(Fault::Long { added: 1 }, &[WrongKind::LongBody]);
}

#[test]
fn wrong_content_length_is_detected() {
    check(Fault::WrongLength { by: 1 }, &[WrongKind::WrongLength]);
    // surplus bytes may come later: then the body ends too early
    check(
        Fault::WrongLength { by: -1 },
        &[WrongKind::WrongLength, WrongKind::ShortBody],
    );
}

#[test]
fn response_of_another_target_is_detected() {
    let result = check(Fault::Swapped, &[WrongKind::Swapped]);
    assert!(
        result.wrong_responses[0]
            .detail
            .contains("another target's"),
        "{:?}",
        result.wrong_responses[0]
    );
}

#[test]
fn unexpected_status_is_detected() {
    for status in [204, 206, 304, 404, 500] {
        check(Fault::Status(status), &[WrongKind::WrongStatus]);
    }
}

#[test]
fn unreadable_response_is_detected_and_counted_as_an_error() {
    let result = check_unreadable();
    let total = total(&result);
    assert_eq!(
        total.errors_of(ErrorKind::Unreadable),
        total.wrong_of(WrongKind::Unreadable)
    );
}

fn check_unreadable() -> ClientResult {
    let scenario = hits(&["workload.connections=2", "workload.targets=20"]);
    let served = TestOrigin::new(scenario.clone());
    let proxy = FaultyProxy::forward(Fault::Unreadable);
    let result = forward(&served, &scenario, proxy.address());
    assert_eq!(
        total(&result).wrong_of(WrongKind::Unreadable),
        proxy.sent_faulty()
    );
    result
}

#[test]
fn truncated_response_is_an_early_close_error_not_a_content_mismatch() {
    let scenario = hits(&["workload.connections=2", "workload.targets=20"]);
    let served = TestOrigin::new(scenario.clone());
    let proxy = FaultyProxy::forward(Fault::ShortClosed { missing: 1 });
    let total = total(&forward(&served, &scenario, proxy.address()));
    assert_eq!(total.client.wrong_count(), 0);
    assert_eq!(total.errors_of(ErrorKind::EarlyClose), proxy.sent_faulty());
}

#[test]
fn stale_version_is_detected() {
    // all targets change every second, and nothing lets a cache use them longer
    let scenario = web(&[
        "workload.agents=8",
        "workload.targets=3",
        "workload.rate_per_s=200",
        "workload.warm_up=1s",
        "workload.measured=6s",
        "workload.lifetime=constant(0s)",
        "workload.life_cycle.length=constant(1s)",
        "workload.life_cycle.variance=0%",
        "workload.cache_control=[{ share = 1.0, max_age = true, directives = \"must-revalidate\" }]",
        "clients.queue_max=1000",
    ]);
    let served = TestOrigin::new(scenario.clone());
    let proxy = FaultyProxy::forward(Fault::Stale);
    let result = forward(&served, &scenario, proxy.address());
    let total = total(&result);
    assert_eq!(
        total.client.wrong_count(),
        total.wrong_of(WrongKind::StaleVersion),
        "{:?}",
        total.client.wrong
    );
    // honest for the version's life and the slack of two seconds, then never again
    let answered = total.client.answered();
    assert!(total.client.wrong_count() > answered / 4, "{total:?}");
    assert!(total.client.wrong_count() < answered, "{total:?}");
}
