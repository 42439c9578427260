//! The proxy in this process, on a clock that is moved by hand, with clients in front of it and
//! servers behind it.
//!
//! One thread holds all ends. It waits for bytes in `poll`, and for what shows in no bytes by
//! asking the proxy something small in between: it has one worker, which has done what it could
//! before it answers.

use crate::conditions::Conditions;
use crate::message::Head;
use crate::trace::SERVERS;
use crate::wire::Wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weir_disk::files::SystemFiles;
use weir_measure::Metric;
use weir_proxy::clock::{Clock, ManualClock};
use weir_proxy::{Control, Hooks, Options, Proxy};
use weir_semantics::Timestamp;

/// A proxy and its world.
pub(crate) struct Live {
    proxy: Option<Proxy>,
    control: Arc<Control>,
    clock: Arc<ManualClock>,
    at_ms: u64,
    folder: TempDir,
    servers: Vec<TcpListener>,
    /// Connections from the proxy; those that are gone too.
    pub(crate) hops: Vec<Hop>,
    /// Connections to the proxy, by the simulator's numbers.
    pub(crate) clients: BTreeMap<u32, Client>,
    /// Who asks something small.
    turner: Option<Wire>,
    patience: Duration,
}

/// A connection from the proxy to a server.
pub(crate) struct Hop {
    pub(crate) wire: Option<Wire>,
    /// Requests that came on it.
    pub(crate) requests: u64,
    /// One that was not looked at.
    pub(crate) asked: Option<Head>,
}

/// A client's connection.
pub(crate) struct Client {
    pub(crate) wire: Wire,
    pub(crate) head: Option<Head>,
    pub(crate) content: Vec<u8>,
}

impl Client {
    /// Content that will have come when the response is whole.
    pub(crate) fn expected(&self, is_bare: bool) -> Option<u64> {
        let head = self.head.as_ref()?;
        let is_empty = is_bare || matches!(head.status(), 204 | 304);
        Some(if is_empty { 0 } else { head.length() })
    }

    fn read(&mut self) {
        self.wire.pump();
        if self.head.is_none()
            && let Some((head, length)) = Head::take(&self.wire.came)
        {
            self.wire.came.drain(..length);
            self.head = Some(head);
        }
        if self.head.is_some() {
            self.content.append(&mut self.wire.came);
        }
    }
}

