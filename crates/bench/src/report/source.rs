//! Records as they are read from files.

use crate::failure::Failure;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use weir_measure::record::{FORMAT, Record, VERSION};

/// A record and the file it was read from, or was written to.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordFile {
    /// As it was named on the command line.
    pub file: String,
    /// What is in it.
    pub record: Record,
}

/// Longest record that is read, bytes: a day of seconds and a thousand phases fit ten times.
const RECORD_BYTES_MAX: u64 = 256 << 20;

/// What says of a file whether it can be read at all.
#[derive(Deserialize)]
struct Kind {
    format: Option<String>,
    version: Option<u32>,
}

/// Reads record files, in the order in which they are named.
///
/// # Errors
/// A file cannot be read, is no record, or is one of a later program; the failure names the file.
pub fn read(files: &[PathBuf]) -> Result<Vec<RecordFile>, Failure> {
    files.iter().map(|file| read_one(file)).collect()
}

fn read_one(file: &Path) -> Result<RecordFile, Failure> {
    let what = || format!("cannot read record `{}`", file.display());
    let length = std::fs::metadata(file)
        .map_err(|error| {
            Failure::usage(what(), error)
                .with_hint("a record is what `weir bench run --out FILE` wrote")
        })?
        .len();
    if length > RECORD_BYTES_MAX {
        let cause = format!("{length} bytes are more than the {RECORD_BYTES_MAX} of any record");
        return Err(
            Failure::usage(what(), cause).with_hint("samples are not records: name the JSON")
        );
    }
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(what(), error).with_hint("samples (Parquet) are not records: name the JSON")
    })?;
    let record =
        parse(&text).map_err(|(cause, hint)| Failure::usage(what(), cause).with_hint(hint))?;
    Ok(RecordFile {
        file: file.display().to_string(),
        record,
    })
}

fn parse(text: &str) -> Result<Record, (String, &'static str)> {
    const NOT_ONE: &str = "a record is what `weir bench run --out FILE` wrote";
    let kind: Kind = serde_json::from_str(text)
        .map_err(|error| (format!("it is not JSON of a record: {error}"), NOT_ONE))?;
    match (kind.format.as_deref(), kind.version) {
        (Some(FORMAT), Some(VERSION)) => {}
        (Some(FORMAT), Some(version)) => {
            let cause = format!("it has version {version}, this program reads {VERSION}");
            return Err((cause, "use the program that wrote it, or measure again"));
        }
        (Some(FORMAT), None) => return Err(("it has no version".to_owned(), NOT_ONE)),
        (Some(other), _) => {
            return Err((format!("its format is `{other}`, not `{FORMAT}`"), NOT_ONE));
        }
        (None, _) => {
            return Err((
                format!("it does not say `\"format\": \"{FORMAT}\"`"),
                NOT_ONE,
            ));
        }
    }
    serde_json::from_str(text).map_err(|error| {
        (
            format!("it is a damaged record: {error}"),
            "measure again, or get the file as it was written",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("r.json");
        std::fs::write(&file, text).expect("a file");
        let failure = read(std::slice::from_ref(&file)).expect_err("it is no record");
        let said = failure.to_string();
        assert!(said.contains("r.json") && said.contains(expected), "{said}");
        assert!(failure.hint.is_some(), "{said}");
    }

    #[test]
    fn file_that_is_not_a_record_is_refused_with_its_name_and_cause() {
        check("hello", "not JSON");
        check("[1, 2]", "not JSON of a record");
        check("{}", "does not say");
        check(r#"{"format": "other"}"#, "`other`");
        check(r#"{"format": "weir-record"}"#, "no version");
        check(r#"{"format": "weir-record", "version": 2}"#, "version 2");
        check(r#"{"format": "weir-record", "version": 1}"#, "damaged");
    }

    #[test]
    fn missing_file_is_named_in_the_failure() {
        let failure = read(&[PathBuf::from("/nowhere/r.json")]).expect_err("it is not there");
        assert!(failure.to_string().contains("/nowhere/r.json"));
    }
}
