//! What was purged or invalidated stays so, also if the process is killed at once (R14).

use super::setup::DiskSetup;
use crate::support::Representation;

/// How targets are forgotten.
type Forget = fn(&DiskSetup);

const FORGET: [Forget; 3] = [
    |setup| {
        assert_eq!(setup.proxy().purge("http://a.example/a"), 1);
    },
    |setup| {
        let mut client = setup.proxy().client();
        client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
        setup
            .origin
            .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
    },
    |setup| setup.proxy().purge_all(),
];

#[test]
fn purged_or_invalidated_response_is_not_served_after_a_kill() {
    for forget in FORGET {
        for (length, is_in_memory) in [(1000, true), (1000, false), (2_500_000, true)] {
            let mut setup = DiskSetup::simulated(|_| {});
            let what = Representation::new("/a", length);
            setup.store_whole(&what);
            if !is_in_memory {
                setup.restart();
            }
            forget(&setup);
            setup.kill();
            setup.store_whole(&what.next(500));
            setup.kill();
            setup.hit_on_disk(&what.next(500));
        }
    }
}

#[test]
fn purged_or_invalidated_response_is_not_served_after_a_power_failure() {
    for forget in FORGET {
        let mut setup = DiskSetup::simulated(|_| {});
        let what = Representation::new("/a", 1000);
        setup.store_whole(&what);
        forget(&setup);
        setup.files().crash();
        setup.kill();
        setup.fetch_whole(&what.next(500));
    }
}

#[test]
fn unsafe_method_writes_to_the_journal_only_for_a_stored_response() {
    let setup = DiskSetup::simulated(|_| {});
    let post = || {
        let mut client = setup.proxy().client();
        client.send("POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n");
        setup
            .origin
            .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
    };
    let journal = setup.store().join("purges.journal");
    let length = || {
        setup
            .files()
            .content(&journal)
            .map_or(0, |bytes| bytes.len())
    };
    let before = length();
    post();
    assert_eq!(length(), before);
    setup.store_whole(&Representation::new("/b", 100));
    post();
    assert!(length() > before);
}
