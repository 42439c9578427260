//! The versions of HTTP on both sides of the proxy, and the vectors that HTTP/2 does not have.

use crate::{http2, origin_http2};
use weir_vectors::{FieldContext, Origin, Runner, Vector};

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    One,
    Two,
}

/// Between what the proxy stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doors {
    pub(crate) runner: Runner,
    pub(crate) clients: Http,
    pub(crate) next_hop: Http,
    pub(crate) tls: Tls,
}

/// Where it is under TLS. A forward proxy speaks to origins in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    None,
    Clients,
    BothSides,
}

/// A vector, and why it is of HTTP/1.1.
type OfHttp1 = (&'static str, &'static str);

/// Vectors with a request that a client cannot send by HTTP/2. It sends that one by HTTP/1.1, and
/// the others by HTTP/2, to the same cache.
const REQUESTS: [OfHttp1; 2] = [
    (
        "field-that-connection-removes-counts-as-absent",
        "no message of HTTP/2 has Connection (RFC 9113 §8.2.2): there is no field for it to remove",
    ),
    (
        "switch-to-a-protocol-that-was-not-offered-is-an-error",
        "HTTP/2 offers no protocols by Upgrade (RFC 9113 §8.6)",
    ),
];

/// Vectors with a response that a next hop cannot send by HTTP/2: they do not run. What makes a
/// response malformed there is tested by frames (`end_to_end http2::next_hops::hostile`).
const RESPONSES: [OfHttp1; 4] = [
    (
        "connection-fields-are-not-stored",
        "no message of HTTP/2 has Connection or Keep-Alive (RFC 9113 §8.2.2)",
    ),
    (
        "304-does-not-store-connection-fields",
        "no message of HTTP/2 has Connection or Keep-Alive (RFC 9113 §8.2.2)",
    ),
    (
        "switch-of-protocols-that-was-not-requested-is-an-error",
        "HTTP/2 has no 101 (RFC 9113 §8.6)",
    ),
    (
        "switch-to-a-protocol-that-was-not-offered-is-an-error",
        "HTTP/2 has no 101 (RFC 9113 §8.6)",
    ),
];

/// Vectors of the scheme `http`, which a gateway under TLS does not have.
const IN_CLEAR: [(&str, &str); 3] = [
    (
        "location-of-the-same-origin-is-invalidated",
        "it names the origin by a URL of http",
    ),
    (
        "location-of-another-origin-is-not-invalidated",
        "another origin is one of https there, which is this one here",
    ),
    (
        "host-is-compared-without-regard-to-case-and-default-port",
        "port 80 is not the default of https",
    ),
];

impl Doors {
    pub(crate) const fn http1(runner: Runner) -> Self {
        Self {
            runner,
            clients: Http::One,
            next_hop: Http::One,
            tls: Tls::None,
        }
    }

    pub(crate) fn is_tls_from_clients(self) -> bool {
        self.tls != Tls::None
    }

    pub(crate) fn is_tls_to_next_hop(self) -> bool {
        self.tls == Tls::BothSides
    }

    /// The scheme of what clients ask for: a gateway's is that of its listener.
    pub(crate) fn scheme(self) -> &'static str {
        match self.is_tls_from_clients() && self.runner == Runner::Gateway {
            true => "https",
            false => "http",
        }
    }

    /// Whether `vector` has a response or a scheme that these do not have.
    pub(crate) fn excludes(self, vector: &Vector) -> bool {
        self.next_hop == Http::Two && is_among(&RESPONSES, vector)
            || self.scheme() == "https" && is_among(&IN_CLEAR, vector)
    }

    /// Fails if a vector is named above and HTTP/2 has it, or the other way round.
    pub(crate) fn check_names(self, vector: &Vector, usual_host: &str) {
        let (mut requests, mut responses) = (false, false);
        for step in &vector.steps {
            let host = step.request.host.as_deref().unwrap_or(usual_host);
            let context = FieldContext {
                at_s: step.at_s,
                host,
            };
            requests |= http2::request_of(&step.request, self.scheme(), context).is_none();
            let first = match &step.origin {
                Origin::None => None,
                Origin::Asked(answer) => Some(answer),
            };
            let mut answers = std::iter::successors(first, |answer| answer.again.as_deref());
            responses |=
                answers.any(|answer| origin_http2::head_of(&answer.response, context).is_none());
        }
        for (list, is_of_http1, what) in [
            (&REQUESTS[..], requests, "request"),
            (&RESPONSES, responses, "response"),
        ] {
            let id = &vector.id;
            let is_named = is_among(list, vector);
            assert_eq!(is_named, is_of_http1, "{id}: a {what} of HTTP/1.1 alone");
        }
    }
}

fn is_among(list: &[OfHttp1], vector: &Vector) -> bool {
    list.iter().any(|(id, _)| *id == vector.id)
}
