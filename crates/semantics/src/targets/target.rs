//! The target of a request in one canonical form, RFC 9110 §7.1 and §7.2, RFC 9112 §3.2 and §3.3.
//!
//! Routing, cache key, access rules and the forwarded request all use the [`Target`] and never the
//! request line or `Host` again. What can be read in two ways is an error, not repaired. We accept
//! less than the grammar does: no bytes beyond ASCII, no userinfo, only `http` and `https`, and the
//! hosts that [`HostName`] accepts. An absolute-form with a query but no path (`http://a?b`) is
//! refused too: its canonical form would need a `/` that is not in the request, and no client we
//! know sends it.

use crate::words;
use alloc::vec::Vec;
use core::fmt;

use crate::fields::field::FieldLine;
use crate::fields::structured::write_integer;
use crate::method::Method;
use crate::targets::host::{Authority, AuthorityError, HostName};

words! {
    /// The scheme of a target URI; others are refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Scheme {
        /// `http`
        Http = "http",
        /// `https`
        Https = "https",
    }
}

impl Scheme {
    /// The port that need not be written (RFC 9110 §4.2.1, §4.2.2).
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// What a request is for, canonical: two targets are the same exactly when their parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target<'a> {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: &'a HostName,
    /// The port, 1 to 65535; the scheme's own if none was given.
    pub port: u16,
    /// Path and query as received, never empty: begins with `/`, or is `*` for the server as a
    /// whole (`OPTIONS *`). A `CONNECT` has none and gets `/`.
    pub path_and_query: &'a str,
}

/// The path of a target's path and query.
#[must_use]
#[inline]
pub fn without_query(path_and_query: &str) -> &str {
    // paths are short: a search by words has more to set up than to search
    let mut bytes = path_and_query.bytes();
    let end = bytes.position(|byte| byte == b'?');
    end.map_or(path_and_query, |end| &path_and_query[..end])
}

impl Target<'_> {
    /// Appends host and port in the form of `Host` and of an absolute-form: without the port if it
    /// is the scheme's own.
    pub fn write_authority(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.host.as_bytes());
        if self.port != self.scheme.default_port() {
            out.push(b':');
            write_integer(i64::from(self.port), out);
        }
    }
}

/// The forms of a request target, RFC 9112 §3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `/path?query`: the form for a server or gateway.
    Origin,
    /// `http://host/path?query`: the form for a forward proxy.
    Absolute,
    /// `host:port`: `CONNECT` only.
    Authority,
    /// `*`: `OPTIONS` only.
    Asterisk,
}

/// The target that request line and `Host` name together, and the form of the request line.
///
/// `raw` is the request target as received, `http11` says whether `Host` is required, `default`
/// names the host of an HTTP/1.0 request without one, and `scheme` is that of the connection, used
/// unless `raw` has one. An absolute-form wins over `Host`, which must be valid all the same (RFC
/// 9112 §3.2.2). The host is written into `host`, and what that had is lost.
///
/// # Errors
/// Says what is ambiguous or malformed; the answer is 400 (RFC 9112 §3.2).
// part of the way of every hit: a call would copy what it returns twice, 2 % of one
#[inline(always)]
pub fn canonical_target<'a>(
    method: Method,
    raw: &'a str,
    fields: &[FieldLine<'_>],
    http11: bool,
    default: &Authority,
    scheme: Scheme,
    host: &'a mut HostName,
) -> Result<(Target<'a>, Form), TargetError> {
    check_bytes(raw.as_bytes())?;
    host.clear();
    // Host must be valid even where the request target wins over it (RFC 9112 §3.2)
    let mut port = match host_line(fields, http11)? {
        Some(value) => Authority::read(value, host).map_err(TargetError::Host)?,
        None => {
            *host = default.host;
            default.port
        }
    };
    let (mut scheme, mut path_and_query) = (scheme, raw);
    let form = match (raw, method) {
        (_, Method::Connect) => {
            (port, path_and_query) = (connect_target(raw, host)?, "/");
            Form::Authority
        }
        ("*", Method::Options) => Form::Asterisk,
        ("*", _) => return Err(TargetError::Asterisk),
        _ if raw.starts_with('/') => Form::Origin,
        _ => {
            (scheme, port, path_and_query) = absolute_target(method, raw, host)?;
            Form::Absolute
        }
    };
    let target = Target {
        scheme,
        host,
        port: port.unwrap_or(scheme.default_port()),
        path_and_query,
    };
    Ok((target, form))
}

