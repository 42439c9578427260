//! Where a route leads: the origin or another proxy that answers for it.

use crate::config::setting::invalid::Invalid;
use crate::config::values::host::Host;
use crate::config::values::text::{BadValue, Form, text_value};
use std::fmt;

/// `http://host[:port]` or `https://host[:port]`, without path, query or userinfo. Written back
/// without the port of the scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHopUrl {
    /// Name or address.
    pub host: Host,
    /// TCP port, 1 to 65535; that of the scheme when the URL has none.
    pub port: u16,
    /// It is spoken to by TLS.
    pub tls: bool,
}

impl NextHopUrl {
    const fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Refuses TLS where none is spoken: `why`.
    pub(in crate::config) fn refuse_tls(
        &self,
        key: impl FnOnce() -> String,
        why: &str,
    ) -> Result<(), Invalid> {
        if !self.tls {
            return Ok(());
        }
        let hint = "use a URL of scheme http; next hops of a [[route]] may be https";
        Err(Invalid::new(key(), format!("{self}: {why}"), hint))
    }
}

impl fmt::Display for NextHopUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme();
        if self.port == default_port(self.tls) {
            write!(f, "{scheme}://{}", self.host)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl std::str::FromStr for NextHopUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (tls, rest) = split_scheme(text)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(BadValue::new(format!(
                "next hop `{text}` has a path; only scheme, host and port are expected"
            ))
            .suggesting(format!(
                "{}://{}",
                if tls { "https" } else { "http" },
                before_path(authority)
            )));
        }
        if authority.contains('@') {
            return Err(BadValue::new(format!(
                "next hop `{text}` has a user name, which is never sent"
            )));
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => default_port(tls),
            Some(port) => parse_port(port).ok_or_else(|| {
                BadValue::new(format!("`{port}` in `{text}` is not a port (1 to 65535)"))
            })?,
        };
        Ok(Self {
            host: host.parse()?,
            port,
            tls,
        })
    }
}

impl Form for NextHopUrl {
    const FORM: &'static str = "a URL of scheme http or https, such as \"http://10.0.0.1:8080\"";
}

text_value!(NextHopUrl);

/// A [`NextHopUrl`] of what is spoken to in clear.
pub(in crate::config) struct ClearUrl;

impl Form for ClearUrl {
    const FORM: &'static str = "a URL of scheme http, such as \"http://10.0.0.1:8080\"";
}

/// The port of a scheme (RFC 9110 §4.2.1, §4.2.2).
const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// Whether the scheme is https, and what follows it.
fn split_scheme(text: &str) -> Result<(bool, &str), BadValue> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok((false, rest)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Ok((true, rest)),
        Some((scheme, rest)) => Err(BadValue::new(format!(
            "next hop `{text}` has the scheme `{scheme}`; http:// and https:// are known"
        ))
        .suggesting(format!("http://{rest}"))),
        None => Err(BadValue::new(format!("next hop `{text}` has no scheme"))
            .suggesting(format!("http://{text}"))),
    }
}

fn before_path(authority: &str) -> &str {
    authority.split(['/', '?', '#']).next().unwrap_or(authority)
}

/// Splits at the last colon outside brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port))
            if !port.contains(']') && (!host.contains(':') || host.ends_with(']')) =>
        {
            (host, Some(port))
        }
        _ => (authority, None),
    }
}

/// Digits only: `+80` and an empty port are refused.
fn parse_port(text: &str) -> Option<u16> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|&port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = text
            .parse::<NextHopUrl>()
            .map(|url| url.to_string())
            .map_err(|refusal| refusal.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(part)) => assert!(found.contains(part), "{text}: {found}"),
            (found, expected) => panic!("{text}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn next_hop_url_is_displayed_in_canonical_form() {
        check("http://10.0.0.1:80", Ok("http://10.0.0.1"));
        check(
            "http://Origin.example:8080/",
            Ok("http://origin.example:8080"),
        );
        check("HTTP://a", Ok("http://a"));
        check("http://[::1]:8080", Ok("http://[::1]:8080"));
        check("http://[::1]", Ok("http://[::1]"));
        check("http://a:1", Ok("http://a:1"));
        check("http://a:65535", Ok("http://a:65535"));
        check("https://A.example/", Ok("https://a.example"));
        check("HTTPS://a:443", Ok("https://a"));
        check("https://a:80", Ok("https://a:80"));
        check("http://a:443", Ok("http://a:443"));
    }

    #[test]
    fn next_hop_url_with_path_or_bad_authority_is_refused() {
        check("https://a/b", Err("did you mean `https://a`?"));
        check("ftp://a", Err("did you mean `http://a`?"));
        check("10.0.0.1:80", Err("did you mean `http://10.0.0.1:80`?"));
        check("http://a/static", Err("did you mean `http://a`?"));
        check("http://a?x", Err("has a path"));
        check("http://u:p@a", Err("user name"));
        check("http://", Err("is empty"));
        check("http://:80", Err("is empty"));
        check("http://a:", Err("is not a port"));
        check("http://a:0", Err("is not a port"));
        check("http://a:65536", Err("is not a port"));
        check("http://a:+80", Err("is not a port"));
        check("http://::1", Err("needs brackets"));
        check("http://2130706433", Err("ends in a number"));
    }
}
