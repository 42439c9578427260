//! Request methods, RFC 9110 §9 and RFC 5789.

/// A request method, as far as a cache distinguishes methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`, the method a stored response answers.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `DELETE`.
    Delete,
    /// `CONNECT`, a tunnel.
    Connect,
    /// `OPTIONS`.
    Options,
    /// `TRACE`.
    Trace,
    /// `PATCH`.
    Patch,
    /// Any other token; neither safe nor idempotent as far as we know.
    Other,
}

impl Method {
    /// The method with this name. Names are case-sensitive (RFC 9110 §9.1): `get` is
    /// [`Method::Other`].
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name.as_bytes() {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"CONNECT" => Self::Connect,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }

    /// Is the method read-only in what it asks for (RFC 9110 §9.2.1)? An unsafe one invalidates
    /// (RFC 9111 §4.4).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Whether the request may be repeated automatically (RFC 9110 §9.2.2).
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, method: Method, safe: bool, idempotent: bool) {
        assert_eq!(Method::parse(name), method, "{name:?}");
        assert_eq!(method.is_safe(), safe, "{name:?} safe");
        assert_eq!(method.is_idempotent(), idempotent, "{name:?} idempotent");
    }

    #[test]
    fn standard_methods_are_recognized_case_sensitively_with_their_properties() {
        check("GET", Method::Get, true, true);
        check("HEAD", Method::Head, true, true);
        check("OPTIONS", Method::Options, true, true);
        check("TRACE", Method::Trace, true, true);
        check("PUT", Method::Put, false, true);
        check("DELETE", Method::Delete, false, true);
        check("POST", Method::Post, false, false);
        check("PATCH", Method::Patch, false, false);
        check("CONNECT", Method::Connect, false, false);
        for other in ["get", "GETS", "", "PURGE", "GE"] {
            check(other, Method::Other, false, false);
        }
    }
}
