//! Files that other programs wrote with our columns.

use super::read;
use crate::{Columns, Fault, Reader, Row, TraceMethod};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use weir_workload::Chance;

const SCHEMA: &str = "message other {
  optional int64 target (integer(64, false));
  optional int64 arrival_us (timestamp(micros, true));
  optional binary method (string);
}";

/// Three rows; `None` is null.
struct Foreign {
    targets: [Option<i64>; 3],
    methods: [Option<&'static str>; 3],
    properties: WriterProperties,
}

impl Default for Foreign {
    fn default() -> Self {
        Self {
            targets: [Some(-1), Some(5), Some(5)],
            methods: [Some("GET"), None, Some("POST")],
            properties: WriterProperties::builder().build(),
        }
    }
}

impl Foreign {
    fn write(self, path: &Path) {
        let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
        let file = File::create(path).expect("a file");
        let mut writer =
            SerializedFileWriter::new(file, schema, Arc::new(self.properties)).expect("a writer");
        let mut group = writer.next_row_group().expect("a group");
        let mut column = group.next_column().expect("no error").expect("a column");
        let levels = self.targets.map(|value| i16::from(value.is_some()));
        let targets: Vec<i64> = self.targets.into_iter().flatten().collect();
        let typed = column.typed::<Int64Type>();
        typed
            .write_batch(&targets, Some(&levels), None)
            .expect("written");
        column.close().expect("closed");
        let mut column = group.next_column().expect("no error").expect("a column");
        let typed = column.typed::<Int64Type>();
        typed
            .write_batch(&[10, 20, 30], Some(&[1, 1, 1]), None)
            .expect("written");
        column.close().expect("closed");
        let mut column = group.next_column().expect("no error").expect("a column");
        let levels = self.methods.map(|value| i16::from(value.is_some()));
        let methods: Vec<ByteArray> = self
            .methods
            .into_iter()
            .flatten()
            .map(ByteArray::from)
            .collect();
        let typed = column.typed::<ByteArrayType>();
        typed
            .write_batch(&methods, Some(&levels), None)
            .expect("written");
        column.close().expect("closed");
        group.close().expect("closed");
        writer.close().expect("closed");
    }
}

fn check_refused(foreign: Foreign, expected: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("foreign.parquet");
    foreign.write(&path);
    let error = read(&path).expect_err("it is refused");
    assert_eq!(error.fault, Fault::Usage, "{error}");
    assert!(error.cause.contains(expected), "{error}");
    assert!(error.hint.is_some());
}

#[test]
fn file_of_another_program_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("foreign.parquet");
    Foreign::default().write(&path);
    let (meta, rows) = read(&path).expect("it can be read");
    assert_eq!(meta.source, "unknown");
    let row = |arrival_us, target, method| Row {
        arrival_us,
        target,
        method,
        ..Row::default()
    };
    let expected = [
        row(10, u64::MAX, Some(TraceMethod::Get)),
        row(20, 5, None),
        row(30, 5, Some(TraceMethod::Post)),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn null_target_unknown_method_and_other_format_are_refused() {
    let null = Foreign {
        targets: [Some(1), None, Some(2)],
        ..Foreign::default()
    };
    check_refused(null, "row 1 (from 0): `target` is null");
    let word = Foreign {
        methods: [Some("GET"), Some("GET"), Some("Get")],
        ..Foreign::default()
    };
    check_refused(
        word,
        "row 2 (from 0): `method` is `Get`, not one of GET, HEAD",
    );
    let format = KeyValue::new("weir.format".into(), "weir-samples".to_owned());
    let samples = Foreign {
        properties: WriterProperties::builder()
            .set_key_value_metadata(Some(vec![format]))
            .build(),
        ..Foreign::default()
    };
    check_refused(samples, "it is no trace but `weir-samples`");
}

#[test]
fn seal_of_a_rewritten_trace_is_ignored() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("foreign.parquet");
    let pairs = [
        ("weir.format", "weir-trace"),
        ("weir.version", "1"),
        ("weir.source", "squid"),
        ("weir.seal", "00"),
    ];
    let pairs = pairs.map(|(key, value)| KeyValue::new(key.into(), value.to_owned()));
    Foreign {
        properties: WriterProperties::builder()
            .set_key_value_metadata(Some(pairs.to_vec()))
            .set_compression(Compression::SNAPPY)
            .build(),
        ..Foreign::default()
    }
    .write(&path);
    assert_eq!(read(&path).expect("it can be read").0.source, "squid");
}

/// Nothing seals a foreign file, so that some damage is read as other values: but never does the
/// reader panic.
#[test]
fn damaged_foreign_file_does_not_panic_the_reader() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("foreign.parquet");
    Foreign::default().write(&path);
    let bytes = fs::read(&path).expect("it is there");
    let mut chance = Chance::new(8, 0);
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << chance.below(8);
        fs::write(&path, &damaged).expect("written");
        // rows without end would be a hang: the file cannot hold more than its footer says, and
        // three are written
        if let Ok(reader) = Reader::open(&path) {
            let rows = reader.rows(Columns::ALL).take(1000);
            let _ = rows.filter(Result::is_err).count();
        }
    }
}
