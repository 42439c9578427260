//! Clients in a closed loop: when a connection of the schedule ends, the next one begins.

use super::responses::{Http, Responses};
use super::schedule::Schedule;
use crate::client::get::source_address;
use crate::process::affinity;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use xtask::failure::Failure;

/// Bytes of the stack of a client's thread: many clients are threads.
const STACK_BYTES: usize = 256 << 10;

/// Connections from one address: with a connection each request, ports wait for a minute.
const CLIENTS_PER_ADDRESS: usize = 8;

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosedLoop<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) http: Http,
    /// Connections at once.
    pub(super) clients: usize,
    /// The core of the clients.
    pub(super) core: usize,
}

/// What has come of it until now.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Requests that were answered, every byte right.
    pub(super) requests: AtomicU64,
    /// Bytes of their content.
    pub(super) bytes: AtomicU64,
    /// The connection, or the request, that begins next.
    next: AtomicUsize,
    stop: AtomicBool,
    /// The first request that failed.
    failure: Mutex<Option<String>>,
}

impl Progress {
    /// Waits so long.
    ///
    /// # Errors
    /// A request has failed by then.
    pub(super) fn sleep(&self, time: Duration) -> Result<(), Failure> {
        std::thread::sleep(time);
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        match failure.as_ref() {
            Some(why) => Err(Failure::Refused(why.clone())),
            None => Ok(()),
        }
    }

    fn fail(&self, why: String) {
        let mut failure = self
            .failure
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        failure.get_or_insert(why);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl ClosedLoop<'_> {
    /// Sends requests to the entrances, in turn, until `observe` returns.
    ///
    /// # Errors
    /// A request failed, or as `observe` has it.
    pub(super) fn run_while<T>(
        &self,
        entrances: &[SocketAddr],
        observe: impl FnOnce(&Progress) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let progress = Progress::default();
        let observed = std::thread::scope(|scope| {
            for number in 0..self.clients {
                let progress = &progress;
                let client = move || {
                    if let Err(why) = self.client(number, entrances, progress) {
                        progress.fail(format!("client {number}: {why}"));
                    }
                };
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                if let Err(error) = thread.spawn_scoped(scope, client) {
                    progress.fail(format!("a client cannot be started: {error}"));
                }
            }
            let observed = observe(&progress);
            progress.stop.store(true, Ordering::Relaxed);
            observed
        })?;
        // one that failed after the last look
        progress.sleep(Duration::ZERO)?;
        Ok(observed)
    }

    fn client(
        &self,
        number: usize,
        entrances: &[SocketAddr],
        progress: &Progress,
    ) -> Result<(), String> {
        affinity::stay_on(self.core).map_err(|failure| failure.to_string())?;
        while !progress.is_over() {
            let place = progress.next.fetch_add(1, Ordering::Relaxed);
            let entrance = entrances.get(place % entrances.len().max(1));
            let entrance = *entrance.ok_or("there is no entrance")?;
            let batches = match self.http {
                Http::V1_0 => vec![vec![self.schedule.request(place)]],
                Http::Persistent => self.schedule.connection(place),
            };
            let from = match entrance.ip().is_loopback() {
                true => source_address(number / CLIENTS_PER_ADDRESS * 1000),
                false => Ipv4Addr::UNSPECIFIED,
            };
            let connected = Responses::connect(from, entrance);
            let mut responses = connected.map_err(|error| format!("no connection: {error}"))?;
            for batch in batches {
                if progress.is_over() {
                    break;
                }
                self.batch(&mut responses, &batch, progress)?;
            }
        }
        Ok(())
    }

    fn batch(
        &self,
        responses: &mut Responses,
        batch: &[usize],
        progress: &Progress,
    ) -> Result<(), String> {
        let targets: Vec<String> = batch.iter().map(|it| self.schedule.target(*it)).collect();
        let asked = responses.ask(&targets, self.http);
        asked.map_err(|error| format!("no request: {error}"))?;
        for target in &targets {
            let bytes = responses.receive(target)?;
            progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            progress.requests.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
