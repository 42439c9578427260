//! Writes a trace in the order of arrival, whatever the order of its source.
//!
//! An external merge sort by replacement selection (Knuth, The Art of Computer Programming, volume
//! 3, section 5.4.1): so many rows are held back, and the earliest of them is written. A source
//! that is out of order by no more than that makes one run, which is the trace. One that is further
//! out of order makes several, in files beside the trace, and they are merged. Rows of one time
//! keep the order of the source.

use super::error::{TraceError, Wrong};
use super::file::meta::Meta;
use super::file::reader::{Reader, Rows};
use super::file::writer::{GROUP_ROWS, WriteSummary, Writer};
use super::row::Row;
use crate::row::column::Columns;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weir_workload::output;

/// Rows that are held back: about 40 MB.
pub const HELD_ROWS_MAX: usize = GROUP_ROWS;

/// Runs that are merged at a time: of each a batch of rows is in memory.
const MERGED_RUNS_MAX: usize = 16;

/// Takes rows in any order.
#[derive(Debug)]
pub struct ArrivalOrder {
    path: PathBuf,
    held_rows_max: usize,
    held: BTreeMap<Place, Box<Row>>,
    /// The run that is being written, and its number.
    run: Option<(Writer, u64)>,
    runs: Vec<Run>,
    run_number: u64,
    /// When the last row of the run came.
    last_us: i64,
    rows: u64,
    moved: u64,
    latest_us: i64,
}

/// The place of a row that is held back: its run, its arrival, and its number in the source.
type Place = (u64, i64, u64);

/// A file with rows in order; it is removed when it is not needed any more.
#[derive(Debug)]
struct Run(PathBuf);

impl Drop for Run {
    fn drop(&mut self) {
        // one that has become the trace is not there any more
        let _removed = std::fs::remove_file(&self.0);
    }
}

impl ArrivalOrder {
    /// For a trace at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self::holding(path, HELD_ROWS_MAX)
    }

    fn holding(path: &Path, held_rows_max: usize) -> Self {
        Self {
            path: path.to_owned(),
            held_rows_max,
            held: BTreeMap::new(),
            run: None,
            runs: Vec::new(),
            run_number: 0,
            last_us: i64::MIN,
            rows: 0,
            moved: 0,
            latest_us: i64::MIN,
        }
    }

    /// How many rows it was given.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them came earlier than one before them.
    #[must_use]
    pub const fn moved(&self) -> u64 {
        self.moved
    }

    /// Takes a row.
    ///
    /// # Errors
    /// A run cannot be written.
    pub fn push(&mut self, row: Row) -> Result<(), TraceError> {
        // a row that knows a place in the trace keeps its own
        let arrival_us = match row.next_access {
            Some(_) => row.arrival_us.max(self.latest_us),
            None => row.arrival_us,
        };
        self.moved += u64::from(arrival_us < self.latest_us);
        self.latest_us = self.latest_us.max(arrival_us);
        let is_late = arrival_us < self.last_us;
        let run = self.run_number + u64::from(is_late);
        self.held
            .insert((run, arrival_us, self.rows), Box::new(row));
        self.rows += 1;
        if self.held.len() > self.held_rows_max {
            self.let_go()?;
        }
        Ok(())
    }

    /// Writes the earliest row.
    fn let_go(&mut self) -> Result<(), TraceError> {
        let Some(((run, arrival_us, _), row)) = self.held.pop_first() else {
            return Ok(());
        };
        if run > self.run_number {
            self.end_run()?;
            self.run_number = run;
        }
        if self.run.is_none() {
            let number = self.runs.len() as u64;
            let writer = Writer::create(&self.run_path(number), Meta::default())?;
            self.run = Some((writer, number));
        }
        self.last_us = arrival_us;
        if let Some((writer, _)) = &mut self.run {
            writer.push(&*row)?;
        }
        Ok(())
    }

    fn run_path(&self, number: u64) -> PathBuf {
        output::scratch_name(&self.path, &format!(".run-{number}"))
    }

    fn end_run(&mut self) -> Result<(), TraceError> {
        if let Some((writer, number)) = self.run.take() {
            self.runs.push(Run(self.run_path(number)));
            writer.finish()?;
        }
        Ok(())
    }

    /// Writes the trace, which says `meta` of itself.
    ///
    /// # Errors
    /// It cannot be written; then nothing is left of it.
    pub fn finish(mut self, meta: Meta) -> Result<WriteSummary, TraceError> {
        if self.run.is_none() && self.runs.is_empty() {
            // all of it is in memory
            let mut writer = Writer::create(&self.path, meta)?;
            for row in self.held.into_values() {
                writer.push(&*row)?;
            }
            return writer.finish();
        }
        while !self.held.is_empty() {
            self.let_go()?;
        }
        if self.runs.is_empty()
            && let Some((mut writer, number)) = self.run.take()
        {
            *writer.meta_mut() = meta.clone();
            let written = writer.finish()?;
            // it is removed if it cannot become the trace
            let run = Run(self.run_path(number));
            let outside = |error| {
                let what = format!("cannot write trace `{}`", self.path.display());
                Wrong::outside(error).at(what)
            };
            if let Some(path) = output::replaceable(&self.path).map_err(outside)? {
                std::fs::rename(&run.0, path).map_err(outside)?;
                return Ok(written);
            }
            return merge(&[run], Writer::create(&self.path, meta)?);
        }
        self.end_run()?;
        let mut number = self.runs.len() as u64;
        while self.runs.len() > MERGED_RUNS_MAX {
            let some: Vec<Run> = self.runs.drain(..MERGED_RUNS_MAX).collect();
            let path = self.run_path(number);
            number += 1;
            let run = Run(path);
            merge(&some, Writer::create(&run.0, Meta::default())?)?;
            // where the merged ones stood: rows of one time keep their order
            self.runs.insert(0, run);
        }
        merge(&self.runs, Writer::create(&self.path, meta)?)
    }
}

