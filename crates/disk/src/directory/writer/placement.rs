//! Where an item begins in the segment that is being written.

use super::Writer;
use crate::format::{PAGE_BYTES, Seal};

/// Content of more bytes begins at a page. `sendfile(2)` hands the socket 16 pages at once: 64 KiB
/// that begin within a page lie in 17 and leave in two parts, the second of them short. So they
/// cost three times as much, and 1 MiB costs half as much again. Content of up to 15 pages lies in
/// 16 wherever it begins.
const UNALIGNED_BYTES_MAX: u64 = 15 * PAGE_BYTES as u64;

/// In segments of less than 240 KiB so does content of more than a quarter of one: they have room
/// for no content of 15 pages and more beside other, and tests have segments of 32 KiB.
const SEGMENT_PART: u64 = 4;

impl Writer {
    /// Where the next item goes.
    pub(in crate::directory) fn place(&self) -> Option<(Seal, u64)> {
        let active = self.active.as_ref()?;
        Some((active.segment.seal, active.end + self.batch.bytes()))
    }

    /// Where the next item of so many bytes goes, whose content begins behind `header_bytes` and
    /// has `content_bytes`: if that is long and there is room, where it begins at a page.
    pub(in crate::directory) fn place_content(
        &self,
        (header_bytes, content_bytes): (u64, u32),
        bytes: u64,
    ) -> Option<(Seal, u64)> {
        let (seal, at) = self.place()?;
        if u64::from(content_bytes) <= self.unaligned_bytes_max() {
            return Some((seal, at));
        }
        let content_at = at + header_bytes;
        let gap = content_at.next_multiple_of(PAGE_BYTES as u64) - content_at;
        let gap = if self.has_room(gap + bytes) { gap } else { 0 };
        Some((seal, at + gap))
    }

    fn unaligned_bytes_max(&self) -> u64 {
        let segment_bytes = u64::from(self.directory.limits.segment_bytes);
        UNALIGNED_BYTES_MAX.min(segment_bytes / SEGMENT_PART)
    }
}
