//! Many clients in one thread, looked at in turn.

use super::get::{connect_from, source_address};
use super::http2::ClientVersion;
use super::transfer::Transfer;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use weir_bench::origin::ResponseSpec;

#[derive(Debug)]
enum Member {
    /// Connected; has not sent its request.
    Idle(TcpStream),
    Reading(Box<Transfer>),
    Whole,
    Failed(String),
}

/// The state of all clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupState {
    pub(crate) reading: usize,
    /// Of those that read, how many have content already.
    pub(crate) begun: usize,
    pub(crate) whole: usize,
    /// How many failed, by what they said.
    pub(crate) failed: BTreeMap<String, usize>,
    pub(crate) read_bytes: u64,
}

/// Clients of one server, or of several.
#[derive(Debug)]
pub(crate) struct ClientGroup {
    members: Vec<Member>,
    buffer: Vec<u8>,
}

impl ClientGroup {
    /// Connects them all, spread over the servers; a client that cannot connect has failed.
    pub(crate) fn connect(to: &[SocketAddr], count: usize, receive_buffer_bytes: usize) -> Self {
        let open = |number: usize| {
            let to = to[number % to.len()];
            let stream = connect_from(source_address(number), to, Some(receive_buffer_bytes))?;
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

    /// Each client sends a request for the response of its number, one after the other with a pause
    /// between them.
    pub(crate) fn ask(
        &mut self,
        version: ClientVersion,
        pause: Duration,
        spec: impl Fn(usize) -> ResponseSpec,
    ) {
        for (number, member) in self.members.iter_mut().enumerate() {
            let before = std::mem::replace(member, Member::Whole);
            *member = match before {
                Member::Idle(stream) => match Transfer::ask_by(version, stream, &spec(number)) {
                    Ok(transfer) => Member::Reading(Box::new(transfer)),
                    Err(error) => Member::Failed(format!("cannot ask: {}", error.kind())),
                },
                other => other,
            };
            if pause > Duration::ZERO {
                std::thread::sleep(pause);
            }
        }
    }

    /// Each client reads at most so much of what has arrived. One that has all closes its
    /// connection.
    pub(crate) fn read(&mut self, bytes_max: usize) {
        let bytes_max = bytes_max.min(self.buffer.len());
        for member in &mut self.members {
            if let Member::Reading(transfer) = member {
                match transfer.read(&mut self.buffer[..bytes_max]) {
                    Err(what) => *member = Member::Failed(what),
                    Ok(_) if transfer.is_whole() => *member = Member::Whole,
                    Ok(_) => {}
                }
            }
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        let mut state = GroupState::default();
        for member in &self.members {
            match member {
                Member::Idle(_) => {}
                Member::Reading(transfer) => {
                    state.reading += 1;
                    state.begun += usize::from(transfer.read_bytes() > 0);
                    state.read_bytes += transfer.read_bytes();
                }
                Member::Whole => state.whole += 1,
                Member::Failed(why) => *state.failed.entry(why.clone()).or_default() += 1,
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::in_threads;

    #[test]
    fn client_with_an_unexpected_response_fails_and_the_others_complete() {
        let (_origin, address) = in_threads();
        let mut group = ClientGroup::connect(&[address], 20, 64 * 1024);
        // a size that the origin refuses
        let size_bytes = |number| if number == 19 { u64::MAX } else { 100_000 };
        group.ask(ClientVersion::Http1, Duration::ZERO, |number| {
            ResponseSpec::new(&format!("/{number}"), size_bytes(number))
        });
        let mut state = group.state();
        while state.reading > 0 {
            group.read(1000);
            state = group.state();
        }
        assert_eq!(state.whole, 19);
        let failed = state.failed.first_key_value();
        assert_eq!(
            failed.map(|(why, count)| (why.as_str(), *count)),
            Some(("status 404", 1))
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
        let mut group = ClientGroup::connect(&[address], 3, 64 * 1024);
        group.ask(ClientVersion::Http1, Duration::ZERO, |_| {
            ResponseSpec::new("/", 1)
        });
        assert_eq!(group.state().failed.values().sum::<usize>(), 3);
    }
}
