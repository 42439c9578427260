//! The common log format with referer and user agent: `client - user [date] "request line" status
//! bytes "referer" "agent"`.

use super::entry::Entry;
use weir_log::{Stamp, escape, put};

/// Bytes of the target shown.
const TARGET_BYTES_MAX: usize = 8 << 10;
/// Bytes of any other text shown.
const TEXT_BYTES_MAX: usize = 1 << 10;

pub(super) fn write(entry: &Entry<'_>, stamp: &Stamp, line: &mut Vec<u8>) {
    entry.client.write_host(line);
    line.extend_from_slice(b" - ");
    escape::word(escape::cut(entry.user(), TEXT_BYTES_MAX), line);
    line.extend_from_slice(b" [");
    line.extend_from_slice(stamp.clf());
    line.extend_from_slice(b"] \"");
    escape::quoted(
        escape::cut(entry.request.method.as_bytes(), TEXT_BYTES_MAX),
        line,
    );
    line.push(b' ');
    escape::quoted(
        escape::cut(entry.request.target.as_bytes(), TARGET_BYTES_MAX),
        line,
    );
    line.push(b' ');
    escape::quoted(entry.request.version.as_bytes(), line);
    let mut status = *b"\" 000 ";
    put(&mut status[2..5], entry.log.status.into());
    line.extend_from_slice(&status);
    if entry.log.body_bytes == 0 {
        line.push(b'-');
    } else {
        escape::number(entry.log.body_bytes, line);
    }
    for text in [entry.request.referer, entry.request.user_agent] {
        let text = if text.is_empty() { b"-" } else { text };
        line.extend_from_slice(b" \"");
        escape::quoted(escape::cut(text, TEXT_BYTES_MAX), line);
        line.push(b'"');
    }
}
