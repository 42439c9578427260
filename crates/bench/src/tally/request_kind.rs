//! Kinds of requests.

use weir_measure::labels;
use weir_workload::{Ask, AskKind, Method};

labels! {
    /// Method and conditions of a request.
    RequestKind {
        /// `GET` without a condition.
        Plain = "plain",
        /// `If-Modified-Since` a second before the last modification: 200 is right (`PolyMix`:
        /// Ims200).
        ModifiedSince = "if-modified-200",
        /// `If-Modified-Since` a second after it: 304 is right (`PolyMix`: Ims304).
        NotModifiedSince = "if-modified-304",
        /// `Cache-Control: no-cache`.
        Reload = "reload",
        /// `HEAD`.
        Head = "head",
        /// `POST`.
        Post = "post",
    }
}

impl RequestKind {
    pub(crate) const fn of(ask: &Ask) -> Self {
        match (ask.method, ask.kind) {
            (Method::Head, _) => Self::Head,
            (Method::Post { .. }, _) => Self::Post,
            (Method::Get, AskKind::Plain) => Self::Plain,
            (Method::Get, AskKind::Reload) => Self::Reload,
            (Method::Get, AskKind::IfModifiedSince { newer: false }) => Self::ModifiedSince,
            (Method::Get, AskKind::IfModifiedSince { newer: true }) => Self::NotModifiedSince,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::Target;

    const TARGET: Target = Target {
        server: 0,
        number: 1,
    };

    #[test]
    fn request_kind_follows_from_condition_reload_and_method() {
        let check = |kind, method, expected| {
            let plain = Ask::plain(0, TARGET);
            let ask = Ask {
                kind,
                method,
                ..plain
            };
            assert_eq!(RequestKind::of(&ask), expected);
        };
        let since = |newer| AskKind::IfModifiedSince { newer };
        check(AskKind::Plain, Method::Get, RequestKind::Plain);
        check(AskKind::Reload, Method::Get, RequestKind::Reload);
        check(since(false), Method::Get, RequestKind::ModifiedSince);
        check(since(true), Method::Get, RequestKind::NotModifiedSince);
        check(AskKind::Plain, Method::Head, RequestKind::Head);
        let post = Method::Post { content_bytes: 5 };
        check(AskKind::Plain, post, RequestKind::Post);
    }
}
