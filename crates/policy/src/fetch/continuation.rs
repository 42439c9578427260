//! A client that was sent a part of a response, where the rest is not here any more.
//!
//! Content that passed by before a slow reader came to it, or stored content that is damaged or
//! cannot be read: the next hop may have the rest. It is requested by `Range` with `If-Range` (RFC
//! 9110 §13.1.5), for this client alone, so that the client gets one representation or a visible
//! cut.

use super::byte_span::ByteSpan;
use weir_semantics::words;

/// The facts about the rest of a response whose head a client has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingRange {
    /// The next byte the client is to get.
    pub at: u64,
    /// One past the last byte by that head; open: to the end of the content.
    pub to: u64,
    /// The complete length of the representation, if it is known.
    pub complete_length: Option<u64>,
    /// The representation has a strong entity tag.
    pub strong_tag: bool,
    /// The request may be forwarded.
    pub forwards: bool,
}

/// Where the rest comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// From the next hop, by a fetch of this span for this client alone.
    Fetch(ByteSpan),
    /// From nowhere: the client is cut.
    Cut(NoContinuation),
}

words! {
    /// Why the rest cannot be fetched.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NoContinuation {
        /// Without a strong entity tag what would come could be of another representation.
        NoStrongTag = "no-strong-tag",
        /// Without the length the end of the content could not be recognised.
        NoLength = "no-length",
        /// The request may not be forwarded (`only-if-cached`).
        NotForwarded = "not-forwarded",
        /// No byte is missing.
        BeyondEnd = "beyond-end",
    }
}

/// Where the client gets the rest from.
#[must_use]
pub fn continuation(rest: &RemainingRange) -> Continuation {
    let Some(length) = rest.complete_length else {
        return Continuation::Cut(NoContinuation::NoLength);
    };
    if !rest.strong_tag {
        return Continuation::Cut(NoContinuation::NoStrongTag);
    }
    if !rest.forwards {
        return Continuation::Cut(NoContinuation::NotForwarded);
    }
    match ByteSpan::new(rest.at, rest.to.min(length)) {
        Some(span) => Continuation::Fetch(span),
        None => Continuation::Cut(NoContinuation::BeyondEnd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: RemainingRange = RemainingRange {
        at: 10,
        to: 100,
        complete_length: Some(1000),
        strong_tag: true,
        forwards: true,
    };

    fn check(rest: RemainingRange, expected: Result<(u64, u64), &str>) {
        let found = match continuation(&rest) {
            Continuation::Fetch(span) => Ok((span.from, span.to)),
            Continuation::Cut(why) => Err(why.as_str()),
        };
        assert_eq!(found, expected, "{rest:?}");
    }

    #[test]
    fn rest_is_fetched_up_to_the_promised_end() {
        check(REST, Ok((10, 100)));
        let to = ByteSpan::OPEN;
        check(RemainingRange { to, ..REST }, Ok((10, 1000)));
        check(RemainingRange { at: 99, ..REST }, Ok((99, 100)));
        check(RemainingRange { at: 100, ..REST }, Err("beyond-end"));
    }

    #[test]
    fn rest_is_not_fetched_without_strong_tag_length_or_forwarding() {
        let strong_tag = false;
        check(RemainingRange { strong_tag, ..REST }, Err("no-strong-tag"));
        let complete_length = None;
        check(
            RemainingRange {
                complete_length,
                ..REST
            },
            Err("no-length"),
        );
        let forwards = false;
        check(RemainingRange { forwards, ..REST }, Err("not-forwarded"));
    }
}
