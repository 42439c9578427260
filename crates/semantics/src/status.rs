//! Status codes as a cache reads them, RFC 9110 §15.

/// Is this a final status (RFC 9110 §15.2: 1xx are interim)? Codes outside 200 to 599 are not.
#[must_use]
pub const fn is_final(status: u16) -> bool {
    matches!(status, 200..=599)
}

/// Do we know the caching requirements of this status and keep them (RFC 9111 §3, §5.2.2.3
/// `must-understand`)?
///
/// The final codes of RFC 9110 §15, RFC 6585 and RFC 7725. 206 among them: its requirements are
/// checked before this ([`crate::storable`]), and when parts are joined ([`crate::combines`]). Not
/// 304: it updates, and is never stored.
#[must_use]
pub const fn is_understood(status: u16) -> bool {
    matches!(
        status,
        200..=206 | 300..=303 | 305 | 307 | 308 | 400..=406 | 408..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451 | 500..=505 | 511
    )
}

/// May a response with this status be stored without an explicit lifetime (RFC 9110 §15.1)?
#[must_use]
pub const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(
        status,
        200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, expected_final: bool, understood: bool, heuristic: bool) {
        let is = (
            is_final(status),
            is_understood(status),
            is_heuristically_cacheable(status),
        );
        assert_eq!(is, (expected_final, understood, heuristic), "{status}");
    }

    #[test]
    fn interim_and_invalid_codes_are_not_final() {
        for status in [0, 100, 101, 103, 199, 600, 999] {
            check(status, false, false, false);
        }
    }

    #[test]
    fn only_listed_codes_are_heuristically_cacheable() {
        for status in [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501] {
            check(status, true, true, true);
        }
        for status in [
            201, 202, 302, 303, 307, 400, 403, 416, 421, 451, 500, 502, 503, 504,
        ] {
            check(status, true, true, false);
        }
    }

    #[test]
    fn unassigned_codes_and_304_are_final_but_not_understood() {
        for status in [299, 304, 306, 418, 499, 599] {
            check(status, true, false, false);
        }
    }
}
