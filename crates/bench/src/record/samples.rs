//! Single requests as a Parquet file: one row a request, for DuckDB, pandas and whatever else reads
//! it.
//!
//! ```sql
//! select outcome, quantile_cont(response_time_us, 0.99) from 'samples.parquet' group by outcome
//! ```
//!
//! The columns and their units are in [`SCHEMA`]; times are microseconds since the common start.
//! Row groups are of bounded size, so that a reader need not hold the file.

use crate::failure::Failure;
use crate::tally::{Outcome, Sample};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use weir_measure::Label as _;
use weir_workload::output::{self, OutputFile};

/// The columns. `optional` ones are null where there is nothing: a connection that was there, a
/// response that never came.
pub const SCHEMA: &str = "
message weir_samples {
  required binary phase (string);
  required int32 agent (integer(32, false));
  required int32 server (integer(32, false));
  required int64 target (integer(64, false));
  required binary method (string);
  required int64 scheduled_us;
  required int64 started_us;
  optional int64 connect_us;
  optional int64 head_us;
  required int64 ended_us;
  required int64 response_time_us;
  optional int32 status;
  required int64 content_bytes;
  required binary outcome (string);
  optional binary error (string);
  required boolean is_wrong;
}
";

/// Rows a group: about a megabyte of them.
const GROUP_ROWS: usize = 20_000;

/// Writes samples. `phases` are the names by place; directories on the way are made.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, samples: &[Sample], phases: &[String]) -> Result<(), Failure> {
    let what = || format!("cannot write samples to `{}`", path.display());
    let failed = |error: io::Error| Failure::output(what(), path, &error);
    output::make_parent(path).map_err(failed)?;
    let output = OutputFile::create(path).map_err(failed)?;
    let file = output.file().map_err(failed)?;
    write_to(file, samples, phases).map_err(|error| Failure::outside(what(), error))?;
    output.commit().map_err(failed)
}

fn write_to(file: File, samples: &[Sample], phases: &[String]) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let about = [
        ("weir.format", "weir-samples"),
        ("weir.version", "1"),
        (
            "weir.time",
            "microseconds since the common start of the run",
        ),
    ];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about.to_vec()))
        .set_created_by("weir bench".into())
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    for rows in samples.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        write_rows(&mut group, rows, phases)?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

type Group<'g> = SerializedRowGroupWriter<'g, File>;