fn check_bytes(raw: &[u8]) -> Result<(), TargetError> {
    if raw.is_empty() {
        return Err(TargetError::Empty);
    }
    // no early exit: so the compiler looks at many bytes at once
    let odd = raw.iter().fold(false, |odd, &byte| {
        odd | !byte.is_ascii_graphic() | (byte == b'#')
    });
    match odd {
        false => Ok(()),
        true if raw.iter().all(u8::is_ascii_graphic) => Err(TargetError::Fragment),
        true => Err(TargetError::Byte),
    }
}

/// The value of the one `Host` line.
fn host_line<'a>(fields: &[FieldLine<'a>], http11: bool) -> Result<Option<&'a [u8]>, TargetError> {
    let mut host = None;
    for line in fields {
        if line.name.len() == 4
            && line.name.eq_ignore_ascii_case("host")
            && host.replace(line.value).is_some()
        {
            return Err(TargetError::DuplicateHost);
        }
    }
    if host.is_none() && http11 {
        Err(TargetError::MissingHost)
    } else {
        Ok(host)
    }
}

/// RFC 9112 §3.2.3: the port is required, an empty one is none.
#[inline(never)]
fn connect_target(raw: &str, host: &mut HostName) -> Result<Option<u16>, TargetError> {
    if raw.starts_with('/') || raw.contains("://") {
        return Err(TargetError::ConnectForm);
    }
    match read_authority(raw, host)? {
        None => Err(TargetError::ConnectPort),
        port => Ok(port),
    }
}

/// RFC 9112 §3.2.2 and, for the empty path of an `OPTIONS`, §3.2.4.
#[inline(never)]
fn absolute_target<'a>(
    method: Method,
    raw: &'a str,
    host: &mut HostName,
) -> Result<(Scheme, Option<u16>, &'a str), TargetError> {
    let Some((scheme, rest)) = raw.split_once("://") else {
        let is_authority = Authority::parse(raw).is_ok_and(|authority| authority.port.is_some());
        return Err(if is_authority {
            TargetError::AuthorityForm
        } else {
            TargetError::Malformed
        });
    };
    let scheme = if scheme.eq_ignore_ascii_case("http") {
        Scheme::Http
    } else if scheme.eq_ignore_ascii_case("https") {
        Scheme::Https
    } else {
        return Err(TargetError::Scheme);
    };
    let end = rest
        .bytes()
        .position(|byte| matches!(byte, b'/' | b'?'))
        .unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(end);
    if authority.contains('@') {
        return Err(TargetError::Userinfo);
    }
    let path_and_query = match path_and_query.as_bytes().first() {
        None if method == Method::Options => "*",
        None => "/",
        Some(b'?') => return Err(TargetError::QueryWithoutPath),
        Some(_) => path_and_query,
    };
    let port = read_authority(authority, host)?;
    Ok((scheme, port, path_and_query))
}

/// Reads the authority of a request target, which wins over `Host`; returns its port.
fn read_authority(text: &str, host: &mut HostName) -> Result<Option<u16>, TargetError> {
    host.clear();
    Authority::read(text.as_bytes(), host).map_err(TargetError::Authority)
}

