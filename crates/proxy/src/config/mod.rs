//! What an operator may choose, as plain values: one noun a file, defaults that are safe, ranges
//! that are kept.
//!
//! Reading files, flags and messages is the command line's work; nothing here opens anything. Each
//! setting is declared once (`setting::table!`) with its reason, default and range, and
//! [`settings`] prints them from there. A [`Config`] that came through [`Config::validate`] holds
//! no value outside its range and no contradiction.

mod access;
mod admin;
mod cache;
mod disk;
mod dns;
mod fetch;
mod limits;
mod listener;
mod log;
mod module;
mod route;
pub(crate) mod rule;
mod setting;
mod values;

pub use access::Access;
pub use access::forwarded::Forwarded;
pub use access::login::Login;
pub use admin::{Admin, HistoryPlace, TopClients, TopQueries};
pub use cache::{Cache, MEMORY_MIN, Pseudonym};

pub(crate) use disk::DISK_BYTES_DEFAULT;
pub use disk::{Admission, Directory, Disk, Scrub, Verify};
pub use dns::Dns;
pub use fetch::Fetch;
pub use limits::Limits;
pub(crate) use listener::acme::orders as acme_orders;
pub use listener::acme::{Acme, AcmeChallenge, AcmeFolder, CaFile, ContactUrl, DirectoryUrl};
pub use listener::tls::{CertificateSource, ListenerCertificate, ListenerTls, TlsVersion};
pub use listener::{Listener, ListenerKind, Mode};
pub use log::{Log, LogClients, LogFormat, LogQueries, LogTarget};
pub use module::Module;
pub use route::cluster::{Cluster, Member};
pub use route::link::{DayTimes, Link, LinkWindow, Weekday, ZoneName};
pub use route::mechanism::Mechanism;
pub use route::members_source::MembersSource;
pub use route::next_hop_tls::NextHopTls;
pub use route::parent::{Direct, Parent, ParentKind};
pub use route::probe::Probe;
pub use route::send_proxy_protocol::SendProxyProtocol;
pub use route::{HostPattern, PathPrefix, Route};
pub(crate) use route::{balancing, parent};
pub use rule::{
    ClientRate, CodingText, FieldChange, LanguageText, QueryNameText, Rule, RuleKey, RuleLifetime,
    RuleListener, RuleMethod, RulePath, RuleStatus, RuleType, Sharing,
};
pub use setting::Setting;
pub use setting::invalid::Invalid;
pub use setting::mistakes::{MISTAKES_MAX, Mistakes};
pub use values::address::{AdminAddress, DnsServer, parse_address};
pub use values::byte_size::ByteSize;
pub use values::cidr::Cidr;
pub use values::field_name::FieldName;
pub use values::host::Host;
pub use values::module_option::ModuleOption;
pub use values::next_hop_url::NextHopUrl;
pub use values::rate::Rate;
pub use values::read_ahead::ReadAhead;
pub use values::text::{BadValue, Form};
pub use values::time::span::Span;
pub use values::token_file::TokenFile;
pub use values::when_busy::WhenBusy;

pub use weir_policy::extension::{ExecutionModel, FailurePolicy};

use route::OwnPlaces;
use serde::{Deserialize, Serialize};
use std::net::SocketAddrV4;
use weir_policy::rule::RuleSpec;

/// The whole configuration. An empty file is its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Threads that serve requests, 0 to 1024; 0 for one a core.
    pub workers: u16,
    /// Where clients connect; at least one.
    #[serde(rename = "listener")]
    pub listeners: Vec<Listener>,
    /// Where gateways forward to.
    #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Other proxies that forward requests are sent to.
    #[serde(rename = "parent", skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Parent>,
    /// How many bytes may be moved to and from next hops.
    #[serde(rename = "link", skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What is done with requests and responses beside what HTTP says, in this order.
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What is called on the way of requests and responses, in this order.
    #[serde(rename = "module", skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Module>,
    /// The nodes that share what they store.
    pub cluster: Cluster,
    /// Whom certificates are ordered from.
    pub acme: Acme,
    /// The operator's interface.
    pub admin: Admin,
    /// What is stored, and how much of it.
    pub cache: Cache,
    /// The disk tier.
    pub disk: Disk,
    /// How responses are fetched.
    pub fetch: Fetch,
    /// Limits of time, bytes and connections.
    pub limits: Limits,
    /// Clients that may connect, and destinations that may be reached.
    pub access: Access,
    /// Logins of clients.
    pub login: Login,
    /// What next hops are told of clients.
    pub forwarded: Forwarded,
    /// How names are resolved.
    pub dns: Dns,
    /// The access log.
    pub log: Log,
}

impl Config {
    /// The rules of a valid configuration, those of presets in the place of these.
    #[must_use]
    pub fn rule_specs(&self) -> Vec<RuleSpec> {
        rule::rule_specs(&self.rules, &self.listeners)
    }

