//! What an idle keep-alive connection costs the server in user memory.

use super::server::Server;
use crate::client::get;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may use to put its memory in order.
const REST: Duration = Duration::from_secs(1);

/// Growth of a server's memory over many idle connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Idle {
    pub(crate) contender: String,
    pub(crate) connections: u32,
    pub(crate) pss_before_kib: u64,
    pub(crate) pss_after_kib: u64,
    pub(crate) rss_before_kib: u64,
    pub(crate) rss_after_kib: u64,
    /// Why the numbers are not to be believed; `None` when every connection was open at the end.
    pub(crate) trouble: Option<String>,
}

impl Idle {
    /// Bytes of user memory (PSS) for each connection.
    pub(crate) fn bytes_per_connection(&self) -> u64 {
        let growth_kib = self.pss_after_kib.saturating_sub(self.pss_before_kib);
        growth_kib * 1024 / u64::from(self.connections.max(1))
    }
}

/// Opens the connections to a server that has answered before, sends a request on each, and reads
/// the server's memory.
pub(crate) fn measure(contender: &str, server: &Server, connections: u32, path: &str) -> Idle {
    std::thread::sleep(REST);
    let before = server.memory();
    let mut trouble = None;
    let mut streams = Vec::new();
    for (number, _) in (0..).zip(0..connections) {
        match open(server.address(), number, path) {
            Ok(stream) => streams.push(stream),
            Err(error) => {
                trouble = Some(format!("connection {number} failed: {error}"));
                break;
            }
        }
    }
    std::thread::sleep(REST);
    let after = server.memory();
    let closed = streams.iter().filter(|stream| is_closed(stream)).count();
    if closed > 0 {
        trouble = Some(format!(
            "{closed} of {connections} connections were closed by the server"
        ));
    }
    Idle {
        contender: contender.to_owned(),
        connections: u32::try_from(streams.len()).unwrap_or(u32::MAX),
        pss_before_kib: before.pss_kib,
        pss_after_kib: after.pss_kib,
        rss_before_kib: before.rss_kib,
        rss_after_kib: after.rss_kib,
        trouble,
    }
}

fn open(to: SocketAddr, number: usize, path: &str) -> io::Result<TcpStream> {
    let mut stream = get::connect_from(get::source_address(number), to, None)?;
    match get::get(&mut stream, path)?.status {
        200 => Ok(stream),
        status => Err(io::Error::other(format!("status {status}"))),
    }
}

fn is_closed(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let peeked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut byte));
    !peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
