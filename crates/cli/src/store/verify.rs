//! `weir store verify`: is every byte what was written?

use super::directories::{self, failure};
use super::flags::Directories;
use crate::messages::{Failure, give};

/// Checks everything; a line on stdout for each thing that is wrong, and one that sums up.
///
/// # Errors
///
/// Something is wrong (exit 1), or a directory cannot be read (exit 3).
pub(super) fn verify(named: &Directories) -> Result<(), Failure> {
    let mut problems = 0_u64;
    for directory in directories::open(named)? {
        let path = directory.path().display().to_string();
        let survey = directory.survey().map_err(|error| failure(&error))?;
        let mut unread = Ok(());
        let checked = directory
            .check(&survey, &mut |problem| {
                problems += 1;
                if unread.is_ok() {
                    unread = give(&format!("{path}/{problem}\n"));
                }
            })
            .map_err(|error| failure(&error))?;
        unread?;
        let evicted = match checked.partly_evicted {
            0 => String::new(),
            records => format!(", of {records} some content was evicted"),
        };
        give(&format!(
            "{path}: {} segments, {} records ({} live{evicted}), {} extents, {} bytes verified\n",
            checked.segments, checked.records, checked.live, checked.extents, checked.bytes
        ))?;
    }
    if problems == 0 {
        return Ok(());
    }
    let cause = format!("{problems} things are wrong; each has a line on stdout");
    Err(Failure::check_said_no("the store is damaged", cause).hint(
        "nothing has to be done: weir never serves what does not verify, and fetches it again",
    ))
}
