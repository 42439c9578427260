//! Instructions of a hit, by case.

use super::Record;
use super::cases::{Case, Way, Work};
use super::setup::Setup;
use crate::instructions::{Counted, Expected};
use serde::{Deserialize, Serialize};
use weir_bench::origin::ResponseSpec;
use xtask::failure::Failure;

/// Requests of the larger content are a tenth: each has as many instructions as twenty others.
const FEWER: u32 = 10;

/// Sizes of content, bytes.
pub(super) const SMALL_BYTES: u64 = 1 << 10;
pub(super) const LARGE_BYTES: u64 = 256 << 10;

/// What the hits of one case cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) case: String,
    pub(super) content_bytes: u64,
    /// More requests of the long run.
    pub(super) requests: u64,
    /// More instructions of its busiest thread.
    pub(super) instructions: u64,
}

/// Counts all cases, into the record.
pub(super) fn measure(record: &mut Record, setup: &Setup<'_>) {
    // to compile a filter in Go takes callgrind many minutes
    let is_counted = |case: &&Case| case.way != Way::WasmGo;
    for case in setup.of_weir().filter(is_counted) {
        for content_bytes in sizes(case) {
            let count = count(record, setup, case, content_bytes);
            let what = format!("{}, instructions, {content_bytes} bytes", case.name());
            if let Some(count) = record.kept(what, count) {
                eprintln!("  {count:?}");
                record.figures.counts.push(count);
            }
        }
    }
}

/// Content of 256 KiB is for what changes content, and for what that is compared with.
fn sizes(case: &Case) -> &'static [u64] {
    match case.work {
        Work::Baseline | Work::Body => &[SMALL_BYTES, LARGE_BYTES],
        Work::Enabled | Work::Empty | Work::Headers | Work::Compressed => &[SMALL_BYTES],
    }
}

fn count(
    record: &Record,
    setup: &Setup<'_>,
    case: &Case,
    content_bytes: &u64,
) -> Result<Count, Failure> {
    let requests = record.settings.requests;
    let counted = Counted {
        words: &setup.words(case)?,
        spec: ResponseSpec::new("/hit", *content_bytes),
        connections: 1,
        requests: match *content_bytes {
            SMALL_BYTES => requests,
            _ => (requests / FEWER).max(1),
        },
        expected: Expected {
            is_coded: case.work == Work::Compressed,
            is_probed: case.work.adds_fields(),
        },
    };
    let name = format!("count-{}-{content_bytes}", case.file_name());
    let difference = counted.difference(&setup.directory.join(name))?;
    Ok(Count {
        case: case.name().to_owned(),
        content_bytes: *content_bytes,
        requests: difference.requests,
        instructions: difference.instructions,
    })
}