/// Why a request has no target we accept. The client's fault, always: 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetError {
    /// The request target is empty.
    Empty,
    /// It has whitespace, a control or a byte beyond ASCII in it.
    Byte,
    /// It has a fragment.
    Fragment,
    /// An HTTP/1.1 request has no `Host`.
    MissingHost,
    /// There is more than one `Host` line, with the same value or not.
    DuplicateHost,
    /// The value of `Host` is not accepted.
    Host(AuthorityError),
    /// The authority of the request target is not accepted.
    Authority(AuthorityError),
    /// There is userinfo (RFC 9110 §4.2.4).
    Userinfo,
    /// An absolute-form with another scheme than `http` and `https`.
    Scheme,
    /// An absolute-form with a query but no path.
    QueryWithoutPath,
    /// `host:port` with another method than `CONNECT`.
    AuthorityForm,
    /// `*` with another method than `OPTIONS`.
    Asterisk,
    /// A `CONNECT` with something else than `host:port`.
    ConnectForm,
    /// A `CONNECT` without a port.
    ConnectPort,
    /// None of the four forms.
    Malformed,
}

impl TargetError {
    /// The reason as one word in kebab-case, for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "target-empty",
            Self::Byte => "target-byte",
            Self::Fragment => "target-fragment",
            Self::MissingHost => "host-missing",
            Self::DuplicateHost => "host-duplicate",
            Self::Host(_) => "host-invalid",
            Self::Authority(_) => "target-authority",
            Self::Userinfo => "target-userinfo",
            Self::Scheme => "target-scheme",
            Self::QueryWithoutPath => "target-query-without-path",
            Self::AuthorityForm => "target-authority-form",
            Self::Asterisk => "target-asterisk",
            Self::ConnectForm => "connect-form",
            Self::ConnectPort => "connect-port",
            Self::Malformed => "target-malformed",
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the request target is empty",
            Self::Byte => "the request target has whitespace, a control or a byte beyond ASCII",
            Self::Fragment => "the request target has a fragment",
            Self::MissingHost => "an HTTP/1.1 request has no Host field",
            Self::DuplicateHost => "there is more than one Host field",
            Self::Host(error) => return write!(f, "the Host field is invalid: {error}"),
            Self::Authority(error) => return write!(f, "the request target is invalid: {error}"),
            Self::Userinfo => "the request target has userinfo",
            Self::Scheme => "the scheme of the request target is neither http nor https",
            Self::QueryWithoutPath => "the request target has a query but no path",
            Self::AuthorityForm => "a request target `host:port` is for CONNECT only",
            Self::Asterisk => "the request target `*` is for OPTIONS only",
            Self::ConnectForm => "the request target of CONNECT is not `host:port`",
            Self::ConnectPort => "the request target of CONNECT has no port",
            Self::Malformed => "the request target has none of the four forms",
        })
    }
}