impl Live {
    /// Starts them, so many milliseconds after 1970.
    pub(crate) fn start(conditions: &Conditions, begin_ms: u64, patience: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = conditions.config(&folder.path().join("access.log"));
        let second = i64::try_from(begin_ms / 1000).expect("a time");
        let clock = Arc::new(ManualClock::new(Timestamp(second)));
        clock.advance_ms(begin_ms % 1000);
        let options = Options {
            reload: Box::new(|| Err("nobody reloads".to_owned())),
            has_config_file: true,
            describe: Box::new(|_| String::new()),
            clock: Clock::Manual(Arc::clone(&clock)),
            files: Arc::new(SystemFiles),
            say: Arc::new(|_| {}),
            give_back_memory: || {},
            // the simulator knows no kernels, and what their sockets have
            moves_content: false,
            hooks: Hooks::default(),
            module_kinds: Vec::new(),
        };
        let proxy = Proxy::start(config, options).expect("a proxy");
        let listen = |_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
            listener.set_nonblocking(true).expect("a socket");
            listener
        };
        Self {
            control: Arc::clone(proxy.control()),
            proxy: Some(proxy),
            clock,
            at_ms: 0,
            folder,
            servers: (0..SERVERS).map(listen).collect(),
            hops: Vec::new(),
            clients: BTreeMap::new(),
            turner: None,
            patience,
        }
    }

    /// What a server is called.
    pub(crate) fn authority(&self, server: u64) -> String {
        let place = usize::try_from(server % SERVERS).expect("few");
        let address = self.servers[place].local_addr().expect("bound");
        address.to_string()
    }

    /// Milliseconds since the beginning.
    pub(crate) const fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// It is `at_ms` after the beginning; never earlier than it was.
    pub(crate) fn stand_at(&mut self, at_ms: u64) {
        self.clock.advance_ms(at_ms.saturating_sub(self.at_ms));
        self.at_ms = self.at_ms.max(at_ms);
    }

    /// A number.
    pub(crate) fn count(&self, metric: Metric) -> u64 {
        self.control.snapshot().get(metric)
    }

    /// A client connects.
    pub(crate) fn connect(&mut self, connection: u32) {
        let client = Client {
            wire: Wire::new(self.dial()),
            head: None,
            content: Vec::new(),
        };
        self.clients.insert(connection, client);
    }

    fn dial(&self) -> TcpStream {
        let address: SocketAddr = self.control.listeners()[0].address;
        TcpStream::connect(address).expect("the proxy listens")
    }

    /// Waits for something; `None` if it does not come.
    pub(crate) fn wait<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        let until = Instant::now() + self.patience;
        loop {
            self.pump();
            if let Some(seen) = look(self) {
                return Some(seen);
            }
            if Instant::now() >= until {
                return None;
            }
            self.listen();
        }
    }

    /// Waits for something that shows in a number only.
    pub(crate) fn wait_for(&mut self, mut look: impl FnMut(&Self) -> bool) -> Option<()> {
        let until = Instant::now() + self.patience;
        while !look(self) {
            if Instant::now() >= until {
                return None;
            }
            self.turn()?;
        }
        Some(())
    }

    /// The proxy does what it can.
    pub(crate) fn settle(&mut self) -> Option<()> {
        for _ in 0..TURNS {
            self.turn()?;
        }
        Some(())
    }

    /// The proxy answers a question: it has been at work.
    fn turn(&mut self) -> Option<()> {
        if self.turner.as_ref().is_none_or(|wire| wire.is_closed) {
            self.turner = Some(Wire::new(self.dial()));
        }
        let wire = self.turner.as_mut()?;
        wire.came.clear();
        wire.send(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
        self.wait(|live| {
            let wire = live.turner.as_ref()?;
            (Head::take(&wire.came).is_some() || wire.is_closed).then_some(())
        })
    }

    /// Takes and sends whatever can be.
    fn pump(&mut self) {
        for listener in &self.servers {
            while let Ok((stream, _)) = listener.accept() {
                self.hops.push(Hop {
                    wire: Some(Wire::new(stream)),
                    requests: 0,
                    asked: None,
                });
            }
        }
        for hop in &mut self.hops {
            hop.read();
        }
        for client in self.clients.values_mut() {
            client.read();
        }
        if let Some(turner) = &mut self.turner {
            turner.pump();
        }
    }

    /// Sleeps until something comes, or a moment has passed.
    fn listen(&self) {
        let hops = self.hops.iter().filter_map(|hop| hop.wire.as_ref());
        let clients = self.clients.values().map(|client| &client.wire);
        let wires = hops.chain(clients).chain(&self.turner);
        let open = wires.filter(|wire| !wire.is_closed);
        let mut events: Vec<PollFd<'_>> = open
            .map(|wire| {
                let flags = if wire.is_flushed() {
                    PollFlags::IN
                } else {
                    PollFlags::IN | PollFlags::OUT
                };
                PollFd::new(&wire.stream, flags)
            })
            .collect();
        events.extend(
            self.servers
                .iter()
                .map(|server| PollFd::new(server, PollFlags::IN)),
        );
        let _ = poll(&mut events, Some(&MOMENT));
    }

    /// Stops the proxy; its access log.
    pub(crate) fn stop(mut self) -> Result<String, String> {
        let panics = self.count(Metric::Panics);
        // before the proxy stops, which waits for those who are there
        for client in std::mem::take(&mut self.clients).into_values() {
            client.wire.reset();
        }
        self.turner = None;
        if let Some(proxy) = self.proxy.take() {
            proxy.stop();
        }
        if panics > 0 {
            return Err("something panicked in the proxy".to_owned());
        }
        let log = self.folder.path().join("access.log");
        std::fs::read_to_string(log).map_err(|error| format!("no access log: {error}"))
    }
}

impl Hop {
    fn read(&mut self) {
        let Some(wire) = &mut self.wire else { return };
        wire.pump();
        if self.asked.is_some() {
            return;
        }
        if let Some((head, length)) = Head::take(&wire.came) {
            let content = usize::try_from(head.length()).expect("little");
            if wire.came.len() >= length + content {
                wire.came.drain(..length + content);
                self.requests += 1;
                self.asked = Some(head);
            }
        }
    }
}

/// Questions after which the proxy has done what follows from what came before the first: a fetch
/// wakes readers, these others.
const TURNS: usize = 3;

/// How long to sleep at most.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
