//! The origin's loop: one thread, level-triggered epoll, a heap of the times at which paced
//! responses go on.

use super::connection::{Connection, Wants};
use super::ledger::Ledger;
use crate::failure::{During, Failure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Instant;

const EVENTS_MAX: usize = 1024;

const BACKLOG: i32 = 4096;

const GONE: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

#[derive(Debug)]
struct Origin {
    epoll: OwnedFd,
    /// Their keys among the events are their places here; connections count on from there.
    listeners: Vec<TcpListener>,
    connections: BTreeMap<u64, Connection>,
    next_key: u64,
    /// When which connection may go on; one that is gone or was served meanwhile does no harm.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    ledger: Ledger,
}

/// Serves until the process is ended. `send_buffer_bytes` is what the socket option is set to; the
/// kernel doubles it for its own needs. `None` leaves it to the kernel.
///
/// # Errors
/// An address cannot be listened on, or epoll fails.
pub(crate) fn serve(
    addresses: &[SocketAddr],
    send_buffer_bytes: Option<usize>,
) -> Result<(), Failure> {
    let mut listeners = Vec::new();
    for &address in addresses {
        let listener = listener(address, send_buffer_bytes);
        listeners.push(listener.during(format_args!("serve as origin on {address}"))?);
    }
    let mut origin = Origin::new(listeners).during("set up the origin")?;
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        origin.turn(&mut events).during("go on as origin")?;
    }
}

fn listener(address: SocketAddr, send_buffer_bytes: Option<usize>) -> io::Result<TcpListener> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if let Some(bytes) = send_buffer_bytes {
        // accepted connections inherit it
        sockopt::set_socket_send_buffer_size(&socket, bytes)?;
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Origin {
    fn new(listeners: Vec<TcpListener>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut next_key = 0;
        for listener in &listeners {
            let data = epoll::EventData::new_u64(next_key);
            epoll::add(&epoll, listener, data, epoll::EventFlags::IN)?;
            next_key += 1;
        }
        Ok(Self {
            epoll,
            listeners,
            connections: BTreeMap::new(),
            next_key,
            due: BinaryHeap::new(),
            ledger: Ledger::default(),
        })
    }

    /// Waits for whatever is next and does it.
    fn turn(&mut self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let timeout = self.due.peek().and_then(|Reverse((due, _))| {
            Timespec::try_from(due.saturating_duration_since(Instant::now())).ok()
        });
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.iter() {
            let key = event.data.u64();
            let listener = usize::try_from(key).ok();
            if let Some(listener) = listener.filter(|&place| place < self.listeners.len()) {
                self.accept(listener)?;
            } else if { event.flags }.intersects(GONE) {
                // whoever has closed its side wants no more
                self.close(key);
            } else {
                self.advance(key, Instant::now())?;
            }
        }
        let now = Instant::now();
        while let Some(Reverse((due, key))) = self.due.peek().copied()
            && due <= now
        {
            self.due.pop();
            self.advance(key, now)?;
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        while let Some(Ok((stream, _))) = self.listeners.get(listener).map(TcpListener::accept) {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let data = epoll::EventData::new_u64(self.next_key);
            epoll::add(&self.epoll, &stream, data, flags(&Wants::Request))?;
            self.connections
                .insert(self.next_key, Connection::new(stream));
            self.next_key += 1;
        }
        Ok(())
    }

    fn advance(&mut self, key: u64, now: Instant) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&key) else {
            return Ok(());
        };
        let mut wants = connection.advance(&mut self.ledger, now);
        if let Ok(Wants::Tally(prefix)) = &wants {
            let text = self.tally(prefix)?;
            let Some(connection) = self.connections.get_mut(&key) else {
                return Ok(());
            };
            connection.say(&text, now);
            wants = connection.advance(&mut self.ledger, now);
        }
        let Some(connection) = self.connections.get_mut(&key) else {
            return Ok(());
        };
        match wants {
            Ok(wants) => {
                if let Wants::Time(due) = wants {
                    self.due.push(Reverse((due, key)));
                }
                let data = epoll::EventData::new_u64(key);
                epoll::modify(&self.epoll, &connection.stream, data, flags(&wants))?;
            }
            Err(_) => self.close(key),
        }
        Ok(())
    }

    /// Closing the socket takes it out of the epoll set.
    fn close(&mut self, key: u64) {
        if let Some(connection) = self.connections.remove(&key) {
            connection.close(&mut self.ledger);
        }
    }

    /// Asks the kernel about every connection that it concerns first.
    fn tally(&mut self, prefix: &str) -> io::Result<String> {
        for connection in self.connections.values() {
            let fetch = connection.fetch();
            if fetch.is_some_and(|fetch| self.ledger.concerns(fetch, prefix)) {
                connection.account(&mut self.ledger);
            }
        }
        serde_json::to_string(&self.ledger.tally(prefix)).map_err(io::Error::other)
    }
}

