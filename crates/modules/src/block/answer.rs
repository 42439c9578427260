//! What a blocked request is answered with: what its client can use in the place of what it asked
//! for.

use super::resource::Resource;
use weir_extend::LocalResponse;

/// An image of one transparent pixel: GIF, 43 bytes.
const BLANK_IMAGE: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\
    \x21\xf9\x04\x01\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";

const PAGE: &str = "<!doctype html><title>Blocked</title>\
    <p>This page is blocked here: a filter list names it.</p>\n";

/// How long a client may keep the answer. It is for that client alone: another one may request the
/// same from another page.
const CACHE_CONTROL: &[u8] = b"private, max-age=3600";

/// The answer; `None` if there is none, which cannot be.
///
/// A tunnel is never answered with success: its client would take that for the tunnel.
pub(super) fn of(resource: Resource) -> Option<LocalResponse> {
    let (status, media_type, content): (u16, &[u8], &[u8]) = match resource {
        Resource::Image => (200, b"image/gif", BLANK_IMAGE),
        Resource::Script => (200, b"text/javascript", b""),
        Resource::Stylesheet => (200, b"text/css", b""),
        Resource::Document => (403, b"text/html; charset=utf-8", PAGE.as_bytes()),
        Resource::Tunnel => (403, b"text/plain", b"blocked by a filter list\n"),
        Resource::Subdocument
        | Resource::Font
        | Resource::Media
        | Resource::Object
        | Resource::Fetch
        | Resource::Ping
        | Resource::Other => (204, b"", b""),
    };
    let response = LocalResponse::new(status, content).ok()?;
    let response = match media_type {
        b"" => response,
        media_type => response.with("Content-Type", media_type).ok()?,
    };
    response.with("Cache-Control", CACHE_CONTROL).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_request_is_answered_with_what_its_client_can_use() {
        for (resource, status, media_type) in [
            (Resource::Image, 200, Some(&b"image/gif"[..])),
            (Resource::Script, 200, Some(b"text/javascript")),
            (Resource::Document, 403, Some(b"text/html; charset=utf-8")),
            (Resource::Tunnel, 403, Some(b"text/plain")),
            (Resource::Fetch, 204, None),
        ] {
            let answer = of(resource).expect("an answer");
            assert_eq!(answer.status(), status);
            assert_eq!(answer.fields.get("content-type"), media_type);
            let cached = answer.fields.get("cache-control").expect("a lifetime");
            assert!(cached.starts_with(b"private"));
        }
        let blank = of(Resource::Image).expect("an answer");
        assert_eq!(blank.content().len(), 43);
    }
}
