//! What was purged stays purged (R14): acknowledged, killed at once, started again.

use super::{HOST, Parts, request, wait_for_entries, wait_until_loaded};
use crate::support::{RawClient, Weir};

/// Stores a response, lets it go by `forget`, kills, starts again: only the new version may come.
fn check(forget: impl Fn(&Weir, &str)) {
    let parts = Parts::new();
    for (round, size) in [100, 70_000, 3_000_000].into_iter().enumerate() {
        let target = format!("/{round}?size={size}");
        let weir = parts.serve();
        wait_until_loaded(&weir);
        assert_eq!(parts.get(&weir, &target).0, 0);
        wait_for_entries(&weir, 1);
        let version = parts.origin.change(&target);
        assert_eq!(parts.get(&weir, &target).0, 0, "it was not stored");
        forget(&weir, &target);
        drop(weir);
        let weir = parts.serve();
        assert_eq!(parts.get(&weir, &target).0, version);
        wait_until_loaded(&weir);
        assert_eq!(parts.get(&weir, &target).0, version);
    }
}

#[test]
fn purged_response_is_not_served_after_a_kill() {
    check(|weir, target| {
        let url = format!("http://{HOST}{target}");
        weir.ask("POST", &format!("/purge?url={url}")).expect(200);
    });
}

#[test]
fn purge_all_remains_in_effect_after_a_kill() {
    check(|weir, _| {
        weir.ask("POST", "/purge-all").expect(200);
    });
}

#[test]
fn purge_counts_the_responses_that_only_the_disk_has() {
    let url = format!("http://{HOST}/1?size=100");
    for call in [format!("/purge?url={url}"), "/purge-all".to_owned()] {
        let parts = Parts::new();
        let weir = parts.serve();
        parts.get(&weir, "/1?size=100");
        wait_for_entries(&weir, 1);
        drop(weir);
        let weir = parts.serve();
        wait_until_loaded(&weir);
        for expected in ["purged 1\n", "purged 0\n"] {
            let said = weir.ask("POST", &call).expect(200).text();
            assert_eq!(said, expected, "{call}");
        }
    }
}

#[test]
fn deleted_response_is_not_served_after_a_kill() {
    check(|weir, target| {
        let path = format!("/stored/delete?url=http://{HOST}{target}");
        weir.ask("POST", &path).expect(200);
    });
}

#[test]
fn expired_response_is_not_served_without_a_validation_after_a_kill() {
    check(|weir, target| {
        let path = format!("/stored/expire?fresh_for=0s&url=http://{HOST}{target}");
        weir.ask("POST", &path).expect(200);
    });
}

#[test]
fn response_invalidated_by_unsafe_method_is_not_served_after_a_kill() {
    check(|weir, target| {
        let mut client = RawClient::connect(weir.address());
        client.send(request("POST", target));
        client.reply().expect(204);
    });
}
