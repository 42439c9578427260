//! Content that passes by: it is kept for nobody but those who are about to read it.
//!
//! Its memory is no store's, so it has a bound of its own: what is here lies between the slowest reader that is not left
//! behind and the fastest, and at most [`PASSING_AHEAD_BYTES_MAX`] ahead of that one.

use super::Fill;
use super::fetch::Fetch;

/// Bytes of content that passes by and that the fastest reader has not taken: two reads of a worker, where the readers take
/// turns with the fetch.
pub const PASSING_AHEAD_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of content that passes by and is kept for readers behind the fastest, where room for so much was taken.
pub const PASSING_BEHIND_BYTES: u64 = 1024 * 1024;

/// The same without such room, for each reader: half of what a connection may hold.
pub const PASSING_BEHIND_READER_BYTES: u64 = 128 * 1024;

impl Fill {
    /// From now on what comes is not kept: however large the lead, a fetch stays near its fastest reader.
    pub fn pass(&mut self) {
        self.is_passing = true;
        self.stirred = true;
    }

    /// Content before this byte is not needed any more where it passes by; readers before it are left behind. `has_room`:
    /// room for [`PASSING_BEHIND_BYTES`] was taken. Never falls while nobody comes or leaves.
    #[must_use]
    pub fn passed(&self, has_room: bool) -> u64 {
        let Some((slowest, fastest)) = self.places() else {
            return u64::MAX;
        };
        let behind = match self.readers.len() {
            1 => return slowest,
            readers => PASSING_BEHIND_READER_BYTES.saturating_mul(readers as u64),
        };
        let behind = if has_room {
            behind.max(PASSING_BEHIND_BYTES)
        } else {
            behind
        };
        slowest.max(fastest.saturating_sub(behind))
    }

    /// How many bytes the fetch may be ahead of its fastest reader.
    pub(super) fn ahead(&self, fetch: &Fetch) -> u64 {
        let ahead = fetch.pace.ahead();
        if self.is_passing {
            ahead.min(PASSING_AHEAD_BYTES_MAX)
        } else {
            ahead
        }
    }
}
