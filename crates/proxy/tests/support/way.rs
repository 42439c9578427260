//! Gateway and forward proxy, so that one test is for both.

use super::message::Response;
use super::{OriginConnection, Running, ScriptedOrigin};

/// A proxy before an origin, and how requests for the origin are written for it.
pub(crate) struct Way {
    /// The proxy.
    pub(crate) proxy: Running,
    /// The next hop.
    pub(crate) origin: ScriptedOrigin,
    /// What comes before a path in a request target.
    pub(crate) base: String,
    /// What Host says.
    pub(crate) host: String,
}

impl Way {
    /// A gateway.
    pub(crate) fn gateway() -> Self {
        let origin = ScriptedOrigin::new();
        Self {
            proxy: Running::gateway(&origin),
            base: String::new(),
            host: "a.example".into(),
            origin,
        }
    }

    /// A forward proxy.
    pub(crate) fn forward() -> Self {
        let origin = ScriptedOrigin::new();
        Self {
            proxy: Running::forward(),
            base: format!("http://{}", origin.address()),
            host: origin.address().to_string(),
            origin,
        }
    }

    /// Runs a test for both.
    pub(crate) fn each(test: impl Fn(&Self)) {
        test(&Self::gateway());
        test(&Self::forward());
    }

    /// A request's head; `fields` with their CRLF.
    pub(crate) fn head(&self, method: &str, path: &str, version: &str, fields: &str) -> String {
        format!(
            "{method} {}{path} HTTP/{version}\r\nHost: {}\r\n{fields}\r\n",
            self.base, self.host
        )
    }

    /// The head of a GET.
    pub(crate) fn get(&self, path: &str) -> String {
        self.head("GET", path, "1.1", "")
    }

    /// Fetches `path` with a new client, answering by hand.
    pub(crate) fn fetch(&self, path: &str, answer: &str) -> (Response, OriginConnection) {
        let mut client = self.proxy.client();
        client.send(self.get(path));
        let (hop, _) = self.origin.answer(answer);
        (client.read_response(), hop)
    }
}
