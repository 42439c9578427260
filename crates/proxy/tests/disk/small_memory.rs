//! A store much larger than memory.

use super::setup::DiskSetup;
use crate::support::Representation;
use weir_measure::Metric;
use weir_proxy::config::ByteSize;

fn small_memory() -> DiskSetup {
    DiskSetup::real(|config| {
        config.cache.memory = ByteSize::from_mib(1);
        config.cache.largest_response = ByteSize::from_kib(64);
    })
}

#[test]
fn response_larger_than_memory_is_stored_on_disk() {
    let setup = small_memory();
    // as a whole it would not fit; of unknown length it shows on the way
    let large = Representation::new("/large", 8_000_000);
    setup.store_whole(&large);
    setup.hit_on_disk(&large);
    let chunked = Representation::new("/chunked", 3_000_000);
    let mut client = setup.proxy().client();
    client.send(chunked.get(""));
    let (mut hop, _) = setup.origin.answer(chunked.chunked_head());
    let content = chunked.chunk(0, chunked.length);
    let response = hop.send_while(&content, || {
        let head = client.read_head();
        assert!(head.is_chunked());
        client.read_chunks_of(3_000_000)
    });
    chunked.check(0, &response);
    hop.send("0\r\n\r\n");
    assert_eq!(client.read_chunks().0, b"");
    setup.rest();
    setup.written(2);
    setup.given_back();
    setup.hit_on_disk(&chunked);
    assert_eq!(setup.proxy().count(Metric::PassedThrough), 0);
}

#[test]
fn memory_stays_within_budget_and_evicted_responses_are_disk_hits() {
    let setup = small_memory();
    let what = |at: u64| Representation::new(&format!("/{at}"), 20_000 + 7919 * (at % 40));
    for at in 0..120 {
        setup.store_whole(&what(at));
        let used = setup.proxy().count(Metric::StoreUsedBytes);
        assert!(used <= 1 << 20, "{used}");
    }
    for at in 0..120 {
        let response = setup.hit(&what(at), "");
        what(at).check_whole(&response);
        let used = setup.proxy().count(Metric::StoreUsedBytes);
        assert!(used <= 1 << 20, "{used}");
    }
    assert!(setup.proxy().count(Metric::DiskHits) > 60);
}

#[test]
fn content_on_disk_is_not_charged_to_memory() {
    let mut setup = DiskSetup::real(|_| {});
    for at in 0..5 {
        setup.store_whole(&Representation::new(&format!("/{at}"), 2_000_000));
    }
    setup.restart();
    for at in 0..5 {
        setup.hit_on_disk(&Representation::new(&format!("/{at}"), 2_000_000));
    }
    assert_eq!(setup.proxy().count(Metric::StoreEntries), 5);
    assert!(setup.proxy().count(Metric::StoreUsedBytes) < 100_000);
}

#[test]
fn response_refused_by_the_small_queue_is_stored_on_disk() {
    let setup = DiskSetup::real(|config| {
        config.cache.memory = ByteSize::from_mib(4);
        config.cache.largest_response = ByteSize::from_mib(4);
    });
    // more than a tenth of the memory, less than what the disk takes in one write
    let refused = Representation::new("/refused", 600_000);
    setup.store_whole(&refused);
    setup.written(1);
    setup.given_back();
    setup.hit_on_disk(&refused);
}
