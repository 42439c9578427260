//! The fields a proxy has an opinion about, found by name in a few instructions.
//!
//! Every field of every message is looked up here, so the lookup is one table access and one
//! comparison: the table is built by the compiler from the list below, indexed by length, first and
//! last byte of the name, and free of collisions (the build fails otherwise).

macro_rules! known_fields {
    ($($variant:ident = $name:literal,)*) => {
        /// A field with a known name; all others are forwarded by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl Known {
            /// All known fields, in the order of their names.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name as it is usually written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

known_fields! {
    Accept = "Accept",
    AcceptCharset = "Accept-Charset",
    AcceptEncoding = "Accept-Encoding",
    AcceptLanguage = "Accept-Language",
    AcceptRanges = "Accept-Ranges",
    Age = "Age",
    Allow = "Allow",
    AltSvc = "Alt-Svc",
    AuthenticationInfo = "Authentication-Info",
    Authorization = "Authorization",
    CacheControl = "Cache-Control",
    CacheStatus = "Cache-Status",
    CdnCacheControl = "CDN-Cache-Control",
    CdnLoop = "CDN-Loop",
    ClearSiteData = "Clear-Site-Data",
    Connection = "Connection",
    ContentDisposition = "Content-Disposition",
    ContentEncoding = "Content-Encoding",
    ContentLanguage = "Content-Language",
    ContentLength = "Content-Length",
    ContentLocation = "Content-Location",
    ContentRange = "Content-Range",
    ContentSecurityPolicy = "Content-Security-Policy",
    ContentType = "Content-Type",
    Cookie = "Cookie",
    Date = "Date",
    ETag = "ETag",
    Expect = "Expect",
    Expires = "Expires",
    Forwarded = "Forwarded",
    From = "From",
    Host = "Host",
    Http2Settings = "HTTP2-Settings",
    IfMatch = "If-Match",
    IfModifiedSince = "If-Modified-Since",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    IfUnmodifiedSince = "If-Unmodified-Since",
    KeepAlive = "Keep-Alive",
    LastModified = "Last-Modified",
    Link = "Link",
    Location = "Location",
    MaxForwards = "Max-Forwards",
    Origin = "Origin",
    Pragma = "Pragma",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthenticationInfo = "Proxy-Authentication-Info",
    ProxyAuthorization = "Proxy-Authorization",
    ProxyConnection = "Proxy-Connection",
    ProxyStatus = "Proxy-Status",
    Range = "Range",
    Referer = "Referer",
    RetryAfter = "Retry-After",
    Server = "Server",
    SetCookie = "Set-Cookie",
    SetCookie2 = "Set-Cookie2",
    StrictTransportSecurity = "Strict-Transport-Security",
    SurrogateControl = "Surrogate-Control",
    Te = "TE",
    Trailer = "Trailer",
    TransferEncoding = "Transfer-Encoding",
    Upgrade = "Upgrade",
    UserAgent = "User-Agent",
    Vary = "Vary",
    Via = "Via",
    Warning = "Warning",
    WeirPeer = "Weir-Peer",
    WwwAuthenticate = "WWW-Authenticate",
    XForwardedFor = "X-Forwarded-For",
    XForwardedHost = "X-Forwarded-Host",
    XForwardedProto = "X-Forwarded-Proto",
}

/// The known field with this name, compared without regard to case.
///
/// Every request field that a rule reads by name must be known here, or be one that modules cannot
/// write: where modules have only added fields that are unknown here, the proxy keeps the facts of
/// the head as it was received, and does not judge it again. Fields that a `Vary` nominates are
/// exempt: their digest is made of the changed head.
#[must_use]
#[inline]
pub fn identify(name: &str) -> Option<Known> {
    let name = name.as_bytes();
    let index = usize::from(INDEX[slot(name)?]);
    let spelling = SPELLINGS.get(index)?;
    (spelling.length == name.len() && eq_lower(name, &spelling.lower[..spelling.length]))
        .then(|| Known::ALL[index])
}

/// The lower case spelling of a known name.
struct Spelling {
    length: usize,
    lower: [u8; LENGTH_MAX],
}

/// No known name is longer.
const LENGTH_MAX: usize = 32;

/// In the order of [`Known::ALL`].
static SPELLINGS: [Spelling; Known::ALL.len()] = {
    let mut spellings = [const {
        Spelling {
            length: 0,
            lower: [0; LENGTH_MAX],
        }
    }; Known::ALL.len()];
    let mut index = 0;
    while index < Known::ALL.len() {
        let name = Known::ALL[index].as_str().as_bytes();
        let mut at = 0;
        while at < name.len() {
            assert!(
                name[at].is_ascii_alphanumeric() || name[at] == b'-',
                "eq_lower knows no other bytes"
            );
            spellings[index].lower[at] = name[at].to_ascii_lowercase();
            at += 1;
        }
        spellings[index].length = name.len();
        index += 1;
    }
    spellings
};

/// Is `name` the same as `lower` but for case? Both have the same length, and `lower` has lower
/// case letters, digits and hyphens only. Eight bytes at a time: names are short, and a loop over
/// bytes costs as much as all the rest.
#[inline]
pub(crate) fn eq_lower(name: &[u8], lower: &[u8]) -> bool {
    /// Of those bytes only letters have the bit 0x40; where it is, the case bit 0x20 is
    /// disregarded.
    const LETTER: u64 = u64::from_ne_bytes([0x40; 8]);
    let eq8 = |name: &[u8; 8], lower: &[u8; 8]| {
        let (name, lower) = (u64::from_ne_bytes(*name), u64::from_ne_bytes(*lower));
        name | ((lower & LETTER) >> 1) == lower
    };
    let eq4 = |name: &[u8; 4], lower: &[u8; 4]| {
        let widen = |four: &[u8; 4]| [four[0], four[1], four[2], four[3], 0, 0, 0, 0];
        eq8(&widen(name), &widen(lower))
    };
    if let (Some(name_end), Some(lower_end)) = (name.last_chunk(), lower.last_chunk()) {
        // the last eight bytes overlap those before, of which nearly all names have one or two
        let is_same = |at: usize| {
            let part = |text: &[u8]| text.get(at..)?.first_chunk().copied();
            part(name)
                .zip(part(lower))
                .is_some_and(|(name, lower)| eq8(&name, &lower))
        };
        return eq8(name_end, lower_end)
            && is_same(0)
            && (name.len() <= 16 || is_same(8) && (name.len() <= 24 || is_same(16)));
    }
    if let (Some(name_start), Some(lower_start), Some(name_end), Some(lower_end)) = (
        name.first_chunk(),
        lower.first_chunk(),
        name.last_chunk(),
        lower.last_chunk(),
    ) {
        return eq4(name_start, lower_start) && eq4(name_end, lower_end);
    }
    name.eq_ignore_ascii_case(lower)
}

/// Where a name is in [`INDEX`]; `None` for the empty name. The factors were found by trying.
#[inline]
const fn slot(name: &[u8]) -> Option<usize> {
    let ([first, ..], [.., last]) = (name, name) else {
        return None;
    };
    let sum = name.len().wrapping_mul(227)
        + (*first | 0x20) as usize * 21
        + (*last | 0x20) as usize * 243;
    Some(sum % INDEX_LENGTH)
}

const INDEX_LENGTH: usize = 256;
/// Marks a slot that no known name has.
const VACANT: u8 = u8::MAX;

/// Where the name of a slot is in [`SPELLINGS`].
static INDEX: [u8; INDEX_LENGTH] = {
    let mut table = [VACANT; INDEX_LENGTH];
    let mut index = 0;
    while index < Known::ALL.len() {
        let Some(slot) = slot(Known::ALL[index].as_str().as_bytes()) else {
            panic!("a known field has no name")
        };
        assert!(
            table[slot] == VACANT,
            "two known fields share a slot: find other factors"
        );
        assert!(index < VACANT as usize, "too many known fields");
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than 255, checked above"
        )]
        let byte = index as u8;
        table[slot] = byte;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(name: &str, expected: Option<Known>) {
        assert_eq!(identify(name), expected, "{name:?}");
    }

    #[test]
    fn every_known_field_name_is_found_in_any_case() {
        for &known in Known::ALL {
            check(known.as_str(), Some(known));
            check(&known.as_str().to_ascii_lowercase(), Some(known));
            check(&known.as_str().to_ascii_uppercase(), Some(known));
        }
    }

    #[test]
    fn known_field_name_with_one_other_byte_is_unknown() {
        for &known in Known::ALL {
            let name = known.as_str();
            for at in 0..name.len() {
                for other in ["_", "~"] {
                    let mut name = name.to_owned();
                    name.replace_range(at..=at, other);
                    check(&name, None);
                }
            }
        }
    }

    #[test]
    fn name_similar_to_a_known_field_is_unknown() {
        for name in [
            "",
            "H",
            "Hos",
            "Hosts",
            "H0st",
            "Content_Length",
            "Content-Lengtg",
            " Host",
            "Host ",
            "cache\rcontrol",
        ] {
            check(name, None);
        }
        check("hOsT", Some(Known::Host));
    }

    proptest! {
        #[test]
        fn identification_agrees_with_a_linear_search(name in "[A-Za-z0-9-]{0,20}") {
            let expected = Known::ALL.iter().copied().find(|known| known.as_str().eq_ignore_ascii_case(&name));
            prop_assert_eq!(identify(&name), expected);
        }
    }
}
