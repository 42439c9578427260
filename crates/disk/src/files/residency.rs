//! Which pages of a file the page cache has, by `cachestat` (Linux 6.5).
//!
//! One call answers for a range, in the time of reading a few pages. Older kernels, and filters of
//! system calls that refuse what they do not know, have it not: then pages are read one by one
//! without waiting.
#![expect(
    unsafe_code,
    reason = "neither std nor rustix has this call, and libc has no function for it"
)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of the call, the same on every architecture.
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`.
#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// `struct cachestat`: counts of pages.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The kernel, or a filter before it, has refused the call: it is not asked again.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether the page cache has all of `len` bytes at `offset`, pages that are being read included;
/// `None` where the kernel does not tell.
pub(super) fn is_resident(file: &File, offset: u64, len: u64) -> Option<bool> {
    if len == 0 {
        return Some(true);
    }
    if IS_REFUSED.load(Ordering::Relaxed) {
        return None;
    }
    let page_bytes = rustix::param::page_size() as u64;
    let range = Range { offset, len };
    let mut pages = Pages::default();
    // SAFETY: the kernel reads one `Range` and writes one `Pages`, both of which live until the
    // call is over, and have the layout of its structures; it keeps neither address.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut pages,
            0,
        )
    };
    if result != 0 {
        IS_REFUSED.store(true, Ordering::Relaxed);
        return None;
    }
    let (first, last) = (offset / page_bytes, (offset + len - 1) / page_bytes);
    Some(pages.cached == last - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn range_is_resident_exactly_if_the_page_cache_has_each_of_its_pages() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 5 * 4096]).unwrap();
        file.sync_data().unwrap();
        let Some(whole) = is_resident(&file, 100, 4 * 4096) else {
            // an older kernel
            return;
        };
        assert!(whole);
        // what is behind the end is not there
        assert_eq!(is_resident(&file, 4 * 4096, 2 * 4096), Some(false));
        let advice = rustix::fs::Advice::DontNeed;
        let page = std::num::NonZeroU64::new(4096);
        rustix::fs::fadvise(&file, 2 * 4096, page, advice).unwrap();
        if is_resident(&file, 2 * 4096, 1) == Some(true) {
            // a file system that is the page cache itself
            return;
        }
        assert_eq!(is_resident(&file, 0, 2 * 4096), Some(true));
        assert_eq!(is_resident(&file, 0, 2 * 4096 + 1), Some(false));
        assert_eq!(is_resident(&file, 3 * 4096 - 1, 2), Some(false));
        assert_eq!(is_resident(&file, 3 * 4096, 2 * 4096), Some(true));
    }
}
