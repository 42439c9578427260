//! Frames of HTTP/2 (RFC 9113 §4), and fields in HPACK (RFC 7541).

use crate::client::get::HOST;
pub(super) use crate::client::http2::frame;
use crate::client::http2::length;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// A setting (RFC 9113 §6.5.2).
const INITIAL_WINDOW_SIZE: u16 = 4;

/// The largest payload of a frame that needs no setting.
pub(super) const PAYLOAD_MAX: usize = 16 * 1024;

/// The beginning of a connection whose streams have a window of `window` bytes; `None`: the
/// default.
pub(super) fn begin(window: Option<u32>) -> Vec<u8> {
    let mut payload = Vec::new();
    if let Some(window) = window {
        payload.extend(INITIAL_WINDOW_SIZE.to_be_bytes());
        payload.extend(window.to_be_bytes());
    }
    [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &payload)].concat()
}

/// The fields of a request for a path: the method as an index of the static table, 2 for GET and 3
/// for POST; the scheme; path and authority as literals that are not indexed.
fn request(method: u8, path: &str) -> Vec<u8> {
    let mut block = vec![0x80 | method, 0x86, 0x04];
    text(path, &mut block);
    block.push(0x01);
    text(HOST, &mut block);
    block
}

/// The same of a GET.
pub(super) fn get(path: &str) -> Vec<u8> {
    request(2, path)
}

/// The same of a POST.
pub(super) fn post(path: &str) -> Vec<u8> {
    request(3, path)
}

/// A field that enters the dynamic table.
pub(super) fn indexed_literal(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0x40];
    text(name, &mut block);
    text(value, &mut block);
    block
}

/// A field that enters no table.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0x00];
    text(name, &mut block);
    text(value, &mut block);
    block
}

/// A text without Huffman's code: its length is behind a prefix of 7 bits (RFC 7541 §5).
fn text(text: &str, block: &mut Vec<u8>) {
    length(text.len(), block);
    block.extend(text.as_bytes());
}