/// In the order of [`SCHEMA`].
fn write_rows(
    group: &mut Group<'_>,
    rows: &[Sample],
    phases: &[String],
) -> Result<(), ParquetError> {
    let phase = |sample: &Sample| {
        let name = phases.get(usize::from(sample.phase));
        text(name.map_or("", String::as_str))
    };
    required::<ByteArrayType>(group, rows, phase)?;
    required::<Int32Type>(group, rows, |sample| sample.agent.cast_signed())?;
    required::<Int32Type>(group, rows, |sample| sample.target.server.cast_signed())?;
    required::<Int64Type>(group, rows, |sample| sample.target.number.cast_signed())?;
    required::<ByteArrayType>(group, rows, |sample| text(sample.method))?;
    required::<Int64Type>(group, rows, |sample| time(sample.scheduled_us))?;
    required::<Int64Type>(group, rows, |sample| time(sample.started_us))?;
    optional::<Int64Type>(group, rows, |sample| sample.connect_us.map(time))?;
    optional::<Int64Type>(group, rows, |sample| sample.head_us.map(time))?;
    required::<Int64Type>(group, rows, |sample| time(sample.ended_us))?;
    let response_time = |sample: &Sample| time(sample.ended_us.saturating_sub(sample.scheduled_us));
    required::<Int64Type>(group, rows, response_time)?;
    optional::<Int32Type>(group, rows, |sample| sample.status.map(i32::from))?;
    required::<Int64Type>(group, rows, |sample| time(sample.content_bytes))?;
    required::<ByteArrayType>(group, rows, |sample| text(outcome(sample.outcome)))?;
    let error = |sample: &Sample| match sample.outcome {
        Outcome::Error(kind) => Some(text(kind.word())),
        _ => None,
    };
    optional::<ByteArrayType>(group, rows, error)?;
    required::<BoolType>(group, rows, |sample| sample.is_wrong)
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Hit => "hit",
        Outcome::Validated => "validated",
        Outcome::Forwarded => "forwarded",
        Outcome::NotModified { .. } => "not-modified",
        Outcome::Error(_) => "error",
        Outcome::Aborted => "aborted",
    }
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn time(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn required<D: DataType>(
    group: &mut Group<'_>,
    rows: &[Sample],
    value: impl Fn(&Sample) -> D::T,
) -> Result<(), ParquetError> {
    let values: Vec<D::T> = rows.iter().map(value).collect();
    column::<D>(group, &values, None)
}

fn optional<D: DataType>(
    group: &mut Group<'_>,
    rows: &[Sample],
    value: impl Fn(&Sample) -> Option<D::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<D::T>> = rows.iter().map(value).collect();
    let is_there: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<D::T> = values.into_iter().flatten().collect();
    column::<D>(group, &values, Some(&is_there))
}

fn column<D: DataType>(
    group: &mut Group<'_>,
    values: &[D::T],
    is_there: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let more = || ParquetError::General("the schema has fewer columns than a row".into());
    let mut column = group.next_column()?.ok_or_else(more)?;
    column.typed::<D>().write_batch(values, is_there, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::ErrorKind;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use std::collections::HashMap;
    use weir_workload::Target;

    fn sample(index: u32) -> Sample {
        let is_error = index.is_multiple_of(3);
        Sample {
            phase: u8::from(index % 2 == 1),
            agent: index,
            target: Target {
                server: 7,
                number: u64::from(index) << 40,
            },
            method: "GET",
            scheduled_us: u64::from(index) * 10,
            started_us: u64::from(index) * 10 + 1,
            connect_us: index.is_multiple_of(5).then_some(77),
            head_us: (!is_error).then_some(u64::from(index) * 10 + 2),
            ended_us: u64::from(index) * 10 + 9,
            status: (!is_error).then_some(200),
            content_bytes: 1000,
            outcome: if is_error {
                Outcome::Error(ErrorKind::Reset)
            } else {
                Outcome::Hit
            },
            is_wrong: index == 4,
        }
    }

    #[test]
    fn parquet_row_holds_the_columns_of_its_own_sample() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("new/samples.parquet");
        let rows = u32::try_from(GROUP_ROWS).expect("a small number") + 10;
        let samples: Vec<Sample> = (0..rows).map(sample).collect();
        write(&path, &samples, &["one".into(), "two".into()]).expect("it can be written");

        let reader = SerializedFileReader::new(File::open(&path).expect("it is there"))
            .expect("it is Parquet");
        let metadata = reader.metadata();
        assert_eq!(metadata.num_row_groups(), 2);
        assert_eq!(metadata.file_metadata().num_rows(), i64::from(rows));
        let mut seen = 0;
        for (index, row) in (0_u32..).zip(reader.get_row_iter(None).expect("rows")) {
            let row = row.expect("a row");
            let row: HashMap<&str, String> = row
                .get_column_iter()
                .map(|(name, value)| (name.as_str(), value.to_string()))
                .collect();
            let expected = sample(index);
            let maybe = |value: Option<u64>| value.map_or("null".into(), |value| value.to_string());
            let is_error = index.is_multiple_of(3);
            let quoted = |text: &str| format!("\"{text}\"");
            let cells = [
                ("phase", quoted(["one", "two"][usize::from(expected.phase)])),
                ("agent", index.to_string()),
                ("target", expected.target.number.to_string()),
                ("connect_us", maybe(expected.connect_us)),
                ("head_us", maybe(expected.head_us)),
                ("response_time_us", "9".into()),
                ("status", maybe(expected.status.map(u64::from))),
                ("outcome", quoted(if is_error { "error" } else { "hit" })),
                (
                    "error",
                    if is_error {
                        quoted("reset")
                    } else {
                        "null".into()
                    },
                ),
                ("is_wrong", expected.is_wrong.to_string()),
            ];
            for (name, value) in cells {
                assert_eq!(row[name], value, "{name} of {index}");
            }
            seen += 1;
        }
        assert_eq!(seen, rows);
    }

    #[test]
    fn run_without_samples_writes_a_file_with_no_rows() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("samples.parquet");
        write(&path, &[], &[]).expect("it can be written");
        let reader = SerializedFileReader::new(File::open(&path).expect("it is there"))
            .expect("it is Parquet");
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        let failure = write(&path.join("below"), &[], &[]).expect_err("it is no directory");
        assert!(
            failure.to_string().contains("samples.parquet/below"),
            "{failure}"
        );
    }
}