/// A connection that waits for its time has to hear only that its peer has gone.
fn flags(wants: &Wants) -> epoll::EventFlags {
    match wants {
        Wants::Request | Wants::Tally(_) => epoll::EventFlags::IN,
        Wants::Room => epoll::EventFlags::OUT | epoll::EventFlags::RDHUP,
        Wants::Time(_) => epoll::EventFlags::RDHUP,
    }
}

/// An origin in a thread of this process, for as long as that lives.
#[cfg(test)]
pub(crate) fn in_thread() -> SocketAddr {
    let listener = listener((std::net::Ipv4Addr::LOCALHOST, 0).into(), None).expect("a port");
    let address = listener.local_addr().expect("its address");
    let mut origin = Origin::new(vec![listener]).expect("an origin");
    std::thread::spawn(move || {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while origin.turn(&mut events).is_ok() {}
    });
    address
}

#[cfg(test)]
mod tests {
    use super::super::asked::target;
    use super::super::ledger::{End, Tally};
    use super::*;
    use crate::client::content::Content;
    use crate::client::get as client;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn tally(origin: SocketAddr, prefix: &str) -> Tally {
        let answer = client::get_once(origin, &format!("/tally?{prefix}")).expect("a tally");
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    #[test]
    fn persistent_connection_serves_exact_content_and_counts_it() {
        let origin = in_thread();
        let mut stream = client::connect(origin).expect("the origin");
        for (number, size) in [0_u64, 1, 100_000].into_iter().enumerate() {
            let target = target(&format!("/a/{number}"), size, None, true);
            let answer = client::get(&mut stream, &target).expect("an answer");
            assert_eq!((answer.status, answer.body.len() as u64), (200, size));
            assert!(Content::of(&target).is_at(0, &answer.body));
        }
        assert_eq!(
            client::get_once(origin, "/nothing")
                .map(|answer| answer.status)
                .ok(),
            Some(404)
        );
        let mut all = tally(origin, "/a/");
        // the client's kernel may take its time to acknowledge the last bytes
        while all.acknowledged_bytes < all.handed_bytes {
            all = tally(origin, "/a/");
        }
        assert_eq!((all.fetches, all.running), (3, 0));
        assert_eq!(
            (all.handed_bytes, all.acknowledged_bytes),
            (100_001, 100_001)
        );
        assert_eq!(tally(origin, "/a/2").fetches, 1);
        assert_eq!(tally(origin, "/b").fetches, 0);
    }

    #[test]
    fn unread_response_is_handed_over_only_partly_and_ends_as_cut() {
        let origin = in_thread();
        let target = target("/a", 100_000_000, None, true);
        let mut stream = TcpStream::connect(origin).expect("the origin");
        stream
            .write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes())
            .expect("a request");
        let mut first = [0; 1];
        stream.read_exact(&mut first).expect("an answer");
        let running = tally(origin, "/a");
        assert_eq!(running.running, 1);
        assert!(running.acknowledged_bytes <= running.handed_bytes);
        assert!(running.handed_bytes < 100_000_000);
        drop(stream);
        // the origin hears of it some time later
        let mut ended = tally(origin, "/a");
        while ended.running > 0 {
            ended = tally(origin, "/a");
        }
        assert_eq!(ended.first[0].end, End::Cut);
        assert!(ended.acknowledged_bytes < 100_000_000);
    }
}
