//! The allocator, and how it gives memory back.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// mimalloc: Weir allocates per connection from several threads; it keeps those apart and gives
/// memory back.
///
/// What needs no larger alignment than all memory of `malloc` has is requested without one. With
/// one, mimalloc makes blocks larger and looks longer, unless a power of two is requested: that was
/// a third of what a forwarded request spent on memory.
struct Allocator;

/// The alignment of what `malloc` returns, bytes, as in the standard library's `System`.
const MALLOC_ALIGN: usize = 16;

/// A block that is smaller than the alignment may have a smaller one.
const fn is_aligned_by_malloc(layout: Layout) -> bool {
    layout.align() <= MALLOC_ALIGN && layout.align() <= layout.size()
}

#[expect(
    unsafe_code,
    reason = "the same library as that of `MiMalloc`, which frees what each of these returns"
)]
// SAFETY: each call passes on what the caller has promised; `malloc` aligns what is not passed on
// to `MiMalloc`
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_aligned_by_malloc(layout) {
            true => library::mi_malloc(layout.size()).cast(),
            // SAFETY: as promised
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_aligned_by_malloc(layout) {
            true => library::mi_zalloc(layout.size()).cast(),
            // SAFETY: as promised
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as promised
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match layout.align() <= MALLOC_ALIGN && layout.align() <= size {
            // SAFETY: the block is one of mimalloc's, as promised
            true => unsafe { library::mi_realloc(block.cast(), size) }.cast(),
            // SAFETY: as promised
            false => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }
}

/// Some functions of the library that [`mimalloc`] links; its own declarations come with all others
/// and one more crate.
#[expect(unsafe_code, reason = "declares functions of C")]
mod library {
    use super::c_void;

    unsafe extern "C" {
        /// Frees what other threads have freed of this one's, and gives pages back that were unused
        /// for a while; `force`: all.
        pub(super) safe fn mi_collect(force: bool);
        /// A block of so many bytes; null if there is no memory.
        pub(super) safe fn mi_malloc(size: usize) -> *mut c_void;
        /// The same, all zero.
        pub(super) safe fn mi_zalloc(size: usize) -> *mut c_void;
        /// Makes a block of the library larger or smaller, maybe at another address; null, and the
        /// block stays, if there is no memory.
        pub(super) fn mi_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    }
}

/// Gives unused memory back to the system, as far as this thread can.
pub(crate) fn give_back() {
    library::mi_collect(false);
}

/// Has the process do without transparent huge pages, before anything is allocated: the allocator
/// requests them, and a used part of one keeps all of it. A weir that serves took 6 MiB more at
/// its start, and with 200 KB responses resident memory was 1.44 times `memory`. A kernel that
/// cannot do without them only costs more.
extern "C" fn do_without_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The loader calls what is in this section before `main`, in the order of the numbers: before the
/// allocator's own, which has none.
#[expect(
    unsafe_code,
    reason = "the function needs nothing that would not be there yet: it is one system call"
)]
#[used]
#[unsafe(link_section = ".init_array.00101")]
static BEFORE_MAIN: extern "C" fn() = do_without_huge_pages;

/// Permits huge pages after all, for commands that compute and end: `weir sim hits` takes a tenth
/// more time without them.
pub(crate) fn use_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(false);
}
