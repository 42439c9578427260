//! Which requests the admin interface answers, judged by the request itself.
//!
//! DNS rebinding: a page on `evil.example` points its own name at 127.0.0.1 and then talks to the
//! admin "from the same origin". The browser still sends `Host: evil.example`. A `Host` that is an
//! address, or `localhost`, cannot be rebound.

use std::net::IpAddr;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::{Control, Token};

/// By what requests are judged beside themselves.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) control: Arc<dyn Control>,
    /// Other machines reach the address.
    pub(super) is_public: bool,
}

/// What tells who reads what: from another machine it needs the token.
const NAMING: [&str; 3] = ["/explain", "/misses", "/top"];

/// What no page of another origin may ask for: what names something, and what has few places.
const OF_OUR_PAGE: [&str; 7] = [
    "/events",
    "/explain",
    "/history",
    "/live",
    "/misses",
    "/next-hops",
    "/top",
];

/// Refuses with 403 or 401 and the reason, or passes on.
pub(super) async fn check(
    State(Guard { control, is_public }): State<Guard>,
    request: Request,
    next: Next,
) -> Response {
    let authority = request
        .uri()
        .authority()
        .map(axum::http::uri::Authority::as_str);
    let path = request.uri().path();
    if !is_probe(request.method(), path)
        && let Some(why) = refusal(request.method(), authority, request.headers())
    {
        return super::text(StatusCode::FORBIDDEN, format!("{why}\n"));
    }
    let is_naming = NAMING.contains(&path);
    if OF_OUR_PAGE.contains(&path) && is_of_another_page(request.headers()) {
        let why = "refused: a page of another origin asks for it\n";
        return super::text(StatusCode::FORBIDDEN, why.into());
    }
    let needs = if is_naming && is_public {
        Needs::Token
    } else {
        Needs::TokenToChange
    };
    match challenge(
        needs,
        request.method(),
        request.headers(),
        control.token().as_deref(),
    ) {
        Some(challenge) => unauthorized(challenge),
        None => next.run(request).await,
    }
}

/// Whether a request asks for nothing but whether clients may be sent here: balancers do so by the
/// name of a node, or with no `Host` at all, and a page learns nothing from it.
fn is_probe(method: &Method, path: &str) -> bool {
    path == "/healthz" && (method == Method::GET || method == Method::HEAD)
}

/// What a request that may change something lacks (RFC 6750 §3), if there is a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Challenge {
    /// It presents none.
    Missing,
    /// It presents another, or several.
    Wrong,
}

/// Whether a request has the token, or none is needed to read what is stored for users.
pub(super) fn may_see_values(headers: &HeaderMap, token: Option<&Token>) -> bool {
    challenge(Needs::Token, &Method::GET, headers, token).is_none()
}

/// What needs the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Every request.
    Token,
    /// All but GET and HEAD: no endpoint may change anything for these.
    TokenToChange,
}

/// Whether a required token is missing or wrong.
fn challenge(
    needs: Needs,
    method: &Method,
    headers: &HeaderMap,
    token: Option<&Token>,
) -> Option<Challenge> {
    let token = token?;
    let only_reads = method == Method::GET || method == Method::HEAD;
    if needs == Needs::TokenToChange && only_reads {
        return None;
    }
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        let any = headers.contains_key(header::AUTHORIZATION);
        return Some(if any {
            Challenge::Wrong
        } else {
            Challenge::Missing
        });
    };
    let line = line.as_bytes();
    let (scheme, presented) = line.split_at(SCHEME.len().min(line.len()));
    let is_it = scheme.eq_ignore_ascii_case(SCHEME) && token.is(presented.trim_ascii());
    (!is_it).then_some(Challenge::Wrong)
}

/// The scheme and the space behind it (RFC 6750 §2.1); in any case, as of every scheme (RFC 9110
/// §11.1).
const SCHEME: &[u8] = b"Bearer ";

fn unauthorized(challenge: Challenge) -> Response {
    let (field, why) = match challenge {
        Challenge::Missing => (
            r#"Bearer realm="weir admin""#,
            "this needs the token in `admin.token_file`, as `Authorization: Bearer TOKEN`",
        ),
        Challenge::Wrong => (
            r#"Bearer realm="weir admin", error="invalid_token""#,
            "this is not the token in `admin.token_file`",
        ),
    };
    let mut response = super::text(StatusCode::UNAUTHORIZED, format!("{why}\n"));
    let field = HeaderValue::from_static(field);
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, field);
    response
}

