//! Judges a request head: its target, its next hop, and whether it is permitted (phases request
//! head and authorise).
//!
//! One canonical target comes out of here, and routing, key, rules and forwarding use nothing else
//! (RFC 9110 §7.1). Anything ambiguous is refused, never repaired (RFC 9112 §6.3, §11.2).

use crate::config::Mode;
use crate::request::answer::{Answer, AnswerReason};
use crate::request::denied_client::denied_client;
use crate::request::recent_heads::RecentHead;
use crate::settings::Settings;
use std::net::IpAddr;
use weir_net::tls::server::ClientName;
use weir_policy::{Digest, KeyHasher, Secret};
use weir_semantics::{
    Authority, ConnectionOptions, Form, HostName, Method, ProxyError, RequestFacts, Scheme, Target,
    canonical_target, contains_pseudonym, lines_named, list_elements,
};
use weir_wire::{BodyLength, HeadError, RequestHead, Version, request_body};

/// A request that may be answered from the cache or forwarded, as read from its head.
pub(crate) struct ReceivedRequest<'a> {
    pub(crate) mode: Mode,
    pub(crate) method: Method,
    pub(crate) target: Target<'a>,
    pub(crate) form: Form,
    pub(crate) version: Version,
    pub(crate) body: BodyLength,
    pub(crate) facts: RequestFacts,
    /// The client's connection may be used again.
    pub(crate) is_persistent: bool,
    /// The client requests to switch protocols, and the proxy may forward that.
    pub(crate) upgrade: bool,
    /// The digest of its cache key, once that was needed.
    key: Option<Digest>,
}

/// By what a request is judged beside its head.
#[derive(Clone, Copy)]
pub(crate) struct JudgeRules<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) mode: Mode,
    /// The listener's own authority, for HTTP/1.0 requests without Host.
    pub(crate) default: &'a Authority,
    /// The scheme of requests that name none.
    pub(crate) scheme: Scheme,
    /// What the client has called the host of a connection under TLS: a gateway has requests for
    /// that alone.
    pub(crate) tls: Option<&'a ClientName>,
    /// The client that is to be permitted to use this listener; `None` if none is judged: of
    /// requests of other nodes, and of those without a client.
    pub(crate) client: Option<IpAddr>,
}

impl<'a> ReceivedRequest<'a> {
    /// Judges a head; the host of its target is written into `host`.
    ///
    /// # Errors
    ///
    /// The answer to give instead. Where the framing is in doubt the answer closes the connection.
    // part of the way of every hit: a call copies what it returns, 2 % of one
    #[inline(always)]
    pub(crate) fn judge(
        head: &RequestHead<'_, 'a>,
        rules: &JudgeRules<'_>,
        host: &'a mut HostName,
    ) -> Result<Self, Answer> {
        let body =
            request_body(head.version, head.fields).map_err(|error| Answer::bad_request(&error))?;
        check_client(rules)?;
        let method = Method::parse(head.method);
        if method == Method::Connect && body != BodyLength::None {
            // it may belong to the request or to the tunnel (RFC 9110 §9.3.6)
            return Err(Answer::bad_request(&"a CONNECT with content"));
        }
        let http11 = head.version == Version::Http11;
        let (target, form) = canonical_target(
            method,
            head.target,
            head.fields,
            http11,
            rules.default,
            rules.scheme,
            host,
        )
        .map_err(|error| Answer::bad_request(&error))?;
        check_form(method, form, &target, rules)?;
        let options = ConnectionOptions::gather(head.fields);
        if options.are_too_many() {
            return Err(Answer::bad_request(&HeadError::ConnectionOptions));
        }
        let facts = RequestFacts::gather(method, target.path_and_query, head.fields);
        check_loop(head, rules.settings)?;
        // a request with content may be answered only (RFC 9110 §7.8): a switch in its middle has
        // no clear place
        let upgrade = http11 && options.upgrade && has_upgrade(head) && body == BodyLength::None;
        Ok(Self {
            mode: rules.mode,
            method,
            target,
            form,
            version: head.version,
            body,
            facts,
            is_persistent: !options.close && (http11 || options.keep_alive),
            upgrade,
            key: None,
        })
    }

