//! Clients in a closed loop, each on a connection that stays open, to nodes or to a front end
//! before them. They check every byte.

use super::site::{Pick, Site};
use crate::client::get::{connect, get_into};
use crate::process::affinity;
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_bench::client::Inspect;
use weir_bench::origin::content_of;
use weir_semantics::{is_hit, lines_named};
use weir_wire::ResponseHead;
use weir_workload::{Chance, Content};
use xtask::failure::Failure;

/// Bytes of the stack of a client's thread: many clients are threads.
const STACK_BYTES: usize = 256 << 10;

/// A response that takes longer has failed. All nodes share one core: with many clients, and other
/// programs beside them, one may wait for seconds.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Failures in a row after which a client gives up.
const FAILURES_MAX: u32 = 20;

/// What clients do.
#[derive(Clone, Debug)]
pub(super) struct Load<'a> {
    /// Clients are spread over them, one after the other, as DNS or IPVS does it.
    pub(super) entrances: Vec<SocketAddr>,
    pub(super) clients: u64,
    pub(super) site: &'a Site,
    pub(super) pick: Pick,
    /// Of the whole load; it ends before if `stop` says so.
    pub(super) requests: u64,
    pub(super) seed: u64,
    /// The core of the clients.
    pub(super) core: usize,
}

/// What others may read and say while clients run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Requests until now.
    pub(super) requests: AtomicU64,
    stop: AtomicBool,
}

/// What came of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LoadResult {
    /// That were answered, every byte right.
    pub(super) requests: u64,
    pub(super) duration: Duration,
    /// Responses that the entrance had.
    pub(super) hits_here: u64,
    /// When the last response for the hot target came that the entrance did not have.
    pub(super) last_hot_miss: Option<Duration>,
    pub(super) hot_requests: u64,
    /// Requests that were sent and not answered well.
    pub(super) failures: Vec<FailedRequest>,
}

/// A request that was sent and not answered well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedRequest {
    pub(super) entrance: SocketAddr,
    pub(super) why: String,
}

impl Load<'_> {
    /// Sends all requests.
    ///
    /// # Errors
    /// A request failed, or clients could not connect.
    pub(super) fn run(&self) -> Result<LoadResult, Failure> {
        self.run_with(&Progress::default())?.without_failures()
    }

    /// Sends requests until `observe` returns, and gives what it has returned, too. Failures of
    /// requests are counted.
    ///
    /// # Errors
    /// As `observe` has it; clients could not connect to any entrance.
    pub(super) fn run_while<T>(
        &self,
        observe: impl FnOnce(&Progress) -> Result<T, Failure>,
    ) -> Result<(LoadResult, T), Failure> {
        let progress = Progress::default();
        let (result, observed) = std::thread::scope(|scope| {
            let clients = scope.spawn(|| self.run_with(&progress));
            let observed = observe(&progress);
            progress.stop.store(true, Ordering::Relaxed);
            (clients.join(), observed)
        });
        let panicked = |_| Err(Failure::Refused("the clients panicked".to_owned()));
        Ok((result.unwrap_or_else(panicked)?, observed?))
    }

    fn run_with(&self, progress: &Progress) -> Result<LoadResult, Failure> {
        let begun = Instant::now();
        let results = std::thread::scope(|scope| {
            let start = |number| {
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, move || self.client(number, progress, begun))
            };
            let threads: Vec<_> = (0..self.clients).map(start).collect();
            let ends = threads.into_iter().map(|thread| {
                let thread = thread.map_err(|error| error.to_string())?;
                thread.join().unwrap_or(Err("a client panicked".to_owned()))
            });
            ends.collect::<Result<Vec<LoadResult>, String>>()
        });
        let mut all = LoadResult::default();
        for result in results.map_err(Failure::Refused)? {
            all.add(result);
        }
        all.duration = begun.elapsed();
        Ok(all)
    }

    fn client(
        &self,
        number: u64,
        progress: &Progress,
        begun: Instant,
    ) -> Result<LoadResult, String> {
        affinity::stay_on(self.core).map_err(|failure| failure.to_string())?;
        let share = self.requests / self.clients + u64::from(number < self.requests % self.clients);
        let mut chance = Chance::new(self.seed, number);
        let mut entrances = self.entrances.iter().copied().cycle();
        let skipped = usize::try_from(number).unwrap_or_default() % self.entrances.len();
        let mut client = Client {
            entrance: entrances.nth(skipped).ok_or("there is no entrance")?,
            stream: None,
        };
        let mut result = LoadResult::default();
        let mut failed_in_a_row = 0;
        for step in 0..share {
            if progress.stop.load(Ordering::Relaxed) {
                break;
            }
            let drawn = self.pick.draw(&mut chance, number + step * self.clients);
            let target = self.site.target(drawn);
            match client.ask(&target) {
                Ok(is_hit_here) => {
                    failed_in_a_row = 0;
                    progress.requests.fetch_add(1, Ordering::Relaxed);
                    result.note(drawn.is_none(), is_hit_here, begun);
                }
                Err(end) => {
                    failed_in_a_row += 1;
                    if failed_in_a_row > FAILURES_MAX {
                        return Err(format!("client {number} gave up: {end:?}"));
                    }
                    match end {
                        // another entrance, as DNS or IPVS would choose for it
                        RequestEnd::NotConnected(_) => {
                            client.entrance = entrances.next().ok_or("there is no entrance")?;
                        }
                        RequestEnd::Failed(why) => result.failures.push(FailedRequest {
                            entrance: client.entrance,
                            why,
                        }),
                    }
                }
            }
        }
        Ok(result)
    }
}

