//! The Common log of NCSA, Apache, nginx and many others, and the Combined one.
//!
//! `client ident user [17/May/2015:10:05:03 +0000] "request line" status bytes`, and in the
//! Combined one `"Referer" "User-Agent"` (Apache's manual, `mod_log_config`). The kinds may be
//! mixed line by line. The time is that of the request, in seconds. The bytes are those of the
//! content that was sent, and `-` says that there were none. Debian's `vhost_combined` has
//! `host:port` in front; Squid's `combined` ends with its tag. What else stands behind the bytes is
//! not looked at.

mod request;
mod time;

use crate::import::damage::{Damage, Place, reason};
use crate::import::items::NoRow;
use crate::import::logs::log::LineReader;
use crate::import::logs::number::{shown, unsigned};
use crate::import::logs::size;
use crate::import::request_line;
use crate::import::settings::Settings;
use crate::{AbortedBy, Row};
use time::Clock;

/// Whether a line is one of such a log.
pub(crate) fn looks_like(line: &[u8]) -> bool {
    let parts = cut(line);
    parts.is_some_and(|parts| time::read(parts.time).is_some())
}

/// Reads its lines.
#[derive(Default)]
pub(crate) struct Common {
    clock: Clock,
}

impl LineReader for Common {
    fn read(&mut self, line: &[u8], place: Place, settings: &Settings<'_>) -> Result<Row, NoRow> {
        let parts = cut(line).ok_or_else(|| {
            let what = "it is not like `client ident user [time] \"request line\" status bytes`";
            Damage::item(place, reason::FIELDS, what)
        })?;
        let mut row = Row {
            arrival_us: self.clock.read(parts.time).ok_or_else(|| {
                let time = shown(parts.time);
                let what = format!("time `{time}` is not like 17/May/2015:10:05:03 +0000");
                Damage::item(place, reason::TIME, what)
            })?,
            ..Row::default()
        };
        let answer = answer(parts.rest).ok_or_else(|| {
            let what = "the request line has no closing quotation mark";
            Damage::item(place, reason::FIELDS, what)
        })?;
        row.status = status(answer.status, place)?;
        let size = size::logged(answer.size, place, settings.missing_size, Some(0))?;
        row.received_bytes = Some(size);
        let prefix = LinePrefix::of(parts.prefix);
        row.client = Some(settings.hide.client(prefix.client));
        row.has_authorization = prefix.is_known.then_some(true);
        let line = request::unescape(answer.request);
        let request = request::parse(&line).ok_or(NoRow::Dropped(reason::NOT_HTTP))?;
        let target = match prefix.host {
            Some(host) if request.target.starts_with(b"/") && settings.site.is_none() => {
                &[b"//", host, request.target].concat()
            }
            _ => request.target,
        };
        let site = settings.site.as_ref();
        request_line::fill(&mut row, request.method, target, site, settings.hide);
        row.version = request.version;
        row.aborted_by = (row.status == Some(CLIENT_CLOSED)).then_some(AbortedBy::Client);
        row.verdict = squids_tag(answer.rest);
        Ok(row)
    }
}

/// What nginx writes where the client left before there was an answer.
const CLIENT_CLOSED: u16 = 499;

/// A line in its parts.
struct Parts<'a> {
    /// What stands before the time.
    prefix: &'a [u8],
    /// Between the brackets.
    time: &'a [u8],
    /// What stands behind the quotation mark that begins the request line.
    rest: &'a [u8],
}

/// At the brackets around a time, and not at others: the name of a user may have them.
fn cut(line: &[u8]) -> Option<Parts<'_>> {
    let mut first = None;
    for start in memchr::memmem::find_iter(line, b" [") {
        let inner = &line[start + 2..];
        let Some(end) = memchr::memchr(b']', inner) else {
            break;
        };
        let Some(rest) = inner[end + 1..].strip_prefix(b" \"") else {
            continue;
        };
        let parts = Parts {
            prefix: &line[..start],
            time: &inner[..end],
            rest,
        };
        if time::is_like_one(parts.time) {
            return Some(parts);
        }
        first = first.or(Some(parts));
    }
    first
}

