//! Heads that arrive in pieces.

use weir_wire::{
    Arrival, HeadError, HeadLimits, LineBuffer, Progress, parse_request, parse_response,
};

use super::repair;

/// The part of a head that has arrived.
#[derive(Debug, Default)]
pub(super) struct Head {
    text: Vec<u8>,
    arrival: Arrival,
    /// `weir-wire` has refused it: its end is looked for, and then it is repaired.
    refused: Option<HeadError>,
    /// Its first line is whole.
    has_line: bool,
}

/// Which start line is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
}

/// A head that is whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WholeHead {
    /// In a form that `weir-wire` reads, but for a request of HTTP/0.9, which has one line.
    pub(super) text: Vec<u8>,
    /// How long it was as it came.
    pub(super) bytes: usize,
    /// Whether it had to be repaired.
    pub(super) is_repaired: bool,
    /// Whether it is a request without a version.
    pub(super) is_http09: bool,
}

/// How far a head is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadProgress {
    /// All of it was used and the head is not whole.
    More,
    /// So many bytes of it were used.
    Whole(WholeHead, usize),
    /// It is no head.
    Unreadable,
}

impl Head {
    /// Whether nothing of it is there.
    pub(super) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// How much of it is there, bytes.
    pub(super) const fn held_bytes(&self) -> usize {
        self.text.len()
    }

    /// Forgets what is there.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes the bytes that follow.
    pub(super) fn feed(&mut self, kind: Kind, bytes: &[u8]) -> HeadProgress {
        let limits = HeadLimits::default();
        let before = self.text.len();
        let room = limits.bytes_max.saturating_sub(before);
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let progress = match self.find(kind, &limits) {
            Ok(Some(whole)) => {
                let used = whole.bytes.saturating_sub(before);
                HeadProgress::Whole(whole, used)
            }
            Ok(None) if bytes.len() <= room => return HeadProgress::More,
            Ok(None) | Err(_) => HeadProgress::Unreadable,
        };
        self.clear();
        progress
    }

    fn find(&mut self, kind: Kind, limits: &HeadLimits) -> Result<Option<WholeHead>, HeadError> {
        if self.refused == Some(HeadError::Http09) {
            return Ok(self.line());
        }
        if self.refused.is_none() {
            let is_worth_reading = self.arrival.is_worth_reading(&self.text, limits);
            // a request without a version is whole with its first line
            let is_new_line = !self.has_line && self.text.contains(&b'\n');
            self.has_line |= is_new_line;
            if !is_worth_reading && !is_new_line {
                return Ok(None);
            }
            match length(kind, &self.text, limits) {
                Ok(None) => return Ok(None),
                Ok(Some(bytes)) => return Ok(Some(self.whole(bytes, false))),
                // other protocols have lines of two words too
                Err(error @ HeadError::Http09) if self.text.starts_with(b"GET ") => {
                    self.refused = Some(error);
                    return Ok(self.line());
                }
                Err(error) if !looks_like(kind, &self.text) => return Err(error),
                Err(error) => self.refused = Some(error),
            }
        }
        let Some(bytes) = repair::end_of_head(&self.text) else {
            return Ok(None);
        };
        let error = self.refused.unwrap_or(HeadError::TooLarge);
        let text = repair::repaired(&self.text[..bytes], kind == Kind::Request).ok_or(error)?;
        match length(kind, &text, limits) {
            Ok(Some(_)) => Ok(Some(WholeHead {
                text,
                bytes,
                is_repaired: true,
                is_http09: false,
            })),
            Ok(None) => Err(error),
            Err(error) => Err(error),
        }
    }

    /// A request of HTTP/0.9, once its line is whole.
    fn line(&self) -> Option<WholeHead> {
        let end = self.text.iter().position(|&byte| byte == b'\n')?;
        Some(self.whole(end + 1, true))
    }

    fn whole(&self, bytes: usize, is_http09: bool) -> WholeHead {
        WholeHead {
            text: self.text[..bytes].to_vec(),
            bytes,
            is_repaired: false,
            is_http09,
        }
    }
}

/// How long the head is that `text` begins with, if it is whole.
fn length(kind: Kind, text: &[u8], limits: &HeadLimits) -> Result<Option<usize>, HeadError> {
    let mut lines = LineBuffer::new();
    Ok(match kind {
        Kind::Request => match parse_request(text, limits, &mut lines)? {
            Progress::Complete { consumed, .. } => Some(consumed),
            Progress::Partial => None,
        },
        Kind::Response => match parse_response(text, limits, &mut lines)? {
            Progress::Complete { consumed, .. } => Some(consumed),
            Progress::Partial => None,
        },
    })
}

/// Whether these bytes look like the beginning of a head, so that one may begin to read in the
/// middle of a connection. Of a request at least the method must be there.
pub(super) fn looks_like(kind: Kind, bytes: &[u8]) -> bool {
    /// RFC 9110 §9, RFC 5789, RFC 4918; in the middle of a connection only what is known counts.
    const METHODS: [&[u8]; 16] = [
        b"GET ",
        b"HEAD ",
        b"POST ",
        b"PUT ",
        b"DELETE ",
        b"OPTIONS ",
        b"TRACE ",
        b"CONNECT ",
        b"PATCH ",
        b"PROPFIND ",
        b"PROPPATCH ",
        b"MKCOL ",
        b"COPY ",
        b"MOVE ",
        b"LOCK ",
        b"UNLOCK ",
    ];
    match kind {
        Kind::Request => METHODS.iter().any(|method| bytes.starts_with(method)),
        Kind::Response => bytes.starts_with(b"HTTP/1."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` whole and in all pairs of pieces; the same head must come out.
    fn check(kind: Kind, text: &[u8], head: &[u8], bytes: usize) {
        for cut in 0..=text.len() {
            let mut reader = Head::default();
            let mut used_before = 0;
            let fed = match reader.feed(kind, &text[..cut]) {
                HeadProgress::More => {
                    used_before = cut;
                    reader.feed(kind, &text[cut..])
                }
                other => other,
            };
            let HeadProgress::Whole(whole, used) = fed else {
                panic!("cut at {cut}: {fed:?}");
            };
            assert_eq!(
                whole.text.escape_ascii().to_string(),
                head.escape_ascii().to_string()
            );
            assert_eq!(
                (whole.bytes, used + used_before),
                (bytes, bytes),
                "cut at {cut}"
            );
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn header_section_ends_at_its_empty_line_however_it_is_split() {
        let text = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        check(Kind::Response, text, &text[..25], 25);
        let text = b"GET / HTTP/1.1\nHost: a\n\nGET";
        check(
            Kind::Request,
            text,
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            24,
        );
    }

    #[test]
    fn http_0_9_request_line_is_a_whole_header_section() {
        check(Kind::Request, b"GET /a\r\n", b"GET /a\r\n", 8);
    }

    #[test]
    fn non_http_or_endless_header_section_is_unreadable_at_once() {
        for text in [
            &b"HELO example\r\n"[..],
            b"SSH-2.0-OpenSSH\r\n",
            b"\x16\x03\x01\x02\x00",
            b"HTTP/2 200\r\n",
        ] {
            for kind in [Kind::Request, Kind::Response] {
                let fed = Head::default().feed(kind, text);
                assert!(
                    matches!(fed, HeadProgress::Unreadable),
                    "{}",
                    text.escape_ascii()
                );
            }
        }
        let endless = vec![b'a'; 70_000];
        let fed = Head::default().feed(Kind::Request, &endless);
        assert!(matches!(fed, HeadProgress::Unreadable));
    }
}
