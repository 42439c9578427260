//! What holds for every importer and any bytes; shared by property tests and fuzz targets.

use std::io::Read;
use weir_trace::import::{Damage, Dropped, Format, Place, Settings, Unreadable, open};
use weir_trace::{Anonymiser, Row};

type Items = Vec<Result<Row, Damage>>;

/// Hides nothing, so that a difference can be seen.
const OPEN: Anonymiser = Anonymiser::none();

/// Gives at most so many bytes at a time.
struct Slowly<'a> {
    bytes: &'a [u8],
    at_once: usize,
}

impl Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.len().min(self.at_once).min(out.len());
        let (now, later) = self.bytes.split_at(count);
        out[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}

/// Reads `input`, at once and in small pieces: no panic, the same rows, damage and counts; nothing
/// behind the end, and nothing behind damage that ends the source; of a source that is not
/// compressed every line or record is a row, damage that names it, or counted.
pub(crate) fn check(input: &[u8], format: Option<Format>) {
    let whole = read(input, input.len().max(1), format);
    let slowly = read(input, 1, format);
    match (whole, slowly) {
        (Ok((items, dropped)), Ok(again)) => {
            assert!(items == again.0, "{items:#?}\nbyte by byte\n{:#?}", again.0);
            assert_eq!(dropped, again.1);
            if format.is_some() && !is_compressed(input) {
                account(input, format, &items, &dropped);
            }
        }
        (Err(error), Err(again)) => assert_eq!(error.to_string(), again.to_string()),
        // a decoder that is given more at a time notices damage earlier: before the source is
        // opened here, and as its last item there
        (Ok((items, _)), Err(error)) | (Err(error), Ok((items, _))) => {
            let is_reported = items.last().is_some_and(Result::is_err);
            assert!(is_compressed(input) && is_reported, "{error}\n{items:#?}");
        }
    }
}

/// Nothing is skipped in silence.
fn account(input: &[u8], format: Option<Format>, items: &Items, dropped: &Dropped) {
    let count = items.len() as u64 + dropped.total();
    match format {
        Some(Format::Squid | Format::Common | Format::Webcachesim) => {
            let ends = input.iter().filter(|&&byte| byte == b'\n').count();
            let has_tail = input.last().is_some_and(|&byte| byte != b'\n');
            let lines = ends as u64 + u64::from(has_tail);
            assert_eq!(count, lines, "{dropped:?} of {items:#?}");
        }
        Some(Format::OracleGeneral) => {
            assert_eq!(count, input.len().div_ceil(RECORD_BYTES) as u64);
        }
        _ => assert!(count <= input.len() as u64 + 1, "{count} items"),
    }
    let mut last = 0;
    for damaged in items.iter().filter_map(|item| item.as_ref().err()) {
        let (Place::Line(number) | Place::Record(number)) = damaged.place else {
            continue;
        };
        assert!(
            last < number && number <= count,
            "{damaged} is behind {last}, of {count}"
        );
        last = number;
    }
}

/// Bytes of a record of oracleGeneral.
const RECORD_BYTES: usize = 24;

fn is_compressed(input: &[u8]) -> bool {
    matches!(
        input,
        [0x1f, 0x8b, ..] | [0x28, 0xb5, ..] | [0x50..=0x5f, 0x2a, ..]
    )
}

fn read(
    bytes: &[u8],
    at_once: usize,
    format: Option<Format>,
) -> Result<(Items, Dropped), Unreadable> {
    let source = Slowly { bytes, at_once };
    let mut rows = open(source, format, Settings::new(&OPEN))?.rows;
    let mut items = Items::new();
    while let Some(item) = rows.next() {
        let is_end = matches!(&item, Err(damaged) if !damaged.goes_on);
        items.push(item);
        if is_end {
            break;
        }
        if items.len() == ITEMS_MAX {
            // a few compressed bytes can be any number of rows
            return Ok((items, rows.dropped().clone()));
        }
    }
    assert!(rows.next().is_none(), "there is something behind the end");
    Ok((items, rows.dropped().clone()))
}

/// Items that are read of one input.
const ITEMS_MAX: usize = 100_000;
