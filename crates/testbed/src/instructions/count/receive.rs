//! Requests and responses of which every byte is checked, at moments that are the same in every
//! run: a client waits until weir has read all that was sent to it, and reads when all of a
//! response is there.

use crate::client::get;
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};
use weir_bench::client::Inspect;
use weir_bench::origin::{ResponseSpec, content_of};
use weir_wire::ResponseHead;
use xtask::failure::{During, Failure};

const HOST: &str = "Host: origin.example\r\n";

/// How long weir may take under callgrind to do something.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Between two looks at a socket.
const LOOK: Duration = Duration::from_millis(1);

/// A response that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    target: String,
    size_bytes: u64,
    status: u16,
    body: Vec<u8>,
    /// Whether it came by the fetch of another request (RFC 9211 §2.6).
    pub(super) is_collapsed: bool,
}

impl Received {
    /// Content that another client has read.
    pub(super) fn by_other(spec: &ResponseSpec, body: &[u8]) -> Self {
        Self {
            status: 200,
            body: body.to_vec(),
            ..Self::of(spec)
        }
    }

    fn of(spec: &ResponseSpec) -> Self {
        Self {
            target: spec.to_string(),
            size_bytes: spec.size_bytes,
            ..Self::default()
        }
    }

    /// Checks status and every byte of content. That takes time, in which weir does what it does
    /// from time to time: not before the end of a run.
    ///
    /// # Errors
    /// They are not those of the target.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let is_whole = self.body.len() as u64 == self.size_bytes;
        let differs_at = content_of(&self.target).differs_at(0, &self.body);
        if self.status == 200 && is_whole && differs_at.is_none() {
            return Ok(());
        }
        let (target, status, bytes) = (&self.target, self.status, self.body.len());
        Err(Failure::Refused(format!(
            "weir answers {target} with {status} and {bytes} bytes, or with other ones"
        )))
    }
}

impl Inspect for Received {
    fn head(&mut self, head: &ResponseHead<'_, '_>, _: &[u8]) {
        self.status = head.status;
        let mut lines = head.fields.iter();
        let line = lines.find(|line| line.name.eq_ignore_ascii_case("cache-status"));
        let value = line.map(|line| String::from_utf8_lossy(line.value));
        self.is_collapsed = value.is_some_and(|value| value.contains("collapsed"));
    }

    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}

/// Sends a request.
pub(super) fn ask(stream: &mut TcpStream, spec: &ResponseSpec) -> Result<(), Failure> {
    get::ask(stream, (HOST, &spec.to_string())).during("send a request to weir")
}

/// Reads a response once its content is there.
///
/// # Errors
/// It is not a whole response.
pub(super) fn receive(stream: &mut TcpStream, spec: &ResponseSpec) -> Result<Received, Failure> {
    wait_until_there(stream, spec)?;
    read(stream, spec)
}

/// Reads a response as it comes.
///
/// # Errors
/// It is not a whole response.
pub(super) fn read(stream: &mut TcpStream, spec: &ResponseSpec) -> Result<Received, Failure> {
    let mut received = Received::of(spec);
    get::read_into(stream, &mut received).during("read a response of weir")?;
    Ok(received)
}

fn wait_until_there(stream: &TcpStream, spec: &ResponseSpec) -> Result<(), Failure> {
    let is_there = || {
        let unread = rustix::io::ioctl_fionread(stream).during("ask how much was received")?;
        Ok(unread >= spec.size_bytes)
    };
    wait_until("the response is there", is_there)
}

/// Waits until the program at the other end of a connection on this machine has read all of it.
pub(super) fn wait_until_read(stream: &TcpStream) -> Result<(), Failure> {
    let address = |address: std::io::Result<SocketAddr>| address.during("ask for an address");
    let (client, server) = (address(stream.local_addr())?, address(stream.peer_addr())?);
    wait_until("weir has read a request", || {
        let text = std::fs::read_to_string("/proc/net/tcp").during("read /proc/net/tcp")?;
        Ok(unread_bytes(&text, (server.port(), client.port())) == Some(0))
    })
}

/// What the socket between two ports has received and its program has not read, by the table of
/// proc_pid_net(5): local address, remote address, state, `tx_queue:rx_queue`.
fn unread_bytes(table: &str, (local, remote): (u16, u16)) -> Option<u64> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let port = |address: &str| hexadecimal(address.split_once(':')?.1);
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let ports = (port(words.next()?)?, port(words.next()?)?);
        let queues = words.nth(1)?;
        let is_wanted = ports == (local.into(), remote.into());
        is_wanted.then(|| hexadecimal(queues.split_once(':')?.1))?
    })
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let deadline = Instant::now() + WAIT_MAX;
    while !is_so()? {
        if Instant::now() > deadline {
            let limit = WAIT_MAX.as_secs();
            return Err(Failure::Outside(format!(
                "it took more than {limit} s until {what}"
            )));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn bytes_are_unread_until_the_other_end_has_read_all_of_them() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let mut client = TcpStream::connect(address).expect("a connection");
        let (mut server, _) = listener.accept().expect("a client");
        let ports = (address.port(), client.local_addr().expect("one").port());
        let unread = || {
            let text = std::fs::read_to_string("/proc/net/tcp").expect("the table");
            unread_bytes(&text, ports)
        };
        assert_eq!(unread(), Some(0));
        client.write_all(b"abc").expect("a write");
        server.peek(&mut [0; 1]).expect("bytes");
        assert_eq!(unread(), Some(3));
        server.read_exact(&mut [0; 3]).expect("bytes");
        wait_until_read(&client).expect("all was read");
        assert_eq!(unread_bytes("", ports), None);
    }

    #[test]
    fn content_of_another_target_or_status_is_refused() {
        let spec = ResponseSpec::new("/a", 100);
        let mut body = [0; 100];
        content_of(&spec.to_string()).fill(0, &mut body);
        let received = |body: &[u8]| Received::by_other(&spec, body);
        assert!(received(&body).check().is_ok());
        assert!(received(&body[..99]).check().is_err());
        let status = 203;
        let other = Received {
            status,
            ..received(&body)
        };
        assert!(other.check().is_err());
        body[50] ^= 1;
        assert!(received(&body).check().is_err());
    }
}
