//! A request as facts, for as long as it lasts.
//!
//! They do not depend on the HTTP version of the client: requests to next hops, keys and log lines
//! are made from them alone.

use super::fields::FieldSection;
use super::judge::ReceivedRequest;
use crate::config::Mode;
use crate::log::access_log::RequestLine;
use crate::log::client::ListenerFacts;
use std::cell::RefCell;
use std::rc::Rc;
use weir_semantics::{
    ConnectionOptions, FieldLine, Form, HostName, Method, NamedFields, Scheme, Target, line_named,
};
use weir_wire::{BodyLength, LineBuffer, RequestHead, Version};

/// A request that may be answered from the cache or forwarded. Immutable.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How its listener takes requests.
    pub(crate) mode: Mode,
    /// The method, as far as a cache distinguishes methods.
    pub(crate) method: Method,
    /// The form of its target.
    pub(crate) form: Form,
    /// The version that the client spoke.
    pub(crate) version: Version,
    /// The scheme of the canonical target (RFC 9110 §7.1).
    pub(crate) scheme: Scheme,
    /// Its host. Most requests of a client are for one: they share it, as it has room for the
    /// longest name.
    pub(crate) host: Rc<HostName>,
    /// Its port.
    pub(crate) port: u16,
    /// How long its content is, and how it is framed.
    pub(crate) body: BodyLength,
    /// The client takes another response on its connection.
    pub(crate) is_persistent: bool,
    /// The client requests to switch protocols, and the proxy may forward that.
    pub(crate) upgrade: bool,
    text: Rc<Text>,
    path: PathAt,
}

/// What of a request has no fixed size.
#[derive(Debug)]
struct Text {
    /// Bytes of the method.
    method: usize,
    /// The field lines, with the method and the target as received in front of them.
    fields: FieldSection,
}

impl Text {
    fn of(head: &RequestHead<'_, '_>) -> Self {
        Self {
            method: head.method.len(),
            fields: FieldSection::behind(&[head.method, head.target], head.fields),
        }
    }

    fn method(&self) -> &str {
        &self.fields.front()[..self.method]
    }

    fn target(&self) -> &str {
        &self.fields.front()[self.method..]
    }
}

/// Where the canonical path and query stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathAt {
    /// In the target as received: from this byte to its end.
    Target(usize),
    /// Nowhere: the target has no path, which means `/`, or `*` of an OPTIONS (RFC 9112 §3.2.4).
    Implied(&'static str),
}

impl PathAt {
    fn find(target: &str, path: &str) -> Self {
        match target.strip_suffix(path) {
            Some(before) => Self::Target(before.len()),
            None if path == "*" => Self::Implied("*"),
            None => Self::Implied("/"),
        }
    }
}

impl Request {
    /// The facts of `received`, whose head is `head`.
    pub(crate) fn new(received: &ReceivedRequest<'_>, head: &RequestHead<'_, '_>) -> Self {
        Self {
            mode: received.mode,
            method: received.method,
            form: received.form,
            version: received.version,
            scheme: received.target.scheme,
            host: shared_host(received.target.host),
            port: received.target.port,
            body: received.body,
            is_persistent: received.is_persistent,
            upgrade: received.upgrade,
            path: PathAt::find(head.target, received.target.path_and_query),
            text: Rc::new(Text::of(head)),
        }
    }

    /// A request that is refused, with the rest of the bytes on its connection: it is received
    /// without content, and its target stands for nothing.
    pub(crate) fn refused(head: &RequestHead<'_, '_>, listener: &ListenerFacts) -> Self {
        let is_own = head.target.starts_with('/');
        Self {
            mode: listener.mode,
            method: Method::parse(head.method),
            form: if is_own { Form::Origin } else { Form::Absolute },
            version: head.version,
            scheme: listener.scheme,
            host: shared_host(&listener.default.host),
            port: listener
                .default
                .port
                .unwrap_or(listener.scheme.default_port()),
            body: BodyLength::None,
            is_persistent: false,
            upgrade: false,
            path: PathAt::Implied("/"),
            text: Rc::new(Text::of(head)),
        }
    }

    /// A message of a member of the cluster, with content of this length: its target stands for
    /// nothing.
    pub(crate) fn of_member(
        head: &RequestHead<'_, '_>,
        listener: &ListenerFacts,
        body: BodyLength,
    ) -> Self {
        Self {
            body,
            is_persistent: head.version == Version::Http11,
            ..Self::refused(head, listener)
        }
    }

