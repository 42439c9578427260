//! Writer and reader together: what goes in comes out, whatever is in it; what is damaged does not.

mod arbitrary;
mod damage;
mod foreign;
mod round_trip;

use super::{Columns, Meta, Reader, Row, TraceError, Writer};
use std::path::Path;

/// Writes a trace.
fn write(path: &Path, meta: Meta, group_rows: usize, rows: &[Row]) {
    let writer = Writer::create(path, meta).expect("it can be created");
    let mut writer = writer.with_group_rows(group_rows);
    for row in rows {
        writer.push(row).expect("it can be written");
    }
    let written = writer.finish().expect("it can be finished");
    assert_eq!(written.rows, rows.len() as u64);
    let bytes = std::fs::metadata(path).expect("it is there").len();
    assert_eq!(written.bytes, bytes);
}

/// Reads all of it.
fn read(path: &Path) -> Result<(Meta, Vec<Row>), TraceError> {
    let reader = Reader::open(path)?;
    let rows: Result<Vec<Row>, TraceError> = reader.rows(Columns::ALL).collect();
    Ok((reader.meta().clone(), rows?))
}
