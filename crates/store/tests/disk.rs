//! The memory tier in front of a real disk tier: files of this machine, and the threads that read
//! and write them. Every byte is compared.

mod support;

#[path = "disk/concurrent_lookups.rs"]
mod concurrent_lookups;
#[path = "disk/copies.rs"]
mod copies;
#[path = "disk/evicted_content.rs"]
mod evicted_content;
#[path = "disk/expiration.rs"]
mod expiration;
#[path = "disk/freshening.rs"]
mod freshening;
#[path = "disk/loads.rs"]
mod loads;
#[path = "disk/replacement.rs"]
mod replacement;
#[path = "disk/unstored_content.rs"]
mod unstored_content;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use support::{NOW, content, digest};
use tempfile::TempDir;
use weir_disk::files::{Files, SystemFiles};
use weir_disk::{DirectoryConfig, Disk, DiskConfig};
use weir_policy::admission::Rule;
use weir_policy::catalog::Refusal;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::ByteSpan;
use weir_policy::{Digest, Missing, Secret};
use weir_store::{
    DiskLookup, DiskLookupResult, ExpectedResponse, InFlightContent, LookupResult, MemoryStore,
    PieceRef, Reservation, StoredContent, StoredResponse, VaryRule, WritePositionId,
};

/// Memory: larger responses than an eighth of it are for the disk alone.
const BUDGET: u64 = 8 << 20;
const LARGEST_IN_MEMORY: u64 = 1 << 20;

/// Content that comes, or is compared, at once: not a divisor of any block.
const PIECE_BYTES: usize = 40_000;

/// Longest wait for what a thread of the store will do.
const PATIENCE: Duration = Duration::from_secs(30);

/// Both tiers, and where they are.
struct Tiers {
    folder: TempDir,
    disk_bytes: u64,
    files: Arc<dyn Files>,
    store: Arc<MemoryStore>,
    /// Responses that were handed to the disk since it was opened.
    written: u64,
}

fn open(
    (folder, bytes): (&Path, u64),
    files: Arc<dyn Files>,
    largest_in_memory: u64,
) -> Arc<MemoryStore> {
    let path = folder.join("store");
    let directory = DirectoryConfig { path, bytes };
    let config = DiskConfig::new(vec![directory]);
    let disk = Disk::open(config, files, Arc::new(|_| {})).expect("a store");
    until("the index", || disk.usage().loading == 0);
    let store = MemoryStore::new(
        BUDGET,
        EvictionKind::S3Fifo,
        1,
        largest_in_memory,
        Secret([1; 16]),
    );
    Arc::new(store.with_disk(disk, Rule::Always, u64::MAX))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::yield_now();
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}

/// A version of a response: its content is that of its number.
fn response(number: u64, body: StoredContent) -> Arc<StoredResponse> {
    let head = format!("HTTP/1.1 200 OK\r\nVersion: {number}\r\n");
    let tag = format!("\"{number}\"").into_bytes();
    Arc::new(support::response(
        head.into_bytes().into(),
        Some(tag.into()),
        body,
    ))
}

#[track_caller]
fn check(stored: &StoredResponse, number: u64, spans: &[(u64, u64)]) {
    let head = format!("HTTP/1.1 200 OK\r\nVersion: {number}\r\n");
    assert_eq!(str::from_utf8(&stored.head), Ok(head.as_str()));
    let present: Vec<_> = stored.body.present().iter().collect();
    let expected = spans.iter().map(|&(from, to)| ByteSpan { from, to });
    assert_eq!(present, expected.collect::<Vec<_>>());
    for span in present {
        let mut at = span.from;
        while at < span.to {
            let bytes: Arc<[u8]> = match stored.body.piece_ref_at(at) {
                Some(PieceRef::Memory(_)) => stored.body.at(at).into(),
                Some(PieceRef::Disk(extent)) => block_on(extent.read(at)).expect("it is there"),
                None => panic!("nothing at {at}"),
            };
            assert!(!bytes.is_empty());
            for piece in bytes.chunks(PIECE_BYTES) {
                let end = at + piece.len() as u64;
                let is_right = *piece == *content(number, at..end);
                assert!(is_right, "version {number} at {at}");
                at = end;
            }
        }
    }
}

/// A response on its way.
struct Transfer {
    number: u64,
    reservation: Reservation,
    in_flight: InFlightContent,
    place: WritePositionId,
    at: u64,
}

impl Tiers {
    fn new() -> Self {
        Self::on(Arc::new(SystemFiles))
    }

    fn on(files: Arc<dyn Files>) -> Self {
        Self::of(64 << 20, files)
    }

