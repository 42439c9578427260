//! Values of columns that are words, or sets of words.

/// Defines an enum whose variants have one spelling each, in files, flags and tables alike.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$meaning])* $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// As it is spelt.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one that is spelt so.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }
    };
}

words! {
    /// The request's method. What has no variant is `Other`: no cache treats it in a way of its
    /// own.
    TraceMethod {
        /// `GET`.
        Get = "GET",
        /// `HEAD`.
        Head = "HEAD",
        /// `POST`.
        Post = "POST",
        /// `PUT`.
        Put = "PUT",
        /// `DELETE`.
        Delete = "DELETE",
        /// `PATCH`.
        Patch = "PATCH",
        /// `OPTIONS`.
        Options = "OPTIONS",
        /// `TRACE`.
        Trace = "TRACE",
        /// `CONNECT`.
        Connect = "CONNECT",
        /// Any other.
        Other = "other",
    }
}

words! {
    /// The target's scheme.
    TraceScheme {
        /// `http`.
        Http = "http",
        /// `https`.
        Https = "https",
    }
}

words! {
    /// The version of HTTP between client and proxy.
    TraceVersion {
        /// 0.9.
        Http09 = "0.9",
        /// 1.0.
        Http10 = "1.0",
        /// 1.1.
        Http11 = "1.1",
        /// 2.
        Http2 = "2",
        /// 3.
        Http3 = "3",
    }
}

words! {
    /// Who ended a transfer before its end.
    AbortedBy {
        /// Nobody: it came to its end.
        Nobody = "nobody",
        /// The client left.
        Client = "client",
        /// The next hop closed, reset or fell silent.
        Server = "server",
    }
}

words! {
    /// What a request says about caching (RFC 9111 section 5.2.1, RFC 9110), as bits of
    /// `request_directives`: the bit's number is the variant's place.
    RequestBit {
        /// `Cache-Control: no-cache`.
        NoCache = "no-cache",
        /// `Cache-Control: no-store`.
        NoStore = "no-store",
        /// `Cache-Control: no-transform`.
        NoTransform = "no-transform",
        /// `Cache-Control: only-if-cached`.
        OnlyIfCached = "only-if-cached",
        /// `Cache-Control: max-age`; its value is `request_max_age_s`.
        MaxAge = "max-age",
        /// `Cache-Control: max-stale`, with or without a value.
        MaxStale = "max-stale",
        /// `Cache-Control: min-fresh`.
        MinFresh = "min-fresh",
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
        NoCache = "no-cache",
        /// `no-cache` with field names.
        NoCacheFields = "no-cache-fields",
        /// `no-store`.
        NoStore = "no-store",
        /// `private` without field names.
        Private = "private",
        /// `private` with field names.
        PrivateFields = "private-fields",
        /// `public`.
        Public = "public",
        /// `must-revalidate`.
        MustRevalidate = "must-revalidate",
        /// `proxy-revalidate`.
        ProxyRevalidate = "proxy-revalidate",
        /// `must-understand`.
        MustUnderstand = "must-understand",
        /// `no-transform`.
        NoTransform = "no-transform",
        /// `immutable`.
        Immutable = "immutable",
        /// `max-age`; its value is `max_age_s`.
        MaxAge = "max-age",
        /// `s-maxage`; its value is `s_maxage_s`.
        SMaxAge = "s-maxage",
        /// `stale-while-revalidate`; its value is `stale_while_revalidate_s`.
        StaleWhileRevalidate = "stale-while-revalidate",
        /// `stale-if-error`; its value is `stale_if_error_s`.
        StaleIfError = "stale-if-error",
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