    /// Judges again a head that was judged before, by what does not depend on its bytes alone: the
    /// client, and the host that it has called under TLS. Settings, mode and scheme are the same
    /// as then.
    ///
    /// # Errors
    ///
    /// The answer to give instead, the same as of [`Self::judge`].
    #[inline(always)]
    pub(crate) fn again(recent: &'a RecentHead, rules: &JudgeRules<'_>) -> Result<Self, Answer> {
        check_client(rules)?;
        let request = &recent.request;
        let (method, form, target) = (request.method, request.form, request.target());
        check_form(method, form, &target, rules)?;
        Ok(Self {
            mode: request.mode,
            method,
            target,
            form,
            version: request.version,
            body: request.body,
            facts: recent.facts,
            is_persistent: request.is_persistent,
            upgrade: request.upgrade,
            key: Some(recent.key),
        })
    }

    /// Whether the form of the request permits a response from the cache, or one that is stored: it
    /// has no content, and no switch of protocols.
    pub(crate) fn is_shareable(&self) -> bool {
        !self.upgrade && matches!(self.body, BodyLength::None | BodyLength::Exact(0))
    }

    /// Digest of the cache key: mode, scheme, host, port, path and query; never without the host.
    /// The method is not part of it, as only responses to GET are stored.
    pub(crate) fn key(&self, secret: &Secret) -> Digest {
        match self.key {
            Some(key) => key,
            None => key_of(self.mode, &self.target, secret),
        }
    }

    /// The same, to be used again: neither mode nor target change.
    pub(crate) fn keep_key(&mut self, secret: &Secret) -> Digest {
        let key = self.key(secret);
        self.key = Some(key);
        key
    }
}

/// Digest of the cache key of a target. A gateway and a forward proxy have different keys for one
/// host: clients of the gateway choose Host, and its next hops need not be that host.
pub(crate) fn key_of(mode: Mode, target: &Target<'_>, secret: &Secret) -> Digest {
    let mut hasher = KeyHasher::new(secret);
    hasher.number(match (mode, target.scheme) {
        (Mode::Forward, Scheme::Http) => 1,
        (Mode::Forward, Scheme::Https) => 2,
        (Mode::Gateway, Scheme::Http) => 3,
        (Mode::Gateway, Scheme::Https) => 4,
    });
    hasher.part(target.host.as_bytes());
    hasher.number(u64::from(target.port));
    hasher.part(target.path_and_query.as_bytes());
    hasher.finish()
}

/// Refuses a client that may not use the listener.
#[inline]
fn check_client(rules: &JudgeRules<'_>) -> Result<(), Answer> {
    match rules.client {
        Some(client) => {
            let checked = rules.settings.check_client(rules.mode, client);
            checked.map_err(|why| denied_client(client, why))
        }
        None => Ok(()),
    }
}

fn check_form(
    method: Method,
    form: Form,
    target: &Target<'_>,
    rules: &JudgeRules<'_>,
) -> Result<(), Answer> {
    if method == Method::Trace {
        return Err(Answer::closing(
            405,
            AnswerReason::denied("TRACE is refused: it would echo credentials"),
        ));
    }
    match (rules.mode, form) {
        (Mode::Gateway, Form::Authority) => Err(Answer::closing(
            405,
            AnswerReason::denied("this is a gateway; CONNECT is for forward proxies"),
        )),
        (Mode::Gateway, _) => check_misdirected(form, target, rules),
        (Mode::Forward, Form::Origin) => Err(Answer::closing(
            400,
            AnswerReason::bad(
                "this is a forward proxy: the request target must be a whole URL (http://host/path); \
                 use it as `curl -x`, or set it as the browser's HTTP proxy; /proxy.pac is the file \
                 for automatic configuration",
            ),
        )),
        (Mode::Forward, Form::Absolute) if target.scheme == Scheme::Https => Err(Answer::closing(
            501,
            AnswerReason::new(
                ProxyError::HttpRequestError,
                "https:// URLs are reached by CONNECT; this proxy does not open TLS itself",
            ),
        )),
        _ => Ok(()),
    }
}

