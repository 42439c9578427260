//! Which content gets smaller: by its media type, and by the path of its request.

/// The media types that are compressed unless the operator names others. `*` stands for any type or
/// subtype, `+` for a structured suffix (RFC 6839).
pub(super) const DEFAULT: [&str; 16] = [
    "text/*",
    "*+json",
    "*+xml",
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/xml",
    "application/x-ndjson",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/x-icon",
];

/// Never compressed: its events must arrive as they are made.
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Names of files that are compressed already. A request for one is not given a variant: all
/// clients get the one response that is stored.
const COMPRESSED_SUFFIXES: [&str; 31] = [
    "7z", "aac", "apk", "avif", "br", "bz2", "deb", "flac", "gif", "gz", "jar", "jpeg", "jpg",
    "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "ogg", "opus", "png", "rar", "rpm", "tgz", "webm",
    "webp", "woff", "woff2", "xz", "zip",
];

/// One media type, or all of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MediaType {
    /// `text/*`: what begins so, with the slash.
    Begins(String),
    /// `*+json`: what ends so, with the plus.
    Ends(String),
    /// This one.
    Is(String),
}

impl MediaType {
    /// `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_name = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        if let Some(suffix) = text.strip_prefix("*+") {
            return is_name(suffix).then(|| Self::Ends(format!("+{suffix}")));
        }
        let (kind, subtype) = text.split_once('/')?;
        if !is_name(kind) {
            return None;
        }
        match subtype {
            "*" => Some(Self::Begins(format!("{kind}/"))),
            _ => is_name(subtype).then(|| Self::Is(text.to_owned())),
        }
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Begins(kind) => name
                .get(..kind.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(kind.as_bytes())),
            Self::Ends(suffix) => name
                .len()
                .checked_sub(suffix.len())
                .is_some_and(|at| name[at..].eq_ignore_ascii_case(suffix.as_bytes())),
            Self::Is(own) => name.eq_ignore_ascii_case(own.as_bytes()),
        }
    }
}

/// Whether one of `types` is that of a Content-Type.
pub(super) fn has(types: &[MediaType], content_type: &[u8]) -> bool {
    let mut parts = content_type.split(|byte| *byte == b';');
    let name = parts.next().unwrap_or_default().trim_ascii();
    !name.eq_ignore_ascii_case(EVENT_STREAM) && types.iter().any(|it| it.matches(name))
}

/// Whether the path of a request names a file that is compressed already.
pub(super) fn is_compressed_file(path_and_query: &str) -> bool {
    let path = path_and_query.split('?').next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, suffix)| {
        COMPRESSED_SUFFIXES
            .iter()
            .any(|it| it.eq_ignore_ascii_case(suffix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default() -> Vec<MediaType> {
        let parsed = DEFAULT.iter().map(|text| MediaType::parse(text));
        parsed.collect::<Option<_>>().expect("media types")
    }

    #[test]
    fn text_and_what_is_written_as_text_is_compressed() {
        for name in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "application/json",
            "application/problem+json",
            "image/svg+xml",
            "Image/SVG+XML ; x=y",
            "font/ttf",
        ] {
            assert!(has(&default(), name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "text",
            "image/png",
            "video/mp4",
            "application/octet-stream",
            "application/jsonx",
            "x+jso",
            "font/woff2",
        ] {
            assert!(!has(&default(), name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn event_stream_is_not_compressed_though_it_is_text() {
        assert!(!has(&default(), b"Text/Event-Stream;charset=utf-8"));
        let named = MediaType::parse("text/event-stream").expect("a media type");
        assert!(!has(&[named], b"text/event-stream"));
    }

    #[test]
    fn text_that_is_no_media_type_is_none() {
        for text in [
            "", "text", "*", "*/*", "text/", "/html", "te xt/a", "a/b/c", "*+", "a/b;c",
        ] {
            assert_eq!(MediaType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn compressed_files_are_known_by_their_suffix() {
        for path in ["/a.png", "/b/a.JPG?x", "/a.tar.gz", "/.zip"] {
            assert!(is_compressed_file(path), "{path}");
        }
        for path in ["/", "", "/png", "/a.png/", "/a.html?b=c.png", "/a.svg", "*"] {
            assert!(!is_compressed_file(path), "{path}");
        }
    }
}
