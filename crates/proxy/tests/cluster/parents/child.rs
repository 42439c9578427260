//! A forward proxy with other proxies, and those.

use crate::support::{Answering, Head, Running, ScriptedOrigin, localhost};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use weir_proxy::config::{Config, Direct, Parent, ParentKind};

/// A forward proxy that may go to loopback, with these parents and siblings.
pub(crate) fn child(parents: Vec<Parent>) -> Running {
    child_with(parents, |_| {})
}

/// The same with changes to the configuration.
pub(crate) fn child_with(parents: Vec<Parent>, change: impl FnOnce(&mut Config)) -> Running {
    Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.parents = parents;
        change(config);
    })
}

/// A parent at an address.
pub(crate) fn parent(address: SocketAddr) -> Parent {
    Parent::new(format!("http://{address}").parse().expect("a URL"))
}

/// The same, with what may be asked beside it.
pub(crate) fn parent_and(address: SocketAddr, direct: Direct) -> Parent {
    Parent {
        direct: Some(direct),
        ..parent(address)
    }
}

/// A sibling at an address, which has all the time that there is.
pub(crate) fn sibling(address: SocketAddr) -> Parent {
    Parent {
        kind: ParentKind::Sibling,
        timeout: Some("1min".parse().expect("a span")),
        ..parent(address)
    }
}

/// Another proxy, or an origin, whose responses may be stored and say which one it is.
pub(crate) fn answering(name: &'static str) -> Answering {
    ScriptedOrigin::new().answering(move |_, _| fresh(name))
}

/// A response that may be stored.
pub(crate) fn fresh(content: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{content}",
        content.len()
    )
    .into_bytes()
}

/// A sibling that has nothing.
pub(crate) fn empty_sibling() -> Answering {
    ScriptedOrigin::new().answering(|_, _| {
        b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 5\r\n\r\nempty".to_vec()
    })
}

/// An address at which nothing listens.
pub(crate) fn nothing() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

/// A GET for a forward proxy, with these field lines.
pub(crate) fn get(url: &str, fields: &str) -> String {
    let host = url.split('/').nth(2).expect("a host");
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
}

/// The request lines of what was asked.
pub(crate) fn lines(seen: &[Head]) -> Vec<String> {
    seen.iter()
        .map(|head| head.start_line().to_owned())
        .collect()
}