impl LoadResult {
    /// The same.
    ///
    /// # Errors
    /// A request failed.
    pub(super) fn without_failures(self) -> Result<Self, Failure> {
        let Some(first) = self.failures.first() else {
            return Ok(self);
        };
        let (count, entrance, why) = (self.failures.len(), first.entrance, &first.why);
        let what = format!("{count} requests failed, the first at {entrance}: {why}");
        Err(Failure::Refused(what))
    }

    fn note(&mut self, is_hot: bool, is_hit_here: bool, begun: Instant) {
        self.requests += 1;
        self.hits_here += u64::from(is_hit_here);
        self.hot_requests += u64::from(is_hot);
        if is_hot && !is_hit_here {
            self.last_hot_miss = Some(begun.elapsed());
        }
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.hits_here += other.hits_here;
        self.hot_requests += other.hot_requests;
        self.last_hot_miss = self.last_hot_miss.max(other.last_hot_miss);
        self.failures.extend(other.failures);
    }
}

/// How a request ended that has no right response.
#[derive(Debug)]
enum RequestEnd {
    /// It was not sent.
    NotConnected(
        #[expect(dead_code, reason = "printed where a client gives up")] std::io::ErrorKind,
    ),
    Failed(String),
}

/// One client.
#[derive(Debug)]
struct Client {
    entrance: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = connect(self.entrance)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(stream)
    }

    /// Whether the entrance had the response.
    fn ask(&mut self, target: &str) -> Result<bool, RequestEnd> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self
                .connect()
                .map_err(|error| RequestEnd::NotConnected(error.kind()))?,
        };
        let mut check = ResponseCheck::new(target);
        let got = get_into(
            &mut stream,
            ("Host: origin.example\r\n", target),
            &mut check,
        );
        got.map_err(|error| RequestEnd::Failed(error.to_string()))?;
        if let Some(what) = check.mismatch() {
            return Err(RequestEnd::Failed(what));
        }
        self.stream = Some(stream);
        Ok(check.is_hit_here)
    }
}

/// A response as it arrives.
#[derive(Debug)]
struct ResponseCheck {
    content: Content,
    status: u16,
    read_bytes: u64,
    differs_at: Option<u64>,
    is_hit_here: bool,
}

impl ResponseCheck {
    fn new(target: &str) -> Self {
        Self {
            content: content_of(target),
            status: 0,
            read_bytes: 0,
            differs_at: None,
            is_hit_here: false,
        }
    }

    /// The framing has been checked: a response that is cut is no whole one.
    fn mismatch(&self) -> Option<String> {
        match (self.status, self.differs_at) {
            (200, None) => None,
            (200, Some(at)) => Some(format!("wrong content at {at}")),
            (status, _) => Some(format!("status {status}")),
        }
    }
}

impl Inspect for ResponseCheck {
    fn head(&mut self, head: &ResponseHead<'_, '_>, _: &[u8]) {
        self.status = head.status;
        // the last member of the list is that of the cache next to the client (RFC 9211 §2)
        let last = lines_named(head.fields, "cache-status").last();
        self.is_hit_here = last.and_then(is_hit).unwrap_or(false);
    }

    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        if self.status == 200 && self.differs_at.is_none() {
            self.differs_at = self.content.differs_at(self.read_bytes, bytes);
        }
        self.read_bytes += bytes.len() as u64;
        ControlFlow::Continue(())
    }
}
