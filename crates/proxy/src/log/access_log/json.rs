//! A JSON object per line; keys are the names of [`Entry`]'s fields, phases beside them.

use super::calendar::Stamp;
use super::entry::Entry;
use super::escape;

/// Bytes of the target shown.
const TARGET_BYTES_MAX: usize = 8 << 10;
/// Bytes of any other text shown.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A comma and a key, as one piece of text.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

pub(super) fn write(entry: &Entry<'_>, stamp: &Stamp, line: &mut Vec<u8>) {
    line.extend_from_slice(br#"{"time":""#);
    stamp.write_rfc3339(line);
    line.extend_from_slice(br#"","client":""#);
    escape::socket(entry.client, line);
    line.push(b'"');
    request(entry, line);
    outcome(entry, line);
    next_hop(entry, line);
    phases(entry, line);
    text(
        key!("error"),
        entry.error.unwrap_or("").as_bytes(),
        TEXT_BYTES_MAX,
        line,
    );
    text(
        key!("content_type"),
        entry.content_type,
        TEXT_BYTES_MAX,
        line,
    );
    text(key!("user_agent"), entry.user_agent, TEXT_BYTES_MAX, line);
    text(key!("referer"), entry.referer, TEXT_BYTES_MAX, line);
    line.push(b'}');
}

fn request(entry: &Entry<'_>, line: &mut Vec<u8>) {
    text(
        key!("method"),
        entry.method.as_bytes(),
        TEXT_BYTES_MAX,
        line,
    );
    text(
        key!("target"),
        entry.target.as_bytes(),
        TARGET_BYTES_MAX,
        line,
    );
    text(
        key!("version"),
        entry.version.as_bytes(),
        TEXT_BYTES_MAX,
        line,
    );
    truth(key!("client_reused"), entry.client_reused, line);
    count(key!("request_bytes"), entry.request_bytes, line);
}

fn outcome(entry: &Entry<'_>, line: &mut Vec<u8>) {
    count(key!("status"), entry.status.into(), line);
    text(
        key!("verdict"),
        entry.verdict.as_bytes(),
        TEXT_BYTES_MAX,
        line,
    );
    text(
        key!("detail"),
        entry.detail.as_bytes(),
        TEXT_BYTES_MAX,
        line,
    );
    text(
        key!("cache_status"),
        entry.cache_status,
        TEXT_BYTES_MAX,
        line,
    );
    truth(key!("stored"), entry.stored, line);
    count(key!("response_bytes"), entry.response_bytes, line);
    count(key!("body_bytes"), entry.body_bytes, line);
    count(key!("store_bytes"), entry.store_bytes, line);
    for (name, bytes) in [
        (key!("recovered_bytes"), entry.recovered_bytes),
        (key!("wasted_bytes"), entry.wasted_bytes),
        (key!("read_ahead_max_bytes"), entry.read_ahead_max_bytes),
    ] {
        if bytes > 0 {
            count(name, bytes, line);
        }
    }
    let joined = entry.joined.unwrap_or_default();
    text(key!("joined"), joined.as_bytes(), TEXT_BYTES_MAX, line);
}

fn next_hop(entry: &Entry<'_>, line: &mut Vec<u8>) {
    if let Some(address) = entry.next_hop {
        line.extend_from_slice(key!("next_hop").as_bytes());
        line.push(b'"');
        escape::socket(address, line);
        line.push(b'"');
        truth(key!("next_hop_reused"), entry.next_hop_reused, line);
        count(key!("from_next_hop_bytes"), entry.from_next_hop_bytes, line);
        count(key!("to_next_hop_bytes"), entry.to_next_hop_bytes, line);
    }
    if let Some(status) = entry.next_hop_status {
        count(key!("next_hop_status"), status.into(), line);
    }
}

fn phases(entry: &Entry<'_>, line: &mut Vec<u8>) {
    let phases = &entry.phases;
    count(key!("head_us"), phases.head_us, line);
    count(key!("choose_us"), phases.choose_us, line);
    for (name, us) in [
        (key!("connect_us"), phases.connect_us),
        (key!("first_byte_us"), phases.first_byte_us),
    ] {
        if let Some(us) = us {
            count(name, us, line);
        }
    }
    count(key!("total_us"), phases.total_us, line);
}

/// Nothing at all if `value` is empty.
fn text(key: &str, value: &[u8], bytes_max: usize, line: &mut Vec<u8>) {
    if !value.is_empty() {
        line.extend_from_slice(key.as_bytes());
        line.push(b'"');
        escape::json(escape::cut(value, bytes_max), line);
        line.push(b'"');
    }
}

fn count(key: &str, value: u64, line: &mut Vec<u8>) {
    line.extend_from_slice(key.as_bytes());
    escape::number(value, line);
}

fn truth(key: &str, value: bool, line: &mut Vec<u8>) {
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(if value { b"true" } else { b"false" });
}
