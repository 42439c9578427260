//! Which directives were written, and which other fields about caching, as bits.

use weir_semantics::{
    DecidedBy, Expires, FieldLine, Known, ResponseFacts, identify, lines_named, list_elements,
};

use crate::{RequestBit, ResponseBit};

/// The bits of a request.
pub(super) fn of_request(fields: &[FieldLine<'_>]) -> u32 {
    fields.iter().fold(0, |bits, line| {
        bits | match identify(line.name) {
            Some(Known::CacheControl) => RequestBit::of_line(line.value),
            Some(Known::Pragma) if has_no_cache(line.value) => RequestBit::PragmaNoCache.bit(),
            Some(Known::IfNoneMatch) => RequestBit::IfNoneMatch.bit(),
            Some(Known::IfModifiedSince) => RequestBit::IfModifiedSince.bit(),
            Some(Known::IfMatch | Known::IfUnmodifiedSince | Known::IfRange) => {
                RequestBit::OtherPrecondition.bit()
            }
            _ => 0,
        }
    })
}

/// The bits of a response.
pub(super) fn of_response(facts: &ResponseFacts, fields: &[FieldLine<'_>]) -> u32 {
    let mut bits = match facts.decided_by {
        DecidedBy::CacheControl => lines_named(fields, "cache-control")
            .fold(0, |bits, value| bits | ResponseBit::of_line(value)),
        DecidedBy::Targeted(_) => ResponseBit::of_targeted(facts.directives),
    };
    if lines_named(fields, "pragma").any(has_no_cache) {
        bits |= ResponseBit::PragmaNoCache.bit();
    }
    if facts.expires == Some(Expires::Invalid) {
        bits |= ResponseBit::ExpiresInvalid.bit();
    }
    bits
}

fn has_no_cache(pragma: &[u8]) -> bool {
    list_elements(pragma).any(|element| element.eq_ignore_ascii_case(b"no-cache"))
}
