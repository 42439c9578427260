//! A client that sends exactly what it is told to.

use super::message::Response;
use super::peer::Peer;
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};

/// A client's connection to the proxy.
pub(crate) struct RawClient {
    peer: Peer,
}

impl RawClient {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the proxy listens");
        Self {
            peer: Peer::new(stream),
        }
    }

    /// A client that shares a connection with another.
    pub(crate) fn from_stream(stream: TcpStream) -> Self {
        Self {
            peer: Peer::new(stream),
        }
    }

    /// A connection whose kernel takes in little of what it does not read.
    pub(crate) fn connect_small(address: SocketAddr) -> Self {
        Self::connect_with_buffer(address, 4096)
    }

    /// A connection with so much for what it has not read, bytes; the kernel takes twice as much
    /// memory.
    pub(crate) fn connect_with_buffer(address: SocketAddr, bytes: usize) -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        socket.set_recv_buffer_size(bytes).expect("a socket");
        socket.connect(&address.into()).expect("the proxy listens");
        Self {
            peer: Peer::new(socket.into()),
        }
    }

    /// Sends a request and reads the response to it.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Response {
        self.send(request);
        self.read_response()
    }

    /// The connection alone.
    pub(crate) fn into_peer(self) -> Peer {
        self.peer
    }
}

impl Deref for RawClient {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for RawClient {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}