    /// The disk has so many bytes: an extent has at most an eighth of a segment.
    fn of(disk_bytes: u64, files: Arc<dyn Files>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = (folder.path(), disk_bytes);
        Self {
            store: open(place, Arc::clone(&files), LARGEST_IN_MEMORY),
            folder,
            disk_bytes,
            files,
            written: 0,
        }
    }

    fn disk(&self) -> &Arc<Disk> {
        self.store.disk().expect("there is one")
    }

    /// Ends the process in good order, and begins another.
    fn reopen(&mut self) {
        self.reopen_with(LARGEST_IN_MEMORY);
    }

    /// The same with another limit of what is in memory.
    fn reopen_with(&mut self, largest_in_memory: u64) {
        self.settle();
        self.store.disk().expect("there is one").close();
        let files = Arc::clone(&self.files);
        self.store = open(
            (self.folder.path(), self.disk_bytes),
            files,
            largest_in_memory,
        );
        self.written = 0;
    }

    /// Waits until everything that was handed over is written, and memory knows.
    fn settle(&self) {
        until("the writer", || {
            let usage = self.disk().usage();
            usage.stored + usage.lost >= self.written
        });
        self.store.settle();
    }

    /// Begins a response, or what is missing of one that `inherited` is a part of.
    fn begin(
        &self,
        key: u64,
        number: u64,
        length: u64,
        span: (u64, u64),
        inherited: Option<&StoredContent>,
    ) -> Transfer {
        let expected = self.store.expect(digest(key));
        let reservation = expected.begin(100, Some(span.1 - span.0)).expect("room");
        let mut in_flight = InFlightContent::new(Some(length), inherited);
        let place = in_flight.open(ByteSpan {
            from: span.0,
            to: span.1,
        });
        Transfer {
            number,
            reservation,
            in_flight,
            place,
            at: span.0,
        }
    }

    fn commit(&mut self, mut transfer: Transfer) -> Result<Arc<StoredResponse>, Refusal> {
        transfer.in_flight.close(transfer.place);
        let body = transfer.reservation.finish(&mut transfer.in_flight);
        let response = response(transfer.number, body);
        transfer
            .reservation
            .commit(NOW, None, Arc::clone(&response))?;
        self.written += 1;
        Ok(response)
    }

    /// A whole response arrives and is stored.
    fn put(&mut self, key: u64, number: u64, length: u64) -> Arc<StoredResponse> {
        let mut transfer = self.begin(key, number, length, (0, length), None);
        transfer.push_to(length);
        self.commit(transfer).expect("it is stored")
    }

    fn in_memory(&self, key: u64) -> Option<Arc<StoredResponse>> {
        match self.store.find(digest(key), &|_| Digest::default()) {
            LookupResult::Found(found) => Some(found),
            LookupResult::Missing(_) => None,
        }
    }

    fn in_variant(&self, key: u64, selecting: Digest) -> Option<Arc<StoredResponse>> {
        match self.store.find(digest(key), &|_| selecting) {
            LookupResult::Found(found) => Some(found),
            LookupResult::Missing(_) => None,
        }
    }

    /// A response that only the disk has, and what may come in answer to a question about it.
    fn choose_on_disk(&self, key: u64) -> (Arc<StoredResponse>, ExpectedResponse) {
        let lookup = DiskLookup::of(self.store.expect(digest(key))).expect("there is a disk");
        match block_on(lookup.run(NOW, &|_| Digest::default())) {
            DiskLookupResult::Found(response, expected) => (response, expected),
            other => panic!("{other:?}"),
        }
    }

    fn on_disk(&self, key: u64) -> Option<Arc<StoredResponse>> {
        let lookup = DiskLookup::of(self.store.expect(digest(key)))?;
        match block_on(lookup.run(NOW, &|_| Digest::default())) {
            DiskLookupResult::Found(response, _) => Some(response),
            DiskLookupResult::Missing(..) => None,
            DiskLookupResult::Unusable(why) => panic!("{why:?}"),
        }
    }

    fn used_bytes(&self) -> u64 {
        self.store.memory_use().used_bytes
    }
}

impl Transfer {
    fn push_to(&mut self, to: u64) {
        while self.at < to {
            let end = (self.at + PIECE_BYTES as u64).min(to);
            let bytes = content(self.number, self.at..end);
            let reserved =
                self.reservation
                    .reserve_push(&mut self.in_flight, self.place, bytes.len());
            reserved.expect("room, here or there");
            self.in_flight.push(self.place, bytes);
            self.at = end;
        }
    }
}

