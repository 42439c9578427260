//! Resolves names to addresses; a failed name server affects only the names that need it.
//!
//! The library (`hickory-resolver`) runs on a thread and runtime of its own; workers talk to it
//! through a bounded queue. Around it stands what it lacks: a hard time limit, one lookup in flight
//! per name, a stale answer when a name server fails (RFC 8767), a short memory of failures (RFC
//! 2308, RFC 9520), and named bounds on everything. IP literals, `localhost` (RFC 6761 §6.3) and
//! the hosts file never leave the caller's thread.
//!
//! The addresses are whatever the name server said, private and loopback ones included: whether one
//! may be connected to is decided by the caller, on the address it connects to.

mod cache;
mod hosts;
mod lookup;
mod name;
mod records;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use weir_measure::{Counters, DnsOutcome, Metric};

use cache::{Cache, CacheState};
use hosts::HostsFile;
use lookup::Servers;
use records::{Asked, Question, RecordQuestion};
pub use records::{Records, ServiceRecord};

/// Addresses kept of one name: enough to route around dead ones, and 1 000 records cost no more
/// than 16.
pub const ADDRESSES_MAX: usize = 16;

/// The settings of a resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverConfig {
    /// Name servers to query, over UDP and TCP; empty: those of `/etc/resolv.conf`, with its search
    /// list.
    pub servers: Vec<SocketAddr>,
    /// Longest time a lookup may take, whatever the library does.
    pub time_limit: Duration,
    /// Answers are used at least this long: a TTL of 0 would mean a lookup for every connection.
    pub ttl_min: Duration,
    /// Answers are used at most this long.
    pub ttl_max: Duration,
    /// How long "no such name" is remembered.
    pub negative_ttl: Duration,
    /// How long after its TTL an answer may still be used when the name servers fail (RFC 8767 §5).
    pub stale_max: Duration,
    /// Names kept.
    pub cache_max_entries: usize,
    /// Lookups in flight.
    pub lookups_max: usize,
}

impl Default for ResolverConfig {
    /// `time_limit` 5 s as glibc; TTL between 1 s and 1 h; negative 10 s as Squid's minimum is 1
    /// min, which is long for a user; stale 1 h (RFC 8767 §5 suggests 1 to 3 days for
    /// resolvers that many depend on); 10 000 names; 256 lookups.
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            time_limit: Duration::from_secs(5),
            ttl_min: Duration::from_secs(1),
            ttl_max: Duration::from_hours(1),
            negative_ttl: Duration::from_secs(10),
            stale_max: Duration::from_hours(1),
            cache_max_entries: 10_000,
            lookups_max: 256,
        }
    }
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The name does not exist, or has neither A nor AAAA records.
    NotFound,
    /// No name server answered within the time limit.
    Timeout,
    /// The name servers answered with a failure, could not be reached, or none is configured.
    ServerFailure,
    /// Too many lookups are in flight.
    Overloaded,
    /// Not a host name: no query was sent.
    BadName,
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "the name does not exist or has no address",
            Self::Timeout => "no name server answered in time",
            Self::ServerFailure => "the name servers failed or could not be reached",
            Self::Overloaded => "too many name lookups are in flight",
            Self::BadName => "not a valid host name",
        })
    }
}

impl std::error::Error for ResolveError {}

/// Addresses of one name, IPv4 and IPv6 by turns, never empty, at most [`ADDRESSES_MAX`].
pub type Addresses = Arc<[IpAddr]>;

/// The answer to a question.
pub type Answer = Result<Addresses, ResolveError>;

/// The clock of the cache; tests advance it by calls.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// A handle on the resolver thread; clones share it, and the thread ends with the last one.
#[derive(Clone)]
pub struct Resolver {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Question>,
}

impl Resolver {
    /// Starts the resolver thread.
    ///
    /// `counters` must be a block that several threads may write: [`Counters::add_shared`] is used
    /// on it.
    ///
    /// # Errors
    ///
    /// When the thread or its runtime cannot be started. A missing `/etc/resolv.conf` is no error,
    /// see [`Self::problem`].
    pub fn start(config: ResolverConfig, counters: Arc<Counters>) -> io::Result<Self> {
        Self::start_with_clock(config, counters, Arc::new(Instant::now))
    }