/// What stands before the time.
struct LinePrefix<'a> {
    /// The server's name and port, where the log has them.
    host: Option<&'a [u8]>,
    client: &'a [u8],
    /// Whether there is the name of a user, which comes from an Authorization field.
    is_known: bool,
}

impl<'a> LinePrefix<'a> {
    fn of(text: &'a [u8]) -> Self {
        let (first, rest) = word(text);
        let (second, behind) = word(rest);
        let (third, last) = word(behind);
        // `host:port client - user`, and not `client - a user`: an ident is hardly ever anything
        // but a dash
        if second != b"-" && third == b"-" && !last.is_empty() && has_port(first) {
            return Self {
                host: Some(first),
                client: second,
                is_known: last != b"-",
            };
        }
        Self {
            host: None,
            client: first,
            is_known: !matches!(behind, b"" | b"-" | b"\"\""),
        }
    }
}

/// The first word, and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', text) {
        Some(end) => (&text[..end], text[end + 1..].trim_ascii_start()),
        None => (text, &[]),
    }
}

fn has_port(text: &[u8]) -> bool {
    let colon = memchr::memrchr(b':', text);
    colon.is_some_and(|colon| colon > 0 && unsigned(&text[colon + 1..]).is_some())
}

/// The request line, and what stands behind it.
struct Answer<'a> {
    request: &'a [u8],
    status: &'a [u8],
    size: &'a [u8],
    rest: &'a [u8],
}

/// Cuts at the quotation mark that ends the request line.
///
/// Servers escape those within; the older ones did not. So the first mark counts that is not
/// escaped and has a status and a size behind it, then any that has them, and if there is none the
/// first that is not escaped, so that the message is about what follows it.
fn answer(text: &[u8]) -> Option<Answer<'_>> {
    let open = || memchr::memchr_iter(b'"', text).filter(|&end| !is_escaped(text, end));
    let whole = |end: &usize| behind(text, *end).is_some_and(|answer| answer.is_plausible());
    let end = open()
        .find(whole)
        .or_else(|| memchr::memchr_iter(b'"', text).find(whole))
        .or_else(|| open().next())?;
    behind(text, end)
}

fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev();
    before.take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

fn behind(text: &[u8], end: usize) -> Option<Answer<'_>> {
    let rest = text.get(end + 1..)?;
    let (status, rest) = word(rest.strip_prefix(b" ").unwrap_or(rest));
    let (size, rest) = word(rest);
    Some(Answer {
        request: &text[..end],
        status,
        size,
        rest,
    })
}

impl Answer<'_> {
    fn is_plausible(&self) -> bool {
        let is_status = self.status.len() == 3 && self.status.iter().all(u8::is_ascii_digit);
        (is_status || self.status == b"-") && (unsigned(self.size).is_some() || self.size == b"-")
    }
}

/// The status code; `None` where nothing was answered.
fn status(text: &[u8], place: Place) -> Result<Option<u16>, Damage> {
    let code = unsigned(text)
        .filter(|_| text.len() == 3)
        .and_then(|code| u16::try_from(code).ok());
    match (text, code) {
        (b"-", _) | (_, Some(0..=99)) => Ok(None),
        (_, Some(code)) => Ok(Some(code)),
        _ => {
            let what = format!("status `{}` is not a number of three digits", shown(text));
            Err(Damage::item(place, reason::STATUS, what))
        }
    }
}

/// The tag of `TCP_MISS:HIER_DIRECT`, with which Squid ends the lines of its own `combined`.
fn squids_tag(rest: &[u8]) -> Option<String> {
    let start = memchr::memrchr(b' ', rest).map_or(0, |space| space + 1);
    let last = std::str::from_utf8(&rest[start..]).ok()?;
    let (tag, hierarchy) = last.split_once(':')?;
    let is_word = |text: &str| {
        let mut bytes = text.bytes();
        text.contains('_') && bytes.all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    (is_word(tag) && is_word(hierarchy)).then(|| tag.to_owned())
}

#[cfg(test)]
mod tests;
