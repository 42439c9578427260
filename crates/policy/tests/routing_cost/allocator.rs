//! The system's allocator, with a count of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each thread.
pub(crate) struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

impl Counting {
    /// Allocations of this thread.
    pub(crate) fn allocations() -> u64 {
        ALLOCATIONS.get()
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
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise, passed on
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise, passed on
        unsafe { System.realloc(place, layout, bytes) }
    }
}
