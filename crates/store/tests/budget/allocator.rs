//! The system's allocator, with a count of what is live.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use weir_store::allocated_bytes;

/// Counts the live bytes of each thread, each allocation rounded as `allocated_bytes` says. A
/// thread that frees what another has allocated would come below zero; here each store stays with
/// its thread.
pub(crate) struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

impl Counting {
    /// Live bytes that this thread has allocated.
    pub(crate) fn live_bytes() -> i64 {
        LIVE.get()
    }

    fn count(bytes: usize, sign: i64) {
        let bytes = i64::try_from(allocated_bytes(bytes)).unwrap_or(i64::MAX);
        LIVE.set(LIVE.get() + sign * bytes);
    }
}

#[expect(
    unsafe_code,
    reason = "the trait is unsafe; every call goes to the system's allocator unchanged"
)]
// SAFETY: each method passes its arguments on to `System`, which keeps the contract; counting
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size(), 1);
        // SAFETY: the caller's promise, passed on
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Self::count(layout.size(), -1);
        // SAFETY: the caller's promise, passed on
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        Self::count(bytes, 1);
        Self::count(layout.size(), -1);
        // SAFETY: the caller's promise, passed on
        unsafe { System.realloc(place, layout, bytes) }
    }
}
