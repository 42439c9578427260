//! A cluster of gateways before one origin.

use crate::support::{Answering, RawClient, Running, ScriptedOrigin};
use crate::support::{Head, Response};
use std::net::{Ipv4Addr, SocketAddr};
use weir_measure::{Label as _, Metric, PeerRefusal};
use weir_proxy::config::{Config, Listener, ListenerKind, Member, Span, TokenFile};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three nodes, and what they store.
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<Running>,
    pub(crate) origin: Answering,
}

/// A response that may be stored, whose content is its path.
pub(crate) fn fresh(head: &Head, _: &[u8]) -> Vec<u8> {
    let path = head.start_line().split(' ').nth(1).expect("a target");
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {}\r\n\r\n{path}",
        path.len()
    )
    .into_bytes()
}

impl Nodes {
    /// Nodes before an origin that answers everything with `answer`.
    pub(crate) fn start(answer: impl Fn(&Head, &[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let origin = ScriptedOrigin::new().answering(answer);
        let nodes = NAMES.iter().map(|name| start_node(name, origin.address()));
        let nodes: Vec<Running> = nodes.collect();
        let members: Vec<Member> = NAMES
            .iter()
            .zip(&nodes)
            .map(|(name, node)| member(name, node.listener(1)))
            .collect();
        for node in &nodes {
            node.reload(|config| config.cluster.members.clone_from(&members));
        }
        Self { nodes, origin }
    }

    /// All nodes as members.
    pub(crate) fn members(&self) -> Vec<Member> {
        let nodes = NAMES.iter().zip(&self.nodes);
        nodes
            .map(|(name, node)| member(name, node.listener(1)))
            .collect()
    }

    /// What node number `at` answers to a GET.
    pub(crate) fn get(&self, at: usize, path: &str) -> Response {
        self.nodes[at].client().ask(get(path))
    }

    /// A path whose target node number `at` keeps, and which was requested at that node alone.
    pub(crate) fn path_of(&self, at: usize) -> String {
        self.paths_of(at).next().expect("one of three paths or so")
    }

    /// Such paths.
    pub(crate) fn paths_of(&self, at: usize) -> impl Iterator<Item = String> {
        let paths = (0..).map(move |number| format!("/of/{at}/{number}"));
        paths.filter(move |path| {
            // the node that keeps it stores it; any other one leaves it to that
            let response = self.get(at, path);
            let status = response.head.all("cache-status").join(", ");
            !status.contains("on-peer")
        })
    }

    /// How often the origin was asked for `path`.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let line = format!("GET {path} HTTP/1.1");
        let seen = self.origin.seen();
        seen.iter().filter(|head| head.start_line() == line).count()
    }
}

/// Gives the nodes a secret; its file is in the folder.
pub(crate) fn set_secret(cluster: &Nodes) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "an-agreed-secret-of-nodes").expect("a file");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, private).expect("a file");
    for node in &cluster.nodes {
        let file = TokenFile::At(secret.clone());
        node.reload(|config| config.cluster.secret_file = file);
    }
    folder
}

/// Requests at the peer listener of `node` that were refused, for whatever reason.
pub(crate) fn refusals(node: &Running) -> u64 {
    let reasons = PeerRefusal::ALL.iter();
    let counts = reasons.map(|reason| node.count(Metric::PeersRefused(*reason)));
    counts.sum()
}

/// A node alone, which has no member but itself.
pub(crate) fn start_node(name: &str, origin: SocketAddr) -> Running {
    start_node_with(name, origin, |_| {})
}

/// The same with changes to its configuration.
pub(crate) fn start_node_with(
    name: &str,
    origin: SocketAddr,
    change: impl FnOnce(&mut Config),
) -> Running {
    Running::gateway_with(origin, |config: &mut Config| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.listeners.push(Listener {
            address,
            mode: ListenerKind::Peer,
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        });
        config.cluster.node = Some(name.to_owned());
        config.cluster.join_time = Span::from_secs(0);
        // tests of that have them ask each other how they are
        config.cluster.state_interval = Span::from_secs(0);
        // tests of digests ask for them
        config.cluster.digest_memory = "0".parse().expect("a size");
        // the ports of the others are known once they listen
        config.cluster.members = vec![member(name, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)))];
        change(config);
    })
}

/// A member of equal weight.
pub(crate) fn member(name: &str, peer_listener: SocketAddr) -> Member {
    Member {
        name: name.to_owned(),
        url: format!("http://{peer_listener}").parse().expect("a URL"),
        weight: 100,
        front_end: false,
    }
}

/// A GET for a gateway.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

/// What `client` of a peer listener gets for a GET with these field lines.
pub(crate) fn ask_as_peer(listener: SocketAddr, path: &str, fields: &str) -> Response {
    RawClient::connect(listener).ask(format!(
        "GET http://a.example{path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"
    ))
}
