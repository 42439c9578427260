//! Content that is on disk alone, with blocks that a reader still has in memory: they count until
//! the last reader lets go.

use super::{Tiers, check};
use std::sync::Arc;
use weir_disk::files::simulated::SimulatedFiles;

/// More than memory stores of one response.
const LENGTH: u64 = 6_000_000;

#[test]
fn blocks_that_are_read_count_until_the_last_reader_lets_go() {
    let files = SimulatedFiles::new(1);
    let mut tiers = Tiers::on(Arc::new(files.clone()));
    // nothing reaches the disk before the response is stored: all of it waits in memory
    files.stop();
    let stored = tiers.put(1, 10, LENGTH);
    files.resume();
    tiers.settle();
    assert_eq!(stored.body.bytes_in_memory(), LENGTH);
    let used = tiers.store.memory_use();
    assert!(used.lingering_bytes >= LENGTH, "{used:?}");
    assert!(used.used_bytes >= used.lingering_bytes, "{used:?}");
    let other = Arc::clone(&stored);
    drop(stored);
    assert!(tiers.used_bytes() >= LENGTH, "{}", tiers.used_bytes());
    check(&other, 10, &[(0, LENGTH)]);
    drop(other);
    assert!(tiers.used_bytes() < 100_000, "{}", tiers.used_bytes());
    assert_eq!(tiers.store.memory_use().lingering_bytes, 0);
    check(&tiers.in_memory(1).expect("its head"), 10, &[(0, LENGTH)]);
    tiers.store.debug_check();
}