/// Refuses a request to a gateway that its connection is not for (RFC 9110 §7.4, §15.5.20): of
/// another scheme, or under TLS for a host that the client has not called and has not verified.
/// Nodes of a cluster ask for what clients have asked them.
#[inline]
fn check_misdirected(
    form: Form,
    target: &Target<'_>,
    rules: &JudgeRules<'_>,
) -> Result<(), Answer> {
    let misdirected = |text| {
        let reason = AnswerReason::new(ProxyError::HttpRequestError, text);
        Err(Answer::closing(421, reason))
    };
    if form == Form::Absolute && rules.client.is_some() && target.scheme != rules.scheme {
        return match target.scheme {
            Scheme::Https => {
                misdirected("this listener has no TLS and does not answer for https:// URLs")
            }
            Scheme::Http => {
                misdirected("this listener has TLS and does not answer for http:// URLs")
            }
        };
    }
    match rules.tls {
        Some(name) if !name.permits(target.host.as_str()) => {
            misdirected("the TLS connection was opened for another host than the request is for")
        }
        _ => Ok(()),
    }
}

#[inline]
fn check_loop(head: &RequestHead<'_, '_>, settings: &Settings) -> Result<(), Answer> {
    let passed = lines_named(head.fields, "via");
    if contains_pseudonym(passed, settings.name(), Some(&settings.instance)) {
        return Err(Answer::closing(
            508,
            AnswerReason::new(
                ProxyError::ProxyLoopDetected,
                "this request has passed here before",
            ),
        ));
    }
    Ok(())
}

/// Whether Upgrade names a permitted protocol. HTTP/2 is not permitted: in its tunnel further
/// requests would bypass routes, rules and log, and RFC 9113 §3.1 has dropped the upgrade.
fn has_upgrade(head: &RequestHead<'_, '_>) -> bool {
    let mut protocols = lines_named(head.fields, "upgrade")
        .flat_map(list_elements)
        .peekable();
    protocols.peek().is_some() && !protocols.any(|protocol| protocol.eq_ignore_ascii_case(b"h2c"))
}

#[cfg(test)]
mod tests {
    use weir_semantics::identify;

    /// The request fields that a rule of the proxy reads by a name in its text. Those that are read
    /// as a [`Known`](weir_semantics::Known) cannot be forgotten.
    const READ: [&str; 10] = [
        "connection",
        "content-length",
        "host",
        "max-forwards",
        "range",
        "referer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    ];

    /// What reads them: the judgement, the choice of a stored response, and the access log.
    const READERS: [&str; 4] = [
        include_str!("judge.rs"),
        include_str!("max_forwards.rs"),
        include_str!("../client/fast.rs"),
        include_str!("../send/heads.rs"),
    ];

    /// The names that the code of `source` has field lines looked up by.
    fn names(source: &str) -> impl Iterator<Item = &str> {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let calls = code.split("_named(").skip(1);
        calls.filter_map(|call| {
            let arguments = call.split(')').next()?;
            arguments.split('"').nth(1)
        })
    }

    #[test]
    fn request_field_that_a_rule_reads_is_known_by_its_name() {
        for name in READ {
            assert!(identify(name).is_some(), "{name}");
        }
    }

    #[test]
    fn list_of_request_fields_has_those_that_the_code_reads() {
        let read: Vec<&str> = READERS.iter().flat_map(|source| names(source)).collect();
        assert!(read.contains(&"via"), "{read:?}");
        for name in read {
            assert!(READ.contains(&name), "{name}");
        }
    }
}
