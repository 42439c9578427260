//! The short label of a service (RFC 3507 §4.10.2).

use weir_semantics::is_token;

/// The most bytes of a `Service-ID`.
pub const SERVICE_ID_BYTES_MAX: usize = 64;

/// Whether the text may be a `Service-ID`: a token within the limit.
pub(crate) fn is_service_id(text: &str) -> bool {
    text.len() <= SERVICE_ID_BYTES_MAX && is_token(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_id_is_a_token_of_at_most_64_bytes() {
        let longest = "x".repeat(SERVICE_ID_BYTES_MAX);
        for (text, expected) in [
            ("FOO", true),
            (longest.as_str(), true),
            (&format!("{longest}x"), false),
            ("", false),
            ("a b", false),
            ("a,b", false),
        ] {
            assert_eq!(is_service_id(text), expected, "{text}");
        }
    }
}
