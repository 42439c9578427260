//! Kinds of requests.

use weir_measure::labels;
use weir_workload::{Method, RequestType, WorkloadRequest};

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
    pub(crate) const fn of(ask: &WorkloadRequest) -> Self {
        match (ask.method, ask.kind) {
            (Method::Head, _) => Self::Head,
            (Method::Post { .. }, _) => Self::Post,
            (Method::Get, RequestType::Plain) => Self::Plain,
            (Method::Get, RequestType::Reload) => Self::Reload,
            (Method::Get, RequestType::IfModifiedSince { newer: false }) => Self::ModifiedSince,
            (Method::Get, RequestType::IfModifiedSince { newer: true }) => Self::NotModifiedSince,
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
            let plain = WorkloadRequest::plain(0, TARGET);
            let ask = WorkloadRequest {
                kind,
                method,
                ..plain
            };
            assert_eq!(RequestKind::of(&ask), expected);
        };
        let since = |newer| RequestType::IfModifiedSince { newer };
        check(RequestType::Plain, Method::Get, RequestKind::Plain);
        check(RequestType::Reload, Method::Get, RequestKind::Reload);
        check(since(false), Method::Get, RequestKind::ModifiedSince);
        check(since(true), Method::Get, RequestKind::NotModifiedSince);
        check(RequestType::Plain, Method::Head, RequestKind::Head);
        let post = Method::Post { content_bytes: 5 };
        check(RequestType::Plain, post, RequestKind::Post);
    }
}
