//! What goes in comes out.

use super::{arbitrary, read, write};
use crate::{BATCH_ROWS, Column, Columns, GROUP_ROWS, Meta, Reader, Row, Writer};
use proptest::prelude::*;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_and_metadata_are_read_as_written(
        seed: u64,
        count in 0_usize..400,
        share in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0],
        group_rows in 1_usize..200,
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trace.parquet");
        let rows = arbitrary::rows(seed, count, share);
        let meta = Meta { source: "a test".into(), seed: Some(seed), ..Meta::default() };
        write(&path, meta.clone(), group_rows, &rows);
        let (found_meta, found) = read(&path).expect("it can be read");
        prop_assert_eq!(found_meta, meta);
        prop_assert!(found == rows);
    }
}

#[test]
fn no_row_is_lost_at_a_batch_or_group_boundary() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.parquet");
    for count in [
        BATCH_ROWS - 1,
        BATCH_ROWS,
        BATCH_ROWS + 1,
        GROUP_ROWS + BATCH_ROWS + 1,
    ] {
        let rows = (0_u64..).take(count).map(|index| Row {
            arrival_us: index.cast_signed(),
            target: index,
            received_bytes: (index % 3 == 0).then_some(index),
            ..Row::default()
        });
        let rows: Vec<Row> = rows.collect();
        write(&path, Meta::default(), GROUP_ROWS, &rows);
        let reader = Reader::open(&path).expect("it can be opened");
        assert_eq!(reader.row_count(), count as u64);
        let (_, found) = read(&path).expect("it can be read");
        assert!(found == rows, "{count}");
    }
}

#[test]
fn only_the_requested_columns_are_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.parquet");
    let rows = arbitrary::rows(1, 500, 0.7);
    write(&path, Meta::default(), 64, &rows);
    let reader = Reader::open(&path).expect("it can be opened");
    for &column in Column::ALL {
        let asked = Columns::of(&[column, Column::target]);
        let found = reader.rows(asked).map(|row| row.expect("a row"));
        for (found, row) in found.zip(&rows) {
            assert_eq!(found, row.only(asked), "{}", column.name());
        }
    }
    let mut batches = reader.batches(Columns::of(&[Column::target, Column::received_bytes]));
    let mut seen = 0;
    while let Some(batch) = batches.next().expect("a batch") {
        let end = seen + batch.rows();
        let targets: Vec<u64> = rows[seen..end].iter().map(|row| row.target).collect();
        assert_eq!(batch.target, targets);
        let received: Vec<Option<u64>> = rows[seen..end]
            .iter()
            .map(|row| row.received_bytes)
            .collect();
        assert_eq!(batch.received_bytes, received);
        assert!(batch.arrival_us.is_empty() && batch.client.is_empty());
        seen = end;
    }
    assert_eq!(seen, rows.len());
}

#[test]
fn two_readers_of_one_trace_are_independent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.parquet");
    let rows = arbitrary::rows(2, 300, 0.5);
    write(&path, Meta::default(), 50, &rows);
    let reader = Reader::open(&path).expect("it can be opened");
    let (mut one, mut other) = (reader.rows(Columns::ALL), reader.rows(Columns::ALL));
    drop(reader);
    for row in &rows {
        assert_eq!(one.next().expect("a row").as_ref(), Ok(row));
        assert_eq!(other.next().expect("a row").as_ref(), Ok(row));
    }
    assert!(one.next().is_none() && other.next().is_none());
}

/// Says how much was written to it so far.
#[derive(Clone, Default)]
struct Meter(Arc<Mutex<u64>>);

impl Write for Meter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.0.lock().expect("no writer panicked") += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn rows_are_written_out_after_each_group() {
    let meter = Meter::default();
    let writer = Writer::new(meter.clone(), Meta::default()).expect("a writer");
    let mut writer = writer.with_group_rows(100);
    let rows = arbitrary::rows(3, 1000, 1.0);
    let mut before = 0;
    for (index, row) in (1..).zip(&rows) {
        writer.push(row).expect("it can be written");
        let written = *meter.0.lock().expect("no writer panicked");
        if index % 100 == 0 {
            assert!(written > before + 10_000, "row {index}: {written} bytes");
            before = written;
        }
        // what Parquet buffers is written when its buffer is full
        assert!(writer.rows() == index && written >= before);
    }
}

#[test]
fn unfinished_trace_leaves_no_file_and_has_a_single_writer() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.parquet");
    let mut writer = Writer::create(&path, Meta::default()).expect("a writer");
    writer.push(Row::default()).expect("it can be written");
    let again = Writer::create(&path, Meta::default()).expect_err("somebody writes it");
    assert!(again.to_string().contains("another process"), "{again}");
    drop(writer);
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0);
    let nowhere = folder.path().join("no/trace.parquet");
    let error = Writer::create(&nowhere, Meta::default()).expect_err("there is no folder");
    assert!(error.to_string().contains("no/trace.parquet"), "{error}");
}

/// Takes so many bytes and then fails, as a full disk does.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_disk_is_reported_as_an_error() {
    let rows = arbitrary::rows(4, 50, 1.0);
    for room in [0, 3, 100, 5000, 30_000] {
        let write = || {
            let mut writer = Writer::new(Full(room), Meta::default())?.with_group_rows(20);
            rows.iter().try_for_each(|row| writer.push(row))?;
            writer.finish()
        };
        let error = write().expect_err("there is no room");
        assert!(
            error.to_string().contains("no space left"),
            "{room}: {error}"
        );
    }
}
