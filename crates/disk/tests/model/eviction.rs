//! How much leaves at once for what is new, in directories of any size.

use super::content::{block, content, digest};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use weir_disk::files::Files;
use weir_disk::files::simulated::SimulatedFiles;
use weir_disk::stepped::{self, SteppedDirectory};
use weir_disk::{
    DirectoryConfig, Disk, DiskConfig, NewRecord, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MIN,
    SEGMENTS_MIN,
};

/// The smallest directory that there may be.
const SMALLEST: u64 = SEGMENTS_MIN * SEGMENT_BYTES_MIN;

/// What may leave at once is the directory's size divided by this.
const SHARE: u64 = 64;

struct Store {
    bytes: u64,
    disk: Arc<Disk>,
    stepped: Vec<SteppedDirectory>,
    next_key: u64,
}

impl Store {
    fn open(files: &SimulatedFiles, bytes: u64, next_key: u64) -> Self {
        let directory = DirectoryConfig {
            path: PathBuf::from("/store"),
            bytes,
        };
        let files: Arc<dyn Files> = Arc::new(files.clone());
        let config = DiskConfig::new(vec![directory]);
        let (disk, mut stepped) = stepped::open(&config, &files, &(Arc::new(|_| {}) as _)).unwrap();
        for directory in &mut stepped {
            while directory.load() {}
        }
        Self {
            bytes,
            disk,
            stepped,
            next_key,
        }
    }

    fn step(&mut self) {
        for directory in &mut self.stepped {
            directory.advance_clock_ms(10);
            directory.write();
        }
    }

    fn segments(&self) -> BTreeMap<u64, u64> {
        let all = self.stepped.iter().flat_map(SteppedDirectory::segments);
        all.collect()
    }

    fn append(&mut self, len: usize) {
        let key = self.next_key;
        self.next_key += 1;
        let new = NewRecord {
            key: digest(key),
            ticket: self.disk.ticket(),
            meta: vec![7; 300],
            body: vec![block(key, key, 0, len)],
        };
        self.disk.append(new).unwrap();
    }

    /// Stores so many bytes in responses of up to 40 KB, and sees to it that little leaves for
    /// each.
    fn fill(&mut self, bytes: u64) {
        let mut left = bytes;
        let mut before = self.segments();
        while left > 0 {
            let len = self.next_key.wrapping_mul(7_919) % 40_000;
            left = left.saturating_sub(len + 1);
            self.append(usize::try_from(len).unwrap());
            if self.next_key.is_multiple_of(5) {
                // some of what is old is asked for, and carried forward
                let older = self.next_key.saturating_sub(300);
                drop(self.disk.find(digest(older)));
            }
            self.step();
            let after = self.segments();
            let is_gone = |number: &u64| !after.contains_key(number);
            let gone = before.iter().filter(|(number, _)| is_gone(number));
            let gone: u64 = gone.map(|(_, bytes)| bytes).sum();
            assert!(gone * SHARE <= self.bytes, "{gone} of {}", self.bytes);
            before = after;
        }
    }

    fn end(self) -> u64 {
        for directory in self.stepped {
            directory.close(false);
        }
        self.next_key
    }
}

#[test]
fn at_most_a_64th_of_a_directory_is_evicted_at_once() {
    for bytes in [SMALLEST, SMALLEST + 999_999, 5 * SMALLEST] {
        let files = SimulatedFiles::new(1);
        let mut store = Store::open(&files, bytes, 0);
        store.fill(2 * bytes);
        let used = store.disk.usage();
        assert!(used.evicted > 0, "{used:?}");
        // the rest is the segment that is being written, and room for one more
        let full = used.bytes_max - used.bytes_max / SHARE;
        assert!((full..=used.bytes_max).contains(&used.bytes), "{used:?}");
    }
}

#[test]
fn at_most_a_64th_is_evicted_at_once_after_restarts_left_short_segments() {
    let files = SimulatedFiles::new(2);
    let mut next_key = 0;
    for round in 0..40 {
        let mut store = Store::open(&files, SMALLEST, next_key);
        store.fill(if round % 8 == 0 { SMALLEST / 2 } else { 10_000 });
        next_key = store.end();
    }
    let mut store = Store::open(&files, SMALLEST, next_key);
    store.fill(2 * SMALLEST);
}

#[test]
fn at_most_a_64th_is_evicted_at_once_after_a_directory_was_enlarged() {
    let files = SimulatedFiles::new(3);
    let mut store = Store::open(&files, SMALLEST, 0);
    store.fill(2 * SMALLEST);
    let next_key = store.end();
    let mut store = Store::open(&files, 3 * SMALLEST, next_key);
    store.fill(6 * SMALLEST);
}

#[test]
fn directory_made_smaller_keeps_its_newest_segments_within_its_new_size() {
    let files = SimulatedFiles::new(4);
    let mut store = Store::open(&files, 4 * SMALLEST, 0);
    store.fill(4 * SMALLEST);
    let newest = store.next_key - 1;
    store.end();
    let mut store = Store::open(&files, SMALLEST, newest + 1);
    store.append(1_000);
    store.step();
    let used = store.disk.usage();
    let full = SMALLEST - SMALLEST / 16;
    assert!((full..=SMALLEST).contains(&used.bytes), "{used:?}");
    assert!(store.disk.find(digest(newest)).is_some());
}

#[test]
fn response_of_64_kib_blocks_is_stored_in_the_smallest_directory() {
    let files = SimulatedFiles::new(5);
    let mut store = Store::open(&files, SMALLEST, 0);
    let (key, len) = (digest(9), 64 * 1024);
    let ticket = store.disk.ticket();
    let mut writer = store.disk.begin(key, ticket, None).unwrap();
    for number in 0..40 {
        let from = number * len as u64;
        writer.push(from, content(9, 9, from, len).into()).unwrap();
        store.step();
    }
    writer.commit(vec![7; 60_000], &[]).unwrap();
    store.step();
    let candidate = store.disk.find(key).unwrap();
    let loading = pin!(store.disk.load(candidate));
    let Poll::Ready(Ok(loaded)) = loading.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it cannot be read");
    };
    assert_eq!(
        loaded
            .extents
            .iter()
            .map(|extent| extent.to() - extent.from)
            .sum::<u64>(),
        40 * len as u64
    );
}

#[test]
fn large_directory_has_segments_of_the_default_size() {
    let files = SimulatedFiles::new(6);
    let store = Store::open(&files, SEGMENTS_MIN * SEGMENT_BYTES_DEFAULT, 0);
    assert_eq!(store.stepped[0].segment_bytes(), SEGMENT_BYTES_DEFAULT);
}
