//! Whether this node listens where the members of its cluster reach it.

use crate::config::listener::{Listener, ListenerKind};
use crate::config::route::cluster::Cluster;
use crate::config::route::members_source::MembersSource;
use crate::config::setting::invalid::Invalid;
use crate::config::values::host::Host;
use crate::config::values::next_hop_url::NextHopUrl;
use std::net::SocketAddr;
use weir_cluster::Source;

/// A URL of this node at which none of its peer listeners is.
pub(super) struct Mismatch {
    /// What is wrong, at the key with the URL.
    pub(super) invalid: Invalid,
    /// It is an address of the loopback, which nothing translates: other processes cannot reach
    /// this node.
    pub(super) is_error: bool,
}

/// The mismatch of a cluster, if there is one. What a file, the DNS or etcd lists is not known
/// here, nor the port of a listener for which the system chooses one.
pub(super) fn mismatch(cluster: &Cluster, listeners: &[Listener]) -> Option<Mismatch> {
    let (key_path, url) = own_url(cluster)?;
    let peers = listeners
        .iter()
        .filter(|listener| listener.mode == ListenerKind::Peer);
    let peers: Vec<SocketAddr> = peers.map(|listener| listener.address).collect();
    let is_known = peers.iter().all(|address| address.port() != 0);
    if !is_known || peers.iter().any(|address| is_at(*address, url)) {
        return None;
    }
    let places: Vec<String> = peers.iter().map(ToString::to_string).collect();
    let places = places.join(" and ");
    let mut members = cluster.members.iter();
    let there = members.find(|member| peers.iter().any(|address| is_at(*address, &member.url)));
    let node = cluster.node.as_deref().unwrap_or_default();
    Some(Mismatch {
        invalid: Invalid::new(
            key_path,
            format!("{url} is the url of this node, `{node}`, and its peer listener is at {places}"),
            match there {
                Some(member) => format!(
                    "set cluster.node to \"{}\", which has this address, or make the two addresses one",
                    member.name
                ),
                None => "name the address of the [[listener]] with mode = \"peer\"; a node of its own needs a name and a url of its own in the lists of all nodes".to_owned(),
            },
        ),
        is_error: is_loopback(&url.host),
    })
}

/// The URL of this node, as far as the configuration has it, and its key.
fn own_url(cluster: &Cluster) -> Option<(String, &NextHopUrl)> {
    match &cluster.source {
        MembersSource::Config => {
            let node = cluster.node.as_deref()?;
            let mut members = cluster.members.iter();
            let index = members.position(|member| member.name == node)?;
            let key_path = format!("cluster.member[{index}].url");
            Some((key_path, &cluster.members[index].url))
        }
        MembersSource::Of(Source::Etcd { .. }) => {
            Some(("cluster.url".to_owned(), cluster.url.as_ref()?))
        }
        MembersSource::Of(_) => None,
    }
}

/// Whether what connects to `url` may reach a listener at `address`.
fn is_at(address: SocketAddr, url: &NextHopUrl) -> bool {
    let (is_all, ip) = (address.ip().is_unspecified(), address.ip());
    let is_host = match url.host.ip() {
        Some(host) => host == ip,
        None if is_loopback(&url.host) => ip.is_loopback(),
        // the DNS knows
        None => true,
    };
    address.port() == url.port && (is_all || is_host)
}

fn is_loopback(host: &Host) -> bool {
    match host.ip() {
        Some(ip) => ip.is_loopback(),
        None => host.as_str().eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Member;

    fn check(url: &str, listeners: &[&str], expected: Option<bool>) {
        let member = |name: &str, url: &str| Member {
            name: name.into(),
            url: url.parse().expect("a URL"),
            weight: 100,
            front_end: false,
        };
        let cluster = Cluster {
            node: Some("c".into()),
            members: vec![member("a", "http://127.0.0.1:4001"), member("c", url)],
            ..Cluster::default()
        };
        let peer = |address: &&str| Listener {
            address: address.parse().expect("an address"),
            mode: ListenerKind::Peer,
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        };
        let listeners: Vec<Listener> = listeners.iter().map(peer).collect();
        let found = mismatch(&cluster, &listeners);
        let is_error = found.as_ref().map(|found| found.is_error);
        assert_eq!(is_error, expected, "{url} {listeners:?}");
        if let Some(found) = found {
            assert_eq!(found.invalid.key_path, "cluster.member[1].url");
        }
    }

    #[test]
    fn url_without_a_peer_listener_is_an_error_on_the_loopback_and_a_warning_elsewhere() {
        check("http://127.0.0.1:4003", &["127.0.0.1:4003"], None);
        check("http://127.0.0.1:4003", &["0.0.0.0:4003"], None);
        check("http://localhost:4003", &["127.0.0.1:4003"], None);
        check("http://127.0.0.1:4003", &["127.0.0.1:0"], None);
        check(
            "http://127.0.0.1:4003",
            &["127.0.0.1:4001", "127.0.0.1:4003"],
            None,
        );
        check("http://127.0.0.1:4003", &["127.0.0.1:4004"], Some(true));
        check("http://127.0.0.1:4003", &["127.0.0.2:4003"], Some(true));
        check("http://localhost:4003", &["127.0.0.1:4004"], Some(true));
        check("http://localhost:4003", &["192.0.2.1:4003"], Some(true));
        check("http://192.0.2.1:4003", &["192.0.2.1:4003"], None);
        check("http://192.0.2.1:4003", &["0.0.0.0:4003"], None);
        check("http://192.0.2.1:4003", &["10.0.0.1:3129"], Some(false));
        check("http://c.example:4003", &["10.0.0.1:4003"], None);
        check("http://c.example:4003", &["10.0.0.1:3129"], Some(false));
    }
}