    /// As [`Self::start`], with a clock for the cache. Time limits follow the real clock.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_clock(
        config: ResolverConfig,
        counters: Arc<Counters>,
        clock: Clock,
    ) -> io::Result<Self> {
        let servers = lookup::servers(&config);
        Self::launch(config, servers, counters, clock)
    }

    fn launch(
        config: ResolverConfig,
        servers: Servers,
        counters: Arc<Counters>,
        clock: Clock,
    ) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel(config.lookups_max.max(1));
        let shared = Arc::new(Shared {
            problem: servers.as_ref().err().cloned(),
            hosts: HostsFile::read_system(),
            state: Mutex::new(State {
                cache: Cache::new(&config),
                in_flight: HashMap::new(),
            }),
            config,
            counters,
            clock,
        });
        lookup::start_thread(servers, queue, Arc::clone(&shared))?;
        Ok(Self { shared, requests })
    }

    /// Why no name server can be queried, if so: literals, `localhost` and the hosts file still
    /// work, every other name is a [`ResolveError::ServerFailure`].
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.shared.problem.as_deref()
    }

    /// The addresses that the hosts file has for `host`, or the loopback's for its own names; none
    /// for any other. No query is sent.
    pub fn known(&self, host: &str) -> Vec<IpAddr> {
        let name = name::canonical(host).ok();
        let known = name.and_then(|name| self.shared.hosts.get(&name));
        known.map_or_else(Vec::new, |addresses| addresses.to_vec())
    }

    /// The addresses of `host`: an IP literal (IPv6 with or without brackets) or a name, in any
    /// case.
    ///
    /// Callable from any tokio runtime with a timer; waits at most [`ResolverConfig::time_limit`].
    /// A caller that gives up does not stop the lookup: its answer is kept for the next one.
    ///
    /// # Errors
    ///
    /// Each [`ResolveError`] when there is neither an answer nor an older one to use instead.
    pub async fn resolve(&self, host: &str) -> Answer {
        if let Some(address) = name::literal(host) {
            return Ok(Arc::new([address]));
        }
        let name = name::canonical(host)?;
        if let Some(addresses) = self.shared.hosts.get(&name) {
            return Ok(addresses);
        }
        let settled = match self.begin(&name) {
            Step::Done(settled) => settled,
            Step::Wait(lookup, joined) => self.wait(&name, lookup, joined).await,
        };
        self.shared
            .counters
            .add_shared(Metric::Dns(settled.outcome), 1);
        settled.answer
    }

    /// The service records of `name`, asked of a name server now: the cache has no part in it. With
    /// the shortest of their TTLs.
    ///
    /// # Errors
    ///
    /// As [`Self::resolve`].
    pub async fn services(&self, name: &str) -> Result<Records<ServiceRecord>, ResolveError> {
        let name = name::canonical(name)?;
        self.ask(|reply| RecordQuestion {
            name,
            asked: Asked::Services(reply),
        })
        .await
    }

    /// All addresses of `host`, asked of a name server now, if the hosts file has none. With the
    /// shortest of their TTLs.
    ///
    /// # Errors
    ///
    /// As [`Self::resolve`].
    pub async fn addresses(&self, host: &str) -> Result<Records<IpAddr>, ResolveError> {
        let known = name::literal(host).map(|ip| vec![ip]);
        let known = known.or_else(|| Some(self.known(host)).filter(|known| !known.is_empty()));
        if let Some(records) = known {
            let ttl = self.shared.config.ttl_max;
            return Ok(Records { records, ttl });
        }
        let name = name::canonical(host)?;
        self.ask(|reply| RecordQuestion {
            name,
            asked: Asked::Addresses(reply),
        })
        .await
    }

    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<Result<T, ResolveError>>) -> RecordQuestion,
    ) -> Result<T, ResolveError> {
        let (reply, replied) = oneshot::channel();
        let question = Question::Records(question(reply));
        self.requests
            .try_send(question)
            .map_err(|_full| ResolveError::Overloaded)?;
        let limit = self.shared.config.time_limit + CALLER_GRACE;
        match tokio::time::timeout(limit, replied).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_dropped)) => Err(ResolveError::ServerFailure),
            Err(_elapsed) => Err(ResolveError::Timeout),
        }
    }

    /// Answers from the cache, or joins the lookup in flight, or starts one.
    fn begin(&self, name: &str) -> Step {
        let now = (self.shared.clock)();
        let mut state = self.shared.state();
        let stale = match state.cache.get(name, now) {
            CacheState::Known(settled) => return Step::Done(settled),
            CacheState::Stale(addresses) => Some(addresses),
            CacheState::Nothing => None,
        };
        if let Some(lookup) = state.in_flight.get(name) {
            return Step::Wait(lookup.subscribe(), true);
        }
        let name: Arc<str> = Arc::from(name);
        let full = state.in_flight.len() >= self.shared.config.lookups_max;
        if full
            || self
                .requests
                .try_send(Question::Addresses(Arc::clone(&name)))
                .is_err()
        {
            let refused = || Resolution::failed(ResolveError::Overloaded);
            return Step::Done(stale.map_or_else(refused, Resolution::stale));
        }
        let (sender, receiver) = watch::channel(None);
        state.in_flight.insert(name, sender);
        self.shared.counters.add_shared(Metric::DnsInFlight, 1);
        Step::Wait(receiver, false)
    }

    /// Waits for a lookup. Past the limit (the resolver thread is stuck) the failure is recorded
    /// from here.
    async fn wait(&self, name: &str, mut lookup: Pending, joined: bool) -> Resolution {
        // the resolver thread applies the same limit, and has the stale answers: its result comes
        // first
        let limit = self.shared.config.time_limit + CALLER_GRACE;
        let published = match tokio::time::timeout(limit, lookup.wait_for(Option::is_some)).await {
            Ok(Ok(published)) => published.clone(),
            Ok(Err(_closed)) => None,
            Err(_elapsed) => Some(self.shared.finish(name, Err(ResolveError::Timeout))),
        };
        let mut settled =
            published.unwrap_or_else(|| Resolution::failed(ResolveError::ServerFailure));
        if joined && settled.outcome == DnsOutcome::Answered {
            settled.outcome = DnsOutcome::Collapsed;
        }
        settled
    }
}

