//! Traces in libCacheSim's binary form `oracleGeneral`, uncompressed: records of 24 bytes,
//! little-endian.
//!
//! `u32` time in seconds, `u64` key, `u32` size in bytes, `i64` place of the next request for the
//! key (-1: none). Only key and size are taken.

use super::source::{Accesses, BATCH, Trace, TraceError};
use crate::hit_ratio::keys::Access;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file of such records.
#[derive(Clone, Debug)]
pub struct OracleGeneral {
    path: PathBuf,
}

const RECORD: usize = 24;

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
            let mut record = [0; RECORD];
            record[4..12].copy_from_slice(&access.key.to_le_bytes());
            record[12..16].copy_from_slice(&size.to_le_bytes());
            record[16..].copy_from_slice(&(-1_i64).to_le_bytes());
            to.write_all(&record)?;
        }
        Ok(())
    }
}

impl Trace for OracleGeneral {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        let failed = |error: io::Error| TraceError {
            what: format!("cannot read trace `{}`", self.path.display()),
            cause: error.to_string(),
            hint: None,
        };
        let file = File::open(&self.path).map_err(failed)?;
        Ok(Box::new(Reading {
            path: &self.path,
            file,
            buffer: vec![0; BATCH * RECORD],
            records: 0,
        }))
    }
}

struct Reading<'p> {
    path: &'p Path,
    file: File,
    buffer: Vec<u8>,
    /// Read so far.
    records: u64,
}

impl Accesses for Reading<'_> {
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
        let mut held = 0;
        // a pipe gives what it has
        while held < self.buffer.len() {
            match self.file.read(&mut self.buffer[held..]) {
                Ok(0) => break,
                Ok(more) => held += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error.to_string(), None)),
            }
        }
        let whole = held / RECORD * RECORD;
        let records = self.buffer[..whole].chunks_exact(RECORD);
        batch.extend(records.map(access));
        self.records += (whole / RECORD) as u64;
        if whole < held {
            let cause = format!(
                "record {} has {} of {RECORD} bytes",
                self.records + 1,
                held - whole
            );
            let hint = "the file is cut off, or not in the form oracleGeneral".to_owned();
            return Err(self.failure(cause, Some(hint)));
        }
        Ok(())
    }
}

impl Reading<'_> {
    fn failure(&self, cause: String, hint: Option<String>) -> TraceError {
        TraceError {
            what: format!("cannot read trace `{}`", self.path.display()),
            cause,
            hint,
        }
    }
}

fn access(record: &[u8]) -> Access {
    let mut key = [0; 8];
    let mut size = [0; 4];
    key.copy_from_slice(&record[4..12]);
    size.copy_from_slice(&record[12..16]);
    Access {
        key: u64::from_le_bytes(key),
        size_bytes: u64::from(u32::from_le_bytes(size)),
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
                key: mixed(at),
                size_bytes: at * 7,
            })
            .collect();
        let mut bytes = Vec::new();
        OracleGeneral::write(&written, &mut bytes).unwrap();
        assert_eq!(bytes.len(), written.len() * RECORD);
        assert_eq!(read(&bytes).unwrap(), written);
        assert_eq!(read(&[]).unwrap(), []);
    }

    fn mixed(at: u64) -> u64 {
        crate::hit_ratio::keys::mix(at)
    }

    #[test]
    fn truncated_record_and_size_over_32_bits_are_errors() {
        let error = read(&[0; RECORD * 3 + 5]).unwrap_err();
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
