//! Which hosts a route is for.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

/// One host, or all hosts below one. Case and a final dot do not matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// This host and no other: a name, or an address as the canonical target writes it.
    Exact(String),
    /// `*.suffix`, kept without the `*.`: every name with one or more labels before the suffix, not
    /// the suffix itself.
    Suffix(String),
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let suffix = text.strip_prefix("*.");
        let host = canonical(suffix.unwrap_or(text));
        if host.is_empty() || host.starts_with('.') || host.contains("..") {
            return Err(HostPatternError::EmptyLabel);
        }
        if host.contains('*') {
            return Err(HostPatternError::Wildcard);
        }
        // Brackets and colons: an IPv6 literal. With one, a port would be taken for a host that
        // never comes.
        let is_literal =
            suffix.is_none() && (host.starts_with('[') || host.matches(':').count() > 1);
        let fits = |c: char| {
            c.is_ascii_alphanumeric() || "-_.".contains(c) || (is_literal && "[]:".contains(c))
        };
        if let Some(character) = host.chars().find(|c| !fits(*c)) {
            return Err(HostPatternError::Character(character));
        }
        let host = host.into_owned();
        Ok(if suffix.is_some() {
            Self::Suffix(host)
        } else {
            Self::Exact(host)
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Suffix(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// Why a text is no host pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPatternError {
    /// It is empty, or has nothing between two dots.
    EmptyLabel,
    /// A `*` is elsewhere than in `*.` at the beginning.
    Wildcard,
    /// A character no host has; `:` if it names a port.
    Character(char),
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyLabel => f.write_str("a label of the host is empty"),
            Self::Wildcard => {
                f.write_str("`*` can only be the whole first label, as in `*.example.org`")
            }
            Self::Character(':') => f.write_str("a host pattern has no port"),
            Self::Character(character) => write!(f, "`{character}` cannot be in a host"),
        }
    }
}

impl core::error::Error for HostPatternError {}

/// `host` in lower case and without a final dot; copied only where it is not so already.
pub(super) fn canonical(host: &str) -> Cow<'_, str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let mut lower = host.to_string();
        lower.make_ascii_lowercase();
        Cow::Owned(lower)
    } else {
        Cow::Borrowed(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_pattern_is_an_exact_host_or_a_leading_wildcard_label() {
        let check = |text: &str, expected: Result<HostPattern, HostPatternError>| {
            assert_eq!(text.parse(), expected, "{text}");
        };
        let exact = |host: &str| Ok(HostPattern::Exact(host.to_string()));
        check("example.org", exact("example.org"));
        check("Example.ORG.", exact("example.org"));
        check("192.0.2.1", exact("192.0.2.1"));
        check("[2001:DB8::1]", exact("[2001:db8::1]"));
        check("2001:db8::1", exact("2001:db8::1"));
        check(
            "*.example.org",
            Ok(HostPattern::Suffix("example.org".to_string())),
        );
        for text in ["", ".", "*.", ".example.org", "a..b", "*..b"] {
            check(text, Err(HostPatternError::EmptyLabel));
        }
        for text in ["*", "a.*", "*a.b", "*.*.b"] {
            check(text, Err(HostPatternError::Wildcard));
        }
        check("example.org:80", Err(HostPatternError::Character(':')));
        check("exam ple", Err(HostPatternError::Character(' ')));
        check(
            "b\u{fc}cher.example",
            Err(HostPatternError::Character('\u{fc}')),
        );
    }
}
