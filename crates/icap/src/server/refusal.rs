//! The statuses of an answer that is an error (RFC 3507 §4.3.3).

use weir_semantics::words;

words! {
    /// The status of an answer that is an error (RFC 3507 §4.3.3).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum RefusalStatus {
        /// 400: the request is malformed.
        BadRequest = "Bad request",
        /// 404: there is no such service.
        NotFound = "ICAP Service not found",
        /// 405: the service does not have the method.
        MethodNotAllowed = "Method not allowed for service",
        /// 408: the request did not arrive in time.
        RequestTimeout = "Request timeout",
        /// 500: the service failed.
        ServerError = "Server error",
        /// 501: the server does not have the method.
        NotImplemented = "Method not implemented",
        /// 503: too many requests or connections.
        ServiceOverloaded = "Service overloaded",
        /// 505: the version is not ICAP/1.0.
        VersionNotSupported = "ICAP version not supported by server",
    }
}

impl RefusalStatus {
    /// The status code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::ServerError => 500,
            Self::NotImplemented => 501,
            Self::ServiceOverloaded => 503,
            Self::VersionNotSupported => 505,
        }
    }
}
