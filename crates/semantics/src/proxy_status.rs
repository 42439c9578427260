//! `Proxy-Status`, RFC 9209: why a proxy answers instead of the next hop.

use alloc::vec::Vec;

use crate::fields::structured::{write_string, write_token_or_string};

macro_rules! proxy_errors {
    ($($(#[doc = $doc:literal])* $variant:ident = $token:literal, $status:expr;)*) => {
        /// The types of error of RFC 9209 §2.3.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProxyError {
            $($(#[doc = $doc])* $variant,)*
        }

        impl ProxyError {
            /// All types, in the order of the RFC.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The token of RFC 9209 §2.3.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $token,)* }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*),)* }
            }

            /// The status that RFC 9209 §2.3 recommends for the response; `None` where it depends
            /// on the case: "the applicable 4xx" of a request error, "the most appropriate" of a
            /// response of our own.
            #[must_use]
            pub const fn recommended_status(self) -> Option<u16> {
                match self { $(Self::$variant => $status,)* }
            }
        }
    };
}

proxy_errors! {
    /// The next hop's name was not resolved in time.
    DnsTimeout = "dns_timeout", Some(504);
    /// The next hop's name was not resolved.
    DnsError = "dns_error", Some(502);
    /// We do not know which next hop this request is for.
    DestinationNotFound = "destination_not_found", Some(500);
    /// We hold the next hop to be down.
    DestinationUnavailable = "destination_unavailable", Some(503);
    /// We do not connect to the next hop's address.
    DestinationIpProhibited = "destination_ip_prohibited", Some(502);
    /// There is no route to the next hop's address.
    DestinationIpUnroutable = "destination_ip_unroutable", Some(502);
    /// The next hop refused the connection.
    ConnectionRefused = "connection_refused", Some(502);
    /// The connection was closed before a complete response was there.
    ConnectionTerminated = "connection_terminated", Some(502);
    /// The connection was not established in time.
    ConnectionTimeout = "connection_timeout", Some(504);
    /// No byte came within the time for reading.
    ConnectionReadTimeout = "connection_read_timeout", Some(504);
    /// No byte went within the time for writing.
    ConnectionWriteTimeout = "connection_write_timeout", Some(504);
    /// There are as many connections to the next hop as we allow.
    ConnectionLimitReached = "connection_limit_reached", Some(503);
    /// The TLS handshake or connection failed.
    TlsProtocolError = "tls_protocol_error", Some(502);
    /// The next hop's certificate could not be verified.
    TlsCertificateError = "tls_certificate_error", Some(502);
    /// The next hop sent a TLS alert.
    TlsAlertReceived = "tls_alert_received", Some(502);
    /// We found the request at fault.
    HttpRequestError = "http_request_error", None;
    /// We denied the request.
    HttpRequestDenied = "http_request_denied", Some(403);
    /// The response ended before it was complete.
    HttpResponseIncomplete = "http_response_incomplete", Some(502);
    /// The response's header section was too large.
    HttpResponseHeaderSectionSize = "http_response_header_section_size", Some(502);
    /// A field line of the response's header section was too large.
    HttpResponseHeaderSize = "http_response_header_size", Some(502);
    /// The response's content was too large.
    HttpResponseBodySize = "http_response_body_size", Some(502);
    /// The response's trailer section was too large.
    HttpResponseTrailerSectionSize = "http_response_trailer_section_size", Some(502);
    /// A field line of the response's trailer section was too large.
    HttpResponseTrailerSize = "http_response_trailer_size", Some(502);
    /// The response's transfer coding could not be decoded.
    HttpResponseTransferCoding = "http_response_transfer_coding", Some(502);
    /// The response's content coding could not be decoded.
    HttpResponseContentCoding = "http_response_content_coding", Some(502);
    /// The response was not complete in time.
    HttpResponseTimeout = "http_response_timeout", Some(504);
    /// The upgrade of the connection failed.
    HttpUpgradeFailed = "http_upgrade_failed", Some(502);
    /// The next hop broke HTTP in a way that has no type of its own.
    HttpProtocolError = "http_protocol_error", Some(502);
    /// The proxy made this response itself, without a request to the next hop.
    ProxyInternalResponse = "proxy_internal_response", None;
    /// We failed, unrelated to the next hop.
    ProxyInternalError = "proxy_internal_error", Some(500);
    /// Our configuration is at fault.
    ProxyConfigurationError = "proxy_configuration_error", Some(500);
    /// The request came from ourselves.
    ProxyLoopDetected = "proxy_loop_detected", Some(502);
}

/// Appends one member of `Proxy-Status`: `proxy` says this `error` occurred, `details` in words. As
/// with [`crate::CacheStatus::write`], every input gives a valid structured field.
pub fn write_proxy_status(
    out: &mut Vec<u8>,
    proxy: &str,
    error: ProxyError,
    details: Option<&str>,
) {
    write_token_or_string(proxy, out);
    out.extend_from_slice(b";error=");
    out.extend_from_slice(error.as_str().as_bytes());
    if let Some(details) = details {
        // RFC 9209 §2.1.5: a string, never a token
        out.extend_from_slice(b";details=");
        write_string(details, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sfv::{BareItem, List, ListEntry, Parser};

    use super::*;

    fn check(proxy: &str, error: ProxyError, details: Option<&str>, expected: &str) {
        let mut out = Vec::new();
        write_proxy_status(&mut out, proxy, error, details);
        assert_eq!(str::from_utf8(&out).unwrap(), expected);
    }

    #[test]
    fn proxy_status_members_are_written_as_in_rfc_9209() {
        check(
            "weir",
            ProxyError::ConnectionTimeout,
            None,
            "weir;error=connection_timeout",
        );
        check(
            "my proxy",
            ProxyError::DnsError,
            Some("NXDOMAIN"),
            r#""my proxy";error=dns_error;details="NXDOMAIN""#,
        );
    }

    #[test]
    fn each_error_recommends_the_status_of_rfc_9209() {
        for &error in ProxyError::ALL {
            let expected = match error {
                ProxyError::HttpRequestError | ProxyError::ProxyInternalResponse => None,
                ProxyError::HttpRequestDenied => Some(403),
                ProxyError::DestinationNotFound
                | ProxyError::ProxyInternalError
                | ProxyError::ProxyConfigurationError => Some(500),
                ProxyError::DestinationUnavailable | ProxyError::ConnectionLimitReached => {
                    Some(503)
                }
                _ if error.as_str().ends_with("_timeout") => Some(504),
                _ => Some(502),
            };
            assert_eq!(error.recommended_status(), expected, "{error:?}");
        }
    }

    #[test]
    fn error_tokens_are_variant_names_in_snake_case() {
        for error in ProxyError::ALL {
            let mut snake = String::new();
            for (at, letter) in format!("{error:?}").char_indices() {
                if letter.is_ascii_uppercase() && at > 0 {
                    snake.push('_');
                }
                snake.push(letter.to_ascii_lowercase());
            }
            assert_eq!(error.as_str(), snake);
        }
    }

    proptest! {
        #[test]
        fn every_member_parses_as_a_structured_field(
            proxy: String, error in prop::sample::select(ProxyError::ALL), details: Option<String>,
        ) {
            let mut out = Vec::new();
            write_proxy_status(&mut out, &proxy, error, details.as_deref());
            let list = Parser::new(&out).parse::<List>().unwrap();
            let [ListEntry::Item(item)] = &list[..] else { panic!("not one item") };
            let token = item.params.get("error").and_then(BareItem::as_token).map(|token| token.as_str());
            prop_assert_eq!(token, Some(error.as_str()));
            let text = item.params.get("details").and_then(BareItem::as_string);
            prop_assert_eq!(text.is_some(), details.is_some());
        }
    }
}
