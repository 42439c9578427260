//! An address at which no program listens.

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// A port of loopback that refuses each connection for as long as this exists: a socket is bound to
/// it and does not listen. The port of a listener that was closed would be free for any other
/// program.
#[derive(Debug)]
pub struct ClosedPort {
    address: SocketAddr,
    _bound: OwnedFd,
}

impl ClosedPort {
    /// One that the system chooses.
    ///
    /// # Errors
    /// There is no free port.
    pub fn hold() -> io::Result<Self> {
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&bound, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddr::try_from(getsockname(&bound)?)?;
        Ok(Self {
            address,
            _bound: bound,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connections_are_refused_and_no_listener_gets_the_port() {
        let closed = ClosedPort::hold().expect("a port");
        let refused = TcpStream::connect(closed.address()).expect_err("it does not listen");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(closed.address()).expect_err("it is bound");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
