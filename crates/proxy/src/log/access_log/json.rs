//! A JSON object per line, ASCII only: time and client, then the fields of [`FIELDS`] that have a
//! value.

use super::entry::Entry;
use super::fields::{FIELDS, Value};
use weir_log::{Stamp, escape};

pub(super) fn write(entry: &Entry<'_>, stamp: &Stamp, line: &mut Vec<u8>) {
    line.extend_from_slice(br#"{"time":""#);
    stamp.write_rfc3339(line);
    line.extend_from_slice(br#"","client":""#);
    entry.client.write(line);
    line.push(b'"');
    for field in FIELDS {
        put(field.key, (field.value)(entry), line);
    }
    line.push(b'}');
}

/// Nothing at all if there is no value, or the text is empty.
fn put(key: &str, value: Value<'_>, line: &mut Vec<u8>) {
    match value {
        Value::Absent | Value::Text(b"", _) => {}
        Value::Text(text, bytes_max) => {
            line.extend_from_slice(key.as_bytes());
            line.push(b'"');
            escape::json(escape::cut(text, bytes_max), line);
            line.push(b'"');
        }
        Value::Number(number) => {
            line.extend_from_slice(key.as_bytes());
            escape::number(number, line);
        }
        Value::Truth(truth) => {
            line.extend_from_slice(key.as_bytes());
            line.extend_from_slice(if truth { b"true" } else { b"false" });
        }
        Value::Address(address) => {
            line.extend_from_slice(key.as_bytes());
            line.push(b'"');
            escape::socket(address, line);
            line.push(b'"');
        }
    }
}
