//! The origin that Squid was in front of: its response head follows from the target's class.

use crate::heads::{Exchange, Lines};
use crate::truth::{Asked, ORIGIN, START_US, class};
use std::collections::BTreeMap;
use weir_semantics::{Timestamp, write_http_date};

/// Seconds of ten days: how old what has Last-Modified was at the beginning of the run.
const AGE_S: i64 = 864_000;

/// The fields of `path`'s class, for a response at `now_s` (seconds since 1970), in the order of
/// the origin.
pub(crate) fn fields(path: &str, now_s: i64) -> Lines {
    let (control, has_tag, has_date) = match class(path) {
        "s" => ("max-age=3600", true, true),
        "b" => ("max-age=3600", true, false),
        "m" => ("max-age=2", true, true),
        "c" => ("no-cache", true, false),
        "n" => ("no-store", false, false),
        "p" => ("private, max-age=600", false, false),
        "k" | "ap" => ("public, max-age=3600", false, false),
        "v" | "vu" | "vs" | "a" | "q" | "r" => ("max-age=3600", false, false),
        "sm" => ("max-age=0, s-maxage=3600", false, false),
        "h" | "kn" | "qn" | "cgi-bin" => ("", false, true),
        "e" | "u" | "x" => ("", false, false),
        other => panic!("the origin has no class `{other}`"),
    };
    let mut fields = Lines::new();
    let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
    add("Date", date(now_s));
    add("Server", "o".to_owned());
    match class(path) {
        "e" => add("Expires", date(now_s + 3600)),
        "k" | "kn" => add("Set-Cookie", "sid=67160; path=/".to_owned()),
        "r" => add("Location", "/s/1".to_owned()),
        _ => {}
    }
    if !control.is_empty() {
        add("Cache-Control", control.to_owned());
    }
    match class(path) {
        "v" => add("Vary", "Accept-Encoding".to_owned()),
        "vu" => add("Vary", "User-Agent".to_owned()),
        "vs" => add("Vary", "*".to_owned()),
        _ => {}
    }
    if has_tag {
        add("ETag", tag(path));
    }
    if has_date {
        add("Last-Modified", date(START_US / 1_000_000 - AGE_S));
    }
    fields
}

/// Content lengths by path, as responses with all of it had them.
pub(crate) fn lengths<'a>(asked: impl Iterator<Item = &'a Asked>) -> BTreeMap<String, u64> {
    let mut lengths = BTreeMap::new();
    for asked in asked.filter(|asked| asked.status != 206) {
        let before = lengths.insert(asked.path.clone(), asked.cl);
        assert!(
            before.is_none_or(|before| before == asked.cl),
            "{} has two lengths",
            asked.path
        );
    }
    lengths
}

/// The request, and what the origin would answer to it: it knows no ranges.
pub(crate) fn exchange(asked: &Asked, lengths: &BTreeMap<String, u64>) -> Exchange {
    let mut request = vec![("Host".to_owned(), "127.0.0.1:41880".to_owned())];
    request.extend(asked.headers.iter().cloned());
    let content_bytes = lengths
        .get(&asked.path)
        .copied()
        .expect("each path was answered whole once");
    let arrival_us = asked.arrival_us();
    let mut response = fields(&asked.path, arrival_us.div_euclid(1_000_000));
    response.push(("Content-Length".to_owned(), content_bytes.to_string()));
    response.push(("Content-Type".to_owned(), "text/plain".to_owned()));
    Exchange {
        arrival_us,
        method: asked.method.clone(),
        uri: format!("{ORIGIN}{}", asked.path),
        request,
        status: match class(&asked.path) {
            "r" => 301,
            "x" => 404,
            _ => 200,
        },
        response,
        content_bytes,
        request_content_bytes: if asked.method == "POST" { 3 } else { 0 },
    }
}

fn date(at_s: i64) -> String {
    let mut text = [0; 29];
    write_http_date(Timestamp(at_s), &mut text);
    String::from_utf8(text.to_vec()).expect("a date is text")
}

/// Ten hex digits, another one for each path.
fn tag(path: &str) -> String {
    let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("\"{:010x}\"", hash >> 24)
}
