//! A response head as it was received from a next hop.

use weir_semantics::{ConnectionOptions, Method, NamedFields};
use weir_wire::{
    BodyEvent, BodyLength, BodyReader, FramingError, HeadError, HeadLimits, LineBuffer, Progress,
    ResponseHead, Version, parse_response_leniently, response_body,
};

/// Bytes of a response that are received and not used yet: a head, complete or not, and the bytes
/// behind it.
#[derive(Clone, Debug, Default)]
pub struct ReceivedBytes(pub(super) Vec<u8>);

/// A head, and the bytes received behind it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedHead<'s, 'a> {
    /// The head.
    pub head: ResponseHead<'s, 'a>,
    /// Its lines do not all end in the same way.
    pub has_mixed_line_ends: bool,
    /// How long the content is, and how its end is found.
    pub length: Result<BodyLength, FramingError>,
    /// The content that was received with it.
    pub buffered: BufferedContent<'a>,
    /// Whether the next hop accepts another request on the connection (RFC 9112 §9.3), as far as
    /// the head shows.
    pub is_persistent: bool,
    consumed: usize,
    is_repaired: bool,
    /// How the content is framed, if `length` does not say that.
    framing: Option<BodyLength>,
}

/// The facts of an accepted head that the stream needs.
#[derive(Clone, Debug)]
pub struct AcceptedHead {
    pub(super) consumed: usize,
    pub(super) is_repaired: bool,
    pub(super) is_persistent: bool,
    /// The length of the content; `None` if the head is an interim one, or refused.
    pub(super) length: Option<BodyLength>,
    /// Fields of the trailer section that the head names in `Connection`.
    pub(super) named: NamedFields,
}

impl ReceivedBytes {
    /// The same with `head` in the place of the first `bytes`.
    #[must_use]
    pub fn with_head(&self, bytes: usize, mut head: Vec<u8>) -> Self {
        head.extend_from_slice(self.0.get(bytes..).unwrap_or_default());
        Self(head)
    }

    /// The head in the first `bytes`, or `head` in its place, without what follows.
    #[must_use]
    pub fn head_alone(&self, bytes: usize, head: Option<Vec<u8>>) -> Self {
        Self(head.unwrap_or_else(|| self.0[..bytes.min(self.0.len())].to_vec()))
    }

    /// The head of a response to a request with `method`, if all of it is there.
    ///
    /// # Errors
    ///
    /// It is no response head, or names too many options in `Connection`.
    pub fn head<'s, 'a>(
        &'a self,
        method: Method,
        limits: &HeadLimits,
        lines: &'s mut LineBuffer<'a>,
    ) -> Result<Option<ReceivedHead<'s, 'a>>, HeadError> {
        let parsed = parse_response_leniently(&self.0, limits, lines)?;
        let Progress::Complete {
            head: (head, repairs),
            consumed,
        } = parsed
        else {
            return Ok(None);
        };
        let options = ConnectionOptions::gather(head.fields);
        // each field of the head and of the trailer section is compared with each
        if options.are_too_many() {
            return Err(HeadError::ConnectionOptions);
        }
        let length = response_body(head.version, method, head.status, head.fields);
        Ok(Some(ReceivedHead {
            head,
            has_mixed_line_ends: repairs.mixed_line_ends,
            length,
            buffered: BufferedContent {
                bytes: &self.0[consumed..],
                length: length.unwrap_or(BodyLength::None),
                trailers: *limits,
            },
            is_persistent: !repairs.any() && is_persistent(head.version, &options, length),
            consumed,
            is_repaired: repairs.any(),
            framing: None,
        }))
    }
}

fn is_persistent(
    version: Version,
    options: &ConnectionOptions<'_>,
    length: Result<BodyLength, FramingError>,
) -> bool {
    if matches!(length, Ok(BodyLength::UntilClose) | Err(_)) {
        return false;
    }
    !options.close && (version == Version::Http11 || options.keep_alive)
}

/// How a head was found that was then replaced by another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormerHead {
    has_mixed_line_ends: bool,
    is_repaired: bool,
    is_persistent: bool,
    /// How the content is framed, if it is changed as it is received.
    framing: Option<BodyLength>,
}

impl FormerHead {
    /// The same for content that was framed as `length` says and passes a filter: for what uses it
    /// its length is not known.
    #[must_use]
    pub const fn with_content_of(mut self, length: BodyLength) -> Self {
        self.framing = Some(length);
        self
    }
}

