//! The entries of a feed.

use serde_json::Value;

/// Most bytes of a feed.
pub(super) const FEED_BYTES_MAX: usize = 1024 * 1024;

/// Most entries of a feed.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// What is to be done with a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Have it stored, if it is not, or not fresh any more.
    Fetch,
    /// Have it validated before it is used again.
    Expire,
    /// Purge it.
    Delete,
}

impl Action {
    const ALL: [(&'static str, Self); 3] = [
        ("fetch", Self::Fetch),
        ("expire", Self::Expire),
        ("delete", Self::Delete),
    ];

    fn parse(word: &str) -> Option<Self> {
        let mut known = Self::ALL.iter();
        known.find(|(it, _)| *it == word).map(|(_, action)| *action)
    }
}

/// One entry: an action, a URL, and a tag by which an action that was done can be named again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) action: Action,
    pub(super) url: String,
    tag: String,
}

impl Entry {
    fn parse(action: Action, text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let url = words.next().filter(|it| it.contains("://"))?;
        let tag = words.next().unwrap_or_default();
        words.next().is_none().then(|| Self {
            action,
            url: url.to_owned(),
            tag: tag.to_owned(),
        })
    }
}

/// Why a feed is not used. Nothing of it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeedError(pub(super) String);

/// The entries of a feed: lines, or an object of JSON if it begins as one.
pub(super) fn parse(feed: &[u8]) -> Result<Vec<Entry>, FeedError> {
    if feed.len() > FEED_BYTES_MAX {
        return Err(FeedError(format!(
            "it has more than {FEED_BYTES_MAX} bytes"
        )));
    }
    let text = str::from_utf8(feed).map_err(|_| FeedError("it is not UTF-8".to_owned()))?;
    let entries = match text.trim_start().starts_with('{') {
        true => parse_json(text)?,
        false => parse_lines(text)?,
    };
    match entries.len() > ENTRIES_MAX {
        true => Err(FeedError(format!("it has more than {ENTRIES_MAX} entries"))),
        false => Ok(entries),
    }
}

fn parse_lines(text: &str) -> Result<Vec<Entry>, FeedError> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|(number, line)| {
        let parsed = line
            .split_once(char::is_whitespace)
            .and_then(|(word, rest)| Entry::parse(Action::parse(word)?, rest));
        parsed.ok_or_else(|| {
            FeedError(format!(
                "line {number} is not `fetch`, `expire` or `delete` and a URL"
            ))
        })
    });
    entries.collect()
}

fn parse_json(text: &str) -> Result<Vec<Entry>, FeedError> {
    let value: Value = serde_json::from_str(text).map_err(|it| FeedError(it.to_string()))?;
    let mut entries = Vec::new();
    for (name, list) in value.as_object().into_iter().flatten() {
        let wrong = || {
            FeedError(format!(
                "`{name}` is not `fetch`, `expire` or `delete` with URLs"
            ))
        };
        let action = Action::parse(name).ok_or_else(wrong)?;
        for url in list.as_array().ok_or_else(wrong)? {
            let entry = url.as_str().and_then(|url| Entry::parse(action, url));
            entries.push(entry.ok_or_else(wrong)?);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: Action, url: &str, tag: &str) -> Entry {
        let (url, tag) = (url.to_owned(), tag.to_owned());
        Entry { action, url, tag }
    }

    #[test]
    fn lines_and_json_have_the_same_entries() {
        let expected = Ok(vec![
            entry(Action::Delete, "http://a/x", "7"),
            entry(Action::Fetch, "http://a/y", ""),
        ]);
        let lines = b"# ours\n\n delete http://a/x 7\r\nfetch\thttp://a/y\n";
        assert_eq!(parse(lines), expected);
        let json = br#" {"delete": ["http://a/x 7"], "fetch": ["http://a/y"]}"#;
        assert_eq!(parse(json), expected);
        assert_eq!(parse(b""), Ok(Vec::new()));
        assert_eq!(parse(b"{}"), Ok(Vec::new()));
    }

    #[test]
    fn feed_with_one_bad_entry_is_not_used_at_all() {
        for (feed, part) in [
            (&b"fetch http://a/\npurge http://a/\n"[..], "line 2"),
            (b"fetch\n", "line 1"),
            (b"fetch a/b\n", "line 1"),
            (b"fetch http://a/ b c\n", "line 1"),
            (b"<html>", "line 1"),
            (b"fetch http://a/\xff\n", "UTF-8"),
            (b"{", "EOF"),
            (br#"{"purge": []}"#, "`purge`"),
            (br#"{"fetch": "http://a/"}"#, "`fetch`"),
            (br#"{"fetch": [1]}"#, "`fetch`"),
            (b"[]", "line 1"),
        ] {
            let error = parse(feed).expect_err("it is bad").0;
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn feed_with_too_many_bytes_or_entries_is_not_used() {
        let many = "fetch http://a/\n".repeat(ENTRIES_MAX + 1);
        assert!(
            parse(many.as_bytes())
                .expect_err("it is bad")
                .0
                .contains("entries")
        );
        assert!(parse("fetch http://a/\n".repeat(ENTRIES_MAX).as_bytes()).is_ok());
        let long = " ".repeat(FEED_BYTES_MAX + 1);
        assert!(
            parse(long.as_bytes())
                .expect_err("it is bad")
                .0
                .contains("bytes")
        );
    }
}
