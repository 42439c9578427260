//! What of a head a proof in it is of: its start, and its field lines as the other node receives
//! them, in their order.
//!
//! Left out are the field that has the proof, of which other parts are proved, and the two fields
//! of the connection: a program between two nodes can frame content as it likes, since content is
//! not proved. `Connection` could have other fields dropped, and so may say only what it must.

use weir_semantics::{FieldLine, PEER_FIELD};

/// The start of a head, and its field lines.
pub(super) struct ProvedHead<'h, L> {
    /// Method and target, or the status.
    pub(super) start: [&'h [u8]; 2],
    /// Names and values.
    pub(super) lines: L,
}

/// The lines of a head that was received.
pub(super) fn received<'h>(
    fields: &'h [FieldLine<'h>],
) -> impl Iterator<Item = (&'h [u8], &'h [u8])> {
    fields.iter().map(|line| (line.name.as_bytes(), line.value))
}

/// A head that is written but for its end and the fields of the connection.
pub(super) fn written(head: &[u8]) -> (&[u8], impl Iterator<Item = (&[u8], &[u8])>) {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default().trim_ascii_end();
    let lines = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], trim(&line[colon + 1..])))
    });
    (first, lines)
}

/// Method and target of a request line, which are separated by one space each.
pub(super) fn request_start(line: &[u8]) -> [&[u8]; 2] {
    let mut words = line.split(|byte| *byte == b' ');
    [(); 2].map(|()| words.next().unwrap_or_default())
}

/// The status of a status line.
pub(super) fn status_start(line: &[u8]) -> [&[u8]; 2] {
    [line.get(9..12).unwrap_or_default(), b""]
}

/// Without the whitespace around a value (RFC 9110 §5.5), and the end of the line.
fn trim(value: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let from = value.iter().position(|byte| !is_space(byte));
    let value = from.map_or(&b""[..], |from| &value[from..]);
    let to = value.iter().rposition(|byte| !is_space(byte));
    to.map_or(&b""[..], |to| &value[..=to])
}

impl<'h, L: Iterator<Item = (&'h [u8], &'h [u8])>> ProvedHead<'h, L> {
    /// Hands over all that is proved, no two heads alike; `false` if `Connection` has other fields
    /// dropped, so that nothing is proved.
    pub(super) fn hand_over(self, mut part: impl FnMut(&[u8])) -> bool {
        for word in self.start {
            part(word);
            part(b"\n");
        }
        for (name, value) in self.lines {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            match name.len() {
                9 if is(PEER_FIELD) => {}
                17 if is("transfer-encoding") => {}
                10 if is("connection") => {
                    let is_plain = |word: &&str| value.eq_ignore_ascii_case(word.as_bytes());
                    if !["close", "keep-alive"].iter().any(is_plain) {
                        return false;
                    }
                }
                // a name has no colon, a value no line feed
                _ => {
                    part(name);
                    part(b":");
                    part(value);
                    part(b"\n");
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::{HeadLimits, LineBuffer, Progress, parse_request, parse_response_leniently};

    fn parts<'h>(
        start: [&'h [u8]; 2],
        lines: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) -> Option<String> {
        let mut all = Vec::new();
        let head = ProvedHead { start, lines };
        let is_proved = head.hand_over(|part| all.extend_from_slice(part));
        is_proved.then(|| String::from_utf8(all).expect("text"))
    }

    #[test]
    fn head_is_proved_alike_as_it_is_written_and_as_it_is_received() {
        let request = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\nX-Empty: \r\n\
                       X-Space:\t a b \t\r\n";
        let (line, lines) = written(request.as_bytes());
        let sent = parts(request_start(line), lines);
        let whole = format!("{request}Weir-Peer: node=a\r\nConnection: close\r\n\r\n");
        let mut buffer = LineBuffer::new();
        let parsed = parse_request(whole.as_bytes(), &HeadLimits::default(), &mut buffer);
        let Ok(Progress::Complete { head, .. }) = parsed else {
            panic!("{parsed:?}");
        };
        let start = [head.method.as_bytes(), head.target.as_bytes()];
        let taken = parts(start, received(head.fields));
        let expected = "GET\nhttp://a.example/x\nHost:a.example\nX-Empty:\nX-Space:a b\n";
        assert_eq!(sent.as_deref(), Some(expected));
        assert_eq!(sent, taken);

        let response = "HTTP/1.1 200 OK\r\nAge: 1\r\nContent-Length: 5\r\n";
        let (line, lines) = written(response.as_bytes());
        let sent = parts(status_start(line), lines);
        let whole = format!("{response}Weir-Peer: node=b\r\nConnection: Keep-Alive\r\n\r\n");
        let mut buffer = LineBuffer::new();
        let parsed =
            parse_response_leniently(whole.as_bytes(), &HeadLimits::default(), &mut buffer);
        let Ok(Progress::Complete {
            head: (head, _), ..
        }) = parsed
        else {
            panic!("{parsed:?}");
        };
        let status = head.status.to_string();
        let taken = parts([status.as_bytes(), b""], received(head.fields));
        assert_eq!(sent.as_deref(), Some("200\n\nAge:1\nContent-Length:5\n"));
        assert_eq!(sent, taken);
    }

    #[test]
    fn connection_that_names_another_field_proves_nothing() {
        let check = |value: &str, is_proved: bool| {
            let head = format!("HTTP/1.1 200 OK\r\nConnection: {value}\r\n");
            let (line, lines) = written(head.as_bytes());
            let proved = parts(status_start(line), lines);
            assert_eq!(proved.is_some(), is_proved, "{value}");
        };
        check("close", true);
        check("Keep-Alive", true);
        check("cache-control", false);
        check("close, cache-control", false);
        check("", false);
    }
}
