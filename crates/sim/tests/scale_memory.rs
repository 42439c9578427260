//! How much memory a network of 1024 nodes takes to simulate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_policy::eviction::EvictionKind;
use weir_policy::route::policy::PolicyKind;
use weir_sim::cluster::scale::{Rows, ScaleSetting, simulate};
use weir_trace::TraceError;
use weir_trace::generator::Recipe;

/// The system's allocator, with a count of the bytes that are in use, and of the most so far.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let in_use = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(in_use, Ordering::Relaxed);
}

#[expect(
    unsafe_code,
    reason = "the trait is unsafe; every call goes to the system's allocator unchanged"
)]
// SAFETY: each method passes its arguments on to `System`, which keeps the contract; counting
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promise, passed on
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory in use at a time, bytes.
fn most_bytes(requests: u64) -> usize {
    MOST.store(IN_USE.load(Ordering::Relaxed), Ordering::Relaxed);
    let setting = ScaleSetting {
        nodes: vec![NonZero::new(1024).expect("not 0")],
        cache_bytes: 16 << 30,
        eviction: EvictionKind::S3Fifo,
        policy: PolicyKind::ReplicatedHash,
        requests: NonZero::new(requests).expect("not 0"),
        one_in: NonZero::new(16).expect("not 0"),
        rate_per_s: NonZero::new(2000).expect("not 0"),
        seed: 1,
    };
    let recipe = Recipe::built_in("web-2026").expect("it comes with the program");
    let open = || Ok::<Rows<'static>, TraceError>(Box::new(recipe.rows(requests, 1).map(Ok)));
    let outcomes = simulate(&setting, &open, NonZero::<usize>::MIN, &|| false);
    outcomes.expect("the setting can be simulated");
    MOST.load(Ordering::Relaxed)
}

#[test]
fn thousand_nodes_fit_into_4_gib() {
    const FIRST: u64 = 20_000;
    const LIMIT: usize = 4 << 30;
    let first = most_bytes(FIRST);
    let second = most_bytes(2 * FIRST);
    // what comes with requests comes with new targets, whose part falls with the length
    let a_request = second.saturating_sub(first) as f64 / FIRST as f64;
    let of_all = first as f64 + a_request * 1e7;
    assert!(first < LIMIT / 4, "{first} bytes");
    assert!(
        of_all < LIMIT as f64,
        "{first} bytes and {a_request} a request"
    );
}
