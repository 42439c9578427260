//! Directives of Cache-Control as a trace has them: bits, and columns for the seconds.
//!
//! The directives are those of `weir_semantics`; a new one there does not compile here before it
//! has a bit. The number of a bit is its place in the enum and never changes: new bits go to the
//! end.
//!
//! A directive that `weir_semantics` ignores for its argument (`max-stale=soon`, `public=yes`) sets
//! no bit: the simulator decides from the bits what the live cache decides from the field.

use crate::row::Row;
use crate::row::words::words;
use weir_semantics::{
    DeltaSeconds, Reading, RequestDirective, RequestDirectives, ResponseDirective,
    ResponseDirectives, directives,
};

words! {
    /// What a request says about caching (RFC 9111 section 5.2.1, RFC 9110), as bits of
    /// `request_directives`: the bit's number is the variant's place.
    RequestBit {
        /// `Cache-Control: no-cache`.
        NoCache = RequestDirective::NoCache.name(),
        /// `Cache-Control: no-store`.
        NoStore = RequestDirective::NoStore.name(),
        /// `Cache-Control: no-transform`.
        NoTransform = RequestDirective::NoTransform.name(),
        /// `Cache-Control: only-if-cached`.
        OnlyIfCached = RequestDirective::OnlyIfCached.name(),
        /// `Cache-Control: max-age`; its value is `request_max_age_s`.
        MaxAge = RequestDirective::MaxAge.name(),
        /// `Cache-Control: max-stale`, with or without a value.
        MaxStale = RequestDirective::MaxStale.name(),
        /// `Cache-Control: min-fresh`.
        MinFresh = RequestDirective::MinFresh.name(),
        /// A directive that is none of these.
        Extension = "extension",
        /// `Pragma: no-cache`.
        PragmaNoCache = "pragma-no-cache",
        /// `If-None-Match`.
        IfNoneMatch = "if-none-match",
        /// `If-Modified-Since`.
        IfModifiedSince = "if-modified-since",
        /// Any other precondition: `If-Match`, `If-Unmodified-Since`, `If-Range`.
        OtherPrecondition = "other-precondition",
    }
}

words! {
    /// What a response says about caching (RFC 9111 section 5.2.2, RFC 5861), as bits of
    /// `response_directives`: the bit's number is the variant's place.
    ResponseBit {
        /// `no-cache` without field names.
        NoCache = ResponseDirective::NoCache.name(),
        /// `no-cache` with field names.
        NoCacheFields = "no-cache-fields",
        /// `no-store`.
        NoStore = ResponseDirective::NoStore.name(),
        /// `private` without field names.
        Private = ResponseDirective::Private.name(),
        /// `private` with field names.
        PrivateFields = "private-fields",
        /// `public`.
        Public = ResponseDirective::Public.name(),
        /// `must-revalidate`.
        MustRevalidate = ResponseDirective::MustRevalidate.name(),
        /// `proxy-revalidate`.
        ProxyRevalidate = ResponseDirective::ProxyRevalidate.name(),
        /// `must-understand`.
        MustUnderstand = ResponseDirective::MustUnderstand.name(),
        /// `no-transform`.
        NoTransform = ResponseDirective::NoTransform.name(),
        /// `immutable`.
        Immutable = ResponseDirective::Immutable.name(),
        /// `max-age`; its value is `max_age_s`.
        MaxAge = ResponseDirective::MaxAge.name(),
        /// `s-maxage`; its value is `s_maxage_s`.
        SMaxAge = ResponseDirective::SMaxAge.name(),
        /// `stale-while-revalidate`; its value is `stale_while_revalidate_s`.
        StaleWhileRevalidate = ResponseDirective::StaleWhileRevalidate.name(),
        /// `stale-if-error`; its value is `stale_if_error_s`.
        StaleIfError = ResponseDirective::StaleIfError.name(),
        /// A directive that is none of these.
        Extension = "extension",
        /// `Pragma: no-cache`, which means nothing in a response and was sent all the same.
        PragmaNoCache = "pragma-no-cache",
        /// `Expires` whose value is no date: already expired (RFC 9111 section 5.3).
        ExpiresInvalid = "expires-invalid",
        /// A targeted field, `CDN-Cache-Control` for one, decided in place of `Cache-Control` and
        /// `Expires` (RFC 9213): the directives are its own.
        Targeted = "targeted",
    }
}

