//! The methods of ICAP (RFC 3507 §4.8, §4.9, §4.10).

use weir_semantics::words;

words! {
    /// The method of an ICAP request. Case matters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Method {
        /// What a service can do (RFC 3507 §4.10).
        Options = "OPTIONS",
        /// Adaptation of an HTTP request (RFC 3507 §4.8).
        Reqmod = "REQMOD",
        /// Adaptation of an HTTP response (RFC 3507 §4.9).
        Respmod = "RESPMOD",
    }
}

impl Method {
    /// The method with this name.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|method| method.as_str().as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_are_case_sensitive() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.as_str().as_bytes()), Some(method));
            let lower = method.as_str().to_ascii_lowercase();
            assert_eq!(Method::parse(lower.as_bytes()), None);
        }
        assert_eq!(Method::parse(b""), None);
        assert_eq!(Method::parse(b"GET"), None);
    }
}
