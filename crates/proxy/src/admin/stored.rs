//! Stored responses on the admin interface: found, fetched, validated, expired, deleted, injected
//! and read.

pub(super) mod disk;
mod variants;

use super::{Control, purge, text};
use crate::config::Span;
use crate::host::stored::listing::StoredVariants;
use crate::host::stored::target::may_select;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use weir_extend::{
    Fields, InjectedHead, LACKS_RULE, ListenerMode, StoredError, StoredInfo, StoredTarget,
    Validation, WHOLE_CONTENT_BYTES_MAX,
};
use weir_wire::{HeadLimits, LineBuffer, Progress, parse_response_leniently};

/// Injected and read content that is held at once, by as many requests; further ones get 503.
const CONTENTS_MAX: usize = 2;

/// Fields of the request that selects a stored response.
const FIELDS_MAX: usize = 32;

/// Most bytes of a field of that request, its name included.
const FIELD_BYTES_MAX: usize = 2 << 10;

/// Most bytes of the head of an injected message.
const HEAD_BYTES_MAX: usize = 64 << 10;

static CONTENTS: Semaphore = Semaphore::const_new(CONTENTS_MAX);

/// Why a call needs the mode of the listeners: there are both.
pub const BOTH_MODES: &str =
    "there are forward and gateway listeners, and each mode has its own stored responses";

/// What an operator does with a stored response.
#[derive(Debug)]
pub enum StoredCall {
    /// What is stored?
    Query(StoredTarget),
    /// Which variants are stored?
    List(StoredTarget),
    /// Has it stored, without a client.
    Fetch(StoredTarget),
    /// Has its origin say whether it is valid.
    Validate(StoredTarget),
    /// It is fresh for so long from now.
    Expire(StoredTarget, Duration),
    /// Purges it.
    Delete(StoredTarget),
    /// Stores this response, with its content.
    Inject(InjectedHead, Vec<u8>),
    /// Reads its content.
    Read(StoredTarget),
    /// The same, also if it answers no request any more, since a rule is gone.
    ReadLackingRule(StoredTarget),
}

/// What came of it.
#[derive(Debug)]
pub enum StoredReply {
    /// This is stored.
    Info(StoredInfo),
    /// The same of one that was there.
    Described {
        /// What is known of it.
        info: StoredInfo,
        /// It answers no request any more, since a rule is gone.
        lacks_rule: bool,
    },
    /// These are stored.
    Variants(StoredVariants),
    /// It was validated.
    Validation(Validation),
    /// It is fresh for so long.
    Expires(Duration),
    /// So many were purged.
    Deleted(u64),
    /// Its content.
    Content(Vec<u8>),
}

impl StoredCall {
    /// The target that it is about.
    pub fn target_mut(&mut self) -> &mut StoredTarget {
        match self {
            Self::Query(target)
            | Self::List(target)
            | Self::Fetch(target)
            | Self::Validate(target)
            | Self::Expire(target, _)
            | Self::Delete(target)
            | Self::Read(target)
            | Self::ReadLackingRule(target) => target,
            Self::Inject(head, _) => &mut head.target,
        }
    }
}

/// The parameters of a call. The URL is the last one: an `&` within it is written `%26`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters {
    mode: Option<ListenerMode>,
    fresh_for: Option<Duration>,
    lacking_rule: bool,
    fields: Fields,
    url: String,
}

impl Parameters {
    fn read(query: Option<&str>) -> Result<Self, String> {
        let mut parameters = Self::default();
        let (each, url) = purge::before_url(query.unwrap_or_default());
        for parameter in each {
            match parameter.split_once('=') {
                Some(("mode", "forward")) => parameters.mode = Some(ListenerMode::Forward),
                Some(("mode", "gateway")) => parameters.mode = Some(ListenerMode::Gateway),
                Some(("mode", other)) => {
                    return Err(format!("`{other}` is no mode: use forward or gateway"));
                }
                Some(("fresh_for", time)) => {
                    let time: Span = time
                        .parse()
                        .map_err(|error| format!("fresh_for: {error}"))?;
                    parameters.fresh_for = Some(time.as_duration());
                }
                Some(("lacking_rule", "read")) => parameters.lacking_rule = true,
                Some(("field", field)) => {
                    add_field(&mut parameters.fields, field, may_select)?;
                }
                _ => {
                    return Err(format!(
                        "unexpected `{parameter}`: use mode, fresh_for, lacking_rule=read, field, and url last"
                    ));
                }
            }
        }
        let Some(url) = url else {
            return Err("which URL? use POST /stored/WORD?url=http://host/path".into());
        };
        parameters.url = purge::url(Some(url), None, b"")?;
        Ok(parameters)
    }
}

