//! Text from outside, made harmless: no line of the log can be ended, and no field closed, from
//! within a value.
//!
//! Every format is ASCII only: bytes that a terminal or a log reader may take for more than text
//! never get there.

use std::net::{IpAddr, SocketAddr};

/// Bytes looked at together: two vector registers of the oldest x86-64.
const PIECE_BYTES: usize = 32;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The inside of a JSON string (RFC 8259 §7). What is not UTF-8 becomes U+FFFD.
pub fn json(text: &[u8], line: &mut Vec<u8>) {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    let rest = copy_while(text, line, plain);
    if rest.is_empty() {
        return;
    }
    for chunk in rest.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => line.extend([b'\\', u8::try_from(character).unwrap_or(b'?')]),
                ' '..='~' => line.push(u8::try_from(character).unwrap_or(b'?')),
                _ => character
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| json_unit(*unit, line)),
            }
        }
        if !chunk.invalid().is_empty() {
            json_unit(0xfffd, line);
        }
    }
}

fn json_unit(unit: u16, line: &mut Vec<u8>) {
    line.extend_from_slice(b"\\u");
    for byte in unit.to_be_bytes() {
        hex(byte, line);
    }
}

/// The inside of a quoted field of the combined format: `\"`, `\\` and `\xHH`, as nginx and Apache
/// do.
pub fn quoted(text: &[u8], line: &mut Vec<u8>) {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    for byte in copy_while(text, line, plain) {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            byte if plain(*byte) => line.push(*byte),
            byte => {
                line.extend_from_slice(b"\\x");
                hex(*byte, line);
            }
        }
    }
}

/// A field that ends at a space: what is not visible ASCII becomes `%HH`; `-` for nothing.
pub fn word(text: &[u8], line: &mut Vec<u8>) {
    if text.is_empty() {
        line.push(b'-');
    }
    let plain = |byte: u8| (0x21..0x7f).contains(&byte);
    for byte in copy_while(text, line, plain) {
        if plain(*byte) {
            line.push(*byte);
        } else {
            line.push(b'%');
            hex(*byte, line);
        }
    }
}

/// A number in decimal.
pub fn number(number: u64, line: &mut Vec<u8>) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// An address without its port.
pub fn ip(address: IpAddr, line: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => {
            let [first, rest @ ..] = v4.octets();
            number(first.into(), line);
            for octet in rest {
                line.push(b'.');
                number(octet.into(), line);
            }
        }
        IpAddr::V6(v6) => line.extend_from_slice(v6.to_string().as_bytes()),
    }
}

/// An address with its port.
pub fn socket(address: SocketAddr, line: &mut Vec<u8>) {
    match address {
        SocketAddr::V4(v4) => ip((*v4.ip()).into(), line),
        SocketAddr::V6(v6) => {
            line.push(b'[');
            ip((*v6.ip()).into(), line);
            line.push(b']');
        }
    }
    line.push(b':');
    number(address.port().into(), line);
}

/// At most `bytes_max` bytes of `text`.
pub fn cut(text: &[u8], bytes_max: usize) -> &[u8] {
    &text[..text.len().min(bytes_max)]
}

/// Appends the beginning of `text` that needs no escape; the rest. Nearly always the rest is empty.
fn copy_while<'t>(text: &'t [u8], line: &mut Vec<u8>, plain: impl Fn(u8) -> bool) -> &'t [u8] {
    // whole pieces first, without a branch for each byte
    let mut pieces = text.chunks_exact(PIECE_BYTES);
    let whole = pieces
        .by_ref()
        .take_while(|piece| piece.iter().fold(true, |all, byte| all & plain(*byte)))
        .count();
    let (start, tail) = text.split_at(whole * PIECE_BYTES);
    let more = tail
        .iter()
        .position(|byte| !plain(*byte))
        .unwrap_or(tail.len());
    let (copied, rest) = text.split_at(start.len() + more);
    line.extend_from_slice(copied);
    rest
}

fn hex(byte: u8, line: &mut Vec<u8>) {
    line.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(escape: fn(&[u8], &mut Vec<u8>), text: &[u8], expected: &str) {
        let mut line = Vec::new();
        escape(text, &mut line);
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }

    #[test]
    fn delimiters_control_and_non_ascii_bytes_are_escaped() {
        check(json, b"plain ~", "plain ~");
        check(
            json,
            b"a\"b\\c\r\nd\0\x7f\x1b",
            r#"a\"b\\c\u000d\u000ad\u0000\u007f\u001b"#,
        );
        check(
            json,
            "caf\u{e9} \u{1f600}\u{9b}".as_bytes(),
            r"caf\u00e9 \ud83d\ude00\u009b",
        );
        check(json, b"x\xff\xc3y", r"x\ufffd\ufffdy");
        check(quoted, b"a\"b\\c\r\nd\xff", r#"a\"b\\c\x0d\x0ad\xff"#);
        check(word, b"/a b\r\n\xc3\xa9", "/a%20b%0d%0a%c3%a9");
        check(word, b"", "-");
    }

    #[test]
    fn every_byte_is_written_as_printable_ascii_in_every_format() {
        for byte in 0..=255 {
            for escape in [json, quoted, word] {
                let mut line = Vec::new();
                escape(&[b'a', byte, b'b'], &mut line);
                assert!(line.iter().all(|b| (0x20..0x7f).contains(b)), "{byte:#x}");
            }
            let mut line = vec![b'"'];
            json(&[byte], &mut line);
            line.push(b'"');
            let read: String = serde_json::from_slice(&line).expect("JSON");
            assert_eq!(read, String::from_utf8_lossy(&[byte]));
        }
    }

    #[test]
    fn socket_address_is_written_in_standard_notation() {
        for text in [
            "192.0.2.10:8080",
            "0.0.0.0:0",
            "255.255.255.255:65535",
            "[2001:db8::1]:80",
            "[::]:1",
        ] {
            let address: SocketAddr = text.parse().expect("an address");
            let mut line = Vec::new();
            socket(address, &mut line);
            assert_eq!(String::from_utf8_lossy(&line), text);
        }
    }
}
