//! The response head that is sent to the client.
//!
//! Names, spelling and order stay as received. Left out: hop-by-hop fields and what Connection
//! names (RFC 9110 §7.6.1). Put in: Date where there is none (§6.6.1), Via, Cache-Status (RFC
//! 9211), and the framing we use. Where modules have changed the content, clients get an entity tag
//! of their own.

use crate::cache::variants::ClientTag;
use crate::exchange::state::RequestState;
use crate::log::words;
use crate::settings::Settings;
use weir_net::http::ContentForm;
use weir_semantics::{ConnectionOptions, FieldLine, Known, identify, is_hop_by_hop, is_stored};
use weir_wire::{ResponseHead, Version, write};

/// The head of a relayed final response: the status line and the end-to-end fields.
pub(crate) fn response_head(
    exchange: &RequestState,
    head: &ResponseHead<'_, '_>,
    form: ContentForm,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write::status_line(&mut out, Version::Http11, head.status, head.reason);
    let tag = ClientTag::of(exchange, head.fields);
    write_end_to_end(head.fields, &mut out, |known| {
        // its framing field is written as received only where the framing stays
        tag.replaces(known)
            || known == Some(Known::ContentLength)
                && (has_no_length(head.status) || form == ContentForm::Unsized)
    });
    tag.write(&mut out);
    write_date_if_missing(head.fields, || exchange.worker.date(), &mut out);
    out.extend_from_slice(exchange.via_line_of_response(head.version));
    words::write_cache_status(&exchange.settings, exchange.tx.verdict(), &mut out);
    out
}

/// The head of an interim response (100, 103 and others), complete (RFC 9110 §15.2).
pub(crate) fn interim_head(head: &ResponseHead<'_, '_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write::status_line(&mut out, Version::Http11, head.status, head.reason);
    write_end_to_end(head.fields, &mut out, is_length);
    write::end_of_head(&mut out);
    out
}

/// The head of a 101, but for its end: Upgrade passes with a Connection of ours (RFC 9110 §7.8).
pub(crate) fn switching_head(head: &ResponseHead<'_, '_>, settings: &Settings) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write::status_line(&mut out, Version::Http11, head.status, head.reason);
    write_end_to_end(head.fields, &mut out, is_length);
    for line in head.fields {
        if identify(line.name) == Some(Known::Upgrade) {
            write::field(&mut out, line.name, line.value);
        }
    }
    out.extend_from_slice(settings.via_line(head.version));
    out.extend_from_slice(b"Connection: Upgrade\r\n");
    out
}

/// The head as it is stored: a status line and end-to-end fields, each with CRLF, complete except
/// for the length and the fields that are made for each use.
pub(crate) fn stored_head(
    exchange: &RequestState,
    head: &ResponseHead<'_, '_>,
    with_length: bool,
    date: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    // a part is kept in the form of the whole (RFC 9111 §3.4)
    let (status, reason) = match head.status {
        206 => (200, "OK"),
        status => (status, head.reason),
    };
    write::status_line(&mut out, Version::Http11, status, reason);
    let with_length = with_length && !has_no_length(status);
    let is_part = head.status == 206;
    let tag = ClientTag::of(exchange, head.fields);
    write_fields_to_store(head.fields, &tag, &mut out, |known| match known {
        Known::ContentLength => !with_length,
        // of a whole response it means nothing, and stays (RFC 9110 §14.4)
        Known::ContentRange => is_part,
        _ => false,
    });
    write_date_if_missing(head.fields, || date, &mut out);
    out.extend_from_slice(exchange.via_line_of_response(head.version));
    out
}

/// Fields of a stored head after an update; without Age, which is made for each use.
pub(crate) fn write_merged_fields(fields: &[FieldLine<'_>], tag: &ClientTag, out: &mut Vec<u8>) {
    write_fields_to_store(fields, tag, out, |_| false);
}

fn write_fields_to_store(
    fields: &[FieldLine<'_>],
    tag: &ClientTag,
    out: &mut Vec<u8>,
    leaves_out: impl Fn(Known) -> bool,
) {
    write_end_to_end(fields, out, |known| {
        tag.replaces(known)
            || known
                .is_some_and(|known| known == Known::Age || !is_stored(known) || leaves_out(known))
    });
    tag.write(out);
}

/// Whether a response with this status is sent without Content-Length, whatever was received (RFC
/// 9110 §8.6).
const fn has_no_length(status: u16) -> bool {
    status < 200 || status == 204
}

fn is_length(known: Option<Known>) -> bool {
    known == Some(Known::ContentLength)
}

fn write_end_to_end(
    fields: &[FieldLine<'_>],
    out: &mut Vec<u8>,
    leaves_out: impl Fn(Option<Known>) -> bool,
) {
    let options = ConnectionOptions::gather(fields);
    for line in fields {
        let known = identify(line.name);
        let hop_by_hop = known.is_some_and(is_hop_by_hop) || options.names(line.name);
        if !hop_by_hop && !leaves_out(known) {
            write::field(out, line.name, line.value);
        }
    }
}

/// `date` reads the clock, which nearly no response needs.
fn write_date_if_missing<D: AsRef<[u8]>>(
    fields: &[FieldLine<'_>],
    date: impl FnOnce() -> D,
    out: &mut Vec<u8>,
) {
    if !fields
        .iter()
        .any(|line| identify(line.name) == Some(Known::Date))
    {
        write::field(out, "Date", date().as_ref());
    }
}
