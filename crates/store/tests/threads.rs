//! Several threads on one store: no wrong byte, no lost room.

mod support;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use support::{
    CONTENT_MAX, NOW, Random, check_response, content, digest, true_part, true_response,
};
use weir_policy::Secret;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::ByteSpan;
use weir_store::{ContentBuilder, InFlightContent, InFlightPiece, LookupResult, MemoryStore};

const THREADS: u64 = 4;
const STEPS: usize = 3000;
const KEYS: u64 = 200;

/// Many keys share a target's number with one content each, so that each thread knows what any
/// other has stored.
fn run(store: &Arc<MemoryStore>, seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let (mut found, mut stored) = (0, 0);
    for _ in 0..STEPS {
        let key = random.below(KEYS);
        match store.find(digest(key), &|_| digest(0)) {
            LookupResult::Found(response) => {
                assert_eq!(check_response(&response), key, "another's content");
                found += 1;
                match random.below(60) {
                    0 => {
                        store.drop_one(digest(key), &response);
                    }
                    1 => {
                        store.remove(digest(key));
                    }
                    _ => {}
                }
            }
            LookupResult::Missing(_) => stored += u64::from(fetch(store, &mut random, key)),
        }
    }
    (found, stored)
}

/// Stores the response for `key`; `false` if it had to leave before.
fn fetch(store: &Arc<MemoryStore>, random: &mut Random, key: u64) -> bool {
    let length = (key * 997) % 150_000;
    let known = (!key.is_multiple_of(3)).then_some(length);
    let Ok(mut reservation) = store.expect(digest(key)).begin(20, known) else {
        return false;
    };
    let mut body = ContentBuilder::new(known);
    while body.len() < length {
        let end = (body.len() + 1 + random.below(CONTENT_MAX)).min(length);
        let bytes = content(key, body.len()..end);
        if reservation.reserve_next(&mut body, bytes.len()).is_err() || random.one_in(500) {
            return false;
        }
        body.push(bytes);
    }
    let response = true_response(key, length, body);
    reservation.commit(NOW, None, response).is_ok()
}

fn check(budget: u64, kind: EvictionKind, shards: usize) {
    let largest = budget / shards as u64 / 4;
    let store = MemoryStore::new(budget, kind, shards, largest, Secret([7; 16]));
    let store = Arc::new(store);
    let (found, stored) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let store = &store;
                scope.spawn(move || run(store, seed))
            })
            .collect();
        let counts = threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"));
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    });
    assert!(found > 0 && stored > 0, "{found} found, {stored} stored");
    store.debug_check();
    let memory = store.memory_use();
    assert!(memory.used_bytes <= budget, "{memory:?}");
    store.clear();
    assert_eq!(store.memory_use().entries, 0);
}

#[test]
fn threads_that_evict_each_others_responses_read_only_correct_bytes() {
    for kind in EvictionKind::ALL {
        check(4 << 20, kind, 1);
    }
}

#[test]
fn threads_on_several_shards_read_only_correct_bytes() {
    check(256 << 20, EvictionKind::S3Fifo, 4);
}

/// What threads share while a response arrives, and the news that there is more of it.
struct Shared {
    in_flight: Mutex<InFlightContent>,
    came: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, InFlightContent> {
        self.in_flight.lock().expect("no thread panics")
    }
}

const LENGTH: u64 = 20 * CONTENT_MAX + 777;

/// Brings `from..to` in small steps.
fn bring(shared: &Shared, seed: u64, from: u64, to: u64) {
    let mut random = Random::new(seed);
    let place = shared.lock().open(ByteSpan { from, to });
    let mut at = from;
    while at < to {
        let end = (at + 1 + random.below(20_000)).min(to);
        shared.lock().push(place, content(1, at..end));
        shared.came.notify_all();
        at = end;
    }
    shared.lock().close(place);
    shared.came.notify_all();
}

/// Reads from `at` to the end; how many bytes were compared without the lock.
fn read(shared: &Shared, mut at: u64) -> u64 {
    let mut without_lock = 0;
    while at < LENGTH {
        let in_flight = shared.lock();
        let in_flight = shared
            .came
            .wait_while(in_flight, |in_flight| in_flight.read(at).is_none())
            .expect("no thread panics");
        match in_flight.read(at) {
            Some(InFlightPiece::Open(bytes)) => {
                let end = at + bytes.len() as u64;
                assert!(bytes == content(1, at..end), "from {at}");
                at = end;
            }
            Some(InFlightPiece::Sealed { block, from }) => {
                drop(in_flight);
                let end = at + (block.len() - from) as u64;
                assert!(block[from..] == *content(1, at..end), "from {at}");
                without_lock += end - at;
                at = end;
            }
            Some(InFlightPiece::Disk { .. }) => panic!("nothing is on disk"),
            None => panic!("it was there"),
        }
    }
    without_lock
}

#[test]
fn readers_of_a_response_with_two_write_positions_read_correct_bytes() {
    let shared = Shared {
        in_flight: Mutex::new(InFlightContent::new(Some(LENGTH), None)),
        came: Condvar::new(),
    };
    let shared = &shared;
    std::thread::scope(|scope| {
        // the second half first, and some of it twice
        let (middle, beyond) = (LENGTH / 2, LENGTH / 2 + 2 * CONTENT_MAX);
        scope.spawn(move || bring(shared, 1, middle, LENGTH));
        scope.spawn(move || bring(shared, 2, 0, beyond));
        let readers = [0, 0, 1000, LENGTH / 3, middle - 1, LENGTH - 1];
        let readers = readers.map(|at| scope.spawn(move || read(shared, at)));
        for reader in readers {
            reader.join().expect("no thread panics");
        }
    });
    assert_eq!(read(shared, 0), LENGTH, "all of it is sealed");
    let mut in_flight = shared.lock();
    let body = in_flight.finish();
    assert!(in_flight.is_whole() && body.is_whole());
    check_response(&true_part(1, 1, LENGTH, body));
}
