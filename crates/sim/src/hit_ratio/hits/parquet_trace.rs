//! Our own traces (Parquet) as requests: which rows count, and for how many bytes.

use super::source::{Accesses, Trace, TraceError};
use crate::hit_ratio::keys::Access;
use std::path::{Path, PathBuf};
use weir_trace::{self, Batches, Column, Columns, Reader, TraceMethod};

/// A trace file. A row counts if its method is GET, its status 200, and its content longer than
/// nothing; what the source does not say speaks for a row. Its size is what the client received or,
/// where that is not said, what was declared.
#[derive(Clone, Debug)]
pub struct ParquetTrace {
    path: PathBuf,
}

impl ParquetTrace {
    /// The file at `path`.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }
}

impl Trace for ParquetTrace {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        let reader = Reader::open(&self.path)?;
        let columns = Columns::of(&[
            Column::target,
            Column::method,
            Column::status,
            Column::received_bytes,
            Column::declared_bytes,
        ]);
        Ok(Box::new(Reading(reader.batches(columns))))
    }
}

struct Reading(Batches);

impl Accesses for Reading {
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
        let before = batch.len();
        // a batch of which no row counts is not the end
        while batch.len() == before {
            let Some(rows) = self.0.next()? else {
                return Ok(());
            };
            for index in 0..rows.rows() {
                let is_get = rows.method[index].is_none_or(|it| it == TraceMethod::Get);
                let is_ok = rows.status[index].is_none_or(|status| status == 200);
                let size = rows.received_bytes[index].or(rows.declared_bytes[index]);
                if let (true, true, Some(size_bytes @ 1..)) = (is_get, is_ok, size) {
                    batch.push(Access {
                        key: rows.target[index],
                        size_bytes,
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_trace::{Meta, Row, Writer};

    fn read(rows: &[Row]) -> Vec<Access> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut writer = Writer::create(&path, Meta::default()).unwrap();
        for row in rows {
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
        let trace = ParquetTrace::at(&path);
        let mut reading = trace.open().unwrap();
        let mut all = Vec::new();
        loop {
            let before = all.len();
            reading.read(&mut all).unwrap();
            if all.len() == before {
                return all;
            }
        }
    }

    #[test]
    fn head_304_and_empty_rows_are_skipped_and_all_others_become_accesses() {
        let good = Row {
            target: 7,
            method: Some(TraceMethod::Get),
            status: Some(200),
            received_bytes: Some(10),
            declared_bytes: Some(99),
            ..Row::default()
        };
        let bad = [
            Row {
                method: Some(TraceMethod::Head),
                ..good.clone()
            },
            Row {
                status: Some(304),
                ..good.clone()
            },
            Row {
                received_bytes: Some(0),
                ..good.clone()
            },
            Row {
                received_bytes: None,
                declared_bytes: None,
                ..good.clone()
            },
        ];
        let sparse = Row {
            target: 8,
            declared_bytes: Some(5),
            ..Row::default()
        };
        // more than a batch of rows that do not count
        let mut rows: Vec<Row> = bad.iter().cycle().take(20_000).cloned().collect();
        rows.insert(3, good);
        rows.push(sparse);
        let access = |key, size_bytes| Access { key, size_bytes };
        assert_eq!(read(&rows), [access(7, 10), access(8, 5)]);
        assert_eq!(read(&bad), []);
    }

    #[test]
    fn missing_or_invalid_trace_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let trace = ParquetTrace::at(&path);
        assert!(trace.open().is_err());
        std::fs::write(&path, "no").unwrap();
        let error = trace.open().err().unwrap();
        assert!(error.what.contains("a.parquet"), "{error}");
    }
}
