//! Traces in libCacheSim's binary form `oracleGeneral` ([`weir_trace::oracle_general`]),
//! uncompressed. Only key and size are read.

use super::source::{Accesses, Trace, TraceError};
use crate::hit_ratio::keys::Access;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use weir_trace::Fault;
use weir_trace::oracle_general::{RECORD_BYTES, ReadError, Record, Records};

/// A file of such records.
#[derive(Clone, Debug)]
pub struct OracleGeneral {
    path: PathBuf,
}

impl OracleGeneral {
    /// The file at `path`, which need not exist yet.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Writes requests in this form, all at second 0, and says of none when its key comes again.
    ///
    /// # Errors
    /// `to` cannot be written, or a size does not fit into 32 bits.
    pub fn write(accesses: &[Access], to: &mut impl Write) -> io::Result<()> {
        for access in accesses {
            let size = u32::try_from(access.size_bytes).map_err(|_| {
                let size = access.size_bytes;
                io::Error::other(format!("a size of {size} bytes does not fit into 32 bits"))
            })?;
            let record = Record {
                time_s: 0,
                id: access.key,
                size,
                next: -1,
            };
            to.write_all(&record.to_bytes())?;
        }
        Ok(())
    }
}

impl Trace for OracleGeneral {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        match File::open(&self.path) {
            Ok(file) => Ok(Box::new(Reading {
                path: &self.path,
                records: Records::new(file),
            })),
            Err(error) => Err(failure(&self.path, error.to_string(), None)),
        }
    }
}

struct Reading<'p> {
    path: &'p Path,
    records: Records<File>,
}

impl Accesses for Reading<'_> {
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
        let (cause, hint) = match self.records.next_block() {
            Ok(records) => {
                batch.extend(records.map(|record| Access {
                    key: record.id,
                    size_bytes: u64::from(record.size),
                }));
                return Ok(());
            }
            Err(ReadError::Source(error)) => (error.to_string(), None),
            Err(ReadError::CutOff { record, bytes }) => {
                let cause = format!("record {record} has {bytes} of {RECORD_BYTES} bytes");
                let hint = "the file is cut off, or not in the form oracleGeneral";
                (cause, Some(hint.to_owned()))
            }
        };
        Err(failure(self.path, cause, hint))
    }
}

fn failure(path: &Path, cause: String, hint: Option<String>) -> TraceError {
    TraceError {
        fault: Fault::Outside,
        what: format!("cannot read trace `{}`", path.display()),
        cause,
        hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Access>, TraceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.bin");
        std::fs::write(&path, bytes).unwrap();
        let trace = OracleGeneral::at(&path);
        let mut reading = trace.open()?;
        let mut all = Vec::new();
        loop {
            let before = all.len();
            reading.read(&mut all)?;
            if all.len() == before {
                return Ok(all);
            }
        }
    }

    #[test]
    fn oracle_general_records_round_trip() {
        let written: Vec<Access> = (0..20_000_u64)
            .map(|at| Access {
                key: crate::hashing::mix(at),
                size_bytes: at * 7,
            })
            .collect();
        let mut bytes = Vec::new();
        OracleGeneral::write(&written, &mut bytes).unwrap();
        assert_eq!(bytes.len(), written.len() * RECORD_BYTES);
        assert_eq!(read(&bytes).unwrap(), written);
        assert_eq!(read(&[]).unwrap(), []);
    }

    #[test]
    fn truncated_record_and_size_over_32_bits_are_errors() {
        let error = read(&[0; RECORD_BYTES * 3 + 5]).unwrap_err();
        assert!(
            error.cause.contains("record 4 has 5 of 24 bytes"),
            "{error}"
        );
        assert!(error.hint.is_some());
        let too_large = Access {
            key: 1,
            size_bytes: 1 << 32,
        };
        assert!(OracleGeneral::write(&[too_large], &mut Vec::new()).is_err());
    }
}
