//! Listener sockets: one a server, or one for all of them.

pub(super) mod addressing;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::failure::Failure;
use addressing::Addressing;

/// How the origin is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginListen {
    /// Every server has a port of one address.
    Ports {
        /// The address of all.
        address: IpAddr,
        /// The port of server 0, the others count up from it; ports that are free, if not given.
        first: Option<u16>,
    },
    /// Every server has an address, and all have one port. Listens on all addresses of the machine,
    /// and closes connections to those that are no server's.
    Addresses {
        /// The address of server 0, the others count up from it. 127.0.0.0/8 needs no setting up.
        first: Ipv4Addr,
        /// The port of all; one that is free, if 0.
        port: u16,
    },
    /// All servers have one address and port; paths begin with `/s` and the server's number. A port
    /// of 0 is one that is free.
    Gateway(SocketAddr),
}

/// Connections the kernel holds until they are accepted; it may have a lower limit of its own
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// A listening socket, and how it identifies servers.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) addressing: Addressing,
}

/// The sockets, and the address of every server; of all in one for a gateway, whose send buffers
/// may be sized.
pub(super) fn open(
    listen: OriginListen,
    servers: u32,
    send_buffer_bytes: Option<usize>,
) -> Result<(Vec<Listener>, Vec<SocketAddr>), Failure> {
    match listen {
        OriginListen::Ports { address, first } => ports(address, first, servers),
        OriginListen::Addresses { first, port } => addresses(first, port, servers),
        OriginListen::Gateway(address) => {
            let (socket, address) = bind(address)?;
            if let Some(bytes) = send_buffer_bytes {
                // accepted connections inherit it
                let set = SockRef::from(&socket).set_send_buffer_size(bytes);
                set.map_err(|error| Failure::outside("cannot size send buffers", error))?;
            }
            let addressing = Addressing::Prefix;
            Ok((vec![Listener { socket, addressing }], vec![address]))
        }
    }
}

/// How many sockets that takes.
pub(super) const fn sockets(listen: OriginListen, servers: u32) -> u32 {
    match listen {
        OriginListen::Ports { .. } => servers,
        OriginListen::Addresses { .. } | OriginListen::Gateway(_) => 1,
    }
}

fn ports(
    address: IpAddr,
    first: Option<u16>,
    servers: u32,
) -> Result<(Vec<Listener>, Vec<SocketAddr>), Failure> {
    let (mut sockets, mut bound) = (Vec::new(), Vec::new());
    for server in 0..servers {
        let port = match first {
            None => 0,
            Some(first) => u16::try_from(server)
                .ok()
                .and_then(|server| first.checked_add(server))
                .ok_or_else(|| too_many(servers, format_args!("port {first}")))?,
        };
        let (socket, at) = bind(SocketAddr::new(address, port))?;
        let addressing = Addressing::Server(server);
        sockets.push(Listener { socket, addressing });
        bound.push(at);
    }
    Ok((sockets, bound))
}

fn addresses(
    first: Ipv4Addr,
    port: u16,
    servers: u32,
) -> Result<(Vec<Listener>, Vec<SocketAddr>), Failure> {
    let last = u32::from(first).checked_add(servers.saturating_sub(1));
    let is_in_network = |last: u32| !first.is_loopback() || Ipv4Addr::from(last).is_loopback();
    if !last.is_some_and(is_in_network) {
        return Err(too_many(servers, format_args!("address {first}")));
    }
    let (socket, at) = bind((Ipv4Addr::UNSPECIFIED, port).into())?;
    let addressing = Addressing::Addresses { first, servers };
    let bound = (0..servers).map(|server| {
        let address = Ipv4Addr::from(u32::from(first) + server);
        SocketAddr::new(address.into(), at.port())
    });
    Ok((vec![Listener { socket, addressing }], bound.collect()))
}

fn too_many(servers: u32, from: std::fmt::Arguments<'_>) -> Failure {
    Failure::usage(
        format!("cannot give {servers} servers a place each"),
        format_args!("there are not that many from {from} on"),
    )
    .with_hint("begin with a lower one, or choose a smaller scale")
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let opened = || -> io::Result<_> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        // connections of the run before may linger in the kernel
        socket.set_reuse_address(true)?;
        // responses are whole when they are written; accepted sockets inherit it
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from(socket);
        let bound = socket.local_addr()?;
        Ok((socket, bound))
    };
    opened().map_err(|error| {
        let failure = Failure::outside(format!("cannot serve as origin on {address}"), &error);
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                failure.with_hint("choose another port, or 0 for a free one")
            }
            io::ErrorKind::AddrNotAvailable => {
                failure.with_hint("choose an address of this machine")
            }
            _ => failure,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: OriginListen, servers: u32, expected: &str) {
        let failure = open(listen, servers, None).expect_err("too many");
        assert!(failure.to_string().contains(expected), "{failure}");
    }

    #[test]
    fn servers_beyond_the_last_port_or_address_are_refused() {
        let listen = OriginListen::Ports {
            address: Ipv4Addr::LOCALHOST.into(),
            first: Some(u16::MAX),
        };
        check(listen, 2, "from port 65535 on");
        let addresses = |first| OriginListen::Addresses { first, port: 0 };
        check(
            addresses(Ipv4Addr::new(127, 255, 255, 250)),
            7,
            "from address 127.255.255.250 on",
        );
        check(
            addresses(Ipv4Addr::BROADCAST),
            2,
            "from address 255.255.255.255 on",
        );
    }

    #[test]
    fn port_already_in_use_is_refused_with_a_hint() {
        let gateway = OriginListen::Gateway((Ipv4Addr::LOCALHOST, 0).into());
        let (_first, at) = open(gateway, 5, None).expect("a port");
        assert_eq!(at.len(), 1);
        let failure = open(OriginListen::Gateway(at[0]), 5, None).expect_err("taken");
        assert!(failure.what.contains(&at[0].to_string()), "{failure}");
        assert!(failure.hint.is_some(), "{failure}");
    }
}