impl ReceivedHead<'_, '_> {
    /// Bytes of the head as it was received.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.consumed
    }

    /// Whether some of its content is missing, and it has no more than `most` bytes with all of it,
    /// as far as is known. The head is a final one.
    #[must_use]
    pub fn lacks_rest(&self, most: usize) -> bool {
        let received = self.consumed + self.buffered.len();
        let least = match self.length {
            Ok(BodyLength::Exact(length)) => usize::try_from(length)
                .unwrap_or(usize::MAX)
                .saturating_add(self.consumed),
            Ok(BodyLength::Chunked) => received + 1,
            Ok(BodyLength::None | BodyLength::UntilClose) | Err(_) => return false,
        };
        self.head.status >= 200 && least <= most && !self.buffered.is_whole()
    }

    /// What is to be remembered of it when another head takes its place.
    #[must_use]
    pub const fn former(&self) -> FormerHead {
        FormerHead {
            has_mixed_line_ends: self.has_mixed_line_ends,
            is_repaired: self.is_repaired,
            is_persistent: self.is_persistent,
            framing: None,
        }
    }

    /// The same in the place of a head that was found so: what was wrong with that is not healed.
    #[must_use]
    pub fn in_place_of(self, former: FormerHead) -> Self {
        let mut same = Self {
            has_mixed_line_ends: self.has_mixed_line_ends || former.has_mixed_line_ends,
            is_repaired: self.is_repaired || former.is_repaired,
            is_persistent: self.is_persistent && !former.is_repaired,
            ..self
        };
        if let Some(framing) = former.framing {
            same.length = Ok(BodyLength::Chunked);
            same.framing = Some(framing);
            same.buffered.length = framing;
            same.is_persistent = former.is_persistent;
        }
        same
    }

    /// The facts of it that the stream needs.
    #[must_use]
    pub fn acceptance(&self) -> AcceptedHead {
        let length = self.framing.or(self.length.ok());
        AcceptedHead {
            consumed: self.consumed,
            is_repaired: self.is_repaired,
            is_persistent: self.is_persistent,
            length: length.filter(|_| self.head.status >= 200),
            named: match length {
                Some(BodyLength::Chunked) => {
                    ConnectionOptions::gather(self.head.fields).named_fields()
                }
                _ => NamedFields::NONE,
            },
        }
    }
}

/// Content that was received with the head.
#[derive(Clone, Copy, Debug)]
pub struct BufferedContent<'a> {
    bytes: &'a [u8],
    length: BodyLength,
    trailers: HeadLimits,
}

impl BufferedContent<'_> {
    /// Bytes received behind the head, framing included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was received behind the head.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether all of the content was received with the head.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self.length {
            BodyLength::None => true,
            BodyLength::Exact(bytes) => bytes <= self.bytes.len() as u64,
            BodyLength::UntilClose => false,
            BodyLength::Chunked => self.read().1,
        }
    }

    /// Bytes of content received with the head, framing excluded.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.read().0
    }

    /// Content bytes, and whether they are all.
    fn read(&self) -> (u64, bool) {
        let mut reader = BodyReader::lenient(self.length, self.trailers);
        let (mut rest, mut content_bytes) = (self.bytes, 0);
        while let Ok(step) = reader.step(rest) {
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::Data(data) => content_bytes += data.len() as u64,
                BodyEvent::NeedMore => break,
                BodyEvent::End => return (content_bytes, true),
            }
        }
        (content_bytes, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the rest is missing of a response to GET of which this was received, as far as one
    /// of `beyond` bytes more is waited for.
    fn lacks_rest(received: &str, beyond: usize) -> bool {
        let received = ReceivedBytes(received.into());
        let mut lines = LineBuffer::new();
        let limits = HeadLimits::default();
        let head = received.head(Method::Get, &limits, &mut lines);
        let head = head.expect("a good head").expect("a whole one");
        head.lacks_rest(received.0.len() + beyond)
    }

    #[test]
    fn rest_is_missing_of_a_final_response_within_the_bound() {
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst";
        assert!(lacks_rest(sized, 5));
        assert!(!lacks_rest(sized, 4));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
        assert!(lacks_rest(chunked, 1));
        assert!(!lacks_rest(chunked, 0));
    }

    #[test]
    fn nothing_is_missing_of_what_is_whole_or_ends_otherwise() {
        for received in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole and more",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nuntil it closes",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\n\r\n",
        ] {
            assert!(!lacks_rest(received, 1000), "{received}");
        }
    }
}
