//! What holds for the reader of traces and any bytes; shared by property tests and a fuzz target.

use std::io::{Read as _, Seek as _, Write as _};
use weir_trace::{
    AbortedBy, Column, Columns, Meta, Reader, Row, TraceMethod, TraceScheme, TraceVersion, Writer,
};

/// Opens and reads `bytes`: no panic, no more rows than the footer says and no fewer without an
/// error, nothing behind an error; some columns alone are what they are beside the others.
pub(crate) fn check(bytes: &[u8]) {
    let Some(reader) = open(bytes) else { return };
    let (all, is_whole) = rows(&reader, Columns::ALL);
    let (few, few_are_whole) = rows(&reader, Columns::of(&[Column::arrival_us, Column::target]));
    for (rows, is_whole) in [(&all, is_whole), (&few, few_are_whole)] {
        let count = rows.len() as u64;
        assert!(
            count <= reader.row_count(),
            "{count} rows of {}",
            reader.row_count()
        );
        let is_bounded = count == ROWS_MAX as u64;
        assert!(
            !is_whole || is_bounded || count == reader.row_count(),
            "rows are missing"
        );
    }
    // damage to other columns does not show where they are not read
    assert!(
        few.len() >= all.len(),
        "{} rows of few columns, {} of all",
        few.len(),
        all.len()
    );
    for (all, few) in all.iter().zip(&few) {
        assert_eq!((all.arrival_us, all.target), (few.arrival_us, few.target));
    }
}

/// Rows that are read of one file: a few bytes can be any number of rows.
const ROWS_MAX: usize = 20_000;

fn open(bytes: &[u8]) -> Option<Reader> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("it is written");
    Reader::from_file(file, "cannot read trace `any`".to_owned()).ok()
}

/// The rows, and whether no error ended them.
fn rows(reader: &Reader, columns: Columns) -> (Vec<Row>, bool) {
    let (mut found, mut rows) = (Vec::new(), reader.rows(columns));
    while found.len() < ROWS_MAX {
        match rows.next() {
            Some(Ok(row)) => found.push(row),
            Some(Err(error)) => {
                assert!(!error.to_string().is_empty() && rows.next().is_none());
                return (found, false);
            }
            None => return (found, true),
        }
    }
    (found, true)
}

/// [`example`] as the program of version 1 wrote it.
pub(crate) const VERSION_1: &[u8] = include_bytes!("version-1.parquet");

/// A small trace with something in every kind of column, in three row groups.
pub(crate) fn example() -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    let sink = file.try_clone().expect("it is open twice");
    let writer = Writer::new(sink, Meta::default()).expect("it can be begun");
    let mut writer = writer.with_group_rows(10);
    for row in (0..25).map(row) {
        writer.push(row).expect("it is written");
    }
    writer.finish().expect("it is finished");
    let mut bytes = Vec::new();
    file.rewind().expect("it is a file");
    file.read_to_end(&mut bytes).expect("it is read");
    bytes
}

fn row(number: u32) -> Row {
    let wide = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let is_third = number.is_multiple_of(3);
    Row {
        arrival_us: 1_000_000_000_000_000 + i64::from(number) * 1000,
        setup_us: is_third.then_some(wide >> 40),
        client: Some(wide),
        connection_sequence: Some(number),
        target: wide % 7,
        target_text: Some(format!("http://a.example/{}", number % 5)),
        method: Some(TraceMethod::Get),
        scheme: Some(TraceScheme::Http),
        version: is_third.then_some(TraceVersion::Http11),
        has_cookie: Some(is_third),
        status: Some(200),
        date_s: Some(-1),
        content_type: (!is_third).then(|| "text/html".to_owned()),
        received_bytes: Some(wide >> 32),
        aborted_by: Some(AbortedBy::Neither),
        next_hop_choice: is_third.then(|| "in-turn".to_owned()),
        ..Row::default()
    }
}

/// The same as another program would have left it, which seals nothing: what is damaged then comes
/// to the decoder.
pub(crate) fn unsealed(mut bytes: Vec<u8>) -> Vec<u8> {
    const OURS: &[u8] = b"weir trace ";
    let places = 0..bytes.len().saturating_sub(OURS.len());
    for place in places {
        if bytes[place..].starts_with(OURS) {
            bytes[place] = b'W';
        }
    }
    bytes
}

/// `bytes` with other bits at some places.
pub(crate) fn damaged(
    mut bytes: Vec<u8>,
    changes: impl IntoIterator<Item = (usize, u8)>,
) -> Vec<u8> {
    for (place, flip) in changes {
        let length = bytes.len();
        bytes[place % length] ^= flip;
    }
    bytes
}