#[test]
fn large_response_written_to_disk_leaves_only_its_header_section_in_memory() {
    const LENGTH: u64 = 6_000_000;
    let mut tiers = Tiers::new();
    let stored = tiers.put(1, 10, LENGTH);
    check(&stored, 10, &[(0, LENGTH)]);
    tiers.settle();
    drop(stored);
    // the head, and where the content is
    assert!(tiers.used_bytes() < 100_000, "{}", tiers.used_bytes());
    let found = tiers.in_memory(1).expect("its head is in memory");
    assert!(!found.body.is_in_memory());
    check(&found, 10, &[(0, LENGTH)]);
    tiers.reopen();
    assert!(tiers.in_memory(1).is_none());
    check(
        &tiers.on_disk(1).expect("it is on disk"),
        10,
        &[(0, LENGTH)],
    );
    check(
        &tiers.in_memory(1).expect("its head again"),
        10,
        &[(0, LENGTH)],
    );
    assert!(tiers.used_bytes() < 100_000, "{}", tiers.used_bytes());
    tiers.store.debug_check();
}

#[test]
fn small_response_read_twice_from_disk_is_in_memory_and_survives_restart() {
    let mut tiers = Tiers::new();
    // twice what memory holds
    let keys = 0..320_u64;
    let length = |key: u64| 50_000 + key;
    for key in keys.clone() {
        tiers.put(key, key, length(key));
        if key % 16 == 0 {
            tiers.settle();
        }
    }
    tiers.settle();
    assert!(tiers.used_bytes() <= BUDGET);
    let gone: Vec<u64> = keys
        .clone()
        .filter(|key| tiers.in_memory(*key).is_none())
        .collect();
    assert!(gone.len() > 60, "{} are not in memory", gone.len());
    let key = gone[0];
    // the first lookup on disk evicts nothing from a memory that is full; the second one may
    for _ in 0..2 {
        check(
            &tiers.on_disk(key).expect("on disk"),
            key,
            &[(0, length(key))],
        );
    }
    let found = tiers.in_memory(key).expect("in memory from then on");
    assert!(found.body.is_in_memory());
    check(&found, key, &[(0, length(key))]);
    tiers.reopen();
    for key in keys {
        check(
            &tiers.on_disk(key).expect("on disk"),
            key,
            &[(0, length(key))],
        );
    }
    assert!(tiers.used_bytes() <= BUDGET);
    tiers.store.debug_check();
}

#[test]
fn parts_on_disk_are_combined_until_the_response_is_complete() {
    for scale in [1, 1000] {
        let at = |place: u64| place * scale;
        let length = at(5000);
        let mut tiers = Tiers::new();
        let mut first = tiers.begin(1, 10, length, (at(1000), at(2000)), None);
        first.push_to(at(2000));
        tiers.commit(first).expect("it is stored");
        tiers.reopen();
        let part = tiers.on_disk(1).expect("on disk");
        assert!(part.is_part());
        check(&part, 10, &[(at(1000), at(2000))]);
        let mut second = tiers.begin(1, 10, length, (at(3000), length), Some(&part.body));
        second.push_to(length);
        tiers.commit(second).expect("it is stored");
        tiers.reopen();
        let part = tiers.on_disk(1).expect("on disk");
        check(&part, 10, &[(at(1000), at(2000)), (at(3000), length)]);
        // both gaps, one after the other
        let mut in_flight = InFlightContent::new(Some(length), Some(&part.body));
        let mut reservation = (tiers.store.expect(digest(1)))
            .begin(100, Some(at(2000)))
            .expect("room");
        for (from, to) in [(0, at(1000)), (at(2000), at(3000))] {
            let place = in_flight.open(ByteSpan { from, to });
            let mut from = from;
            while from < to {
                let end = (from + PIECE_BYTES as u64).min(to);
                let bytes = content(10, from..end);
                let reserved = reservation.reserve_push(&mut in_flight, place, bytes.len());
                reserved.expect("room");
                in_flight.push(place, bytes);
                from = end;
            }
            in_flight.close(place);
        }
        let body = reservation.finish(&mut in_flight);
        reservation
            .commit(NOW, None, response(10, body))
            .expect("it is stored");
        tiers.written += 1;
        tiers.reopen();
        let whole = tiers.on_disk(1).expect("on disk");
        assert!(!whole.is_part());
        check(&whole, 10, &[(0, length)]);
    }
}

