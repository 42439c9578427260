//! A store on disk as operators see it: the key of a URL, and what is stored beside content.

pub mod report;

use crate::config::Mode;
use crate::request::judge::key_of;
use weir_net::clock::Clock;
use weir_policy::{Digest, Secret};
use weir_semantics::{Authority, HostName, Method, Scheme, canonical_target};
use weir_store::record::{Line, Record, variant_key};

/// A record, as it is shown to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnDisk {
    /// A response.
    Response(ResponseOnDisk),
    /// What the responses of a target vary on; the responses are records of their own.
    Rules(RulesOnDisk),
}

/// A response without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseOnDisk {
    /// Status line and field lines, each ended by CRLF, without the empty line.
    pub head: Box<[u8]>,
    /// Its status code.
    pub status: u16,
    /// The complete length of its content in bytes, if that is known.
    pub complete_length: Option<u64>,
    /// The URL it answers, if it was written with it.
    pub target: Option<Box<str>>,
    selecting: Option<Digest>,
}

/// What the responses of a target vary on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesOnDisk {
    /// Names of fields, set by set, newest first.
    pub fields: Vec<Vec<String>>,
    line: Line,
}

impl OnDisk {
    /// Reads what stands beside the content of a record.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(meta: &[u8]) -> Result<Self, String> {
        let record = Record::decode(meta, Clock::system().now());
        Ok(match record.map_err(|error| error.to_string())? {
            Record::Response(response) => Self::Response(ResponseOnDisk {
                status: response.facts.status,
                complete_length: response.complete_length,
                target: response.target,
                selecting: response.vary.map(|(_, selecting)| selecting),
                head: response.head,
            }),
            Record::Rules(rules) => {
                let names = |rule: &[Box<str>]| rule.iter().map(ToString::to_string).collect();
                Self::Rules(RulesOnDisk {
                    fields: rules.rules.iter().map(|rule| names(&rule.0)).collect(),
                    line: rules.line,
                })
            }
        })
    }
}

impl RulesOnDisk {
    /// Whether `response`, whose key is `key`, is one of the variants of the target with the key
    /// `target`.
    #[must_use]
    pub fn lead_to(
        &self,
        secret: &Secret,
        target: Digest,
        key: Digest,
        response: &ResponseOnDisk,
    ) -> bool {
        let selecting = response.selecting;
        selecting.is_some_and(|it| variant_key(secret, target, self.line, it) == key)
    }
}

/// The key of `url` as a listener of this mode makes it.
///
/// # Errors
///
/// Says why this is no URL that is cached.
pub fn key_of_url(mode: Mode, url: &str, secret: &Secret) -> Result<Digest, String> {
    // a URL names its host; the parameter is required and not used
    let host = HostName::parse("localhost").map_err(|error| error.to_string())?;
    let default = Authority { host, port: None };
    if !url.contains("://") {
        return Err("it has no scheme and host, such as http://example.com/".to_owned());
    }
    let mut slot = HostName::EMPTY;
    let target = canonical_target(
        Method::Get,
        url,
        &[],
        false,
        &default,
        Scheme::Http,
        &mut slot,
    );
    let (target, _) = target.map_err(|error| error.to_string())?;
    Ok(key_of(mode, &target, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_target_uris_share_a_key_and_malformed_ones_have_none() {
        let key = |mode, url| key_of_url(mode, url, &Secret([5; 16]));
        let expected = key(Mode::Forward, "http://example.com/a?b");
        assert!(expected.is_ok());
        assert_eq!(key(Mode::Forward, "http://EXAMPLE.com:80/a?b"), expected);
        assert_ne!(key(Mode::Forward, "http://example.com/a"), expected);
        assert_ne!(key(Mode::Gateway, "http://example.com/a?b"), expected);
        for url in ["/a", "example.com/a", "http://", "http://a b/"] {
            assert!(key(Mode::Forward, url).is_err(), "{url}");
        }
    }

    #[test]
    fn metadata_of_an_unknown_format_is_refused() {
        assert!(OnDisk::read(b"").is_err());
        assert!(OnDisk::read(b"anything").is_err());
    }
}
