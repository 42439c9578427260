//! The proxies of a soak, and which of them asks which.

use super::responses::TAGGED;
use crate::support::{Running, scripted, span};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use weir_disk::files::{Files, SystemFiles};
use weir_measure::{Metric, RuleDeviation};
use weir_proxy::config::{
    ByteSize, Config, Direct, Directory, Listener, ListenerKind, Member, Mode, Module, Parent,
    ParentKind,
};

/// Far less than there is, so that memory alone does not hold it.
const MEMORY_MIB: u64 = 4;
const DISK_BYTES: u64 = 64 << 20;

/// Nodes of the cluster.
const NODES: usize = 3;

/// How proxies are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One gateway.
    Gateway,
    /// One gateway whose operator has a rule of each kind.
    Ruled,
    /// One gateway, to which balancers speak HTTP/2: each of their connections is that of many
    /// users.
    Balanced,
    /// Three gateways that are nodes of one cluster.
    Cluster,
    /// A forward proxy whose only parent is the origin; another one whose parent that is; and a
    /// third one with the same parent, and the second one as sibling. Clients ask the last two. The
    /// third one is no sibling of the second one: what is purged in the order of the proxies is
    /// purged for good.
    Hierarchy,
}

/// A rule of each kind: for some requests alone, where it may be, and for all. What is for one user
/// is shared for URLs of a kind that has nothing for one user.
const RULES: &str = r#"[
    {"path": ["/denied"], "deny": "no"},
    {"path": ["/2", "/tagged/3"], "method": ["GET"], "bypass": true,
     "request": ["set X-Some: yes"], "response": ["set X-Some: {client}"]},
    {"ignore": ["request no-cache", "request max-age", "request min-fresh"]},
    {"path": ["/27", "/tagged/13", "/tagged/41"], "share": "unsafe",
     "ignore": ["request authorization", "response private", "response no-store",
                "response set-cookie"]},
    {"path": ["/0", "/15", "/tagged/1", "/4"],
     "ignore": ["response no-cache", "response max-age", "response must-revalidate",
                "response proxy-revalidate", "response s-maxage", "response expires"]},
    {"key": {"keep_query": [], "languages": ["de", "en"], "codings": ["gzip"]}},
    {"path": ["/4", "/tagged/1"], "lifetime": {"forced": "1min"}, "stale_for": "1h"},
    {"lifetime": {"default": "1h"}},
    {"request": ["set X-Client: {client}", "add X-Target: {host} {path}", "remove X-None"],
     "response": ["set X-Client: {client}", "add X-Target: {host} {path}", "remove X-None"]}
]"#;

/// Where the proxies are and what time it is.
pub(crate) struct Place<'a> {
    pub(crate) origin: SocketAddr,
    pub(crate) folder: &'a Path,
    pub(crate) later_s: i64,
}

impl Topology {
    /// Starts them, the one that is asked by others before those.
    pub(crate) fn start(self, place: &Place<'_>) -> Vec<Running> {
        match self {
            Self::Gateway => vec![place.start("gateway", |config| {
                config.modules = vec![tagging()];
            })],
            Self::Ruled => vec![place.start("ruled", |config| {
                config.modules = vec![tagging()];
                config.rules = serde_json::from_str(RULES).expect("rules");
            })],
            Self::Balanced => vec![place.start("balanced", |config| {
                config.modules = vec![tagging()];
                config.listeners[0].http2 = Some(true);
            })],
            Self::Cluster => cluster(place),
            Self::Hierarchy => hierarchy(place),
        }
    }

    /// The proxies that clients ask.
    pub(crate) fn asked(self, proxies: &[Running]) -> &[Running] {
        match self {
            Self::Gateway | Self::Ruled | Self::Balanced | Self::Cluster => proxies,
            Self::Hierarchy => &proxies[1..],
        }
    }

    /// The target of a request of a client, with a `token` of its user where the cache key lacks
    /// that.
    pub(crate) fn target(self, host: &str, path: &str, token: Option<&str>) -> String {
        match self {
            Self::Ruled => match token {
                Some(token) => format!("{path}?user={token}"),
                None => path.to_owned(),
            },
            Self::Gateway | Self::Balanced | Self::Cluster => path.to_owned(),
            Self::Hierarchy => format!("http://{host}{path}"),
        }
    }

    /// Whether clients speak HTTP/2.
    pub(crate) fn speaks_http2(self) -> bool {
        self == Self::Balanced
    }

    /// Whether a change, and a purge, at one proxy is for all.
    pub(crate) fn shares_purges(self) -> bool {
        self != Self::Hierarchy
    }

