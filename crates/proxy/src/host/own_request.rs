//! A request of a module's own, as it is judged and written: by the rules for a client's on a
//! forward proxy.

use crate::settings::Settings;
use std::net::SocketAddr;
use std::time::Duration;
use weir_extend::{FETCH_CONTENT_BYTES_MAX, FETCH_TIMEOUT_MAX, FetchError, Fields, OwnRequest};
use weir_net::next_hops::{Destination, HopKey};
use weir_net::workers::Network;
use weir_semantics::{
    Authority, Form, HostName, Known, Method, Scheme, Target, canonical_target, identify,
    is_hop_by_hop, is_token,
};
use weir_wire::{Version, write};

/// A request of a module's own, judged.
#[derive(Debug)]
pub(super) struct JudgedRequest {
    pub(super) method: Method,
    pub(super) hop: HopKey,
    /// The request line and the field lines.
    pub(super) head: Vec<u8>,
    pub(super) content: Vec<u8>,
    pub(super) timeout: Duration,
    pub(super) content_bytes_max: usize,
}

impl JudgedRequest {
    /// Judges `request`.
    ///
    /// # Errors
    ///
    /// [`FetchError::BadRequest`].
    pub(super) fn new(settings: &Settings, request: OwnRequest) -> Result<Self, FetchError> {
        let OwnRequest {
            method: token,
            url,
            fields,
            content,
            timeout,
            content_bytes_max,
        } = request;
        let method = Method::parse(&token);
        let is_refused = |refused| token.eq_ignore_ascii_case(refused);
        if !is_token(token.as_bytes())
            || is_refused("CONNECT")
            || is_refused("TRACE")
            || content.len() > FETCH_CONTENT_BYTES_MAX
        {
            return Err(FetchError::BadRequest);
        }
        let mut host = HostName::EMPTY;
        let target = whole_target(method, &url, &mut host).ok_or(FetchError::BadRequest)?;
        // requests that modules make go in clear alone
        if target.scheme != Scheme::Http {
            return Err(FetchError::BadRequest);
        }
        let mut host = Vec::with_capacity(64);
        target.write_authority(&mut host);
        let mut head = begin_head(&token, target.path_and_query, &host);
        let fields = end_to_end(&fields).ok_or(FetchError::BadRequest)?;
        for (name, value) in fields.iter() {
            write::field(&mut head, name, value);
        }
        if !content.is_empty() || !matches!(method, Method::Get | Method::Head) {
            write::number_field(&mut head, "Content-Length", content.len() as u64);
        }
        head.extend_from_slice(settings.via_line(Version::Http11));
        Ok(Self {
            method,
            hop: HopKey::new(target.host.as_str(), target.port),
            head,
            content,
            timeout: timeout.min(FETCH_TIMEOUT_MAX),
            content_bytes_max: content_bytes_max.min(FETCH_CONTENT_BYTES_MAX),
        })
    }

    /// Where it goes. An address is checked at once, as that of a client's request is; a name when
    /// its addresses are known.
    ///
    /// # Errors
    ///
    /// [`FetchError::Forbidden`].
    pub(super) fn destination(
        &self,
        settings: &Settings,
        network: &Network,
    ) -> Result<Destination, FetchError> {
        let destination = Destination {
            hop: self.hop.clone(),
            guarded: true,
            read_ahead: settings.read_ahead_of(None),
            client: None,
            client_ends: None,
            observer: None,
        };
        if let Ok(ip) = self.hop.host.parse() {
            let address = SocketAddr::new(ip, self.hop.port);
            destination
                .check(network, &settings.connections, address)
                .map_err(|_| FetchError::Forbidden)?;
        }
        Ok(destination)
    }
}

/// The begin of the head of a request of the proxy's own: what HTTP/1.1 asks of each (RFC 9112 §3).
pub(super) fn begin_head(method: &str, path: &str, host: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    write::request_line(&mut head, method, path, Version::Http11);
    write::field(&mut head, "Host", host);
    head
}

