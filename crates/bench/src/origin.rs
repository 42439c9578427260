//! The origin: all servers of a scenario's site.
//!
//! What it answers is a function of scenario, seed, target and time ([`weir_workload::Site`],
//! [`weir_workload::Content`]): it stores nothing, and content of any length costs no memory. What
//! goes wrong, on purpose, is a function of scenario, seed and the request's id, so that a run can
//! be repeated.
//!
//! Each thread has a runtime of its own, one buffer to read into and one to make content in;
//! listening sockets are shared by all. A response is decided when its request has been read, for
//! the time at which it will be sent (`response.rs`), and made as the socket takes it
//! (`writer.rs`).
//!
//! Deliberately absent: chunked content, content codings, several ranges in one response, TLS.
//! Nothing that is measured needs them from the origin.

mod accept;
mod answer;
mod by_target;
mod connection;
mod counts;
mod id_set;
mod impairment;
mod listen;
mod pace;
mod request_facts;
mod response;
mod response_writer;
mod timer;
mod transmission;
mod worker;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tokio::sync::watch;
use weir_workload::Scenario;

pub use by_target::fetches::{Fetch, FetchEnd, FetchTally, Fetches};
pub use by_target::{ByTarget, ResponseSpec, content_of, start_by_target};
pub use counts::{FaultCounts, OriginCounts, PhaseCounts};
pub use listen::OriginListen;

use crate::descriptors;
use crate::failure::Failure;
use by_target::FetchLog;
use listen::Listener;
use worker::{OriginState, lock};

/// An origin to be.
#[derive(Clone, Debug)]
pub struct OriginPlan {
    /// What is served.
    pub scenario: Arc<Scenario>,
    /// Of the whole run.
    pub seed: u64,
    /// Where.
    pub listen: OriginListen,
    /// At least 1.
    pub threads: u32,
    /// How many participants send requests; ids of others are not counted as such.
    pub shares: u32,
    /// Connections that may be open at a time; more wait, and are counted. See [`connections_for`].
    pub connections_max: u32,
}

/// No scenario needs more connections at a time: the third cache-off had 16 000.
pub const CONNECTIONS_MAX: u32 = 16_384;

/// Connections beside those that requests under way need: persistent ones that a proxy keeps for
/// later.
const IDLE_CONNECTIONS: u32 = 1024;

/// Connections that a proxy will hardly exceed with this scenario: twice what its clients may open,
/// and some idle ones.
#[must_use]
pub fn connections_for(scenario: &Scenario) -> u32 {
    let clients = scenario
        .agents()
        .saturating_mul(scenario.clients.connections_max);
    clients
        .saturating_mul(2)
        .saturating_add(IDLE_CONNECTIONS)
        .min(CONNECTIONS_MAX)
}

/// Descriptors beside sockets: runtimes, standard streams, files of the rest of the process.
const OTHER_DESCRIPTORS: u64 = 128;

/// An origin that serves until it is stopped, or this is dropped.
#[derive(Debug)]
pub struct OriginHandle {
    servers: Vec<SocketAddr>,
    shared: Arc<OriginState>,
    counts: Vec<Arc<Mutex<OriginCounts>>>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl OriginPlan {
    /// File descriptors that it takes, those of the rest of the process not included.
    #[must_use]
    pub fn descriptors(&self, servers: u32) -> u64 {
        let sockets = u64::from(listen::sockets(self.listen, servers));
        // each thread has each socket, and may hold a connection that waits for a place
        let sockets = sockets * u64::from(self.threads) * 2;
        sockets + u64::from(self.connections_max) + OTHER_DESCRIPTORS
    }
}

/// Starts it. It is ready when this returns.
///
/// # Errors
///
/// An address cannot be listened on, the file descriptors do not suffice and may not be raised, or
/// a thread cannot be started.
pub fn start(plan: &OriginPlan) -> Result<OriginHandle, Failure> {
    start_as(plan, None)
}

/// With a log of fetches, targets describe their responses; else the scenario's site does.
fn start_as(plan: &OriginPlan, fetch_log: Option<FetchLog>) -> Result<OriginHandle, Failure> {
    let send_buffer_bytes = fetch_log
        .as_ref()
        .and_then(|fetch_log| fetch_log.options.send_buffer_bytes);
    let shared = Arc::new(OriginState::new(plan, fetch_log));
    let site_servers = shared.site.servers();
    descriptors::raise(plan.descriptors(site_servers))
        .map_err(|error| Failure::outside("cannot serve as origin", error))?;
    let (listening, servers) = listen::open(plan.listen, site_servers, send_buffer_bytes)?;
    let (stop, _) = watch::channel(false);
    let mut origin = OriginHandle {
        servers,
        shared,
        counts: Vec::new(),
        stop,
        threads: Vec::new(),
    };
    for index in 0..plan.threads.max(1) {
        origin.start_thread(index, &listening)?;
    }
    Ok(origin)
}

impl OriginHandle {
    /// The address of every server; for a gateway one, which is that of all.
    #[must_use]
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// The run begins at this time: from then the spans of the fault script count. Before it is
    /// said they count from the origin's start.
    pub fn begin(&self, at: Instant) {
        self.shared.begin(at.into());
    }

    /// All counts up to now. A response that a client has received is counted.
    #[must_use]
    pub fn counts(&self) -> OriginCounts {
        let mut sum = OriginCounts::default();
        for counts in &self.counts {
            sum.merge(&lock(counts));
        }
        sum
    }

    /// Closes all connections, and says what was counted. Whatever was on its way is cut.
    #[must_use]
    pub fn stop(mut self) -> OriginCounts {
        self.end();
        self.counts()
    }

    fn start_thread(&mut self, index: u32, listening: &[Listener]) -> Result<(), Failure> {
        let failure = |error: std::io::Error| {
            Failure::outside(format!("cannot start thread {index} of the origin"), error)
        };
        let cloned = |listening: &Listener| {
            Ok(Listener {
                socket: listening.socket.try_clone()?,
                addressing: listening.addressing,
            })
        };
        let listening: Result<Vec<_>, _> = listening.iter().map(cloned).collect();
        let listening = listening.map_err(failure)?;
        let counts = Arc::new(Mutex::new(OriginCounts::default()));
        let (shared, of_thread) = (Arc::clone(&self.shared), Arc::clone(&counts));
        let (ready, started) = sync_channel(1);
        let stop = self.stop.subscribe();
        let thread = thread::Builder::new()
            .name(format!("weir-origin-{index}"))
            .spawn(move || accept::run(shared, of_thread, listening, stop, &ready))
            .map_err(failure)?;
        self.counts.push(counts);
        self.threads.push(thread);
        outcome(&started).map_err(failure)
    }

    fn end(&mut self) {
        let _ended_already = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // a thread that panicked has nothing to return
            let _ = thread.join();
        }
    }
}

impl Drop for OriginHandle {
    fn drop(&mut self) {
        self.end();
    }
}

fn outcome(started: &Receiver<std::io::Result<()>>) -> std::io::Result<()> {
    started
        .recv()
        .unwrap_or_else(|_| Err(std::io::Error::other("it ended at once")))
}
