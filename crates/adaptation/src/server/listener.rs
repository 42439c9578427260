//! Where the server listens.

use crate::socket::Socket;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use tokio::net::{TcpListener, UnixListener};

/// Where a server listens: `127.0.0.1:1344`, or `unix:` and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A socket in the file system. What is there is replaced if it is a socket that nothing
    /// listens on.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(path) => Err(format!("`{path}` is no absolute path")),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                format!(
                    "`{text}` is no address and port, such as `127.0.0.1:1344`, or `unix:/PATH`"
                )
            }),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that listens, before it has a runtime. Each worker has a copy of it.
#[derive(Debug)]
pub(super) enum BoundSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// A socket that listens on a worker.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl BoundSocket {
    pub(super) fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => {
                let socket = std::net::TcpListener::bind(address)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Tcp(socket))
            }
            ListenAddress::Unix(path) => {
                use std::os::unix::net::{UnixListener, UnixStream};
                let socket = match UnixListener::bind(path) {
                    Err(error)
                        if error.kind() == io::ErrorKind::AddrInUse
                            && UnixStream::connect(path).is_err() =>
                    {
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                socket.set_nonblocking(true)?;
                Ok(Self::Unix(socket))
            }
        }
    }

    /// Where it is bound; `address` is what it was bound to.
    pub(super) fn address(&self, address: &ListenAddress) -> io::Result<ListenAddress> {
        match self {
            Self::Tcp(socket) => socket.local_addr().map(ListenAddress::Tcp),
            Self::Unix(_) => Ok(address.clone()),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => socket.try_clone().map(Self::Tcp),
            Self::Unix(socket) => socket.try_clone().map(Self::Unix),
        }
    }

    /// Gives it to the runtime of this thread.
    pub(super) fn listen(self) -> io::Result<Listener> {
        match self {
            Self::Tcp(socket) => TcpListener::from_std(socket).map(Listener::Tcp),
            Self::Unix(socket) => UnixListener::from_std(socket).map(Listener::Unix),
        }
    }
}

/// A connection that was accepted, and the address of its client; none on a socket in the file
/// system.
pub(super) type Accepted = (Socket, Option<IpAddr>);

impl Listener {
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (socket, peer) = listener.accept().await?;
                Ok((Socket::tcp(socket)?, Some(peer.ip())))
            }
            Self::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                Ok((Socket::Unix(socket), None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_as_it_is_written() {
        for text in ["127.0.0.1:1344", "[::1]:0", "unix:/run/icap.sock"] {
            let address = text.parse::<ListenAddress>().expect("an address");
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "1344", "localhost:1344", "unix:icap.sock"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn socket_that_nothing_listens_on_is_replaced_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = ListenAddress::Unix(folder.path().join("icap.sock"));
        let first = BoundSocket::bind(&address).expect("it is free");
        assert!(BoundSocket::bind(&address).is_err(), "it is in use");
        drop(first);
        assert!(BoundSocket::bind(&address).is_ok());
    }
}
