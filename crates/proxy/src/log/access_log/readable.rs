//! A short line for people at a terminal: ASCII alone, in columns, no wider than the terminal was
//! when the log was opened.
//!
//! ```text
//! 12:04:05Z 192.168.1.7     uri-miss  200 1.2MiB 340ms deb.debian.or.._1.2_all.deb
//! 12:04:05Z 192.168.1.7     tunnel    200 12KiB   1.2s CONNECT example.com:443
//! ```
//!
//! Time (UTC), client, verdict, status, bytes to the client, time until the last of them, and what
//! was requested: host and path, whether the target names the host or `Host` alone. A GET is not
//! named, nor is `http://`. What does not fit loses its middle: of a URL the host and the name of a
//! file are what people look for.

use super::entry::{Entry, RequestLine};
use std::borrow::Cow;
use std::io::Write as _;
use weir_log::{Stamp, escape};
use weir_semantics::Scheme;

/// Columns of a terminal whose width is not known, and the fewest that lines are made for: what
/// terminals have had since the VT100.
pub(crate) const COLUMNS_MIN: u16 = 80;
/// The most, whatever the terminal says.
pub(crate) const COLUMNS_MAX: u16 = 512;

/// What fits an IPv4 address; one of IPv6 loses its middle.
const CLIENT_COLUMNS: usize = 15;
/// What fits each verdict.
const VERDICT_COLUMNS: usize = 9;
/// What fits each method of RFC 9110 and PATCH.
const METHOD_COLUMNS_MAX: usize = 8;

/// What stands for a middle that is left out.
const LEFT_OUT: &[u8] = b"..";

pub(super) fn write(entry: &Entry<'_>, stamp: &Stamp, columns: u16, line: &mut Vec<u8>) {
    let begin = line.len();
    line.extend_from_slice(stamp.time_of_day());
    line.extend_from_slice(b"Z ");
    let client = entry.client.readable();
    padded(client.as_bytes(), CLIENT_COLUMNS, line);
    line.push(b' ');
    padded(entry.verdict_word().as_bytes(), VERDICT_COLUMNS, line);
    let status = match entry.log.status {
        0 => "-".to_owned(),
        status => status.to_string(),
    };
    let (size, time) = (size(entry.log.response_bytes), duration(entry.total_us));
    // a terminal is slower than these few allocations, and a vector takes all bytes
    let _ = write!(line, " {status:>3} {size:<6} {time:>5} ");
    let request = &entry.request;
    if !matches!(request.method, "" | "GET") {
        fit(request.method.as_bytes(), METHOD_COLUMNS_MAX, line);
        line.push(b' ');
    }
    let left = usize::from(columns).saturating_sub(line.len() - begin);
    fit(&whole_target(request), left, line);
}

/// What was requested, with the host where the target names none: a gateway may have many.
fn whole_target<'a>(request: &RequestLine<'a>) -> Cow<'a, [u8]> {
    let (target, host) = (request.target, request.host);
    if host.is_empty() || !target.starts_with('/') {
        let target = target.strip_prefix("http://").unwrap_or(target);
        return Cow::Borrowed(target.as_bytes());
    }
    let scheme = match request.scheme == Scheme::Https.as_str() {
        true => "https://",
        false => "",
    };
    Cow::Owned([scheme.as_bytes(), host, target.as_bytes()].concat())
}

/// Appends `text` as [`fit`] does, with spaces up to `width` columns.
fn padded(text: &[u8], width: usize, line: &mut Vec<u8>) {
    let begin = line.len();
    fit(text, width, line);
    line.resize(begin + width, b' ');
}

/// Appends `text`, harmless, in at most `width` columns: a longer one without its middle.
fn fit(text: &[u8], width: usize, line: &mut Vec<u8>) {
    let begin = line.len();
    escape::word(escape::cut(text, width), line);
    if text.len() <= width && line.len() - begin <= width {
        return;
    }
    let around = width.saturating_sub(LEFT_OUT.len());
    let tail = around / 2;
    line.truncate(begin + around - tail);
    line.extend_from_slice(LEFT_OUT);
    let tail_begin = line.len();
    escape::word(&text[text.len().saturating_sub(tail)..], line);
    let more = (line.len() - tail_begin).saturating_sub(tail);
    line.drain(tail_begin..tail_begin + more);
}

/// Bytes in at most six columns.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1000 {
        return format!("{bytes}B");
    }
    // tenths, rounded down
    let mut tenths = bytes.saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    let unit = UNITS[unit];
    match tenths {
        0..100 => format!("{}.{}{unit}", tenths / 10, tenths % 10),
        _ => format!("{}{unit}", tenths / 10),
    }
}

/// Microseconds in at most five columns, up to 277 hours.
fn duration(us: u64) -> String {
    const SECOND: u64 = 1_000_000;
    match us {
        0..1000 => format!("{us}us"),
        1000..10_000 => format!("{}.{}ms", us / 1000, us / 100 % 10),
        10_000..SECOND => format!("{}ms", us / 1000),
        SECOND.. if us < 100 * SECOND => format!("{}.{}s", us / SECOND, us / (SECOND / 10) % 10),
        _ if us < 1000 * SECOND => format!("{}s", us / SECOND),
        _ if us < 6000 * SECOND => format!("{}min", us / (60 * SECOND)),
        _ => format!("{}h", us / (3600 * SECOND)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_time_have_three_digits_or_fewer_and_a_unit() {
        let sizes = [
            (0, "0B"),
            (999, "999B"),
            (1000, "0.9KiB"),
            (1300, "1.2KiB"),
            (10 << 10, "10KiB"),
            (999 << 10, "999KiB"),
            (1000 << 10, "0.9MiB"),
            (25 << 20, "25MiB"),
            (7 << 40, "7.0TiB"),
        ];
        for (bytes, expected) in sizes {
            assert_eq!(size(bytes), expected);
        }
        let times = [
            (0, "0us"),
            (999, "999us"),
            (1000, "1.0ms"),
            (12_345, "12ms"),
            (999_999, "999ms"),
            (1_000_000, "1.0s"),
            (99_950_000, "99.9s"),
            (100_000_000, "100s"),
            (1_000_000_000, "16min"),
            (7_200_000_000, "2h"),
        ];
        for (us, expected) in times {
            assert_eq!(duration(us), expected);
        }
    }

    #[test]
    fn text_that_does_not_fit_loses_its_middle() {
        let check = |text: &[u8], width: usize, expected: &str| {
            let mut line = Vec::new();
            fit(text, width, &mut line);
            assert_eq!(String::from_utf8_lossy(&line), expected);
        };
        check(b"0123456789", 10, "0123456789");
        check(b"0123456789a", 10, "0123..789a");
        check(b"0123456789a", 9, "0123..89a");
        check(b"a b", 5, "a%20b");
        check(b"a\x1b\x1bb", 7, "a%1..bb");
        check(b"", 5, "-");
        check(b"0123456789", 2, "..");
    }
}
