//! Gateway and forward proxy, so that one test is for both.

use super::message::Response;
use super::{OriginConnection, RawClient, Running, ScriptedOrigin, localhost};
use weir_measure::Metric;
use weir_proxy::config::Config;

/// A proxy before an origin, and how requests for the origin are written for it.
pub(crate) struct Setup {
    /// The proxy.
    pub(crate) proxy: Running,
    /// The next hop.
    pub(crate) origin: ScriptedOrigin,
    /// What comes before a path in a request target.
    pub(crate) base: String,
    /// What Host says.
    pub(crate) host: String,
}

impl Setup {
    /// A gateway.
    pub(crate) fn gateway() -> Self {
        Self::gateway_with(|_| {})
    }

    /// A gateway, with changes to the configuration.
    pub(crate) fn gateway_with(change: impl FnOnce(&mut Config)) -> Self {
        let origin = ScriptedOrigin::new();
        Self {
            proxy: Running::gateway_with(origin.address(), change),
            base: String::new(),
            host: "a.example".into(),
            origin,
        }
    }

    /// A forward proxy.
    pub(crate) fn forward() -> Self {
        Self::forward_with(|_| {})
    }

    /// A forward proxy, with changes to the configuration.
    pub(crate) fn forward_with(change: impl FnOnce(&mut Config)) -> Self {
        let origin = ScriptedOrigin::new();
        Self {
            proxy: Running::forward_with(|config| {
                config.access.allow_destinations = vec![localhost()];
                change(config);
            }),
            base: format!("http://{}", origin.address()),
            host: origin.address().to_string(),
            origin,
        }
    }

    /// Runs a test for both.
    pub(crate) fn each(test: impl Fn(&Self)) {
        Self::each_with(|_| {}, test);
    }

    /// Runs a test for both, with changes to the configuration.
    pub(crate) fn each_with(change: impl Fn(&mut Config), test: impl Fn(&Self)) {
        test(&Self::gateway_with(&change));
        test(&Self::forward_with(&change));
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

    /// A client that has sent `request`, and the connection on which the next hop has read it.
    pub(crate) fn lead(&self, request: &str) -> (RawClient, OriginConnection) {
        let mut client = self.proxy.client();
        client.send(request);
        let mut hop = self.origin.accept();
        hop.read_head();
        (client, hop)
    }

    /// So many more clients that have sent `request`, and wait for the response head of another's.
    pub(crate) fn follow(&self, count: usize, request: &str) -> Vec<RawClient> {
        let before = self.proxy.count(Metric::FollowersWaiting);
        let clients = self.proxy.asking(count, request);
        let all = before + count as u64;
        self.proxy.wait_for(Metric::FollowersWaiting, all);
        clients
    }
}