/// Why a request is refused, if it is. `authority` is that of an absolute-form target, which has
/// precedence over `Host` (RFC 9112 §3.2.2) and must pass the same test.
fn refusal(method: &Method, authority: Option<&str>, headers: &HeaderMap) -> Option<String> {
    let Some(host) = only(headers, &header::HOST) else {
        return Some("refused: exactly one Host field is needed".into());
    };
    for name in authority.into_iter().chain([host]) {
        if !is_address_or_localhost(name) {
            return Some(format!(
                "refused: Host is `{name}`; the admin answers only to an IP address (other than 0.0.0.0 and ::) or `localhost`, \
                 because a name can be made to point here by others (DNS rebinding)"
            ));
        }
    }
    if method == Method::POST
        && headers.contains_key(header::ORIGIN)
        && !is_same_origin(headers, host)
    {
        return Some("refused: a POST that a page of another origin made".into());
    }
    None
}

/// A browser says that a page of another site or origin makes the request (Fetch Metadata §2.3). It
/// could not read the answer, but a page must not be able to ask.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    headers
        .get_all("sec-fetch-site")
        .iter()
        .any(|site| site != "same-origin" && site != "none")
}

fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    only(headers, &header::ORIGIN)
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|origin| origin.eq_ignore_ascii_case(host))
}

/// The field's value if there is one line of it, in ASCII.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut lines = headers.get_all(name).iter();
    let value = lines.next()?.to_str().ok()?;
    lines.next().is_none().then_some(value)
}

/// 0.0.0.0 and :: are refused: some browsers let pages of any site send requests to this machine by
/// them, and no operator needs them.
fn is_address_or_localhost(authority: &str) -> bool {
    if let Some((inner, port)) = authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return inner.parse().is_ok_and(|ip| is_specified(IpAddr::V6(ip)))
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, "0"));
    let is_address = || host.parse().is_ok_and(|ip| is_specified(IpAddr::V4(ip)));
    is_port(port) && (host.eq_ignore_ascii_case("localhost") || is_address())
}

fn is_specified(ip: IpAddr) -> bool {
    !ip.to_canonical().is_unspecified()
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_ip_address_or_localhost_is_accepted_as_host() {
        for good in [
            "127.0.0.1",
            "127.0.0.1:3129",
            "10.1.2.3:80",
            "localhost",
            "LocalHost:3129",
            "[::1]",
            "[::1]:3129",
        ] {
            assert!(is_address_or_localhost(good), "{good}");
        }
        let bad = [
            "",
            "evil.example",
            "evil.example:3129",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.1",
            "2130706433",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]:",
            "127.0.0.1:",
            "127.0.0.1:99999",
            "127.0.0.1:+1",
            "user@127.0.0.1",
            "localhost:3129:1",
            "0.0.0.0",
            "0.0.0.0:3129",
            "[::]:3129",
            "[::ffff:0.0.0.0]",
        ];
        for bad in bad {
            assert!(!is_address_or_localhost(bad), "{bad}");
        }
    }

    fn check(
        method: &Method,
        authority: Option<&str>,
        fields: &[(HeaderName, &'static str)],
        allowed: bool,
    ) {
        let lines = fields
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        assert_eq!(
            refusal(method, authority, &headers).is_none(),
            allowed,
            "{method} {authority:?} {fields:?}"
        );
    }

    #[test]
    fn page_of_another_origin_is_told_from_ours_and_from_a_typed_address() {
        for (site, is_other) in [
            (None, false),
            (Some("none"), false),
            (Some("same-origin"), false),
            (Some("same-site"), true),
            (Some("cross-site"), true),
            (Some("anything"), true),
        ] {
            let lines = site.map(|site| {
                let name = HeaderName::from_static("sec-fetch-site");
                (name, HeaderValue::from_static(site))
            });
            let headers: HeaderMap = lines.into_iter().collect();
            assert_eq!(is_of_another_page(&headers), is_other, "{site:?}");
        }
    }

    #[test]
    fn post_from_another_origin_is_refused() {
        let host = (header::HOST, "127.0.0.1:3129");
        let origin = |value| [host.clone(), (header::ORIGIN, value)];
        check(&Method::POST, None, std::slice::from_ref(&host), true);
        check(&Method::POST, None, &origin("http://127.0.0.1:3129"), true);
        check(&Method::POST, None, &origin("http://127.0.0.1:8080"), false);
        check(
            &Method::POST,
            None,
            &origin("https://127.0.0.1:3129"),
            false,
        );
        check(&Method::POST, None, &origin("http://evil.example"), false);
        check(&Method::POST, None, &origin("null"), false);
        check(&Method::GET, None, &origin("http://evil.example"), true);
    }

    #[test]
    fn request_without_exactly_one_trusted_host_is_refused() {
        let host = (header::HOST, "127.0.0.1");
        check(&Method::GET, None, &[], false);
        check(&Method::GET, None, &[host.clone(), host.clone()], false);
        check(
            &Method::GET,
            Some("evil.example"),
            std::slice::from_ref(&host),
            false,
        );
        check(
            &Method::GET,
            Some("127.0.0.1"),
            std::slice::from_ref(&host),
            true,
        );
        check(
            &Method::GET,
            Some("127.0.0.1"),
            &[(header::HOST, "evil.example")],
            false,
        );
    }
}
