//! HAR 1.2, the archives that browsers write (<http://www.softwareishard.com/blog/har-12-spec/>),
//! and 1.1, which lacks a few fields.
//!
//! `startedDateTime` is when the browser began with it: its own queue and the look-up of the name
//! come before the request. `connect` has the TLS handshake in it, `ssl` says how much. A size of
//! -1 is not known.
//!
//! What we read in another way than it is written: `connection` of Firebug and Firefox is the
//! server's port; the `bodySize` of their 304s is that of what they had stored; a value with line
//! feeds is as many field lines (Chrome); a status of 0 or less is none. WebPageTest names the
//! connection in `_socket`.

mod entry;
mod scan;

use super::damage::{Damage, Place, reason};
use super::facts::{RequestTarget, TargetForm, request_facts, response_facts};
use super::items::{ItemSource, NoRow};
use super::request_line;
use super::settings::{MissingSize, Settings};
use crate::import::logs::number::shown;
use crate::{AbortedBy, Row, TraceScheme, TraceVersion};
use entry::{Entry, Timings, field_lines};
use scan::{Scan, ScanItem};
use std::collections::HashMap;
use std::io::BufRead;
use weir_semantics::TargetedFields;
use weir_semantics::{ConnectionOptions, FieldLine};
use weir_workload::whole;

/// Connections of one archive whose requests are counted; an archive of a day of browsing has a few
/// thousand.
const CONNECTIONS_MAX: usize = 1 << 20;

/// The entries of an archive, or of several one after the other.
pub(crate) struct Har<'a, R> {
    scan: Scan<R>,
    settings: Settings<'a>,
    connections: HashMap<u64, u32>,
}

impl<'a, R: BufRead> Har<'a, R> {
    pub(crate) fn new(source: R, settings: Settings<'a>) -> Self {
        Self {
            scan: Scan::new(source),
            settings,
            connections: HashMap::new(),
        }
    }

    fn read(&mut self, text: &[u8], place: Place) -> Result<Row, NoRow> {
        let entry: Entry = serde_json::from_slice(text).map_err(|error| {
            let what = format!("it is not an entry: {error}");
            Damage::item(place, reason::JSON, what)
        })?;
        if let Some(reason) = entry.no_transaction() {
            return Err(NoRow::Dropped(reason));
        }
        let began = entry.began().ok_or_else(|| {
            let time = shown(entry.started_date_time.as_bytes());
            let what = format!("startedDateTime `{time}` is not like 2015-12-20T13:43:36.694Z");
            Damage::item(place, reason::TIME, what)
        })?;
        let mut row = Row {
            arrival_us: began.as_microsecond(),
            ..Row::default()
        };
        self.client_and_connection(&mut row, &entry);
        self.heads(&mut row, &entry, began.as_second());
        times(&mut row, &entry.timings, entry.time);
        row.received_bytes = match (entry.response.received_bytes(), self.settings.missing_size) {
            (Some(bytes), _) => Some(bytes),
            (None, MissingSize::AsTheFormatSays) => None,
            (None, MissingSize::Assume(bytes)) => Some(bytes),
            (None, MissingSize::Skip) => return Err(NoRow::Dropped(reason::MISSING_SIZE)),
        };
        Ok(row)
    }

    fn client_and_connection(&mut self, row: &mut Row, entry: &Entry) {
        let hide = self.settings.hide;
        let browser = format!("har/{}", self.settings.input);
        row.client = Some(hide.client(browser.as_bytes()));
        let Some(name) = entry.connection_name(&self.scan.creator) else {
            return;
        };
        let connection = hide.value(format!("{browser}/{name}").as_bytes());
        row.connection = Some(connection);
        let is_known = self.connections.contains_key(&connection);
        if is_known || self.connections.len() < CONNECTIONS_MAX {
            let count = self.connections.entry(connection).or_default();
            *count = count.saturating_add(1);
            row.connection_sequence = Some(*count);
        }
    }

