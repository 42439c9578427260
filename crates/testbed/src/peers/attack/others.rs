//! The other clients, whose response times an attack may change.

use crate::client::get;
use crate::process::affinity::stay_on;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_measure::quantile::of_sorted;
use xtask::failure::{During, Failure};

/// What they request.
pub(super) const PATH: &str = "/hit/1k?size=1024";

/// Connections of theirs, which take turns.
const CONNECTIONS: usize = 4;

/// From the begin of a request to that of the next one.
const PERIOD: Duration = Duration::from_millis(2);

/// Response times of some seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ResponseTimes {
    pub(super) responses: u64,
    /// Requests that got no response, or one of another status than 200.
    pub(super) failed: u64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
}

/// The other clients.
pub(super) struct Others {
    to: SocketAddr,
    connections: Vec<TcpStream>,
}

impl Others {
    /// Connects.
    ///
    /// # Errors
    /// A connection is not accepted.
    pub(super) fn connect(to: SocketAddr) -> Result<Self, Failure> {
        let connections = (0..CONNECTIONS).map(|_| get::connect(to));
        let connections = connections.collect::<Result<_, _>>();
        let connections = connections.during("connect as other clients")?;
        Ok(Self { to, connections })
    }

    /// Requests on one core until `goes_on` says no.
    ///
    /// # Errors
    /// The core cannot be moved to.
    pub(super) fn run(
        &mut self,
        core: usize,
        goes_on: impl Fn() -> bool,
    ) -> Result<ResponseTimes, Failure> {
        stay_on(core)?;
        let (mut times, mut failed) = (Vec::new(), 0);
        let mut turn = 0;
        let mut next = Instant::now();
        while goes_on() {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let connection = &mut self.connections[turn % CONNECTIONS];
            turn += 1;
            let began = Instant::now();
            match get::get(connection, PATH) {
                Ok(answer) if answer.status == 200 => {
                    times.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
                }
                _ => {
                    failed += 1;
                    if let Ok(fresh) = get::connect(self.to) {
                        *connection = fresh;
                    }
                }
            }
            // one that was late does not make the next ones early
            next = (next + PERIOD).max(Instant::now());
        }
        times.sort_unstable();
        let quantile = |share| of_sorted(&times, share).unwrap_or_default();
        Ok(ResponseTimes {
            responses: times.len() as u64,
            failed,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
        })
    }
}
