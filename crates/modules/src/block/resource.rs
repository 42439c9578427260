//! What a request is for, and which page it comes from: filter rules depend on both.

use weir_extend::RequestHead;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// A page.
    Document,
    /// A page within another one.
    Subdocument,
    Image,
    Script,
    Stylesheet,
    Font,
    Media,
    Object,
    /// What a script asks for.
    Fetch,
    /// A report, whose answer is not used.
    Ping,
    /// A tunnel: what passes it is not known.
    Tunnel,
    Other,
}

impl Resource {
    /// By Sec-Fetch-Dest, which browsers send to trustworthy origins; otherwise by the name of the
    /// file, and by Accept.
    pub(super) fn of(head: &RequestHead<'_>) -> Self {
        if head.method() == "CONNECT" {
            return Self::Tunnel;
        }
        let field = |name| head.fields.get(name).and_then(|it| str::from_utf8(it).ok());
        if let Some(known) = field("sec-fetch-dest").and_then(Self::of_destination) {
            return known;
        }
        let accept = field("accept").unwrap_or_default();
        // only a navigation names HTML; a page may have any name
        if accept.contains("text/html") {
            return Self::Document;
        }
        Self::of_suffix(head.path_and_query())
            .or_else(|| Self::of_accept(accept))
            .unwrap_or(Self::Other)
    }

    /// The destinations of the Fetch standard.
    fn of_destination(destination: &str) -> Option<Self> {
        Some(match destination {
            "document" => Self::Document,
            "frame" | "iframe" => Self::Subdocument,
            "image" => Self::Image,
            "script" | "worker" | "sharedworker" | "serviceworker" | "audioworklet"
            | "paintworklet" => Self::Script,
            "style" => Self::Stylesheet,
            "font" => Self::Font,
            "audio" | "video" | "track" => Self::Media,
            "embed" | "object" => Self::Object,
            "report" => Self::Ping,
            "empty" => Self::Fetch,
            _ => return None,
        })
    }

    fn of_suffix(path_and_query: &str) -> Option<Self> {
        let path = path_and_query.split('?').next()?;
        let (_, suffix) = path.rsplit('/').next()?.rsplit_once('.')?;
        Some(match suffix.to_ascii_lowercase().as_str() {
            "avif" | "bmp" | "gif" | "ico" | "jpeg" | "jpg" | "png" | "svg" | "webp" => Self::Image,
            "js" | "mjs" => Self::Script,
            "css" => Self::Stylesheet,
            "otf" | "ttf" | "woff" | "woff2" => Self::Font,
            "m3u8" | "mp3" | "mp4" | "mpd" | "ogg" | "ts" | "webm" => Self::Media,
            "swf" => Self::Object,
            _ => return None,
        })
    }

    fn of_accept(accept: &str) -> Option<Self> {
        let first = accept.split([',', ';']).next()?.trim();
        let (kind, _) = first.split_once('/')?;
        Some(match (kind, first) {
            ("image", _) => Self::Image,
            ("audio" | "video", _) => Self::Media,
            (_, "text/css") => Self::Stylesheet,
            (_, "application/json") => Self::Fetch,
            _ => return None,
        })
    }

    /// Its name in filter rules.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Subdocument => "subdocument",
            Self::Image => "image",
            Self::Script => "script",
            Self::Stylesheet => "stylesheet",
            Self::Font => "font",
            Self::Media => "media",
            Self::Object => "object",
            Self::Fetch => "xmlhttprequest",
            Self::Ping => "ping",
            Self::Tunnel | Self::Other => "other",
        }
    }
}

/// The URL of a request; of a tunnel that of the host, without its port.
pub(super) fn url(head: &RequestHead<'_>) -> String {
    let authority = head.authority();
    if head.method() == "CONNECT" {
        let host = authority.rsplit_once(':').map_or(authority, |it| it.0);
        return format!("https://{host}/");
    }
    format!("http://{authority}{}", head.path_and_query())
}

/// The URL of the page that a request comes from: by Referer, or Origin.
///
/// A page is its own. So is what says nothing: rules for third parties alone are not for a request
/// that may come from the site itself.
pub(super) fn source(head: &RequestHead<'_>, resource: Resource) -> String {
    let field = |name| head.fields.get(name).and_then(|it| str::from_utf8(it).ok());
    let is_url = |text: &&str| text.starts_with("http://") || text.starts_with("https://");
    let own = || url(head);
    if resource == Resource::Document {
        return own();
    }
    let named = field("referer").filter(is_url);
    named
        .or_else(|| field("origin").filter(is_url))
        .map_or_else(own, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_extend::Fields;

    fn head(path: &str, lines: &[(&str, &str)]) -> RequestHead<'static> {
        let lines = lines.iter().map(|(name, value)| (*name, value.as_bytes()));
        RequestHead::new("GET", "a.example", path, Fields::received(lines)).into_owned()
    }

    #[track_caller]
    fn check(path: &str, lines: &[(&str, &str)], expected: Resource) {
        assert_eq!(Resource::of(&head(path, lines)), expected, "{path}");
    }

    #[test]
    fn destination_that_a_browser_names_says_what_a_request_is_for() {
        for (destination, expected) in [
            ("document", Resource::Document),
            ("iframe", Resource::Subdocument),
            ("image", Resource::Image),
            ("worker", Resource::Script),
            ("style", Resource::Stylesheet),
            ("empty", Resource::Fetch),
        ] {
            let lines = [("Sec-Fetch-Dest", destination), ("Accept", "text/html")];
            check("/a.png", &lines, expected);
        }
    }

    #[test]
    fn name_and_accept_say_it_where_no_destination_is_named() {
        check("/a.PNG?b.js", &[("Accept", "*/*")], Resource::Image);
        check("/a.js", &[], Resource::Script);
        check("/x/a.woff2", &[("Sec-Fetch-Dest", "new")], Resource::Font);
        check("/a.js", &[("Accept", "text/html,*/*")], Resource::Document);
        check("/a", &[("Accept", "image/avif,image/*")], Resource::Image);
        check(
            "/a.php",
            &[("Accept", "text/css,*/*;q=0.1")],
            Resource::Stylesheet,
        );
        check("/a.php", &[("Accept", "*/*")], Resource::Other);
        check("/", &[], Resource::Other);
    }

    #[test]
    fn page_that_a_request_comes_from_is_that_of_referer_or_origin_or_its_own() {
        let (referer, origin) = (
            ("Referer", "http://b.example/page"),
            ("Origin", "https://c.example"),
        );
        for (lines, resource, expected) in [
            (
                &[origin, referer][..],
                Resource::Image,
                "http://b.example/page",
            ),
            (&[origin], Resource::Image, "https://c.example"),
            (
                &[("Origin", "null")],
                Resource::Image,
                "http://a.example/x?y",
            ),
            (&[], Resource::Image, "http://a.example/x?y"),
            (&[referer], Resource::Document, "http://a.example/x?y"),
        ] {
            assert_eq!(source(&head("/x?y", lines), resource), expected);
        }
        let tunnel = RequestHead::new("CONNECT", "a.example:443", "", Fields::default());
        assert_eq!(url(&tunnel), "https://a.example/");
    }
}
