//! Purges: what a request means, and what is answered.
//!
//! The URL comes from the query, or from the body as JSON, as a form or as it is.
//!
//! A URL with `&` in it, put into a query without encoding, would silently lose its tail and purge
//! something else. So anything beside `url=` is an error.

use super::listening::places::Place;
use super::{Control, aside, text};
use axum::body::Bytes;
use axum::extract::{ConnectInfo, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

/// What an operator purges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeCall {
    /// What is stored for a URL.
    Url(String),
    /// Everything.
    All,
}

/// Where it is purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeReach {
    /// At all nodes of the cluster, if there is one.
    Cluster,
    /// At this node alone.
    ThisNode,
}

/// What was purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeReport {
    /// The name of this node; `None` if no other one was told.
    pub node: Option<String>,
    /// How many stored responses were dropped at this node, as far as that is known.
    pub purged: u64,
    /// This node may have purged more: the index of its disk is not complete.
    pub may_be_more_on_disk: bool,
    /// The other nodes.
    pub members: Vec<MemberPurge>,
    /// Nodes that are no members now, and had not applied all of the log of purges when they were.
    pub away: Vec<String>,
    /// Its revision in that log, or why it is not known to be there; `None` if the cluster has
    /// none.
    pub log: Option<Result<i64, String>>,
    /// Why nodes may have what was purged without being named above; `None` if nothing is known to
    /// keep a node from being told.
    pub problem: Option<String>,
}

/// What another node answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPurge {
    /// Its name.
    pub name: String,
    /// How many stored responses were dropped there, and whether that survives a crash; or why it
    /// is not known to have purged anything.
    pub outcome: Result<(u64, bool), String>,
}

/// Why something was not purged, or perhaps not for good.
#[derive(Debug)]
pub enum PurgeFailure {
    /// The URL cannot be one of a stored response: nothing was purged.
    Url(String),
    /// It is in force, and might not survive a crash.
    Disk(weir_disk::PurgeError),
    /// It is in force, and the disk has not said within so much time that it survives a crash.
    Slow(Duration),
}

impl fmt::Display for PurgeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) => write!(f, "cannot purge: {why}"),
            Self::Disk(error) => write!(f, "purged, but cannot {error}"),
            Self::Slow(waited) => write!(
                f,
                "purged, but the disk did not make that durable within {} s; purge again when it works",
                waited.as_secs()
            ),
        }
    }
}

impl std::error::Error for PurgeFailure {}

impl PurgeReport {
    /// Stored responses that were dropped, at all nodes.
    #[must_use]
    pub fn all_purged(&self) -> u64 {
        let members = self
            .members
            .iter()
            .filter_map(|member| member.outcome.as_ref().ok());
        members.fold(self.purged, |all, (purged, _)| all.saturating_add(*purged))
    }

    /// Whether each node is known to have purged for good, and a node that is away will hear of it
    /// where there is a log.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        let mut members = self.members.iter();
        let is_logged = !matches!(self.log, Some(Err(_)));
        is_logged
            && self.problem.is_none()
            && members.all(|member| matches!(member.outcome, Ok((_, true))))
    }
}

/// What is said where the count of a purge may lack some.
pub const MORE_ON_DISK: &str = "what is on disk alone is purged as well, and may be missing in the count: the index of the disk is not complete";

/// A line for all, and one for each node if there are others.
impl fmt::Display for PurgeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "purged {}", self.all_purged())?;
        if let Some(node) = &self.node {
            writeln!(f, "{node}: purged {}", self.purged)?;
        }
        if self.may_be_more_on_disk {
            writeln!(f, "{MORE_ON_DISK}")?;
        }
        for MemberPurge { name, outcome } in &self.members {
            match outcome {
                Ok((purged, true)) => writeln!(f, "{name}: purged {purged}")?,
                Ok((purged, false)) => writeln!(
                    f,
                    "{name}: purged {purged}, but its disk did not make that durable"
                )?,
                Err(why) => writeln!(
                    f,
                    "{name}: not purged as far as is known: {why}; it is told again until it has answered"
                )?,
            }
        }
        for name in &self.away {
            writeln!(
                f,
                "{name}: away; it reads the log before it serves what it has"
            )?;
        }
        match &self.log {
            None => {}
            Some(Ok(revision)) => writeln!(f, "log: revision {revision}")?,
            Some(Err(why)) => writeln!(
                f,
                "log: not entered as far as is known: {why}; a node that is away now may never know of it"
            )?,
        }
        match &self.problem {
            None => Ok(()),
            Some(problem) => writeln!(f, "{problem}"),
        }
    }
}

