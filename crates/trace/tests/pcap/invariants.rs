//! Invariant: any bytes are read to their end without a panic, and the same rows, faults and counts
//! come whole or in pieces of any size; rows come in order of arrival, or are counted; what a row
//! says is possible.

use std::io::{self, Read};

use weir_trace::import::{
    Settings,
    pcap::{Capture, Counts},
};
use weir_trace::{Anonymiser, Row};

/// Hides nothing.
pub(crate) const OPEN: Anonymiser = Anonymiser::none();

/// Holds the invariant for one file.
pub(crate) fn capture(file: &[u8]) {
    let whole = read(file);
    let pieces = read(Pieces {
        rest: file,
        count: 0,
    });
    assert_eq!(whole, pieces, "in pieces it is another capture");
    let (rows, _, counts) = whole;
    let late = rows
        .windows(2)
        .filter(|pair| pair[0].arrival_us > pair[1].arrival_us)
        .count();
    assert!(
        late as u64 <= counts.late,
        "{late} rows out of order, {} counted",
        counts.late
    );
    assert_eq!(
        rows.len() as u64,
        counts.requests,
        "a request became no row"
    );
    for row in &rows {
        possible(row);
    }
}

fn possible(row: &Row) {
    let ordered = |earlier: Option<u64>, later: Option<u64>| match (earlier, later) {
        (Some(earlier), Some(later)) => earlier <= later,
        _ => true,
    };
    assert!(ordered(row.first_byte_us, row.last_byte_us), "{row:?}");
    assert!(
        row.status.is_some() || row.declared_bytes.is_none(),
        "{row:?}"
    );
    assert!(row.connection_sequence != Some(0), "{row:?}");
}

/// Everything that comes out, damage as text.
fn read(reader: impl Read) -> (Vec<Row>, Vec<String>, Counts) {
    let mut capture = Capture::new(reader, &Settings::new(&OPEN));
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for next in capture.by_ref() {
        match next {
            Ok(row) => rows.push(row),
            Err(damaged) => faults.push(format!("{damaged:?}")),
        }
    }
    (rows, faults, capture.counts())
}

/// A reader that gives few bytes at a time, and each time another number of them.
struct Pieces<'a> {
    rest: &'a [u8],
    count: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.count = self.count % 7 + 1;
        if self.count == 5 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.count.min(buf.len());
        self.rest.read(&mut buf[..count])
    }
}
