//! Which directives were written, as bits.
//!
//! A directive that `weir-semantics` ignores for its argument (`max-stale=soon`, `public=yes`) sets
//! no bit: the simulator decides from the bits what the live cache decides from the field.

use weir_semantics::{
    DecidedBy, Expires, FieldLine, Known, RequestFacts, ResponseDirectives, ResponseFacts,
    identify, lines_named, list_elements,
};

use crate::{RequestBit, ResponseBit};

/// The bits of a request.
pub(super) fn of_request(facts: &RequestFacts, fields: &[FieldLine<'_>]) -> u32 {
    let mut bits = 0;
    for directive in lines_named(fields, "cache-control").flat_map(list_elements) {
        let (name, _) = split(directive);
        bits |= match name.as_slice() {
            b"no-cache" => RequestBit::NoCache.bit(),
            b"no-store" => RequestBit::NoStore.bit(),
            b"no-transform" => RequestBit::NoTransform.bit(),
            b"only-if-cached" => RequestBit::OnlyIfCached.bit(),
            b"max-age" => RequestBit::MaxAge.bit(),
            b"max-stale" if facts.directives.max_stale.is_some() => RequestBit::MaxStale.bit(),
            b"min-fresh" if facts.directives.min_fresh.is_some() => RequestBit::MinFresh.bit(),
            b"max-stale" | b"min-fresh" => 0,
            _ => RequestBit::Extension.bit(),
        };
    }
    for line in fields {
        bits |= match identify(line.name) {
            Some(Known::Pragma) if has_no_cache(line.value) => RequestBit::PragmaNoCache.bit(),
            Some(Known::IfNoneMatch) => RequestBit::IfNoneMatch.bit(),
            Some(Known::IfModifiedSince) => RequestBit::IfModifiedSince.bit(),
            Some(Known::IfMatch | Known::IfUnmodifiedSince | Known::IfRange) => {
                RequestBit::OtherPrecondition.bit()
            }
            _ => 0,
        };
    }
    bits
}

/// The bits of a response.
pub(super) fn of_response(facts: &ResponseFacts, fields: &[FieldLine<'_>]) -> u32 {
    let mut bits = match facts.decided_by {
        DecidedBy::CacheControl => lines_named(fields, "cache-control")
            .flat_map(list_elements)
            .fold(0, |bits, directive| bits | of_response_directive(directive)),
        DecidedBy::Targeted(_) => of_targeted(&facts.directives),
    };
    if lines_named(fields, "pragma").any(has_no_cache) {
        bits |= ResponseBit::PragmaNoCache.bit();
    }
    if facts.expires == Some(Expires::Invalid) {
        bits |= ResponseBit::ExpiresInvalid.bit();
    }
    bits
}

/// Of a targeted field, which was read already (RFC 9213).
fn of_targeted(said: &ResponseDirectives) -> u32 {
    let bits = [
        (said.no_cache, ResponseBit::NoCache),
        (said.no_cache_fields, ResponseBit::NoCacheFields),
        (said.private, ResponseBit::Private),
        (said.no_store, ResponseBit::NoStore),
        (said.must_revalidate, ResponseBit::MustRevalidate),
        (said.proxy_revalidate, ResponseBit::ProxyRevalidate),
        (said.no_transform, ResponseBit::NoTransform),
        (said.public, ResponseBit::Public),
        (said.immutable, ResponseBit::Immutable),
        (said.must_understand, ResponseBit::MustUnderstand),
        (said.max_age.is_some(), ResponseBit::MaxAge),
        (said.s_maxage.is_some(), ResponseBit::SMaxAge),
        (
            said.stale_while_revalidate.is_some(),
            ResponseBit::StaleWhileRevalidate,
        ),
        (said.stale_if_error.is_some(), ResponseBit::StaleIfError),
    ];
    let said = bits.iter().filter(|(is_there, _)| *is_there);
    said.fold(ResponseBit::Targeted.bit(), |bits, (_, bit)| {
        bits | bit.bit()
    })
}

fn of_response_directive(directive: &[u8]) -> u32 {
    let (name, argument) = split(directive);
    let has_fields = argument.is_some_and(|argument| !matches!(argument, b"" | b"\"\""));
    let bit = match (name.as_slice(), has_fields) {
        (b"no-cache", false) => ResponseBit::NoCache,
        (b"no-cache", true) => ResponseBit::NoCacheFields,
        (b"private", false) => ResponseBit::Private,
        (b"private", true) => ResponseBit::PrivateFields,
        (b"no-store", _) => ResponseBit::NoStore,
        (b"must-revalidate", _) => ResponseBit::MustRevalidate,
        (b"proxy-revalidate", _) => ResponseBit::ProxyRevalidate,
        (b"no-transform", _) => ResponseBit::NoTransform,
        (b"max-age", _) => ResponseBit::MaxAge,
        (b"s-maxage", _) => ResponseBit::SMaxAge,
        (b"stale-while-revalidate", _) => ResponseBit::StaleWhileRevalidate,
        (b"stale-if-error", _) => ResponseBit::StaleIfError,
        // what permits does so only without an argument, as in `weir-semantics`
        (b"public", _) if argument.is_none() => ResponseBit::Public,
        (b"immutable", _) if argument.is_none() => ResponseBit::Immutable,
        (b"must-understand", _) if argument.is_none() => ResponseBit::MustUnderstand,
        (b"public" | b"immutable" | b"must-understand", _) => return 0,
        _ => ResponseBit::Extension,
    };
    bit.bit()
}

/// A directive's name in lower case, and its argument.
fn split(directive: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let (name, argument) = match directive.iter().position(|&byte| byte == b'=') {
        Some(at) => (&directive[..at], Some(&directive[at + 1..])),
        None => (directive, None),
    };
    (name.trim_ascii().to_ascii_lowercase(), argument)
}

fn has_no_cache(pragma: &[u8]) -> bool {
    list_elements(pragma).any(|element| element.eq_ignore_ascii_case(b"no-cache"))
}
