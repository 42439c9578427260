//! A request of a workload, before it is written in bytes.

use crate::{Site, Target};

/// One request of a stream: target, method, condition, and what the client does with the response.
///
/// It is a plain value: a client turns it into a request, a simulator into an event. Everything
/// random about it was decided by the generator, so two clients with the same stream make the same
/// requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadRequest {
    /// Index into [`Scenario::phases`](crate::Scenario::phases): the phase that this request is
    /// counted in.
    pub phase: u8,
    /// The target.
    pub target: Target,
    /// With a condition, as a reload, or plain.
    pub kind: RequestType,
    /// The method and, for a POST, the content's length.
    pub method: Method,
    /// The share of the response's content, in [0, 1), after which the client hangs up; `None`: it
    /// reads all.
    pub abort_at: Option<f32>,
    /// Once the response has come, the client requests the
    /// [`Site::embedded`](crate::Site::embedded) targets too, plainly.
    pub with_embedded: bool,
    /// Carry a `Cookie` field.
    pub cookie: bool,
    /// This target was requested before, by the order of the stream.
    pub is_repeat: bool,
}

impl WorkloadRequest {
    /// A `GET` without conditions, cookies or followers.
    pub const fn plain(phase: u8, target: Target) -> Self {
        Self {
            phase,
            target,
            kind: RequestType::Plain,
            method: Method::Get,
            abort_at: None,
            with_embedded: false,
            cookie: false,
            is_repeat: false,
        }
    }

    /// Could a shared cache without limits answer from what it has? Upper bound of what any cache
    /// can save: what has expired or changed since the target was requested counts as well, and so
    /// does what was requested and never came.
    #[must_use]
    pub fn could_hit(&self, site: &Site) -> bool {
        self.is_repeat
            && self.method == Method::Get
            && self.kind != RequestType::Reload
            && site.is_storable(self.target)
    }
}

/// Whether the request is conditional, or forbids a stored response; the types of Polygraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestType {
    /// Neither.
    Plain,
    /// `If-Modified-Since` one second beside the target's last modification (PolyMix: Ims304 and
    /// Ims200).
    IfModifiedSince {
        /// One second after it (the right answer is 304), or one second before it (the right answer
        /// is 200).
        newer: bool,
    },
    /// `Cache-Control: no-cache` and `Pragma: no-cache`.
    Reload,
}

/// The request's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST` with content.
    Post {
        /// The content's length in bytes.
        content_bytes: u32,
    },
}