    /// Its head, with `fields` as [`Request::fields`] yields them.
    pub(crate) fn head<'s, 'a>(&'a self, fields: &'s [FieldLine<'a>]) -> RequestHead<'s, 'a> {
        RequestHead {
            method: self.text.method(),
            target: self.text.target(),
            version: self.version,
            fields,
        }
    }

    /// Its head; the lines of its fields are put into `lines`.
    #[inline]
    pub(crate) fn head_in<'s, 'a>(&'a self, lines: &'s mut LineBuffer<'a>) -> RequestHead<'s, 'a> {
        self.head(lines.collect(self.text.fields.iter()))
    }

    /// The same request for the store alone: a GET without content.
    pub(crate) fn for_store(&self) -> Self {
        Self {
            method: Method::Get,
            body: BodyLength::None,
            upgrade: false,
            ..self.clone()
        }
    }

    /// The method as it is sent to a next hop.
    pub(crate) fn method_token(&self) -> &str {
        match self.method {
            // also where it was made of another method, for the store
            Method::Get => "GET",
            _ => self.text.method(),
        }
    }

    /// Path and query of the canonical target, or `*`.
    pub(crate) fn path_and_query(&self) -> &str {
        match self.path {
            PathAt::Target(from) => &self.text.target()[from..],
            PathAt::Implied(path) => path,
        }
    }

    /// The canonical target.
    pub(crate) fn target(&self) -> Target<'_> {
        Target {
            scheme: self.scheme,
            host: &self.host,
            port: self.port,
            path_and_query: self.path_and_query(),
        }
    }

    /// The canonical target as a URI.
    pub(crate) fn target_uri(&self) -> String {
        let (scheme, host) = (self.scheme.as_str(), self.host.as_str());
        let path = self.path_and_query();
        match self.port {
            port if port == self.scheme.default_port() => format!("{scheme}://{host}{path}"),
            port => format!("{scheme}://{host}:{port}{path}"),
        }
    }

    /// The field lines.
    pub(crate) fn fields(&self) -> Vec<FieldLine<'_>> {
        self.text.fields.lines()
    }

    /// Fields of its trailer section that go no further, since its head names them.
    pub(crate) fn named_in_trailers(&self) -> NamedFields {
        match self.body {
            BodyLength::Chunked => ConnectionOptions::gather(&self.fields()).named_fields(),
            _ => NamedFields::NONE,
        }
    }

    /// About as many bytes as its head has.
    pub(crate) fn head_bytes(&self) -> usize {
        self.text.fields.bytes()
    }

    /// Whether it has content to be read from the client.
    pub(crate) fn has_content(&self) -> bool {
        !matches!(self.body, BodyLength::None | BodyLength::Exact(0))
    }

    /// The client understands HTTP/1.1: chunks, interim responses, connections that stay open.
    pub(crate) fn is_http11(&self) -> bool {
        self.version == Version::Http11
    }

    /// Calls `use_it` with what an access log shows of it.
    pub(crate) fn with_line<T>(&self, use_it: impl FnOnce(RequestLine<'_>) -> T) -> T {
        let fields = self.fields();
        let field = |name| line_named(&fields, name).unwrap_or_default();
        use_it(RequestLine {
            method: self.text.method(),
            target: self.text.target(),
            scheme: "",
            host: field("host"),
            version: self.version.as_str(),
            user_agent: field("user-agent"),
            referer: field("referer"),
        })
    }
}

/// `host`, shared with the last request of this thread if that was for the same one.
fn shared_host(host: &HostName) -> Rc<HostName> {
    thread_local! {
        static LAST: RefCell<Rc<HostName>> = RefCell::new(Rc::new(HostName::EMPTY));
    }
    LAST.with_borrow_mut(|last| {
        if **last != *host {
            *last = Rc::new(*host);
        }
        Rc::clone(last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_one_host_share_it() {
        let hosts = ["a.example", "b.example"].map(|host| HostName::parse(host).unwrap());
        let first = shared_host(&hosts[0]);
        let same = shared_host(&hosts[0]);
        assert!(Rc::ptr_eq(&first, &same));
        let other = shared_host(&hosts[1]);
        assert_eq!((*first, *other), (hosts[0], hosts[1]));
    }

    fn check(target: &str, path: &str, expected: PathAt) {
        assert_eq!(PathAt::find(target, path), expected, "{target} {path}");
    }

    #[test]
    fn path_is_the_end_of_the_received_target_or_implied() {
        check("/a?b", "/a?b", PathAt::Target(0));
        check("http://h/a?b", "/a?b", PathAt::Target(8));
        check("http://h/", "/", PathAt::Target(8));
        check("http://h", "/", PathAt::Implied("/"));
        check("*", "*", PathAt::Target(0));
        check("http://h", "*", PathAt::Implied("*"));
        check("h:443", "/", PathAt::Implied("/"));
    }
}
