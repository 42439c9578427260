//! A config file in the making.

use super::Issued;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// Keys, listeners, routes, modules, parents and rules; what is not said is the default, but for
/// ports (0) and the access log (off).
#[derive(Clone, Debug)]
pub(crate) struct Config {
    keys: BTreeMap<String, String>,
    listeners: Vec<(String, &'static str, String)>,
    routes: Vec<String>,
    modules: Vec<String>,
    parents: Vec<String>,
    rules: Vec<String>,
}

impl Config {
    fn new() -> Self {
        let config = Self {
            keys: BTreeMap::new(),
            listeners: Vec::new(),
            routes: Vec::new(),
            modules: Vec::new(),
            parents: Vec::new(),
            rules: Vec::new(),
        };
        config
            .set("workers", "2")
            .set("admin.address", "\"127.0.0.1:0\"")
            .set("log.access", "\"off\"")
            .set("disk.enabled", "false")
    }

    /// A forward proxy with the default rules: it may reach nothing on this machine.
    pub(crate) fn guarded() -> Self {
        Self::new().listener("127.0.0.1:0", "forward")
    }

    /// A forward proxy that may reach this machine.
    pub(crate) fn forward() -> Self {
        Self::guarded().set("access.allow_destinations", r#"["127.0.0.0/8", "::1"]"#)
    }

    /// A gateway to `next_hops`, for every host and path.
    pub(crate) fn gateway(next_hops: &[&str]) -> Self {
        Self::new()
            .listener("127.0.0.1:0", "gateway")
            .route("", next_hops)
    }

    /// Sets a key, such as `limits.drain`, to a value in TOML.
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        self.keys.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a listener.
    pub(crate) fn listener(mut self, address: &str, mode: &'static str) -> Self {
        self.listeners
            .push((address.to_owned(), mode, String::new()));
        self
    }

    /// Gives the last listener these certificates.
    pub(crate) fn tls(self, certificates: &[&Issued]) -> Self {
        self.tls_with(certificates, "")
    }

    /// The same, with more of its `tls` table in TOML.
    pub(crate) fn tls_with(mut self, certificates: &[&Issued], more: &str) -> Self {
        let files = certificates.iter().map(|issued| {
            let (chain, key) = (issued.chain.display(), issued.key.display());
            format!("{{ chain = \"{chain}\", key = \"{key}\" }}")
        });
        let files = files.collect::<Vec<_>>().join(", ");
        let (_, _, tls) = self.listeners.last_mut().expect("a listener");
        *tls = format!("tls = {{ certificates = [{files}]{more} }}\n");
        self
    }

    /// Adds lines to the table of the last listener.
    pub(crate) fn of_listener(mut self, lines: &str) -> Self {
        let (_, _, text) = self.listeners.last_mut().expect("a listener");
        *text = format!("{text}{lines}\n");
        self
    }

    /// Has the last listener be behind these balancers, addresses in TOML.
    pub(crate) fn behind(self, balancers: &str) -> Self {
        self.of_listener(&format!("proxy_protocol = {balancers}"))
    }

    /// Adds a route; `of` are its `host` and `path` lines in TOML.
    pub(crate) fn route(mut self, of: &str, next_hops: &[&str]) -> Self {
        self.routes
            .push(format!("[[route]]\n{of}\nnext_hops = {next_hops:?}\n"));
        self
    }

    /// Adds a line to the table of the last route.
    pub(crate) fn of_route(mut self, line: &str) -> Self {
        let route = self.routes.last_mut().expect("a route");
        route.push_str(&format!("{line}\n"));
        self
    }

    /// Has the last route speak HTTP/2 to its next hops, or not.
    pub(crate) fn route_http2(mut self, http2: bool) -> Self {
        let route = self.routes.last_mut().expect("a route");
        route.push_str(&format!("http2 = {http2}\n"));
        self
    }

    /// Has the next hops of the last route be verified as this says: the `tls` table in TOML.
    pub(crate) fn route_tls(self, tls: &str) -> Self {
        self.of_route(&format!("tls = {tls}"))
    }

    /// Adds a module; `options` are lines of its table in TOML.
    pub(crate) fn module(mut self, name: &str, kind: &str, options: &str) -> Self {
        self.modules.push(format!(
            "[[module]]\nname = \"{name}\"\nkind = \"{kind}\"\n{options}\n"
        ));
        self
    }

    /// Adds a parent, or a sibling; `lines` are further ones of its table in TOML.
    pub(crate) fn parent(mut self, address: SocketAddr, lines: &str) -> Self {
        self.parents
            .push(format!("[[parent]]\nurl = \"http://{address}\"\n{lines}\n"));
        self
    }

    /// Adds a rule; `lines` are those of its table in TOML.
    pub(crate) fn rule(mut self, lines: &str) -> Self {
        self.rules.push(format!("[[rule]]\n{lines}\n"));
        self
    }

    /// Without any listener.
    pub(crate) fn without_listeners(mut self) -> Self {
        self.listeners.clear();
        self
    }

    /// Without any route.
    pub(crate) fn without_routes(mut self) -> Self {
        self.routes.clear();
        self
    }

    /// The file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.keys {
            writeln!(text, "{key} = {value}").expect("a string takes everything");
        }
        for (address, mode, tls) in &self.listeners {
            writeln!(
                text,
                "[[listener]]\naddress = \"{address}\"\nmode = \"{mode}\"\n{tls}"
            )
            .expect("a string takes everything");
        }
        text.push_str(&self.routes.concat());
        text.push_str(&self.modules.concat());
        text.push_str(&self.parents.concat());
        text.push_str(&self.rules.concat());
        text
    }
}