impl RequestBit {
    /// The set that has this one only.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl ResponseBit {
    /// The set that has this one only.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl RequestBit {
    /// The bit of a directive.
    pub(crate) const fn of(directive: RequestDirective) -> Self {
        match directive {
            RequestDirective::NoCache => Self::NoCache,
            RequestDirective::NoStore => Self::NoStore,
            RequestDirective::NoTransform => Self::NoTransform,
            RequestDirective::OnlyIfCached => Self::OnlyIfCached,
            RequestDirective::MaxAge => Self::MaxAge,
            RequestDirective::MaxStale => Self::MaxStale,
            RequestDirective::MinFresh => Self::MinFresh,
        }
    }
}

impl ResponseBit {
    /// The bit of a directive.
    pub(crate) const fn of(directive: ResponseDirective) -> Self {
        match directive {
            ResponseDirective::NoCache => Self::NoCache,
            ResponseDirective::NoCacheFields => Self::NoCacheFields,
            ResponseDirective::NoStore => Self::NoStore,
            ResponseDirective::Private => Self::Private,
            ResponseDirective::PrivateFields => Self::PrivateFields,
            ResponseDirective::Public => Self::Public,
            ResponseDirective::MustRevalidate => Self::MustRevalidate,
            ResponseDirective::ProxyRevalidate => Self::ProxyRevalidate,
            ResponseDirective::MustUnderstand => Self::MustUnderstand,
            ResponseDirective::NoTransform => Self::NoTransform,
            ResponseDirective::Immutable => Self::Immutable,
            ResponseDirective::MaxAge => Self::MaxAge,
            ResponseDirective::SMaxAge => Self::SMaxAge,
            ResponseDirective::StaleWhileRevalidate => Self::StaleWhileRevalidate,
            ResponseDirective::StaleIfError => Self::StaleIfError,
        }
    }
}

impl RequestBit {
    /// The bits of one line of a request's Cache-Control.
    pub(crate) fn of_line(value: &[u8]) -> u32 {
        directives(value).fold(0, |bits, directive| {
            bits | match directive.in_request() {
                Reading::Says(directive, _) => Self::of(directive).bit(),
                Reading::Ignored => 0,
                Reading::Unknown => Self::Extension.bit(),
            }
        })
    }
}

impl ResponseBit {
    /// The bits of one line of a response's Cache-Control.
    pub(crate) fn of_line(value: &[u8]) -> u32 {
        directives(value).fold(0, |bits, directive| {
            bits | match directive.in_response() {
                Reading::Says(directive, _) => Self::of(directive).bit(),
                Reading::Ignored => 0,
                Reading::Unknown => Self::Extension.bit(),
            }
        })
    }

    /// The bits of directives that were read from a targeted field (RFC 9213). Of `private` they do
    /// not record whether it named fields.
    pub(crate) fn of_targeted(said: ResponseDirectives) -> u32 {
        let is_said = |directive: &&ResponseDirective| {
            **directive != ResponseDirective::PrivateFields && said.get(**directive).is_some()
        };
        let said = ResponseDirective::ALL.iter().filter(is_said);
        said.fold(Self::Targeted.bit(), |bits, directive| {
            bits | Self::of(*directive).bit()
        })
    }
}

impl Row {
    /// Sets the columns of the seconds that a response's directives say.
    pub(crate) fn set_response_seconds(&mut self, said: ResponseDirectives) {
        for directive in ResponseDirective::ALL {
            if let Some(column) = self.response_seconds_mut(*directive) {
                *column = said.get(*directive).map(|seconds| seconds.0);
            }
        }
    }

    /// What the request's directives say.
    pub(crate) fn read_request_directives(&self) -> RequestDirectives {
        let bits = self.request_directives.unwrap_or(0);
        let has = |bit: RequestBit| bits & bit.bit() != 0;
        let has_field = bits & REQUEST_FIELD != 0;
        let mut said = RequestDirectives {
            any: has_field,
            ..RequestDirectives::default()
        };
        for directive in RequestDirective::ALL {
            if has(RequestBit::of(*directive)) {
                said.set(*directive, Some(self.request_seconds(*directive)));
            }
        }
        // RFC 9111 section 5.4: only where there is no Cache-Control
        said.no_cache |= has(RequestBit::PragmaNoCache) && !has_field;
        said
    }

