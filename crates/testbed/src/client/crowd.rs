//! Many clients in one thread, looked at in turn.

use super::incoming::{Incoming, request};
use super::reader;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// From one address to one port there are some 28 000 ports, some of them in `TIME_WAIT`.
const CONNECTIONS_PER_ADDRESS: usize = 1000;

#[derive(Debug)]
enum Member {
    /// Connected, has not asked.
    Idle(TcpStream),
    Reading(TcpStream, Incoming),
    Whole,
    Failed(String),
}

/// Where everybody stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) reading: usize,
    /// Of those that read, how many have content already.
    pub(crate) begun: usize,
    pub(crate) whole: usize,
    /// How many failed, by what they said.
    pub(crate) failed: BTreeMap<String, usize>,
    pub(crate) read_bytes: u64,
}

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Crowd {
    members: Vec<Member>,
    buffer: Vec<u8>,
}

impl Crowd {
    /// Connects them all; who cannot has failed.
    pub(crate) fn connect(to: SocketAddr, count: usize, receive_buffer_bytes: usize) -> Self {
        let open = |number: usize| {
            let host = u8::try_from(2 + number / CONNECTIONS_PER_ADDRESS).unwrap_or(u8::MAX);
            let from = Ipv4Addr::new(127, 0, 0, host);
            let stream = reader::open(from, to, Some(receive_buffer_bytes))?;
            stream.set_nonblocking(true)?;
            io::Result::Ok(stream)
        };
        let members = (0..count).map(|number| match open(number) {
            Ok(stream) => Member::Idle(stream),
            Err(error) => Member::Failed(format!("cannot connect: {}", error.kind())),
        });
        Self {
            members: members.collect(),
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Everybody asks for the target of its number, one after the other with a pause between them.
    pub(crate) fn ask(
        &mut self,
        size_bytes: u64,
        pause: Duration,
        target: impl Fn(usize) -> String,
    ) {
        for (number, member) in self.members.iter_mut().enumerate() {
            let before = std::mem::replace(member, Member::Whole);
            *member = match before {
                Member::Idle(mut stream) => {
                    let target = target(number);
                    match stream.write_all(request(&target).as_bytes()) {
                        Ok(()) => Member::Reading(stream, Incoming::new(&target, size_bytes)),
                        Err(error) => Member::Failed(format!("cannot ask: {}", error.kind())),
                    }
                }
                other => other,
            };
            if pause > Duration::ZERO {
                std::thread::sleep(pause);
            }
        }
    }

    /// Everybody reads at most so much of what has arrived.
    pub(crate) fn read(&mut self, bytes_max: usize) {
        let bytes_max = bytes_max.min(self.buffer.len());
        for member in &mut self.members {
            if let Member::Reading(stream, incoming) = member {
                let next = read_once(stream, incoming, &mut self.buffer[..bytes_max]);
                if let Some(next) = next {
                    *member = next;
                }
            }
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        let mut standing = Standing::default();
        for member in &self.members {
            match member {
                Member::Idle(_) => {}
                Member::Reading(_, incoming) => {
                    standing.reading += 1;
                    standing.begun += usize::from(incoming.read_bytes() > 0);
                    standing.read_bytes += incoming.read_bytes();
                }
                Member::Whole => standing.whole += 1,
                Member::Failed(why) => *standing.failed.entry(why.clone()).or_default() += 1,
            }
        }
        standing
    }
}

/// What becomes of a member that reads, if it changes. Closing its connection takes place with it.
fn read_once(stream: &mut TcpStream, incoming: &mut Incoming, buffer: &mut [u8]) -> Option<Member> {
    match stream.read(buffer) {
        Ok(0) => Some(Member::Failed("cut".to_owned())),
        Ok(length) => match incoming.take(&buffer[..length]) {
            Ok(()) => incoming.is_whole().then_some(Member::Whole),
            Err(what) => Some(Member::Failed(what)),
        },
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Err(error) => Some(Member::Failed(error.kind().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{in_thread, target};

    #[test]
    fn client_with_an_unexpected_response_fails_and_the_others_complete() {
        let origin = in_thread();
        let mut crowd = Crowd::connect(origin, 20, 64 * 1024);
        let size_bytes = 100_000;
        // the last one expects more than there is
        crowd.ask(size_bytes, Duration::ZERO, |number| {
            let size_bytes = size_bytes - u64::from(number == 19);
            target(&format!("/{number}"), size_bytes, None, true)
        });
        let mut standing = crowd.standing();
        while standing.reading > 0 {
            crowd.read(1000);
            standing = crowd.standing();
        }
        assert_eq!(standing.whole, 19);
        let failed = standing.failed.first_key_value();
        assert_eq!(
            failed.map(|(why, count)| (why.as_str(), *count)),
            Some(("a Content-Length of 99999", 1))
        );
    }

    #[test]
    fn refused_connection_is_a_failure_of_its_client() {
        // bound but not listening: nothing else can take the port meanwhile
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        )
        .expect("a socket");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        rustix::net::bind(&socket, &any).expect("a port");
        let bound = rustix::net::getsockname(&socket).expect("its address");
        let address = SocketAddr::try_from(bound).expect("an address of IPv4");
        let mut crowd = Crowd::connect(address, 3, 64 * 1024);
        crowd.ask(1, Duration::ZERO, |_| String::new());
        assert_eq!(crowd.standing().failed.values().sum::<usize>(), 3);
    }
}