/// The canonical target of an `http` or `https` URL (RFC 9110 §7.1); its host is written into
/// `host`.
pub(super) fn whole_target<'a>(
    method: Method,
    url: &'a str,
    host: &'a mut HostName,
) -> Option<Target<'a>> {
    let nowhere = Authority::parse("localhost").ok()?;
    let target = canonical_target(method, url, &[], false, &nowhere, Scheme::Http, host);
    let (target, form) = target.ok()?;
    (form == Form::Absolute).then_some(target)
}

/// The fields as the module may write them; without those that are for one connection, and Host.
/// `None` if one may not be written. What a module hands over may be a head that it has received.
pub(super) fn end_to_end(fields: &Fields) -> Option<Fields> {
    let mut checked = Fields::default();
    for (name, value) in fields.iter() {
        let known = identify(name);
        if known.is_some_and(|known| known == Known::Host || is_hop_by_hop(known)) {
            continue;
        }
        checked.add(name, value).ok()?;
    }
    Some(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[track_caller]
    fn judged(change: impl FnOnce(&mut OwnRequest)) -> Result<JudgedRequest, FetchError> {
        let settings = Settings::new(Config::default(), "tests");
        let mut request = OwnRequest::get("http://A.example:8080/x?y");
        change(&mut request);
        JudgedRequest::new(&settings, request)
    }

    fn head(change: impl FnOnce(&mut OwnRequest)) -> String {
        let judged = judged(change).expect("a request");
        String::from_utf8(judged.head).expect("text")
    }

    #[test]
    fn request_has_the_host_of_its_target_its_own_length_and_via() {
        let written = head(|request| {
            request.fields = Fields::received([
                ("Host", &b"b.example"[..]),
                ("Transfer-Encoding", b"chunked"),
                ("Connection", b"close, x-a"),
                ("X-A", b"1"),
            ]);
            request.method = "POST".into();
            request.content = b"abc".to_vec();
        });
        assert_eq!(
            written,
            "POST /x?y HTTP/1.1\r\nHost: a.example:8080\r\nX-A: 1\r\nContent-Length: 3\r\nVia: 1.1 weir (tests)\r\n"
        );
        assert!(!head(|_| {}).contains("Content-Length"));
        assert!(head(|request| request.method = "PUT".into()).contains("Content-Length: 0\r\n"));
        let hop = judged(|request| request.url = "http://[::1]/".into())
            .expect("a request")
            .hop;
        assert_eq!((&*hop.host, hop.port), ("::1", 80));
    }

    #[test]
    fn request_that_is_ambiguous_or_no_request_is_refused() {
        for method in [
            "", "G ET", "CONNECT", "connect", "TRACE", "Trace", "GET\r\n",
        ] {
            let refused = judged(|request| request.method = method.into());
            assert_eq!(refused.err(), Some(FetchError::BadRequest), "{method:?}");
        }
        for url in [
            "",
            "/x",
            "*",
            "a.example",
            "https://a.example/",
            "http://",
            "http://a.example/ x",
            "http://a.example/\r\nX: y",
            "http://u@a.example/",
            "http://a.example/#f",
            "http://a.example:0x50/",
            "ftp://a.example/",
        ] {
            let refused = judged(|request| request.url = url.into());
            assert_eq!(refused.err(), Some(FetchError::BadRequest), "{url:?}");
        }
        for (name, value) in [
            ("Content-Length", &b"5"[..]),
            ("X-A", b"a\r\nX-B: b"),
            ("X A", b"a"),
            ("Via", b"1.1 other"),
            ("Expect", b"100-continue"),
        ] {
            let refused = judged(|request| request.fields = Fields::received([(name, value)]));
            assert_eq!(refused.err(), Some(FetchError::BadRequest), "{name:?}");
        }
        let large = |length| judged(|request| request.content = vec![0; length]).err();
        assert_eq!(large(FETCH_CONTENT_BYTES_MAX), None);
        assert_eq!(
            large(FETCH_CONTENT_BYTES_MAX + 1),
            Some(FetchError::BadRequest)
        );
    }
}
