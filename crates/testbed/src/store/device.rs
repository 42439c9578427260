//! What processes and the device have read and written.

use crate::process::usage;
use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};
use std::ops::Sub;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

/// What a process tree caused the storage layer to read and write (`/proc/ID/io`, see proc(5)):
/// pages that were in the page cache are not read; a page is written once however often it is
/// dirtied before it goes out.
pub(crate) fn of_processes(root: u32) -> Traffic {
    let texts = usage::tree(root)
        .into_iter()
        .filter_map(|id| std::fs::read_to_string(format!("/proc/{id}/io")).ok());
    texts.fold(Traffic::default(), |sum, text| Traffic {
        read_bytes: sum.read_bytes + field(&text, "read_bytes:"),
        written_bytes: sum.written_bytes + field(&text, "write_bytes:"),
    })
}

/// What the device of `path` has read and written, for whomever. `None` where it is no block
/// device.
pub(crate) fn of_device(path: &Path) -> Option<Traffic> {
    let device = std::fs::metadata(path).ok()?.dev();
    let stat = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    parse_stat(&std::fs::read_to_string(stat).ok()?)
}

/// Sectors of 512 bytes: the third and the seventh number.
fn parse_stat(text: &str) -> Option<Traffic> {
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or_default())
        .collect();
    Some(Traffic {
        read_bytes: numbers.get(2)? * 512,
        written_bytes: numbers.get(6)? * 512,
    })
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_counters_are_read_from_their_own_fields() {
        let io =
            "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        assert_eq!(
            (field(io, "read_bytes:"), field(io, "write_bytes:")),
            (4096, 8192)
        );
        let stat = "  10 11 12 13 20 21 22 23 0 5 6";
        let expected = Traffic {
            read_bytes: 12 * 512,
            written_bytes: 22 * 512,
        };
        assert_eq!(parse_stat(stat), Some(expected));
    }
}
