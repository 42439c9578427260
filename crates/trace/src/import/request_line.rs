//! The target of a request line: for sources that have no heads.

use super::hide::Hide;
use super::settings::Site;
use crate::{Row, TraceMethod, TraceScheme};

/// Fills the columns that method and target say: method, scheme, server, target, query and
/// `cgi-bin`.
///
/// The target's hash is that of its bytes as they stand (RFC 3986 has more spellings of the same
/// URI; the server that logged it saw two), but for a fragment. One without authority is put behind
/// the site's, if that is known.
pub(crate) fn fill(
    row: &mut Row,
    method: &str,
    target: &[u8],
    site: Option<&Site>,
    hide: &dyn Hide,
) {
    row.method = Some(TraceMethod::from_word(method).unwrap_or(TraceMethod::Other));
    let target = without_fragment(target);
    let whole;
    let target = match site {
        Some(site) if target.first() == Some(&b'/') && !target.starts_with(b"//") => {
            whole = [site.as_str().as_bytes(), target].concat();
            &whole
        }
        _ => target,
    };
    row.target = hide.target(target);
    row.target_text = hide
        .keeps_names()
        .then(|| String::from_utf8_lossy(target).into_owned());
    let parts = Parts::of(target, row.method == Some(TraceMethod::Connect));
    row.scheme = parts.scheme;
    row.server = parts.origin().map(|origin| hide.server(&origin));
    row.has_query = Some(parts.path.contains(&b'?'));
    row.has_cgi_bin = Some(has_cgi_bin(parts.path));
}

fn without_fragment(target: &[u8]) -> &[u8] {
    match memchr::memchr(b'#', target) {
        // a target that is nothing else stays one
        Some(0) | None => target,
        Some(end) => &target[..end],
    }
}

struct Parts<'a> {
    scheme: Option<TraceScheme>,
    authority: Option<&'a [u8]>,
    default_port: &'static [u8],
    path: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(target: &'a [u8], is_connect: bool) -> Self {
        let (scheme, default_port, rest) = if let Some(rest) = after_scheme(target, "http") {
            (Some(TraceScheme::Http), &b"80"[..], rest)
        } else if let Some(rest) = after_scheme(target, "https") {
            (Some(TraceScheme::Https), &b"443"[..], rest)
        } else if let Some(rest) = target.strip_prefix(b"//") {
            (None, &b""[..], rest)
        } else if is_connect && target.first() != Some(&b'/') {
            (None, &b""[..], target)
        } else {
            return Self {
                scheme: None,
                authority: None,
                default_port: b"",
                path: target,
            };
        };
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'/' | b'?'))
            .unwrap_or(rest.len());
        Self {
            scheme,
            authority: Some(&rest[..end]),
            default_port,
            path: &rest[end..],
        }
    }

    /// `scheme://host:port`; without a scheme where there is none.
    fn origin(&self) -> Option<Vec<u8>> {
        let authority = self.authority?;
        let start = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
        let authority = &authority[start..];
        if authority.is_empty() {
            return None;
        }
        let mut origin = Vec::with_capacity(authority.len() + 13);
        if let Some(scheme) = self.scheme {
            origin.extend_from_slice(scheme.as_str().as_bytes());
            origin.push(b':');
        }
        origin.extend_from_slice(b"//");
        origin.extend(authority.iter().map(u8::to_ascii_lowercase));
        if !has_port(authority) && !self.default_port.is_empty() {
            origin.push(b':');
            origin.extend_from_slice(self.default_port);
        }
        Some(origin)
    }
}

fn has_port(authority: &[u8]) -> bool {
    let after_address = memchr::memrchr(b']', authority).map_or(0, |at| at + 1);
    authority[after_address..].contains(&b':')
}

fn after_scheme<'a>(target: &'a [u8], scheme: &str) -> Option<&'a [u8]> {
    let (found, rest) = target.split_at_checked(scheme.len())?;
    if !found.eq_ignore_ascii_case(scheme.as_bytes()) {
        return None;
    }
    rest.strip_prefix(b"://")
}

fn has_cgi_bin(path: &[u8]) -> bool {
    let end = memchr::memchr(b'?', path).unwrap_or(path.len());
    memchr::memmem::find(&path[..end], b"cgi-bin").is_some()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Open;
    use super::*;

    fn check(method: &str, target: &str, site: Option<&str>, server: Option<&str>, text: &str) {
        let mut row = Row::default();
        let site = site.map(|site| site.parse().unwrap());
        fill(&mut row, method, target.as_bytes(), site.as_ref(), &Open);
        let expected = server.map(|server| Open.server(server.as_bytes()));
        assert_eq!(row.server, expected, "{target}");
        assert_eq!(row.target_text.as_deref(), Some(text), "{target}");
        assert_eq!(row.target, Open.target(text.as_bytes()), "{target}");
    }

    #[test]
    fn server_is_the_normalised_origin_of_the_target_uri() {
        let a = "http://a:80";
        check("GET", "http://a/x", None, Some(a), "http://a/x");
        check("GET", "HTTP://A:80/x", None, Some(a), "HTTP://A:80/x");
        check("GET", "http://u@a?x#f", None, Some(a), "http://u@a?x");
        check("GET", "https://a", None, Some("https://a:443"), "https://a");
        check(
            "GET",
            "http://[::1]/",
            None,
            Some("http://[::1]:80"),
            "http://[::1]/",
        );
        check("CONNECT", "a:443", None, Some("//a:443"), "a:443");
        check("GET", "//a:80/x", None, Some("//a:80"), "//a:80/x");
    }

    #[test]
    fn bare_path_belongs_to_the_configured_site_or_to_no_server() {
        check("GET", "/x", None, None, "/x");
        let site = Some("https://a/");
        check("GET", "/x", site, Some("https://a:443"), "https://a/x");
        check("GET", "http://b/", site, Some("http://b:80"), "http://b/");
        check("OPTIONS", "*", site, None, "*");
        check("GET", "#", None, None, "#");
        check("GET", "http://", None, None, "http://");
    }

    #[test]
    fn query_and_cgi_bin_are_detected_in_the_path_only() {
        for (target, query, cgi_bin) in [
            ("/cgi-bin/x", false, true),
            ("/?cgi-bin", true, false),
            ("http://cgi-bin/?", true, false),
            ("http://a/x/cgi-bin?y", true, true),
        ] {
            let mut row = Row::default();
            fill(&mut row, "GET", target.as_bytes(), None, &Open);
            assert_eq!(row.has_query, Some(query), "{target}");
            assert_eq!(row.has_cgi_bin, Some(cgi_bin), "{target}");
        }
    }

    #[test]
    fn site_is_an_http_origin_without_a_path() {
        for bad in ["", "a", "http://", "http://a/b", "ftp://a", "http://a:x"] {
            assert!(bad.parse::<Site>().is_err(), "{bad}");
        }
        assert_eq!(
            "https://a:8443/".parse::<Site>().unwrap().as_str(),
            "https://a:8443"
        );
    }
}