    fn heads(&self, row: &mut Row, entry: &Entry, now_s: i64) {
        let hide = self.settings.hide;
        let (request, response) = (&entry.request, &entry.response);
        let requests = field_lines(&request.headers);
        let responses = field_lines(&response.headers);
        if requests.is_empty() {
            // without header fields the request line alone is known
            request_line::fill(row, &request.method, request.url.as_bytes(), None, hide);
        } else {
            let request_line = RequestTarget {
                method: &request.method,
                target: TargetForm::Uri(&request.url),
                scheme: TraceScheme::Https,
                default_authority: "",
            };
            request_facts(row, &request_line, &requests, hide);
        }
        row.version = version(&response.http_version).or_else(|| version(&request.http_version));
        if let Some(status) = response.status_code() {
            row.status = Some(status);
            if !responses.is_empty() {
                // a browser reads Cache-Control alone
                let targeted = &TargetedFields::none();
                response_facts(row, status, &responses, targeted, &requests, now_s, hide);
                if requests.is_empty() {
                    // there were fields that the archive does not have
                    row.variant = None;
                }
                row.is_persistent_client = persists(row.version, &requests, &responses);
            }
        }
        row.content_type = row.content_type.take().or_else(|| response.media_type());
        row.request_head_bytes = request.head_bytes();
        row.request_content_bytes = request.content_bytes();
        row.response_head_bytes = response.head_bytes();
        row.aborted_by = response.gave_up();
    }
}

impl<R: BufRead> ItemSource for Har<'_, R> {
    fn next_item(&mut self) -> Option<Result<Row, NoRow>> {
        Some(match self.scan.next().transpose()? {
            Ok(ScanItem::Entry(text, place)) => {
                let row = self.read(&text, place);
                self.scan.give_back(text);
                row
            }
            Ok(ScanItem::TooLong(place)) => {
                let what = format!("it is longer than {} bytes", scan::ENTRY_BYTES_MAX);
                Err(Damage::item(place, reason::TOO_LONG, what).into())
            }
            Err(damaged) => Err(damaged.into()),
        })
    }
}

/// The phases one after the other, in microseconds from that time.
fn times(row: &mut Row, timings: &Timings, total: Option<f64>) {
    let phase = |ms| us(ms).unwrap_or(0);
    let connect = us(timings.connect).filter(|&us| us > 0);
    row.setup_us = connect.map(|all| all.checked_sub(phase(timings.ssl)).unwrap_or(all));
    let Some(wait) = us(timings.wait) else {
        row.last_byte_us = us(total);
        return;
    };
    let sent = phase(timings.blocked) + phase(timings.dns) + phase(timings.connect);
    let answered = sent + phase(timings.send) + wait;
    row.request_us = Some(sent);
    row.response_us = Some(answered);
    row.last_byte_us = us(timings.receive).map(|receive| answered + receive);
}

/// Milliseconds of a phase, longer than any that is real: 30 years.
const MS_MAX: f64 = 1e12;

/// Milliseconds to microseconds; `None` for what is not known or cannot be.
fn us(ms: Option<f64>) -> Option<u64> {
    let ms = ms.filter(|ms| (0.0..=MS_MAX).contains(ms))?;
    Some(whole((ms * 1000.0).round()))
}

/// `HTTP/1.1`, `http/2.0`, `h2`, `h3-29`; `None` for `unknown` and the like.
fn version(text: &str) -> Option<TraceVersion> {
    let text = text.to_ascii_lowercase();
    let bare = text.strip_prefix("http/").unwrap_or(&text);
    Some(match bare {
        "0.9" => TraceVersion::Http09,
        "1.0" => TraceVersion::Http10,
        "1.1" => TraceVersion::Http11,
        "2" | "2.0" | "h2" | "h2c" => TraceVersion::Http2,
        "3" | "3.0" | "h3" | "quic" => TraceVersion::Http3,
        _ if bare.starts_with("h3-") || bare.contains("quic") => TraceVersion::Http3,
        _ => return None,
    })
}

/// Whether the connection could carry another request (RFC 9112 §9.3).
fn persists(
    version: Option<TraceVersion>,
    request: &[FieldLine<'_>],
    response: &[FieldLine<'_>],
) -> Option<bool> {
    let says = |fields, option| ConnectionOptions::gather(fields).names(option);
    Some(match version? {
        TraceVersion::Http09 => false,
        TraceVersion::Http10 => says(response, "keep-alive"),
        TraceVersion::Http11 => !says(response, "close") && !says(request, "close"),
        TraceVersion::Http2 | TraceVersion::Http3 => true,
    })
}

/// An aborted one says so in words of the browser's.
fn gave_up(words: &str) -> Option<AbortedBy> {
    if words.is_empty() {
        None
    } else if words.contains("ABORTED") || words == "Aborted" || words == "NS_BINDING_ABORTED" {
        Some(AbortedBy::Client)
    } else {
        Some(AbortedBy::Server)
    }
}

#[cfg(test)]
mod tests;
