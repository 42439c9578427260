//! Squid's native access log.
//!
//! `time elapsed client tag/status bytes method URL user hierarchy/peer type`, separated by spaces
//! (Squid's wiki, *Log format*, the sections on the native format and on result codes). The time is
//! that of the end of the transaction, in milliseconds; `elapsed` counts back to where it began.
//! The bytes are those of the response with its head. What stands behind the URL may be missing, as
//! in logs that were cut or anonymised; what follows the type is not looked at.

use crate::import::damage::{Damage, Place, reason};
use crate::import::facts::media_type;
use crate::import::items::NoRow;
use crate::import::logs::log::LineReader;
use crate::import::logs::number::{shown, unix_us, unsigned};
use crate::import::logs::size;
use crate::import::request_line;
use crate::import::settings::Settings;
use crate::{AbortedBy, Row};

/// Reads its lines.
pub(crate) struct Squid;

impl LineReader for Squid {
    fn read(&mut self, line: &[u8], place: Place, settings: &Settings<'_>) -> Result<Row, NoRow> {
        let fields = Fields::cut(line).ok_or_else(|| {
            let what = "there are fewer than the seven fields from time to URL";
            Damage::item(place, reason::FIELDS, what)
        })?;
        let mut row = Row::default();
        let tag = fields.result(&mut row, place)?;
        fields.times(&mut row, place)?;
        let size = size::logged(fields.size, place, settings.missing_size, None)?;
        if is_no_http(tag, fields.method, fields.url) {
            return Err(NoRow::Dropped(reason::NOT_HTTP));
        }
        let method = String::from_utf8_lossy(fields.method);
        request_line::fill(&mut row, &method, fields.url, None, settings.hide);
        row.client = Some(settings.hide.client(fields.client));
        row.received_bytes = Some(size);
        row.verdict = Some(String::from_utf8_lossy(tag).into_owned());
        row.aborted_by = aborted_by(tag);
        if is_without_next_hop(fields.hierarchy) {
            row.next_hop_bytes = Some(0);
        }
        row.content_type = fields.kind.and_then(media_type);
        Ok(row)
    }
}

/// A line in its fields.
struct Fields<'a> {
    time: &'a [u8],
    elapsed: &'a [u8],
    client: &'a [u8],
    result: &'a [u8],
    size: &'a [u8],
    method: &'a [u8],
    url: &'a [u8],
    hierarchy: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn cut(line: &'a [u8]) -> Option<Self> {
        let mut fields = line
            .split(|&byte| byte == b' ' || byte == b'\t')
            .filter(|field| !field.is_empty());
        let (time, elapsed, client) = (fields.next()?, fields.next()?, fields.next()?);
        let (result, size) = (fields.next()?, fields.next()?);
        let (method, url) = (fields.next()?, fields.next()?);
        let _user = fields.next();
        Some(Self {
            time,
            elapsed,
            client,
            result,
            size,
            method,
            url,
            hierarchy: fields.next(),
            kind: fields.next(),
        })
    }

    /// Fills the status, and gives the tag.
    fn result(&self, row: &mut Row, place: Place) -> Result<&'a [u8], Damage> {
        let bad = || {
            let what = format!(
                "`{}` is not a tag and a status like TCP_MISS/200",
                shown(self.result)
            );
            Damage::item(place, reason::STATUS, what)
        };
        let slash = memchr::memchr(b'/', self.result).ok_or_else(bad)?;
        let (tag, status) = (&self.result[..slash], &self.result[slash + 1..]);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if tag.is_empty() || tag.len() > TAG_BYTES_MAX || !tag.iter().all(is_word) {
            return Err(bad());
        }
        row.status = match status {
            // nothing was answered
            b"-" | b"0" | b"00" | b"000" => None,
            _ => {
                let code = unsigned(status).and_then(|code| u16::try_from(code).ok());
                let code = code.filter(|code| (100..=999).contains(code));
                Some(code.ok_or_else(bad)?)
            }
        };
        Ok(tag)
    }

    /// Fills when it began, and how long it took.
    fn times(&self, row: &mut Row, place: Place) -> Result<(), Damage> {
        let end_us = unix_us(self.time).ok_or_else(|| {
            let what = format!("time `{}` is not in seconds since 1970", shown(self.time));
            Damage::item(place, reason::TIME, what)
        })?;
        let negative = self.elapsed.strip_prefix(b"-");
        let elapsed_ms = unsigned(negative.unwrap_or(self.elapsed)).ok_or_else(|| {
            let what = format!("elapsed time `{}` is not a number", shown(self.elapsed));
            Damage::item(place, reason::TIME, what)
        })?;
        let elapsed_us = elapsed_ms.checked_mul(1000).filter(|_| negative.is_none());
        let arrival_us = elapsed_us.and_then(|us| end_us.checked_sub_unsigned(us));
        // a clock that was set back makes it negative or too long: then it is not known
        match arrival_us.filter(|&us| us >= 0) {
            Some(arrival_us) => {
                row.arrival_us = arrival_us;
                row.last_byte_us = elapsed_us;
            }
            None => row.arrival_us = end_us,
        }
        Ok(())
    }
}

/// Bytes of a tag; the longest that Squid writes has 45.
const TAG_BYTES_MAX: usize = 128;

/// Queries between caches, connections that carried no request, and the cache manager's pages.
fn is_no_http(tag: &[u8], method: &[u8], url: &[u8]) -> bool {
    tag.starts_with(b"UDP_")
        || matches!(
            method,
            b"NONE" | b"-" | b"ICP_QUERY" | b"HTCP_TST" | b"HTCP_CLR"
        )
        || url.starts_with(b"error:")
        || url.starts_with(b"cache_object:")
        || url == b"-"
}

/// A marked tag says which side aborted; an unmarked one says nothing, as older versions have no
/// marks.
fn aborted_by(tag: &[u8]) -> Option<AbortedBy> {
    if tag.ends_with(b"_ABORTED") || tag == b"ERR_CLIENT_ABORT" {
        Some(AbortedBy::Client)
    } else if tag.ends_with(b"_TIMEDOUT") {
        Some(AbortedBy::Server)
    } else {
        None
    }
}

/// Whether the request was answered without a next hop.
fn is_without_next_hop(hierarchy: Option<&[u8]>) -> bool {
    hierarchy.is_some_and(|field| field.starts_with(b"NONE/") || field.starts_with(b"HIER_NONE/"))
}

#[cfg(test)]
mod tests;
