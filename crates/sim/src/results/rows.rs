//! The trace of a simulated run: each row of the input, with what the simulation came to in the
//! columns that say how it was handled.
//!
//! Requests end in another order than they arrive in, and a long one may end behind millions. So
//! results go to a file of their own first, each at the place of its row, and the rows are written
//! when all is over. The file has no name from the moment it is open: whatever happens, nothing of
//! it is left.

use crate::results::request_result::{RequestResult, ResultSink};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use weir_trace::{AbortedBy, Columns, Fault, Meta, Reader, Row, TraceError, WriteSummary, Writer};
use weir_workload::output;

/// Rows to write when the run is over.
#[derive(Debug)]
pub struct SimulatedRows {
    writer: Writer,
    path: PathBuf,
    results: Arc<Mutex<Results>>,
}

impl SimulatedRows {
    /// Rows for a trace at `path`, which says `meta` of itself.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, meta: Meta) -> Result<Self, TraceError> {
        let writer = Writer::create(path, meta)?;
        let file = unnamed_file(path).map_err(|error| failed(path, &error))?;
        Ok(Self {
            writer,
            path: path.to_owned(),
            results: Arc::new(Mutex::new(Results::new(file))),
        })
    }

    /// The rows of the run's requests.
    #[must_use]
    pub fn sink(&self) -> Box<dyn ResultSink> {
        Box::new(Sink(Arc::clone(&self.results)))
    }

    /// Writes the rows of the trace that was simulated, once the run is over.
    ///
    /// # Errors
    /// The trace cannot be read, or the rows or the results cannot be written.
    pub fn write(mut self, trace: &Reader) -> Result<WriteSummary, TraceError> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = results.error.take() {
            return Err(failed(&self.path, &error));
        }
        let words = std::mem::take(&mut results.words);
        let mut records = results
            .file
            .try_clone()
            .and_then(|mut file| file.rewind().map(|()| BufReader::new(file)))
            .map_err(|error| failed(&self.path, &error))?;
        for row in trace.rows(Columns::ALL) {
            let mut row = row?;
            let mut record = [0; RECORD_BYTES];
            records
                .read_exact(&mut record)
                .map_err(|error| failed(&self.path, &error))?;
            fill(&mut row, &record, &words);
            self.writer.push(&row)?;
        }
        self.writer.finish()
    }
}

/// The end of it that the simulator has.
#[derive(Debug)]
struct Sink(Arc<Mutex<Results>>);

impl ResultSink for Sink {
    fn take(&mut self, result: &RequestResult) {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.take(result);
    }

    fn end(&mut self) {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.write();
    }
}

/// Results in a file, by the number of their row.
#[derive(Debug)]
struct Results {
    file: File,
    /// Those that are not in the file yet.
    held: Vec<(u64, [u8; RECORD_BYTES])>,
    /// The words that verdicts were given in; records have their place here.
    words: Vec<&'static str>,
    /// The first failure: nothing is written after it.
    error: Option<io::Error>,
}

/// Results that are held back, so that most of them are written together with their neighbours: 256
/// KiB.
const HELD_MAX: usize = 4096;

/// A result in the file: numbers of 8 bytes, little endian. The first holds the place of the word,
/// from 1, and the side that ended it.
const RECORD_BYTES: usize = 7 * 8;

/// A time that there is not.
const NONE: u64 = u64::MAX;

impl Results {
    const fn new(file: File) -> Self {
        Self {
            file,
            held: Vec::new(),
            words: Vec::new(),
            error: None,
        }
    }

    fn take(&mut self, result: &RequestResult) {
        let word = result.word();
        let known = self.words.iter().position(|known| *known == word);
        let place = known.unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        });
        let fields = [
            (place as u64 + 1) << 8 | result.aborted_by as u64,
            result.setup_us.unwrap_or(NONE),
            result.request_us,
            result.response_us.unwrap_or(NONE),
            result.last_byte_us,
            result.received_bytes,
            result.cached_bytes,
        ];
        let mut record = [0; RECORD_BYTES];
        for (bytes, field) in record.as_chunks_mut().0.iter_mut().zip(fields) {
            *bytes = field.to_le_bytes();
        }
        self.held.push((result.number, record));
        if self.held.len() >= HELD_MAX {
            self.write();
        }
    }

    /// Writes what is held back, neighbours together.
    fn write(&mut self) {
        self.held.sort_unstable_by_key(|(number, _)| *number);
        let mut bytes: Vec<u8> = Vec::with_capacity(self.held.len() * RECORD_BYTES);
        for neighbours in self.held.chunk_by(|a, b| a.0 + 1 == b.0) {
            let Some((first, _)) = neighbours.first() else {
                continue;
            };
            bytes.clear();
            bytes.extend(neighbours.iter().flat_map(|(_, record)| record));
            let written = self.file.write_all_at(&bytes, first * RECORD_BYTES as u64);
            if let Err(error) = written {
                self.error.get_or_insert(error);
                break;
            }
        }
        self.held.clear();
    }
}

/// Puts a result into the row of its request. What was not simulated of the answer is forgotten:
/// connections have no numbers here, next hops no times that were measured, and no node or next hop
/// is chosen.
fn fill(row: &mut Row, record: &[u8; RECORD_BYTES], words: &[&str]) {
    let mut fields = [0; RECORD_BYTES / 8];
    for (field, bytes) in fields.iter_mut().zip(record.as_chunks().0) {
        *field = u64::from_le_bytes(*bytes);
    }
    let [
        how,
        setup_us,
        request_us,
        response_us,
        last_byte_us,
        received,
        cached,
    ] = fields;
    let place = usize::try_from(how >> 8).unwrap_or(0);
    let word = place.checked_sub(1).and_then(|place| words.get(place));
    debug_assert!(word.is_some(), "a request did not end");
    let ended = usize::try_from(how & 0xff).unwrap_or(usize::MAX);
    let aborted_by = AbortedBy::ALL.get(ended);
    let known = |value: u64| (value != NONE).then_some(value);
    row.verdict = word.map(|word| (*word).to_owned());
    row.aborted_by = aborted_by.copied();
    row.setup_us = known(setup_us);
    row.request_us = Some(request_us);
    row.response_us = known(response_us);
    row.first_byte_us = None;
    row.last_byte_us = Some(last_byte_us);
    row.received_bytes = Some(received);
    row.next_hop_bytes = Some(received.saturating_sub(cached));
    row.next_hop_setup_us = None;
    row.next_hop_response_us = None;
    row.connection = None;
    row.connection_sequence = None;
    row.next_hop_connection = None;
    row.is_persistent_client = None;
    row.is_persistent_server = None;
    row.node_choice = None;
    row.next_hop_choice = None;
}

/// A file beside `path` that has no name any more.
fn unnamed_file(path: &Path) -> io::Result<File> {
    let name = output::scratch_name(path, &format!(".results-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&name)?;
    std::fs::remove_file(&name)?;
    Ok(file)
}

fn failed(path: &Path, error: &io::Error) -> TraceError {
    TraceError {
        fault: Fault::Outside,
        what: format!("cannot write trace `{}`", path.display()),
        cause: format!("results of the simulation: {error}"),
        hint: None,
    }
}

#[cfg(test)]
mod tests;