    /// Fails if no proxy has had from another one what it had stored.
    pub(crate) fn check_use(self, proxies: &[Running]) {
        match self {
            Self::Gateway | Self::Balanced => {}
            Self::Ruled => {
                for what in [
                    RuleDeviation::RequestDirective,
                    RuleDeviation::ResponseDirective,
                    RuleDeviation::Shared,
                    RuleDeviation::Key,
                ] {
                    let count = proxies[0].count(Metric::RuleDeviations(what));
                    assert!(count > 0, "no rule departed: {what:?}");
                }
            }
            Self::Cluster => {
                let lateral = proxies.iter().map(|node| node.count(Metric::PeerRequests));
                assert!(lateral.sum::<u64>() > 0, "no node asked another one");
            }
            Self::Hierarchy => {
                let metrics = proxies[2].admin("/metrics");
                for asked in [("parent", &proxies[0]), ("sibling", &proxies[1])] {
                    let line = format!(
                        "weir_parent_requests_total{{parent=\"http://{}\",kind=\"{}\",\
                         outcome=\"answered\"}} ",
                        asked.1.address(),
                        asked.0
                    );
                    let count = metrics.lines().find_map(|it| it.strip_prefix(&line));
                    let count = count.expect("a count").parse::<u64>();
                    assert!(count.expect("a number") > 0, "no {} answered", asked.0);
                }
            }
        }
    }
}

impl Place<'_> {
    /// A gateway before the origin that stores in the folder of its name, with changes.
    fn start(&self, name: &str, change: impl FnOnce(&mut Config)) -> Running {
        let directory = Directory {
            path: self.folder.join(name),
            size: Some(ByteSize::from_bytes(DISK_BYTES)),
        };
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        let running = Running::gateway_on(self.origin, &files, self.later_s, |config| {
            config.workers = 2;
            config.cache.memory = ByteSize::from_mib(MEMORY_MIB);
            config.cache.largest_response = ByteSize::from_mib(1);
            config.disk.enabled = true;
            config.disk.directories = vec![directory];
            // who could wait for another does, whatever came of it the last time
            config.fetch.uncollapsible_for = span("0s");
            change(config);
        });
        let running = running.expect("a proxy");
        running.wait_for(Metric::DiskLoading, 0);
        running
    }
}

fn cluster(place: &Place<'_>) -> Vec<Running> {
    let start = |node| {
        place.start(&node_name(node), |config| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let mode = ListenerKind::Peer;
            config.modules = vec![tagging()];
            config.listeners.push(Listener {
                address,
                mode,
                name: None,
                tls: None,
                http2: None,
                proxy_protocol: Vec::new(),
            });
            config.cluster.node = Some(node_name(node));
            // the ports of the others are known once they listen
            config.cluster.members = vec![member(node, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)))];
        })
    };
    let nodes: Vec<Running> = (0..NODES).map(start).collect();
    let members = (0..).zip(&nodes);
    let members = members.map(|(node, running)| member(node, running.listener(1)));
    let members: Vec<Member> = members.collect();
    for node in &nodes {
        node.reload(|config| config.cluster.members.clone_from(&members));
    }
    nodes
}

fn hierarchy(place: &Place<'_>) -> Vec<Running> {
    // the module is called once for each response, at the proxy that a client asks
    let start = |name, parents: Vec<Parent>, modules: Vec<Module>| {
        place.start(name, |config| {
            config.listeners[0].mode = Mode::Forward.into();
            config.admin.address = "127.0.0.1:0".parse().expect("an address");
            config.routes.clear();
            config.parents = parents;
            config.modules = modules;
        })
    };
    let parent = start("parent", vec![parent_at(place.origin)], Vec::new());
    let above = parent_at(parent.address());
    let child = start("child", vec![above.clone()], vec![tagging()]);
    let sibling = Parent {
        kind: ParentKind::Sibling,
        direct: None,
        ..parent_at(child.address())
    };
    let other = start("other-child", vec![above, sibling], vec![tagging()]);
    vec![parent, child, other]
}

fn parent_at(address: SocketAddr) -> Parent {
    let url = format!("http://{address}").parse().expect("a URL");
    Parent {
        direct: Some(Direct::Never),
        ..Parent::new(url)
    }
}

fn node_name(node: usize) -> String {
    format!("node-{node}")
}

fn member(node: usize, peer_listener: SocketAddr) -> Member {
    Member {
        name: node_name(node),
        url: format!("http://{peer_listener}").parse().expect("a URL"),
        weight: 100,
        front_end: false,
    }
}

/// The module whose tags keep requests apart.
fn tagging() -> Module {
    let mut module = scripted(
        "tagging",
        &[
            ("request-received", "variant X-Variant"),
            ("response-received", "content tag"),
        ],
    );
    module.path = TAGGED.parse().expect("the beginning of a path");
    module
}
