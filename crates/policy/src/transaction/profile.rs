//! Which rules of storing apply: RFC 9111, or the caches of 1998.
//!
//! `http-1998` is what PROXIM (Feldmann et al., INFOCOM 1999) called cachable: it refuses more than
//! RFC 9111 (anything dynamic, with a cookie, or with explicit cache control on either side) and
//! allows nothing that RFC 9111 forbids, so that it is safe to run live and comparable with the
//! paper.

use crate::verdict::Uncachable1998;
use weir_semantics::{Method, RequestFacts, ResponseFacts};

crate::choice! {
    /// The set of storing rules in force.
    #[derive(Default)]
    pub enum Profile {
        /// RFC 9111 for a shared cache.
        #[default]
        Rfc9111 = "rfc9111",
        /// RFC 9111 narrowed to the paper's table of uncachable causes.
        Http1998 = "http-1998",
    }
}

impl Profile {
    /// Why a request goes around the cache under this profile; the first cause in the paper's order
    /// of the request's own, `None` if it may use the cache.
    #[must_use]
    pub fn bypass(self, request: &RequestFacts) -> Option<Uncachable1998> {
        if self == Self::Rfc9111 {
            return None;
        }
        let causes = [
            (request.has_cookie, Uncachable1998::Cookie),
            (request.has_query, Uncachable1998::Query),
            (
                request.directives.any || request.has_pragma,
                Uncachable1998::ClientCacheControl,
            ),
            (request.has_cgi_bin, Uncachable1998::CgiBin),
            (
                !matches!(request.method, Method::Get | Method::Head),
                Uncachable1998::Method,
            ),
            (request.has_authorization, Uncachable1998::Authorization),
        ];
        causes.iter().find(|(holds, _)| *holds).map(|cause| cause.1)
    }

    /// Why a response is not stored under this profile beyond RFC 9111.
    #[must_use]
    pub fn refuses(self, response: &ResponseFacts) -> Option<Uncachable1998> {
        if self == Self::Rfc9111 {
            return None;
        }
        if response.has_set_cookie {
            return Some(Uncachable1998::Cookie);
        }
        if response.directives.any || response.expires.is_some() || response.has_pragma {
            return Some(Uncachable1998::ServerCacheControl);
        }
        None
    }
}

#[cfg(test)]
mod tests;