    /// Refuses values outside their range and contradictions; the first one found.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the key, the reason and what to do.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.mistakes().first()
    }

    /// All values outside their range, and contradictions. Of what a check reads in turn, such as
    /// the lines of one table, it may be the first alone.
    #[must_use]
    pub fn mistakes(&self) -> Mistakes {
        let mut mistakes = self.range_mistakes();
        listener::check(&self.listeners, self.admin.address.socket(), &mut mistakes);
        listener::acme::check(&self.acme, &self.listeners, &mut mistakes);
        mistakes.note(self.check_modes());
        mistakes.note(admin::check(&self.admin));
        let own = OwnPlaces::new(&self.listeners, &self.admin.address);
        route::check(&self.routes, &own, &mut mistakes);
        parent::check(&self.parents, &self.listeners, &own, &mut mistakes);
        route::link::check(&self.links, &self.routes, &self.parents, &mut mistakes);
        module::check(&self.modules, &mut mistakes);
        rule::check(&self.rules, &self.listeners, &mut mistakes);
        mistakes.note(route::cluster::check(&self.cluster, &self.listeners));
        cache::check(&self.cache, &mut mistakes);
        disk::check(&self.disk, &mut mistakes);
        mistakes.note(fetch::check(&self.fetch));
        limits::check(&self.limits, &mut mistakes);
        access::check(&self.access, &self.listeners, &mut mistakes);
        mistakes.note(access::login::check(&self.login, &self.listeners));
        mistakes.note(access::forwarded::check(&self.forwarded));
        mistakes.note(dns::check(&self.dns));
        mistakes
    }

    /// The values outside their range, of tables that there is one of: mistakes that do not depend
    /// on any other value.
    #[must_use]
    pub fn range_mistakes(&self) -> Mistakes {
        let mut mistakes = Mistakes::default();
        mistakes.note(setting::check_range(
            "workers",
            &self.workers,
            &0,
            &WORKERS_MAX,
        ));
        self.cluster.check_ranges(&mut mistakes);
        self.acme.check_ranges(&mut mistakes);
        self.admin.check_ranges(&mut mistakes);
        self.cache.check_ranges(&mut mistakes);
        self.disk.check_ranges(&mut mistakes);
        self.fetch.check_ranges(&mut mistakes);
        self.limits.check_ranges(&mut mistakes);
        self.access.check_ranges(&mut mistakes);
        self.login.check_ranges(&mut mistakes);
        self.forwarded.check_ranges(&mut mistakes);
        self.dns.check_ranges(&mut mistakes);
        self.log.check_ranges(&mut mistakes);
        mistakes
    }

    /// What a valid configuration is probably not meant to be, in the form of refusals: it is
    /// served all the same.
    #[must_use]
    pub fn warnings(&self) -> Vec<Invalid> {
        let mut warnings = route::cluster::warnings(&self.cluster, &self.listeners);
        warnings.extend(rule::warnings(&self.rules, &self.listeners, &self.access));
        warnings.extend(route::link::warnings(&self.links, &self.admin));
        warnings.extend(route::next_hop_tls::warnings(&self.routes));
        warnings.extend(route::send_proxy_protocol::warnings(&self.routes));
        warnings.extend(listener::acme::warnings(&self.acme, &self.listeners));
        warnings.extend(access::warnings(&self.access, &self.listeners));
        warnings
    }

    /// The address of the service whose connections are handed over between machines; `None` if
    /// none are.
    #[must_use]
    pub fn service(&self) -> Option<SocketAddrV4> {
        route::cluster::service(&self.cluster, &self.listeners)
    }

    /// Whether other nodes of a cluster may ask for what they have of gateways.
    fn has_peers(&self) -> bool {
        let mut listeners = self.listeners.iter();
        listeners.any(|listener| listener.mode == ListenerKind::Peer)
    }

    /// A gateway needs routes, and routes need a gateway.
    fn check_modes(&self) -> Result<(), Invalid> {
        let gateway = self
            .listeners
            .iter()
            .position(|listener| listener.mode == ListenerKind::Gateway);
        match (gateway, self.routes.is_empty()) {
            (Some(index), true) => Err(Invalid::new(
                format!("listener[{index}].mode"),
                "a gateway has no route to forward to",
                "add a [[route]] table with next_hops, or use mode = \"forward\"",
            )),
            (None, false) if !self.has_peers() => Err(Invalid::new(
                "route",
                "there are routes and no listener uses them: all are forward listeners",
                "set mode = \"gateway\" on a listener, or remove the routes",
            )),
            _ => Ok(()),
        }
    }
}

impl Default for Config {
    /// A forward proxy on loopback for this machine alone.
    fn default() -> Self {
        Self {
            workers: 0,
            listeners: vec![Listener::default()],
            routes: Vec::new(),
            parents: Vec::new(),
            links: Vec::new(),
            rules: Vec::new(),
            modules: Vec::new(),
            cluster: Cluster::default(),
            acme: Acme::default(),
            admin: Admin::default(),
            cache: Cache::default(),
            disk: Disk::default(),
            fetch: Fetch::default(),
            limits: Limits::default(),
            access: Access::default(),
            login: Login::default(),
            forwarded: Forwarded::default(),
            dns: Dns::default(),
            log: Log::default(),
        }
    }
}

/// Every setting there is, in the order of a file: the reference page.
#[must_use]
pub fn settings() -> Vec<Setting> {
    let workers = Setting::new::<u16>(
        "workers",
        &["Threads that serve requests; 0 for one a core, which is as many as can work at once."],
    )
    .by_default(&Config::default().workers)
    .within(&0, &WORKERS_MAX);
    let mut settings = vec![workers];
    settings.extend(Listener::settings());
    settings.extend(Acme::settings());
    settings.extend(Admin::settings());
    settings.extend(Route::settings());
    settings.extend(Parent::settings());
    settings.extend(route::link::settings());
    settings.extend(Rule::settings());
    settings.extend(Module::settings());
    settings.extend(Cluster::settings());
    settings.extend(Cache::settings());
    settings.extend(Disk::settings());
    settings.extend(Fetch::settings());
    settings.extend(Limits::settings());
    settings.extend(Access::settings());
    settings.extend(Login::settings());
    settings.extend(Forwarded::settings());
    settings.extend(Dns::settings());
    settings.extend(Log::settings());
    settings
}

/// More threads than any machine has cores today.
const WORKERS_MAX: u16 = 1024;

#[cfg(test)]
mod tests;