#[test]
fn response_requested_before_a_purge_is_not_stored_after_it() {
    for length in [1000, 3_000_000] {
        let mut tiers = Tiers::new();
        tiers.put(1, 10, 500);
        let mut late = tiers.begin(1, 11, length, (0, length), None);
        late.push_to(length / 2);
        let purge = tiers.store.purge(digest(1));
        assert_eq!(purge.removed, 1);
        assert!(late.reservation.is_outdated());
        late.push_to(length);
        assert_eq!(tiers.commit(late).err(), Some(Refusal::NotResident));
        block_on(purge.durable()).expect("a disk");
        assert!(tiers.in_memory(1).is_none() && tiers.on_disk(1).is_none());
        tiers.reopen();
        assert!(tiers.on_disk(1).is_none());
        // what is asked for from then on is stored
        tiers.put(1, 12, length);
        tiers.reopen();
        check(&tiers.on_disk(1).expect("on disk"), 12, &[(0, length)]);
    }
}

#[test]
fn disk_lookup_begun_before_a_purge_does_not_restore_the_response() {
    let mut tiers = Tiers::new();
    for key in 1..3 {
        tiers.put(key, key, 1000);
    }
    tiers.reopen();
    for key in 1..3 {
        let lookup = DiskLookup::of(tiers.store.expect(digest(key))).expect("there is a disk");
        let purge = match key {
            1 => tiers.store.purge(digest(1)),
            _ => tiers.store.purge_all(),
        };
        let found = block_on(lookup.run(NOW, &|_| Digest::default()));
        assert!(!matches!(found, DiskLookupResult::Found(..)), "{found:?}");
        assert!(tiers.in_memory(key).is_none());
        block_on(purge.durable()).expect("a disk");
    }
    tiers.reopen();
    for key in 1..3 {
        assert!(tiers.on_disk(key).is_none());
    }
}

/// The rules of its target were read when it is purged, and the variant itself was not.
#[test]
fn variant_purged_during_its_disk_lookup_is_not_found() {
    let rule = VaryRule(vec!["accept".into()].into());
    let selecting = Digest(3, 3);
    for is_purged in [false, true] {
        let mut tiers = Tiers::new();
        let mut transfer = tiers.begin(1, 1, 1000, (0, 1000), None);
        transfer.push_to(1000);
        transfer.in_flight.close(transfer.place);
        let body = transfer.reservation.finish(&mut transfer.in_flight);
        let vary = Some((rule.clone(), selecting));
        transfer
            .reservation
            .commit(NOW, vary, response(1, body))
            .expect("it is stored");
        // the variant, and the rules
        tiers.written = 2;
        tiers.reopen();
        let lookup = DiskLookup::of(tiers.store.expect(digest(1))).expect("there is a disk");
        let found = block_on(lookup.run(NOW, &|_| {
            if is_purged {
                drop(tiers.store.purge(digest(1)));
            }
            selecting
        }));
        assert_eq!(
            matches!(found, DiskLookupResult::Found(..)),
            !is_purged,
            "{found:?}"
        );
        assert_eq!(tiers.in_variant(1, selecting).is_some(), !is_purged);
    }
}

#[test]
fn response_stored_without_modules_is_not_found_on_disk_as_a_variant() {
    let mut tiers = Tiers::new();
    tiers.put(1, 1, 1000);
    tiers.reopen();
    let lookup = || DiskLookup::of(tiers.store.expect(digest(1))).expect("there is a disk");
    let found = block_on(lookup().of_variants().run(NOW, &|_| Digest::default()));
    let is_other = matches!(found, DiskLookupResult::Missing(Missing::Variant, None));
    assert!(is_other, "{found:?}");
    let found = block_on(lookup().run(NOW, &|_| Digest::default()));
    assert!(matches!(found, DiskLookupResult::Found(..)), "{found:?}");
}

#[test]
fn only_the_newest_replacement_is_found_after_a_restart() {
    let mut tiers = Tiers::new();
    let lengths = [700, 2_500_000, 90_000, 2_500_000, 3_000_000, 1];
    for (number, length) in (1..).zip(lengths) {
        tiers.put(1, number, length);
        let found = tiers.in_memory(1).expect("the newest");
        check(&found, number, &[(0, length)]);
        if number % 2 == 0 {
            tiers.reopen();
            check(&tiers.on_disk(1).expect("on disk"), number, &[(0, length)]);
        }
    }
    tiers.reopen();
    check(&tiers.on_disk(1).expect("on disk"), 6, &[(0, 1)]);
}

#[test]
fn older_response_that_completes_late_does_not_replace_a_newer_one_on_disk() {
    for length in [1000, 2_500_000] {
        let mut tiers = Tiers::new();
        let mut older = tiers.begin(1, 10, length, (0, length), None);
        older.push_to(length / 2);
        tiers.put(1, 11, length);
        tiers.settle();
        older.push_to(length);
        // memory keeps what came last; the disk what was asked for last
        let _stored = tiers.commit(older);
        tiers.reopen();
        check(&tiers.on_disk(1).expect("on disk"), 11, &[(0, length)]);
    }
}
