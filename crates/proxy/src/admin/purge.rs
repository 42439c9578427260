//! Which URL a purge means: from the query, or from the body as JSON, as a form or as it is.
//!
//! A URL with `&` in it, put into a query without encoding, would silently lose its tail and purge
//! something else. So anything beside `url=` is an error.

use serde_json::Value;

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
        return Err(format!(
            "`{}` is not an absolute http or https URL",
            url.escape_debug()
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
