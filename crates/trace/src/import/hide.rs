//! How names become numbers.

use crate::{Anonymisation, Anonymiser};

/// Makes names into numbers, so that equal names get equal numbers and the numbers do not reveal
/// the names.
///
/// One value serves all sources that go into one trace: a client of one is the same client in the
/// other.
pub trait Hide {
    /// A client: its address, or its name if the source has that.
    fn client(&self, address: &[u8]) -> u64;
    /// A server: scheme, host in lower case and port, always written: `http://www.example.org:80`.
    /// Without `http:` where the scheme is not known.
    fn server(&self, origin: &[u8]) -> u64;
    /// A target URI as the source has it, without fragment.
    fn target(&self, uri: &[u8]) -> u64;
    /// Any other value that is compared and never read: an entity tag, the name of a connection.
    fn value(&self, value: &[u8]) -> u64;
    /// Nominated fields (RFC 9111 §4.1), lower case and in order, each with what the request says
    /// in it, in the form in which `weir_semantics::feed_selecting` gives it: two that match are
    /// equal.
    fn variant(&self, said: &[(&str, Vec<u8>)]) -> u64;
    /// Whether targets may stay readable beside their numbers.
    fn keeps_names(&self) -> bool;
}

impl Hide for Anonymiser {
    fn client(&self, address: &[u8]) -> u64 {
        text(address, |address| Self::client(self, address))
    }

    fn server(&self, origin: &[u8]) -> u64 {
        text(origin, |origin| {
            let (scheme, authority) = origin.split_once("//").unwrap_or(("", origin));
            Self::server(self, scheme.strip_suffix(':').unwrap_or(scheme), authority)
        })
    }

    fn target(&self, uri: &[u8]) -> u64 {
        text(uri, |uri| Self::target(self, uri))
    }

    fn value(&self, value: &[u8]) -> u64 {
        self.etag(value)
    }

    fn variant(&self, said: &[(&str, Vec<u8>)]) -> u64 {
        Self::variant(self, said.iter().map(|(name, value)| (*name, &value[..])))
    }

    fn keeps_names(&self) -> bool {
        self.anonymisation() == Anonymisation::None
    }
}

/// Bytes that are not UTF-8 are escaped, so that different ones stay different.
fn text(bytes: &[u8], hash: impl Fn(&str) -> u64) -> u64 {
    match std::str::from_utf8(bytes) {
        Ok(text) => hash(text),
        Err(_) => hash(&bytes.escape_ascii().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importer_and_recorder_hash_a_name_to_the_same_value() {
        let anonymiser = Anonymiser::keyed([7; 16]);
        let hide: &dyn Hide = &anonymiser;
        assert_eq!(hide.client(b"::1"), anonymiser.client("::1"));
        assert_eq!(
            hide.server(b"http://a.example:80"),
            anonymiser.server("http", "a.example")
        );
        assert_eq!(
            hide.server(b"//a.example:443"),
            anonymiser.server("", "a.example:443")
        );
        assert_eq!(
            hide.target(b"http://a/b?c"),
            anonymiser.target("http://a/b?c")
        );
        assert_eq!(
            hide.variant(&[("accept", b"a".to_vec()), ("cookie", Vec::new())]),
            anonymiser.variant([("accept", &b"a"[..]), ("cookie", &b""[..])])
        );
        assert_ne!(hide.target(b"/\xff"), hide.target(b"/\xfe"));
        assert!(!hide.keeps_names());
        assert!(Anonymiser::none().keeps_names());
    }
}
