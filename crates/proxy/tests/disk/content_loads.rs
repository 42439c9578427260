//! Content that is on disk and requested often: it is loaded into memory while it is sent.

use super::setup::{DiskSetup, is_from_disk};
use crate::support::Representation;
use weir_measure::{ContentLoadEnd, Metric};

/// More than comes with its record, less than the longest that is loaded.
const LENGTH: u64 = 300_000;

fn loads(setup: &DiskSetup, end: ContentLoadEnd) -> u64 {
    setup.proxy().count(Metric::ContentLoads(end))
}

/// Stored on disk alone.
fn stored(mut setup: DiskSetup, length: u64) -> (DiskSetup, Representation) {
    let what = Representation::new("/large", length);
    setup.store_whole(&what);
    setup.restart();
    (setup, what)
}

#[test]
fn large_content_that_a_device_was_read_for_is_in_memory_once_it_was_sent() {
    DiskSetup::each(|setup| {
        let (setup, what) = stored(setup, LENGTH);
        setup.hit_on_disk(&what);
        assert_eq!(loads(&setup, ContentLoadEnd::Stored), 1);
        assert!(setup.proxy().count(Metric::StoreUsedBytes) > LENGTH);
        for _ in 0..2 {
            let response = setup.hit(&what, "");
            what.check_whole(&response);
            assert!(!is_from_disk(&response), "{:?}", response.head);
        }
        assert_eq!(loads(&setup, ContentLoadEnd::Stored), 1);
    });
}

#[test]
fn request_for_a_part_or_a_head_loads_no_content() {
    DiskSetup::each(|setup| {
        let (setup, what) = stored(setup, LENGTH);
        let part = setup.hit(&what, "Range: bytes=70000-70009\r\n");
        what.check_part(&part, 70_000, 70_010);
        let mut client = setup.proxy().client();
        client.send(what.ask("HEAD", ""));
        assert_eq!(client.read_head().status(), 200);
        assert!(setup.proxy().count(Metric::StoreUsedBytes) < 100_000);
        assert_eq!(loads(&setup, ContentLoadEnd::Stored), 0);
        setup.hit_on_disk(&what);
        assert_eq!(loads(&setup, ContentLoadEnd::Stored), 1);
    });
}

#[test]
fn content_longer_than_a_mebibyte_stays_on_disk() {
    let (setup, what) = stored(DiskSetup::simulated(|_| {}), (1 << 20) + 1);
    for _ in 0..3 {
        setup.hit_on_disk(&what);
    }
    assert_eq!(loads(&setup, ContentLoadEnd::Stored), 0);
}

#[test]
fn damaged_content_that_is_to_be_loaded_is_fetched_again() {
    let (setup, what) = stored(DiskSetup::simulated(|_| {}), LENGTH);
    let (path, at) = setup.find(&what.bytes(200_000, 200_064));
    setup.flip(&path, at);
    setup.fetch_whole(&what);
    assert_eq!(loads(&setup, ContentLoadEnd::Unreadable), 1);
    assert_eq!(loads(&setup, ContentLoadEnd::Stored), 0);
    let response = setup.hit(&what, "");
    what.check_whole(&response);
}

#[test]
fn loaded_content_is_purged_as_any_other() {
    let (setup, what) = stored(DiskSetup::simulated(|_| {}), LENGTH);
    setup.hit_on_disk(&what);
    assert_eq!(loads(&setup, ContentLoadEnd::Stored), 1);
    let url = format!("http://a.example{}", what.path);
    assert!(setup.proxy().try_purge(&url).is_ok());
    // what a socket may have is given back in a second
    setup.proxy().wait_for(Metric::StoreLingeringBytes, 0);
    assert!(setup.proxy().count(Metric::StoreUsedBytes) < 100_000);
    setup.fetch_whole(&what);
}

#[test]
fn validated_response_keeps_its_loaded_content() {
    let (mut setup, what) = stored(DiskSetup::simulated(|_| {}), LENGTH);
    setup.hit_on_disk(&what);
    let fields = "Cache-Control: no-cache\r\n";
    let mut client = setup.proxy().client();
    client.send(what.get(fields));
    let mut hop = setup.origin.accept();
    assert!(hop.read_head().has("if-none-match"));
    hop.send(what.head_with("304 Not Modified", ""));
    what.check_whole(&client.read_response());
    setup.rest();
    let response = setup.hit(&what, "");
    what.check_whole(&response);
    setup.restart();
    setup.hit_on_disk(&what);
}
