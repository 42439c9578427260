//! A message as a test looks at it: a head and what follows, read plainly and without the proxy's
//! own parser.

use std::fmt;

/// A head as received: its first line and its field lines.
#[derive(Clone)]
pub(crate) struct Head {
    /// Every byte, the empty line included.
    pub(crate) text: String,
}

impl Head {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            text: bytes.iter().map(|byte| char::from(*byte)).collect(),
        }
    }

    /// The first line.
    pub(crate) fn start_line(&self) -> &str {
        self.text.split("\r\n").next().unwrap_or("")
    }

    /// The status code of a response.
    pub(crate) fn status(&self) -> u16 {
        let code = self.start_line().split(' ').nth(1).unwrap_or("");
        code.parse()
            .unwrap_or_else(|_| panic!("no status code in {self:?}"))
    }

    /// Names and values in order, as spelled.
    pub(crate) fn fields(&self) -> Vec<(&str, &str)> {
        self.text
            .split("\r\n")
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim_matches([' ', '\t'])))
            .collect()
    }

    /// The values of the fields with this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields()
            .into_iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    /// The value of the one field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() < 2, "{name} is repeated in {self:?}");
        values.first().copied()
    }

    /// Whether there is a field with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// Whether Content-Length says how long the content is, and how long.
    pub(crate) fn length(&self) -> Option<usize> {
        self.field("content-length")
            .map(|value| value.parse().expect("a length of digits"))
    }

    /// What the proxy says about its cache: the words behind its name.
    pub(crate) fn cache_status(&self) -> &str {
        let status = self.field("cache-status").unwrap_or("");
        status.strip_prefix("weir;").unwrap_or(status)
    }

    /// What Cache-Status says (RFC 9211), without the cache's name and without the freshness that
    /// is left.
    pub(crate) fn verdict(&self) -> String {
        let status = self.field("cache-status").expect("a Cache-Status");
        let words = status.split(';').skip(1).map(str::trim);
        let words: Vec<_> = words.filter(|word| !word.starts_with("ttl=")).collect();
        words.join(";")
    }

    /// Whether the content comes in chunks.
    pub(crate) fn is_chunked(&self) -> bool {
        self.field("transfer-encoding") == Some("chunked")
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// A whole response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// Its head.
    pub(crate) head: Head,
    /// Its content, chunks put together.
    pub(crate) body: Vec<u8>,
    /// The trailer section of a chunked one, each line with its CRLF.
    pub(crate) trailers: String,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status()
    }

    /// See [`Head::verdict`].
    pub(crate) fn verdict(&self) -> String {
        self.head.verdict()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether it came from the store.
    pub(crate) fn is_hit(&self) -> bool {
        self.head
            .all("cache-status")
            .iter()
            .any(|status| status.split(';').any(|part| part.trim() == "hit"))
    }
}