    /// What the response's directives say. A number of seconds that is there without a value counts
    /// as 0: the reading of `weir_semantics`.
    pub(crate) fn read_response_directives(&self) -> ResponseDirectives {
        let bits = self.response_directives.unwrap_or(0);
        let mut said = ResponseDirectives {
            any: bits & RESPONSE_FIELD != 0,
            ..ResponseDirectives::default()
        };
        for directive in ResponseDirective::ALL {
            let seconds = self.response_seconds(*directive);
            if bits & ResponseBit::of(*directive).bit() != 0 || seconds.is_some() {
                said.set(*directive, Some(DeltaSeconds(seconds.unwrap_or(0))));
            }
        }
        said
    }

    /// The seconds of a directive that is there. A trace has no values of `min-fresh` and
    /// `max-stale`: they count as 0 seconds and as any staleness.
    fn request_seconds(&self, directive: RequestDirective) -> DeltaSeconds {
        match directive {
            RequestDirective::MaxAge => DeltaSeconds(self.request_max_age_s.unwrap_or(0)),
            RequestDirective::MaxStale => DeltaSeconds::MAX,
            RequestDirective::NoCache
            | RequestDirective::NoStore
            | RequestDirective::NoTransform
            | RequestDirective::OnlyIfCached
            | RequestDirective::MinFresh => DeltaSeconds::ZERO,
        }
    }
}

/// Declares which column has the seconds of which directive of a response.
macro_rules! response_seconds {
    ({ $($directive:ident: $column:ident,)+ } none: $($without:ident),+) => {
        impl Row {
            fn response_seconds(&self, directive: ResponseDirective) -> Option<u32> {
                match directive {
                    $(ResponseDirective::$directive => self.$column,)+
                    $(ResponseDirective::$without)|+ => None,
                }
            }

            fn response_seconds_mut(
                &mut self,
                directive: ResponseDirective,
            ) -> Option<&mut Option<u32>> {
                match directive {
                    $(ResponseDirective::$directive => Some(&mut self.$column),)+
                    $(ResponseDirective::$without)|+ => None,
                }
            }
        }
    };
}

response_seconds! {
    {
        MaxAge: max_age_s,
        SMaxAge: s_maxage_s,
        StaleWhileRevalidate: stale_while_revalidate_s,
        StaleIfError: stale_if_error_s,
    }
    none: NoCache, NoCacheFields, NoStore, Private, PrivateFields, Public, MustRevalidate,
    ProxyRevalidate, MustUnderstand, NoTransform, Immutable
}

/// The bits that come from a request's Cache-Control.
pub(crate) const REQUEST_FIELD: u32 = {
    let mut bits = RequestBit::Extension.bit();
    let mut place = 0;
    while place < RequestDirective::ALL.len() {
        bits |= RequestBit::of(RequestDirective::ALL[place]).bit();
        place += 1;
    }
    bits
};

/// The bits that do not come from a response's Cache-Control are these two.
const RESPONSE_FIELD: u32 = !(ResponseBit::PragmaNoCache.bit() | ResponseBit::ExpiresInvalid.bit());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directive_of_a_request_survives_its_bit() {
        for directive in RequestDirective::ALL {
            let row = Row {
                request_directives: Some(RequestBit::of(*directive).bit()),
                ..Row::default()
            };
            let said = row.read_request_directives();
            for other in RequestDirective::ALL {
                assert_eq!(said.get(*other).is_some(), other == directive, "{other:?}");
            }
        }
    }

    #[test]
    fn each_directive_of_a_response_survives_its_bit_and_its_column() {
        for directive in ResponseDirective::ALL {
            let mut expected = ResponseDirectives::default();
            expected.set(*directive, Some(DeltaSeconds(7)));
            let mut row = Row {
                response_directives: Some(ResponseBit::of(*directive).bit()),
                ..Row::default()
            };
            row.set_response_seconds(expected);
            expected.any = true;
            assert_eq!(row.read_response_directives(), expected, "{directive:?}");
        }
    }
}
