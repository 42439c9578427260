//! A record as a file: JSON, an element of a list a line, so that people can read it and `diff`
//! shows what differs.

use crate::failure::Failure;
use serde::Serialize as _;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};
use std::path::Path;
use weir_measure::record::Record;
use weir_workload::output;

/// Writes a record. Directories on the way are made; a regular file of that name is replaced once
/// the new one is whole.
///
/// # Errors
/// The file cannot be written.
pub fn write(record: &Record, path: &Path) -> Result<(), Failure> {
    let written = text(record).and_then(|text| output::write(path, &text));
    written.map_err(|error| {
        Failure::output(format!("cannot write `{}`", path.display()), path, &error)
    })
}

fn text(record: &Record) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Shallow::default());
    record
        .serialize(&mut serializer)
        .map_err(io::Error::other)?;
    text.push(b'\n');
    Ok(text)
}

/// Levels that have a line for each of their elements: the record, and what its fields hold.
const DEEP: usize = 2;

/// Indents the outer levels alone.
#[derive(Debug, Default)]
struct Shallow {
    depth: usize,
    has_element: bool,
}

impl Shallow {
    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_element = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < DEEP && self.has_element {
            self.new_line(writer)?;
        }
        // whatever it was, it is an element of what is around it
        self.has_element = true;
        writer.write_all(bracket)
    }

    fn element<W: ?Sized + Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        self.has_element = true;
        let is_deep = self.depth > DEEP;
        match (is_first, is_deep) {
            (true, true) => return Ok(()),
            (false, true) => return writer.write_all(b", "),
            (true, false) => {}
            (false, false) => writer.write_all(b",")?,
        }
        self.new_line(writer)
    }

    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Shallow {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.element(writer, is_first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.element(writer, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MADE_UP: &str = include_str!("../../tests/data/record-wpb.json");

    #[test]
    fn record_file_is_json_with_one_list_element_per_line() {
        let record: Record = serde_json::from_str(MADE_UP).expect("it is a record");
        let written = String::from_utf8(text(&record).expect("it is JSON")).expect("it is text");
        let again: Record = serde_json::from_str(&written).expect("it was just written");
        assert_eq!(again, record);
        let value: serde_json::Value = serde_json::from_str(&written).expect("it is JSON");
        let fields = value.as_object().expect("an object").values();
        // a line for each field, for each of its elements, and for its end
        let lines = fields.map(|field| match field {
            serde_json::Value::Array(elements) if !elements.is_empty() => elements.len() + 2,
            serde_json::Value::Object(members) if !members.is_empty() => members.len() + 2,
            _ => 1,
        });
        assert_eq!(written.lines().count(), 2 + lines.sum::<usize>());
        for part in [
            "\n  \"seed\": 1998,\n",
            "\n  \"reasons\": [],\n",
            "\n    {\"name\": \"phase-1\", ",
        ] {
            assert!(written.contains(part), "no {part:?} in {written:.3000}");
        }
    }

    #[test]
    fn record_write_leaves_no_temporary_file_and_failure_names_the_path() {
        let record: Record = serde_json::from_str(MADE_UP).expect("it is a record");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("deep/er/record.json");
        write(&record, &path).expect("directories are made");
        let names: Vec<_> = fs::read_dir(folder.path().join("deep/er"))
            .expect("it is there")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["record.json"]);
        let error =
            write(&record, &path.join("below-a-file.json")).expect_err("it is no directory");
        assert!(error.to_string().contains("below-a-file.json"), "{error}");
    }
}
