//! The page itself: one answer that loads nothing.

use super::Dashboard;
use crate::admin::{list_of_endpoints, of_type};
use axum::Extension;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Where style and script go in the page.
const STYLE_PLACE: &str = "/*style*/";
const SCRIPT_PLACE: &str = "/*script*/";

/// The page, and what it may do.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    policy: HeaderValue,
}

impl Page {
    /// Puts the page together, and hashes what may run in it: nothing else may, whatever names it
    /// shows (Content Security Policy Level 3).
    pub(super) fn new() -> Self {
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
             trusted-types 'none'",
            hash(SCRIPT),
            hash(STYLE),
        );
        Self {
            text: PAGE
                .replace(STYLE_PLACE, STYLE)
                .replace(SCRIPT_PLACE, SCRIPT),
            policy: HeaderValue::try_from(policy)
                .unwrap_or(HeaderValue::from_static("default-src 'none'")),
        }
    }
}

/// `GET /`: the page for a browser, the list of the endpoints for others.
pub(in crate::admin) async fn front(
    Extension(dashboard): Extension<Arc<Dashboard>>,
    headers: HeaderMap,
) -> Response {
    if !wants_page(&headers) {
        return list_of_endpoints();
    }
    let text = dashboard.page.text.clone();
    let mut response = of_type(StatusCode::OK, "text/html; charset=utf-8", text);
    let fields = response.headers_mut();
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            dashboard.page.policy.clone(),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (header::VARY, HeaderValue::from_static("Accept")),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ] {
        fields.insert(name, value);
    }
    response
}

/// A browser says that it takes HTML.
fn wants_page(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        let mut ranges = value.split([',', ';']);
        ranges.any(|range| range.trim().eq_ignore_ascii_case("text/html"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_with_style_and_script_is_below_60_kb() {
        let page = Page::new();
        assert!(page.text.len() < 60_000, "{} bytes", page.text.len());
        assert!(!page.text.contains(STYLE_PLACE) && !page.text.contains(SCRIPT_PLACE));
    }

    #[test]
    fn nothing_may_run_or_be_loaded_but_what_is_in_the_page() {
        let page = Page::new();
        let policy = page.policy.to_str().expect("ASCII");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-"),
            "{policy}"
        );
        for word in ["unsafe", "http:", "https:", "data:", "*"] {
            assert!(!policy.contains(word), "{policy}");
        }
        // one script, one style, no reference to another address, no handler, no style attribute
        for (part, count) in [
            ("<script", 1),
            ("<style", 1),
            ("src=", 0),
            ("href=\"http", 0),
            ("style=\"", 0),
            ("onclick=", 0),
            ("onload=", 0),
        ] {
            let found = PAGE.matches(part).count();
            assert_eq!(found, count, "{part}");
        }
        for part in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!SCRIPT.contains(part), "{part}");
        }
    }
}
