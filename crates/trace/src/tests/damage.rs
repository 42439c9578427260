//! What is damaged is refused, and never read wrongly.

use super::{arbitrary, read, write};
use crate::{Fault, Meta, Row};
use std::fs;
use std::path::Path;
use weir_workload::Chance;

/// A small trace with everything in it: two row groups.
fn example(folder: &Path) -> (Vec<u8>, (Meta, Vec<Row>)) {
    let path = folder.join("trace.parquet");
    let mut meta = Meta {
        source: "a test".into(),
        key_id: Some("0123456789abcdef".into()),
        seed: Some(7),
        ..Meta::default()
    };
    meta.dropped.insert("no target".to_owned(), 1);
    write(&path, meta, 10, &arbitrary::rows(5, 20, 0.8));
    let whole = read(&path).expect("it can be read");
    (fs::read(&path).expect("it is there"), whole)
}

#[test]
fn flipped_bit_is_refused_or_changes_no_value() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (bytes, whole) = example(folder.path());
    let path = folder.path().join("damaged.parquet");
    let mut chance = Chance::new(6, 0);
    let mut refused = 0;
    // every place once would take minutes: each run of 23 bytes once, and all of the end
    let tail = bytes.len() - 64;
    let places = (0..tail).step_by(23).chain(tail..bytes.len());
    for place in places {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << chance.below(8);
        fs::write(&path, &damaged).expect("written");
        match read(&path) {
            Ok(found) => assert!(
                found == whole,
                "a flip at {place} of {} is read",
                bytes.len()
            ),
            Err(error) => {
                assert!(error.to_string().contains("damaged.parquet"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} were refused");
}

#[test]
fn truncated_trace_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (bytes, _) = example(folder.path());
    let path = folder.path().join("short.parquet");
    for length in (0..bytes.len())
        .step_by(97)
        .chain([1, 4, 8, 12, bytes.len() - 1])
    {
        fs::write(&path, &bytes[..length]).expect("written");
        let error = read(&path).expect_err("it is refused");
        assert!(
            error.cause.contains("only half of one"),
            "{length}: {error}"
        );
        assert!(error.hint.is_some());
    }
}

#[test]
fn damaged_column_is_refused_with_its_name_and_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut bytes, _) = example(folder.path());
    // the first column begins behind the magic number
    bytes[40] ^= 1;
    let path = folder.path().join("damaged.parquet");
    fs::write(&path, &bytes).expect("written");
    let error = read(&path).expect_err("it is refused");
    assert_eq!(error.fault, Fault::Outside);
    let expected = "it is damaged: column `arrival_us`, rows 0 to 10, is not what was written";
    assert_eq!(error.cause, expected);
}

#[test]
fn reader_reports_an_error_once_and_ends() {
    use crate::{Columns, Reader};
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut bytes, _) = example(folder.path());
    bytes[40] ^= 1;
    let path = folder.path().join("damaged.parquet");
    fs::write(&path, &bytes).expect("written");
    let reader = Reader::open(&path).expect("the footer is whole");
    let mut rows = reader.rows(Columns::ALL);
    assert!(matches!(rows.next(), Some(Err(_))));
    assert!(rows.next().is_none() && rows.next().is_none());
}

#[test]
fn missing_or_non_parquet_file_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.parquet");
    let error = read(&path).expect_err("it is not there");
    assert_eq!(error.fault, Fault::Outside);
    assert!(
        error.to_string().starts_with("cannot read trace `"),
        "{error}"
    );
    fs::write(
        &path,
        "1286536308.779 180 192.168.0.224 TCP_MISS/200 411 GET http://a/ - -",
    )
    .expect("written");
    let error = read(&path).expect_err("it is a log");
    assert_eq!(error.fault, Fault::Usage);
    assert!(
        error
            .hint
            .is_some_and(|hint| hint.contains("weir trace import"))
    );
    assert!(read(folder.path()).is_err());
}
