//! Opening the sockets of clients.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use mio::net::TcpStream;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::link::{PACKET_BYTES, RECEIVE_BUFFER_BYTES};
use crate::tally::ErrorKind;

/// The first address of agents that have one each: 127.1.0.0 is below it, the origin's servers are
/// in 127.0.
const FIRST_ADDRESS: u32 = 0x7f01_0001;

/// The last one: 127.255.255.254.
const LAST_ADDRESS: u32 = 0x7fff_fffe;

/// The address of an agent. More agents than there are addresses begin from the first again.
pub(super) fn address_of(agent: u32, agents_per_address: u32) -> IpAddr {
    let place = agent / agents_per_address.max(1);
    let address = FIRST_ADDRESS + place % (LAST_ADDRESS - FIRST_ADDRESS + 1);
    IpAddr::V4(Ipv4Addr::from_bits(address))
}

/// Begins to connect. `from`: the address to come from. `is_behind_link`: with a small receive
/// buffer, so that what is not read stays with the proxy, and with packets as they are outside of
/// this machine.
///
/// With an address of its own every agent has all ports of it, so that binding before connecting
/// takes no port from another.
///
/// # Errors
/// There is no descriptor or no port, or the connection failed at once.
pub(super) fn connect(
    to: SocketAddr,
    from: Option<IpAddr>,
    is_behind_link: bool,
) -> io::Result<TcpStream> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(to), kind, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    if is_behind_link {
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        socket.set_tcp_mss(PACKET_BYTES.into())?;
    }
    if let Some(address) = from {
        socket.bind(&SocketAddr::new(address, 0).into())?;
    }
    match socket.connect(&to.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}

/// Why there is no connection.
pub(super) fn why_not(error: &io::Error) -> ErrorKind {
    let is_ours = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::ADDRNOTAVAIL,
    ]
    .iter()
    .any(|ours| error.raw_os_error() == Some(ours.raw_os_error()));
    if is_ours {
        return ErrorKind::OutOfSockets;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::ConnectRefused,
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        _ => ErrorKind::ConnectFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_of_a_local_shortage_is_classified_as_out_of_sockets() {
        let check = |errno: Errno, expected| {
            assert_eq!(why_not(&io::Error::from(errno)), expected, "{errno:?}");
        };
        check(Errno::MFILE, ErrorKind::OutOfSockets);
        check(Errno::ADDRNOTAVAIL, ErrorKind::OutOfSockets);
        check(Errno::CONNREFUSED, ErrorKind::ConnectRefused);
        check(Errno::TIMEDOUT, ErrorKind::ConnectTimeout);
        check(Errno::NETUNREACH, ErrorKind::ConnectFailed);
    }

    #[test]
    fn source_address_follows_from_agent_number_and_agents_per_address() {
        let check = |agent, agents_per_address, expected: &str| {
            assert_eq!(address_of(agent, agents_per_address).to_string(), expected);
        };
        check(0, 1, "127.1.0.1");
        check(255, 1, "127.1.1.0");
        check(9999, 1, "127.1.39.16");
        check(0, 2, "127.1.0.1");
        check(1, 2, "127.1.0.1");
        check(2, 2, "127.1.0.2");
        check(LAST_ADDRESS - FIRST_ADDRESS, 1, "127.255.255.254");
        check(LAST_ADDRESS - FIRST_ADDRESS + 1, 1, "127.1.0.1");
    }
}