/// How much longer than the resolver thread a caller waits.
const CALLER_GRACE: Duration = Duration::from_millis(250);

type Pending = watch::Receiver<Option<Resolution>>;

enum Step {
    Done(Resolution),
    /// A lookup to wait for, and whether another caller started it.
    Wait(Pending, bool),
}

/// An answer, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resolution {
    outcome: DnsOutcome,
    answer: Answer,
}

impl Resolution {
    const fn stale(addresses: Addresses) -> Self {
        Self {
            outcome: DnsOutcome::Stale,
            answer: Ok(addresses),
        }
    }

    const fn failed(error: ResolveError) -> Self {
        let outcome = match error {
            ResolveError::NotFound | ResolveError::BadName => DnsOutcome::NotFound,
            ResolveError::Timeout => DnsOutcome::Timeout,
            ResolveError::ServerFailure => DnsOutcome::ServerFailure,
            ResolveError::Overloaded => DnsOutcome::Overloaded,
        };
        Self {
            outcome,
            answer: Err(error),
        }
    }
}

/// The state that callers and the resolver thread share.
struct Shared {
    config: ResolverConfig,
    problem: Option<String>,
    hosts: HostsFile,
    counters: Arc<Counters>,
    clock: Clock,
    /// CacheState for a table look-up or insert; nothing is awaited under it.
    state: Mutex<State>,
}

struct State {
    cache: Cache,
    in_flight: HashMap<Arc<str>, watch::Sender<Option<Resolution>>>,
}

/// The result of a lookup: addresses and their TTL.
type LookupResult = Result<(Vec<IpAddr>, Duration), ResolveError>;

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the result of the lookup of `name` and wakes the callers that wait for it.
    fn finish(&self, name: &str, found: LookupResult) -> Resolution {
        let now = (self.clock)();
        let mut state = self.state();
        let settled = state.cache.put(name, found, now);
        if let Some(waiting) = state.in_flight.remove(name) {
            self.counters.sub_shared(Metric::DnsInFlight, 1);
            waiting.send_replace(Some(settled.clone()));
        }
        settled
    }
}