/// `POST /purge`.
pub(super) async fn purge_url(
    State(control): State<Arc<dyn Control>>,
    ConnectInfo(place): ConnectInfo<Place>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let (reach, query) = reach(query.as_deref());
    let url = match url(query, content_type, &body) {
        Ok(url) => url,
        Err(why) => return text(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    let call = PurgeCall::Url(url);
    purged(aside(&place, move || control.purge(&call, reach)).await)
}

/// `POST /purge-all`.
pub(super) async fn purge_all(
    State(control): State<Arc<dyn Control>>,
    ConnectInfo(place): ConnectInfo<Place>,
    RawQuery(query): RawQuery,
) -> Response {
    let (reach, query) = reach(query.as_deref());
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        let why = format!("unexpected `{query}`: use `this-node`, or nothing\n");
        return text(StatusCode::BAD_REQUEST, why);
    }
    purged(aside(&place, move || control.purge(&PurgeCall::All, reach)).await)
}

/// Where to purge, and the rest of the query.
fn reach(query: Option<&str>) -> (PurgeReach, Option<&str>) {
    match query.and_then(|query| query.strip_prefix("this-node")) {
        Some("") => (PurgeReach::ThisNode, None),
        Some(rest) if rest.starts_with('&') => (PurgeReach::ThisNode, Some(&rest[1..])),
        _ => (PurgeReach::Cluster, query),
    }
}

fn purged(result: Result<Result<PurgeReport, PurgeFailure>, String>) -> Response {
    let (status, mut body) = match result {
        Ok(Ok(report)) if report.is_everywhere() => (StatusCode::OK, report.to_string()),
        Ok(Ok(report)) => (StatusCode::BAD_GATEWAY, report.to_string()),
        Ok(Err(why @ PurgeFailure::Url(_))) => (StatusCode::BAD_REQUEST, why.to_string()),
        Ok(Err(why @ (PurgeFailure::Disk(_) | PurgeFailure::Slow(_)))) => {
            (StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
        }
        Err(why) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot purge: {why}"),
        ),
    };
    if !body.ends_with('\n') {
        let _infallible = writeln!(body);
    }
    text(status, body)
}

/// The URL, or what is wrong with the request.
pub(super) fn url(
    query: Option<&str>,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<String, String> {
    let body = std::str::from_utf8(body)
        .map_err(|_error| "the body is not UTF-8")?
        .trim();
    let url = match (query.filter(|query| !query.is_empty()), body) {
        (None, "") => {
            return Err(
                "which URL? use POST /purge?url=http://host/path, or send the URL as the body"
                    .into(),
            );
        }
        (Some(_), body) if !body.is_empty() => {
            return Err("a URL in the query and one in the body: use one".into());
        }
        (Some(query), _) => from_pairs(query)?,
        (None, body) => from_body(content_type, body)?,
    };
    check(&url)?;
    Ok(url)
}

fn from_body(content_type: Option<&str>, body: &str) -> Result<String, String> {
    let media_type = content_type
        .unwrap_or("")
        .split(';')
        .next()
        .unwrap_or("")
        .trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return match serde_json::from_str(body) {
            Ok(Value::Object(members)) if members.len() == 1 => match members.get("url") {
                Some(Value::String(url)) => Ok(url.clone()),
                _ => Err("the body is not of the form {\"url\": \"http://host/path\"}".into()),
            },
            Ok(_) => Err("the body is not of the form {\"url\": \"http://host/path\"}".into()),
            Err(error) => Err(format!("the body is not JSON: {error}")),
        };
    }
    // `curl -d http://host/path` claims to send a form
    if body.starts_with("url=") {
        from_pairs(body)
    } else {
        Ok(body.to_owned())
    }
}

/// The value of `url` in `url=...`, decoded. A `+` stays: a URL holds no space that it could stand
/// for.
fn from_pairs(pairs: &str) -> Result<String, String> {
    if let Some((_, other)) = pairs.split_once('&') {
        return Err(format!(
            "unexpected `&{other}`: an `&` within the URL is written `%26`"
        ));
    }
    let value = pairs
        .strip_prefix("url=")
        .ok_or_else(|| format!("unexpected `{pairs}`: expected `url=`"))?;
    let decoded = decode(value)?;
    String::from_utf8(decoded).map_err(|_error| format!("`{value}` does not decode to UTF-8"))
}

/// The parameters of a query that names a URL last, and that with its name: what is behind the
/// first `url=` is the URL.
pub(super) fn before_url(query: &str) -> (impl Iterator<Item = &str>, Option<&str>) {
    let at = if query.starts_with("url=") {
        Some(0)
    } else {
        query.find("&url=").map(|at| at + 1)
    };
    let (parameters, url) = match at {
        Some(at) => (&query[..at], Some(&query[at..])),
        None => (query, None),
    };
    let each = parameters
        .split('&')
        .filter(|parameter| !parameter.is_empty());
    (each, url)
}

/// A value of a query, decoded.
pub(super) fn decode(value: &str) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(hex);
        match (byte, escaped) {
            (b'%', None) => return Err(format!("`{value}` has a `%` without two hex digits")),
            (_, Some(decoded_byte)) => {
                decoded.push(decoded_byte);
                rest = &after[2..];
            }
            (byte, None) => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    Ok(decoded)
}

fn hex(digits: &[u8]) -> Option<u8> {
    let value = |digit: &u8| {
        char::from(*digit)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    match digits {
        [high, low] => Some(value(high)? << 4 | value(low)?),
        _ => None,
    }
}

/// The form only: what the URL means is for the proxy to say.
fn check(url: &str) -> Result<(), String> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        let shown = url.escape_debug();
        let advice = match url.contains("://") || url.starts_with('/') || url.is_empty() {
            true => String::new(),
            false => format!("; did you mean `http://{shown}`?"),
        };
        return Err(format!(
            "`{shown}` is not an absolute http or https URL{advice}"
        ));
    }
    if let Some((whole, fragment)) = url.split_once('#') {
        return Err(format!(
            "`{}` has a fragment, which is for the client alone and never stored: leave out `#{}`, so that it is `{}`",
            url.escape_debug(),
            fragment.escape_debug(),
            whole.escape_debug()
        ));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "`{}` holds a character that a URL cannot",
            url.escape_debug()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_the_last_parameter_with_all_that_is_in_it() {
        for (query, parameters, url) in [
            ("", vec![], None),
            ("a=b", vec!["a=b"], None),
            (
                "url=http://a/?b=url=c",
                vec![],
                Some("url=http://a/?b=url=c"),
            ),
            ("a&b=c&url=d&url=e", vec!["a", "b=c"], Some("url=d&url=e")),
            ("b=curl=c&url=d", vec!["b=curl=c"], Some("url=d")),
        ] {
            let (found, found_url) = before_url(query);
            assert_eq!(
                (found.collect::<Vec<_>>(), found_url),
                (parameters, url),
                "{query}"
            );
        }
    }

    const JSON: Option<&str> = Some("application/json; charset=utf-8");
    const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

    fn check(
        query: Option<&str>,
        content_type: Option<&str>,
        body: &str,
        expected: Result<&str, &str>,
    ) {
        match (url(query, content_type, body.as_bytes()), expected) {
            (Ok(url), Ok(expected)) => assert_eq!(url, expected),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn target_uri_of_a_purge_is_read_from_query_json_form_or_plain_text() {
        check(
            Some("url=http://a/b?c=d+e"),
            None,
            "",
            Ok("http://a/b?c=d+e"),
        );
        check(
            Some("url=http%3a%2F%2Fa/b%3Fx%26y"),
            None,
            "",
            Ok("http://a/b?x&y"),
        );
        check(Some("url=http://a/%2520"), None, "", Ok("http://a/%20"));
        check(
            None,
            JSON,
            r#"{"url": "http://a/b?x&y"}"#,
            Ok("http://a/b?x&y"),
        );
        check(None, FORM, "url=http://a/%26", Ok("http://a/&"));
        check(None, FORM, "http://a/?x&y", Ok("http://a/?x&y"));
        check(None, None, "https://a/\n", Ok("https://a/"));
        check(Some(""), None, "HTTP://a/", Ok("HTTP://a/"));
    }

    #[test]
    fn ambiguous_or_malformed_purge_request_is_refused() {
        check(None, None, "", Err("which URL?"));
        check(Some("url=http://a/?b&c=d"), None, "", Err("`&c=d`"));
        check(Some("u=http://a/"), None, "", Err("expected `url=`"));
        check(Some("url=http://a/%2"), None, "", Err("`%`"));
        check(Some("url=http://a/%+1"), None, "", Err("`%`"));
        check(Some("url=http://a/%ff"), None, "", Err("UTF-8"));
        check(Some("url=http://a/"), None, "http://b/", Err("use one"));
        check(Some("url="), None, "", Err("absolute"));
        check(Some("url=/path"), None, "", Err("absolute"));
        check(Some("url=ftp://a/"), None, "", Err("absolute"));
        check(Some("url=http://a/b%23c"), None, "", Err("leave out `#c`"));
        check(
            None,
            None,
            "http://a/b#c",
            Err("so that it is `http://a/b`"),
        );
        check(Some("url=http://a/%0d%0a"), None, "", Err("cannot"));
        check(Some("url=http://a/caf\u{e9}"), None, "", Err("cannot"));
        check(None, JSON, "{", Err("not JSON"));
        check(None, JSON, r#"["http://a/"]"#, Err("of the form"));
        check(None, JSON, r#"{"url": 1}"#, Err("of the form"));
        check(
            None,
            JSON,
            r#"{"url": "http://a/", "soft": true}"#,
            Err("of the form"),
        );
        assert!(url(None, None, b"\xff").is_err());
    }
}