impl core::error::Error for TargetError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_ends_where_the_query_begins() {
        for (target, path) in [
            ("/", "/"),
            ("*", "*"),
            ("/a/b?c", "/a/b"),
            ("/?", "/"),
            ("/a?b?c", "/a"),
        ] {
            assert_eq!(without_query(target), path, "{target}");
        }
    }

    type Found = Result<(String, Form), TargetError>;

    fn canonical(method: &str, raw: &str, hosts: &[&str], http11: bool) -> Found {
        let fields: Vec<_> = hosts
            .iter()
            .map(|host| FieldLine::new("hOsT", host.as_bytes()))
            .collect();
        let default = Authority::parse("default.example:81").unwrap();
        let mut slot = HostName::EMPTY;
        canonical_target(
            Method::parse(method),
            raw,
            &fields,
            http11,
            &default,
            Scheme::Http,
            &mut slot,
        )
        .map(|(target, form)| {
            let mut authority = Vec::new();
            target.write_authority(&mut authority);
            let authority = String::from_utf8(authority).unwrap();
            (
                format!(
                    "{}://{authority} {}",
                    target.scheme.as_str(),
                    target.path_and_query
                ),
                form,
            )
        })
    }

    fn check(method: &str, raw: &str, hosts: &[&str], expected: Result<(&str, Form), TargetError>) {
        let found = canonical(method, raw, hosts, true);
        let found = found
            .as_ref()
            .map(|(text, form)| (text.as_str(), *form))
            .map_err(|error| *error);
        assert_eq!(found, expected, "{method} {raw} {hosts:?}");
    }

    #[test]
    fn host_field_completes_an_origin_form_target() {
        check(
            "GET",
            "/a?b",
            &["Example.COM"],
            Ok(("http://example.com /a?b", Form::Origin)),
        );
        check(
            "GET",
            "/",
            &["example.com:80"],
            Ok(("http://example.com /", Form::Origin)),
        );
        check(
            "GET",
            "/",
            &["example.com:443"],
            Ok(("http://example.com:443 /", Form::Origin)),
        );
        check(
            "GET",
            "//x/%2f;y",
            &["[0::1]:8080"],
            Ok(("http://[::1]:8080 //x/%2f;y", Form::Origin)),
        );
        check("OPTIONS", "*", &["a"], Ok(("http://a *", Form::Asterisk)));
    }

    #[test]
    fn absolute_form_target_overrides_the_host_field() {
        check(
            "GET",
            "HTTP://A.Example:80/x",
            &["b"],
            Ok(("http://a.example /x", Form::Absolute)),
        );
        check(
            "GET",
            "https://a:443/x?y=http://c/",
            &["b"],
            Ok(("https://a /x?y=http://c/", Form::Absolute)),
        );
        check(
            "GET",
            "https://a:80",
            &["b"],
            Ok(("https://a:80 /", Form::Absolute)),
        );
        check(
            "OPTIONS",
            "http://a",
            &["b"],
            Ok(("http://a *", Form::Absolute)),
        );
        check(
            "OPTIONS",
            "http://a/",
            &["b"],
            Ok(("http://a /", Form::Absolute)),
        );
    }

    #[test]
    fn connect_target_is_a_host_and_port_only() {
        check(
            "CONNECT",
            "A.example:443",
            &["b"],
            Ok(("http://a.example:443 /", Form::Authority)),
        );
        check(
            "CONNECT",
            "[::1]:1",
            &["b"],
            Ok(("http://[::1]:1 /", Form::Authority)),
        );
        check("CONNECT", "a", &["b"], Err(TargetError::ConnectPort));
        check("CONNECT", "a:", &["b"], Err(TargetError::ConnectPort));
        check(
            "CONNECT",
            "a:0",
            &["b"],
            Err(TargetError::Authority(AuthorityError::Port)),
        );
        check("CONNECT", "/", &["b"], Err(TargetError::ConnectForm));
        check(
            "CONNECT",
            "http://a:443/",
            &["b"],
            Err(TargetError::ConnectForm),
        );
        check(
            "CONNECT",
            "a:443/",
            &["b"],
            Err(TargetError::Authority(AuthorityError::Port)),
        );
        check(
            "CONNECT",
            "u@a:443",
            &["b"],
            Err(TargetError::Authority(AuthorityError::HostByte)),
        );
        check(
            "CONNECT",
            "0x7f.1:80",
            &["b"],
            Err(TargetError::Authority(AuthorityError::Ipv4Spelling)),
        );
        check(
            "CONNECT",
            "*",
            &["b"],
            Err(TargetError::Authority(AuthorityError::HostByte)),
        );
    }

    #[test]
    fn missing_repeated_or_invalid_host_is_refused_in_every_target_form() {
        for (method, raw) in [
            ("GET", "/"),
            ("GET", "http://a/"),
            ("CONNECT", "a:1"),
            ("OPTIONS", "*"),
        ] {
            check(method, raw, &[], Err(TargetError::MissingHost));
            check(method, raw, &["a", "a"], Err(TargetError::DuplicateHost));
            check(method, raw, &["a", "b"], Err(TargetError::DuplicateHost));
            check(
                method,
                raw,
                &[""],
                Err(TargetError::Host(AuthorityError::EmptyHost)),
            );
            check(
                method,
                raw,
                &["a, b"],
                Err(TargetError::Host(AuthorityError::HostByte)),
            );
            check(
                method,
                raw,
                &["a:b"],
                Err(TargetError::Host(AuthorityError::Port)),
            );
            check(
                method,
                raw,
                &["u@a"],
                Err(TargetError::Host(AuthorityError::HostByte)),
            );
            check(
                method,
                raw,
                &["127.1"],
                Err(TargetError::Host(AuthorityError::Ipv4Spelling)),
            );
        }
    }

    #[test]
    fn http10_request_without_host_gets_the_default_authority() {
        let origin = |hosts| canonical("GET", "/", hosts, false);
        assert_eq!(
            origin(&[]),
            Ok(("http://default.example:81 /".to_owned(), Form::Origin))
        );
        assert_eq!(origin(&["a"]), Ok(("http://a /".to_owned(), Form::Origin)));
        assert_eq!(origin(&["a", "a"]), Err(TargetError::DuplicateHost));
    }

    #[test]
    fn ambiguous_or_malformed_target_is_refused() {
        check("GET", "", &["a"], Err(TargetError::Empty));
        for raw in ["/a b", "/a\tb", "/\0", "/\x7f", "/é", " /", "/\r"] {
            check("GET", raw, &["a"], Err(TargetError::Byte));
        }
        check("GET", "/a#b", &["a"], Err(TargetError::Fragment));
        check("GET", "http://a/#", &["a"], Err(TargetError::Fragment));
        check("GET", "*", &["a"], Err(TargetError::Asterisk));
        check("OPTIONS", "*a", &["a"], Err(TargetError::Malformed));
        check("GET", "a:80", &["a"], Err(TargetError::AuthorityForm));
        check("GET", "a", &["a"], Err(TargetError::Malformed));
        check("GET", "?a", &["a"], Err(TargetError::Malformed));
        check("GET", "http:/a/", &["a"], Err(TargetError::Malformed));
        check("GET", "ftp://a/", &["a"], Err(TargetError::Scheme));
        check("GET", "://a/", &["a"], Err(TargetError::Scheme));
        check("GET", "a/http://b/", &["a"], Err(TargetError::Scheme));
        check("GET", "http://u:p@a/", &["a"], Err(TargetError::Userinfo));
        check("GET", "http://a@/", &["a"], Err(TargetError::Userinfo));
        check(
            "GET",
            "http://a?b",
            &["a"],
            Err(TargetError::QueryWithoutPath),
        );
        check(
            "GET",
            "http:///a",
            &["a"],
            Err(TargetError::Authority(AuthorityError::EmptyHost)),
        );
        check(
            "GET",
            "http://",
            &["a"],
            Err(TargetError::Authority(AuthorityError::EmptyHost)),
        );
        check(
            "GET",
            "http://a:0/",
            &["a"],
            Err(TargetError::Authority(AuthorityError::Port)),
        );
        check(
            "GET",
            "http://a%2eb/",
            &["a"],
            Err(TargetError::Authority(AuthorityError::HostByte)),
        );
        check(
            "GET",
            "http://a\\b/",
            &["a"],
            Err(TargetError::Authority(AuthorityError::HostByte)),
        );
        check(
            "GET",
            "http://2130706433/",
            &["a"],
            Err(TargetError::Authority(AuthorityError::Ipv4Spelling)),
        );
    }

    proptest! {
        #[test]
        fn accepted_target_parses_to_itself_in_absolute_form(raw in r"(http://|/)?[A-Za-z0-9:/?@.*\[\]#%-]{0,20}", options: bool) {
            let method = if options { Method::Options } else { Method::Get };
            let host = [FieldLine::new("Host", b"h")];
            let default = Authority::parse("d").unwrap();
            let read = |raw: &str| {
                let mut slot = HostName::EMPTY;
                let found = canonical_target(method, raw, &host, true, &default, Scheme::Http, &mut slot);
                let found = found.ok()?.0;
                assert!(found.path_and_query == "*" || found.path_and_query.starts_with('/'));
                let mut absolute = format!("{}://", found.scheme.as_str()).into_bytes();
                found.write_authority(&mut absolute);
                if found.path_and_query != "*" {
                    absolute.extend_from_slice(found.path_and_query.as_bytes());
                }
                Some((String::from_utf8(absolute).unwrap(), *found.host, found.port))
            };
            if let Some((absolute, host, port)) = read(&raw) {
                prop_assert_eq!(read(&absolute), Some((absolute, host, port)));
            }
        }
    }
}
