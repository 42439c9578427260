//! A device that takes nothing while responses go to disk as they arrive: they pass by, and their
//! readers have them.

use super::setup::DiskSetup;
use crate::support::{RawClient, Representation};
use weir_measure::{Lost, Metric};
use weir_proxy::config::{ByteSize, Config};

/// More than may wait for the device, and than memory has room for.
const LENGTH: u64 = 24_000_000;

const MEMORY: ByteSize = ByteSize::from_mib(8);

fn small_memory(config: &mut Config) {
    config.cache.memory = MEMORY;
    config.cache.largest_response = ByteSize::from_mib(1);
}

#[test]
fn response_that_outruns_the_disk_releases_its_memory() {
    let setup = DiskSetup::simulated(small_memory);
    setup.files().stop();
    let what = Representation::new("/a", LENGTH);
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let (mut hop, _) = setup.origin.answer(what.head());
    assert_eq!(client.read_head().status(), 200);
    let half = hop.send_while(&what.bytes(0, LENGTH / 2), || {
        client.read_exactly(12_000_000)
    });
    what.check(0, &half);
    assert_eq!(setup.proxy().count(Metric::PassedThrough), 1);
    // in the middle of it: what is about to be read, and tables
    setup
        .proxy()
        .wait_for_at_most(Metric::StoreUsedBytes, 300_000);
    let rest = hop.send_while(&what.bytes(LENGTH / 2, LENGTH), || {
        client.read_exactly(12_000_000)
    });
    what.check(LENGTH / 2, &rest);
    setup.rest();
    assert!(setup.proxy().count(Metric::StoreUsedBytes) <= 300_000);
    // the device works again: nothing of it is stored, and all else is
    setup.files().resume();
    setup.proxy().wait_for(Metric::DiskQueuedBytes, 0);
    // on a busy machine it may outrun the disk once more, which is counted
    let mut passed = 1;
    setup.fetch_whole(&what);
    while setup.proxy().count(Metric::PassedThrough) > passed {
        passed += 1;
        setup.fetch_whole(&what);
    }
    setup.written(1);
    setup.given_back();
    setup.hit_on_disk(&what);
}

#[test]
fn slow_reader_of_released_content_fetches_the_rest_separately() {
    for changes in [false, true] {
        let setup = DiskSetup::simulated(small_memory);
        setup.files().stop();
        let what = Representation::new("/a", LENGTH);
        let mut fast = setup.proxy().client();
        fast.send(what.get(""));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let mut slow = RawClient::connect_small(setup.proxy().address());
        slow.send(what.get(""));
        setup.proxy().wait_for(Metric::FollowersWaiting, 1);
        hop.send(what.head());
        assert_eq!(fast.read_head().status(), 200);
        assert_eq!(slow.read_head().status(), 200);
        let came = hop.send_while(&what.bytes(0, LENGTH), || fast.read_exactly(24_000_000));
        what.check(0, &came);
        assert_eq!(setup.proxy().count(Metric::PassedThrough), 1);
        let rest = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                if changes {
                    slow.read_to_end().0
                } else {
                    slow.read_exactly(24_000_000)
                }
            });
            let mut own = setup.origin.accept();
            let asked = own.read_head();
            assert_eq!(asked.field("if-range"), what.tag.as_deref());
            let range = asked.field("range").expect("a range");
            assert!(range.ends_with("-23999999"), "{range}");
            let from = range.trim_start_matches("bytes=").split('-').next();
            let from = from.and_then(|from| from.parse().ok());
            let answer = if changes {
                what.next(LENGTH).whole()
            } else {
                what.part(from.expect("a number"), LENGTH)
            };
            own.try_send(answer);
            reading.join().expect("no panic")
        });
        what.check(0, &rest);
        assert_eq!(rest.len() == 24_000_000, !changes);
        let continued = Metric::Continued(Lost::ContentDropped);
        assert_eq!(setup.proxy().count(continued), 1);
        setup.files().resume();
        setup.rest();
    }
}
