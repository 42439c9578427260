//! The allocator, and how it gives memory back.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ops::RangeInclusive;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// mimalloc: Weir allocates per connection from several threads; it keeps those apart and gives
/// memory back.
///
/// What needs no larger alignment than all memory of `malloc` has is requested without one. With
/// one, mimalloc makes blocks larger and looks longer, unless a power of two is requested: that was
/// a third of what a forwarded request spent on memory.
///
/// Blocks for whole records of TLS begin behind the boundary of a page ([`RECORD_OFFSET`]).
struct Allocator;

/// The alignment of what `malloc` returns, bytes, as in the standard library's `System`.
const MALLOC_ALIGN: usize = 16;

/// A block that is smaller than the alignment may have a smaller one.
const fn is_aligned_by_malloc(layout: Layout) -> bool {
    layout.align() <= MALLOC_ALIGN && layout.align() <= layout.size()
}

/// A whole record of TLS: 2^14 bytes of content, its head, and 16 to 24 bytes of its encryption
/// (RFC 8446 §5.2, RFC 5288 §3, RFC 7905 §2). `rustls` copies content into a block of so many for
/// each.
const RECORD_BYTES: RangeInclusive<usize> = 16_385..=16_448;

/// How far behind the boundary of a page their blocks begin, bytes. Where content and the place
/// that it is copied to are 1 to 31 bytes apart, but for whole pages, `rep movsb` copies a
/// thirtieth of what it does otherwise on AMD's Zen 3 and 4 (glibc bug 30994); behind the head of a
/// record, it is 5 to 13. Content begins at a page, in memory files, and so did each block: what
/// that cost is in docs/tls.md. Frames of HTTP/2 that are gathered begin elsewhere again: half a
/// page behind a boundary.
const RECORD_OFFSET: usize = 1024;

/// What the address of a block and [`RECORD_OFFSET`] are the same modulo, bytes. The blocks of this
/// size begin at a page, so that they need no more room than others; with a whole page they would.
const RECORD_ALIGN: usize = 2048;

fn is_for_record(size: usize) -> bool {
    // one comparison: every allocation passes here
    size.wrapping_sub(*RECORD_BYTES.start()) <= RECORD_BYTES.end() - RECORD_BYTES.start()
}

#[expect(
    unsafe_code,
    reason = "the same library as that of `MiMalloc`, which frees what each of these returns"
)]
// SAFETY: each call passes on what the caller has promised; `malloc`, and the offset of records,
// align what is not passed on to `MiMalloc`
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_for_record(layout.size()) && layout.align() <= MALLOC_ALIGN {
            return record_block(layout.size());
        }
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

/// A block for a record of so many bytes; null if there is no memory.
#[inline(never)]
fn record_block(size: usize) -> *mut u8 {
    library::mi_malloc_aligned_at(size, RECORD_ALIGN, RECORD_ALIGN - RECORD_OFFSET).cast()
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
        /// A block of so many bytes. Its address and `offset` together are a multiple of
        /// `alignment`, a power of two. Null if there is no memory.
        pub(super) safe fn mi_malloc_aligned_at(
            size: usize,
            alignment: usize,
            offset: usize,
        ) -> *mut c_void;
        /// A block of so many bytes, all zero.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a page, bytes.
    const PAGE_BYTES: usize = 4096;

    /// What a store counts for a block of each of these sizes (`weir_store::allocated_bytes`).
    const COUNTED_BYTES: usize = 20 * 1024;

    #[expect(unsafe_code, reason = "declares a function of C")]
    unsafe extern "C" {
        /// The size of a block of the library, bytes, from the address that it was given out with.
        fn mi_usable_size(block: *const c_void) -> usize;
    }

    #[test]
    fn blocks_for_records_begin_behind_a_page_boundary_and_others_are_not_changed() {
        let mut blocks = Vec::new();
        let content = |size| (0..=255).cycle().take(size);
        for size in [16_384, 16_385, 16_406, 16_413, 16_448, 16_449].repeat(20) {
            let mut block: Vec<u8> = Vec::with_capacity(size);
            let offset = block.as_ptr().addr() % PAGE_BYTES;
            assert_eq!(
                offset == RECORD_OFFSET,
                RECORD_BYTES.contains(&size),
                "{size}"
            );
            block.extend(content(size));
            blocks.push((size, block));
        }
        // they grow, shrink and are freed as all others, by another thread, too
        for (size, block) in &mut blocks {
            block.reserve_exact(70_000);
            assert!(block.iter().copied().eq(content(*size)));
            block.truncate(100);
            block.shrink_to_fit();
            assert!(block.iter().copied().eq(content(100)));
        }
        let record: Vec<u8> = Vec::with_capacity(16_406);
        std::thread::spawn(|| drop((record, blocks)))
            .join()
            .unwrap();
    }

    #[test]
    fn block_for_a_record_takes_no_more_than_a_store_counts_for_it() {
        // several pages of blocks
        let mut blocks = Vec::new();
        for size in RECORD_BYTES.cycle().take(500) {
            let block: Vec<u8> = Vec::with_capacity(size);
            #[expect(unsafe_code, reason = "calls a function of C")]
            // SAFETY: it is a block of the library
            let usable = unsafe { mi_usable_size(block.as_ptr().cast()) };
            let begin = block.as_ptr().addr() % PAGE_BYTES;
            let taken = usable + begin;
            assert!(taken <= COUNTED_BYTES, "{size}: {taken} bytes");
            blocks.push(block);
        }
    }
}