/// Merges runs; of one time, rows of an earlier run come first.
fn merge(runs: &[Run], mut writer: Writer) -> Result<WriteSummary, TraceError> {
    let mut readings: Vec<Rows> = Vec::new();
    for run in runs {
        readings.push(Reader::open(&run.0)?.rows(Columns::ALL));
    }
    let mut next = |from: usize| -> Result<_, TraceError> {
        let row = readings[from].next().transpose()?;
        Ok(row.map(|row| ((row.arrival_us, from), row)))
    };
    // the next row of each run
    let mut heads = BTreeMap::new();
    for from in 0..runs.len() {
        heads.extend(next(from)?);
    }
    while let Some(((_, from), row)) = heads.pop_first() {
        writer.push(row)?;
        heads.extend(next(from)?);
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows come at these times; rows of one time differ by their number.
    fn check(times: &[i64], held_rows_max: usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut order = ArrivalOrder::holding(&path, held_rows_max);
        let mut expected: Vec<(i64, u64)> = Vec::new();
        for (number, &arrival_us) in (0..).zip(times) {
            expected.push((arrival_us, number));
            let row = Row {
                arrival_us,
                target: number,
                ..Row::default()
            };
            order.push(row).unwrap();
        }
        expected.sort();
        let meta = Meta {
            note: "kept".to_owned(),
            ..Meta::default()
        };
        let written = order.finish(meta).unwrap();
        assert_eq!(written.rows, times.len() as u64);
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.meta().note, "kept");
        let rows = reader.rows(Columns::ALL).map(Result::unwrap);
        let found: Vec<(i64, u64)> = rows.map(|row| (row.arrival_us, row.target)).collect();
        assert_eq!(found, expected, "{held_rows_max} held back");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "runs are removed");
    }

    #[test]
    fn rows_are_written_in_arrival_order_however_few_fit_in_memory() {
        let mut state = 7_u64;
        let mut shuffled = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            i64::try_from(state >> 58).unwrap()
        };
        let random: Vec<i64> = (0..300).map(|_| shuffled()).collect();
        let falling: Vec<i64> = (0..60).rev().collect();
        let rising: Vec<i64> = (0..60).collect();
        for times in [&random, &falling, &rising, &Vec::new()] {
            for held_rows_max in [1, 2, 7, 1000] {
                check(times, held_rows_max);
            }
        }
    }

    #[test]
    fn rows_that_arrive_out_of_order_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut order = ArrivalOrder::new(&folder.path().join("a.parquet"));
        for arrival_us in [5, 3, 5, 4, 6] {
            let row = Row {
                arrival_us,
                ..Row::default()
            };
            order.push(row).unwrap();
        }
        assert_eq!((order.rows(), order.moved()), (5, 2));
    }
}