/// Adds a field line in its encoded form, `Name:%20value`, if a field of this name `may_be` one.
pub(super) fn add_field(
    fields: &mut Fields,
    encoded: &str,
    may_be: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let line = purge::decode(encoded)?;
    let shown = String::from_utf8_lossy(&line);
    let shown = shown.escape_debug();
    if line.len() > FIELD_BYTES_MAX {
        return Err(format!("a field has more than {FIELD_BYTES_MAX} bytes"));
    }
    if fields.iter().count() >= FIELDS_MAX {
        return Err(format!("there are more than {FIELDS_MAX} fields"));
    }
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let (name, value) = (parts.next().unwrap_or_default(), parts.next());
    let name = str::from_utf8(name).unwrap_or_default();
    let Some(value) = value else {
        return Err(format!(
            "`{shown}` is no field: write a name, a colon and a value, such as `Accept-Encoding: br`"
        ));
    };
    if !may_be(name) {
        return Err(format!(
            "`{name}` selects no stored response: fields with credentials, conditions and ranges are refused"
        ));
    }
    let added = fields.add(name, value.trim_ascii());
    added.map_err(|error| format!("`{shown}` is no field that can be named: {error}"))
}

/// `POST /stored/{word}`.
pub(super) async fn call(
    State(control): State<Arc<dyn Control>>,
    Path(word): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Response {
    let parameters = match Parameters::read(query.as_deref()) {
        Ok(parameters) => parameters,
        Err(why) => return text(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    let has_content = matches!(word.as_str(), "inject" | "read");
    let _permit = match CONTENTS.try_acquire() {
        Ok(permit) => Some(permit),
        Err(_) if has_content => return failed(StoredError::TooMany),
        Err(_) => None,
    }
    .filter(|_| has_content);
    let mode = parameters.mode;
    let call = match call_of(&word, parameters, body).await {
        Ok(call) => call,
        Err(answer) => return *answer,
    };
    match control.stored(mode, call) {
        Err(why) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
        Ok(reply) => match reply.await {
            Ok(Ok(reply)) => answer(reply),
            Ok(Err(error)) => failed(error),
            Err(_) => failed(StoredError::Unavailable),
        },
    }
}

async fn call_of(
    word: &str,
    parameters: Parameters,
    body: Body,
) -> Result<StoredCall, Box<Response>> {
    let bad = |why: &str| Box::new(text(StatusCode::BAD_REQUEST, format!("{why}\n")));
    // which listeners are meant is for the proxy to say
    let mut target = StoredTarget::new(ListenerMode::Forward, parameters.url);
    target.fields = parameters.fields;
    if matches!(word, "expire" | "delete") && target.fields != Fields::default() {
        return Err(bad(
            "expire and delete are about all variants of the URL: leave out the fields",
        ));
    }
    Ok(match word {
        "query" => StoredCall::Query(target),
        "list" => StoredCall::List(target),
        "fetch" => StoredCall::Fetch(target),
        "validate" => StoredCall::Validate(target),
        "expire" => match parameters.fresh_for {
            Some(fresh_for) => StoredCall::Expire(target, fresh_for),
            None => {
                return Err(bad(
                    "for how long? use fresh_for=60s, or fresh_for=0s for now",
                ));
            }
        },
        "delete" => StoredCall::Delete(target),
        "read" if parameters.lacking_rule => StoredCall::ReadLackingRule(target),
        "read" => StoredCall::Read(target),
        "inject" => {
            let message = to_bytes(body, HEAD_BYTES_MAX + WHOLE_CONTENT_BYTES_MAX).await;
            let message = message.map_err(|_| Box::new(failed(StoredError::TooLarge)))?;
            let (head, content) = read_message(target, &message).map_err(|why| bad(&why))?;
            StoredCall::Inject(head, content)
        }
        _ => {
            return Err(Box::new(text(
                StatusCode::NOT_FOUND,
                "no such endpoint; after /stored/ comes query, list, fetch, validate, expire, delete, inject or read\n"
                    .into(),
            )));
        }
    })
}

/// A response message (RFC 9112 §2.1): its head, and the content behind it as it is.
fn read_message(target: StoredTarget, message: &[u8]) -> Result<(InjectedHead, Vec<u8>), String> {
    let limits = HeadLimits {
        bytes_max: HEAD_BYTES_MAX,
        fields_max: usize::MAX,
    };
    let mut lines = LineBuffer::new();
    let parsed = parse_response_leniently(message, &limits, &mut lines);
    let parsed = parsed.map_err(|error| format!("the body is no response message: {error}"))?;
    let Progress::Complete {
        head: (head, repairs),
        consumed,
    } = parsed
    else {
        return Err("the body is no response message: its head does not end".into());
    };
    if repairs.lines {
        return Err(
            "the head of the response message is not as HTTP has it: each of its lines and the empty line behind them end with CR LF, and no name has a space behind it; `sed '1,/^$/s/$/\\r/' FILE` puts CR before each LF of a head"
                .into(),
        );
    }
    if repairs.any() {
        return Err(
            "the head of the response message says in several ways how long its content is: leave out its Content-Length"
                .into(),
        );
    }
    let content = &message[consumed..];
    let is = |name: &str, known: &str| name.eq_ignore_ascii_case(known);
    let mut fields = Vec::new();
    for line in head.fields {
        if is(line.name, "transfer-encoding") {
            return Err("the message has Transfer-Encoding; send its content as it is".into());
        }
        if !is(line.name, "content-length") {
            fields.push((line.name, line.value));
        } else if line.value != content.len().to_string().as_bytes() {
            return Err(format!(
                "Content-Length of the message is not that of its {} bytes of content",
                content.len()
            ));
        }
    }
    let head = InjectedHead {
        target,
        status: head.status,
        fields: Fields::received(fields),
    };
    Ok((head, content.to_vec()))
}

fn answer(reply: StoredReply) -> Response {
    let said = match reply {
        StoredReply::Info(info) => describe(&info, false),
        StoredReply::Described { info, lacks_rule } => describe(&info, lacks_rule),
        StoredReply::Variants(stored) => variants::table(&stored),
        StoredReply::Validation(Validation::Valid) => "valid\n".into(),
        StoredReply::Validation(Validation::Replaced) => "replaced\n".into(),
        StoredReply::Validation(Validation::Dropped) => "dropped\n".into(),
        StoredReply::Expires(time) => format!("fresh for {} s\n", time.as_secs()),
        StoredReply::Deleted(count) => format!("deleted {count}\n"),
        StoredReply::Content(content) => {
            let mut response =
                super::of_type(StatusCode::OK, "application/octet-stream", String::new());
            *response.body_mut() = Body::from(content);
            return response.into_response();
        }
    };
    text(StatusCode::OK, said)
}

fn describe(info: &StoredInfo, lacks_rule: bool) -> String {
    let complete = info.complete_bytes;
    let complete = complete.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let mut said = format!(
        "status {}\nstored {} of {complete} bytes\nage {} s\nfresh for {} s\n",
        info.status,
        info.stored_bytes,
        info.age.as_secs(),
        info.fresh_for.as_secs()
    );
    if lacks_rule {
        said.push_str(LACKS_RULE);
        said.push('\n');
    }
    said.push('\n');
    for (name, value) in info.fields.iter() {
        let value = String::from_utf8_lossy(value);
        let _infallible = writeln!(said, "{name}: {}", visible(&value));
    }
    said
}

/// A value as it is, but for characters that a terminal would not show.
fn visible(value: &str) -> String {
    let mut shown = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '"' | '\'' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

pub(super) fn failed(error: StoredError) -> Response {
    let status = match error {
        StoredError::BadTarget | StoredError::BadResponse => StatusCode::BAD_REQUEST,
        StoredError::NotStored => StatusCode::NOT_FOUND,
        StoredError::Refused(..) => StatusCode::UNPROCESSABLE_ENTITY,
        StoredError::Forbidden | StoredError::LacksRule => StatusCode::FORBIDDEN,
        StoredError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        StoredError::Unreachable => StatusCode::BAD_GATEWAY,
        StoredError::Timeout => StatusCode::GATEWAY_TIMEOUT,
        StoredError::Outdated => StatusCode::CONFLICT,
        StoredError::TooMany | StoredError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        StoredError::NotDurable | StoredError::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let advice = match error {
        StoredError::LacksRule => "; lacking_rule=read& before url= reads it all the same",
        _ => "",
    };
    text(status, format!("{error}{advice}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_of_a_value_are_shown_as_they_are() {
        assert_eq!(visible("\"a'b\"\u{1b}[1m\n"), "\"a'b\"\\u{1b}[1m\\n");
    }

    #[test]
    fn url_is_the_last_parameter() {
        let read = |query| Parameters::read(Some(query));
        let known = Parameters {
            mode: Some(ListenerMode::Gateway),
            fresh_for: Some(Duration::from_secs(60)),
            lacking_rule: false,
            fields: Fields::default(),
            url: "http://a/?b&c".into(),
        };
        assert_eq!(
            read("mode=gateway&fresh_for=60s&url=http://a/?b%26c"),
            Ok(known)
        );
        for wrong in [
            "",
            "url=http://a/?b&c",
            "mode=gateway",
            "mode=other&url=http://a/",
            "fresh_for=60&url=http://a/",
            "x=y&url=http://a/",
            "url=/x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(Parameters::read(None).is_err());
    }

    #[test]
    fn fields_of_the_request_are_named_one_by_one_within_bounds() {
        let read = |query: &str| Parameters::read(Some(&format!("{query}&url=http://a/")));
        let parameters =
            read("field=Accept-Encoding:%20br&mode=forward&field=A:b%26c").expect("fields");
        let lines: Vec<_> = parameters.fields.iter().collect();
        assert_eq!(lines, [("Accept-Encoding", &b"br"[..]), ("A", b"b&c")]);
        for (wrong, expected) in [
            (
                "field=Accept",
                "`Accept` is no field: write a name, a colon",
            ),
            ("field=:x", "no field that can be named"),
            ("field=A%20b:x", "no field that can be named"),
            ("field=A:b%0d%0aC:d", "no field that can be named"),
            ("field=Host:b", "the proxy writes this field itself"),
            ("field=A:%f", "`%`"),
            ("field=cookie:%20a=b", "`cookie` selects no stored response"),
            ("field=Authorization:x", "fields with credentials"),
            ("field=If-None-Match:x", "conditions"),
            ("field=Range:x", "ranges are refused"),
        ] {
            let why = read(wrong).expect_err(wrong);
            assert!(why.contains(expected), "{why}");
        }
        let many = |count| vec!["field=A:b"; count].join("&");
        assert!(read(&many(FIELDS_MAX)).is_ok());
        assert!(read(&many(FIELDS_MAX + 1)).is_err());
        let long = |bytes| format!("field=A:{}", "x".repeat(bytes - 2));
        assert!(read(&long(FIELD_BYTES_MAX)).is_ok());
        assert!(read(&long(FIELD_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn message_whose_end_is_in_doubt_is_not_injected() {
        let read = |message: &str| {
            let target = StoredTarget::new(ListenerMode::Forward, "http://a/");
            read_message(target, message.as_bytes())
        };
        let (head, content) =
            read("HTTP/1.1 203 X\r\nA: b\r\nContent-Length: 2\r\n\r\nok").expect("a message");
        assert_eq!((head.status, &*content), (203, &b"ok"[..]));
        assert_eq!(head.fields, Fields::received([("A", &b"b"[..])]));
        for wrong in [
            "",
            "ok",
            "HTTP/1.1 200 OK\r\nA: b\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\nA: b\n\nok",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
