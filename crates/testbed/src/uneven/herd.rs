//! Many clients send a request for one target at once, and no response is stored.

use super::measurement::Subject;
use crate::client::group::{ClientGroup, GroupState};
use crate::client::http2::ClientVersion;
use crate::client::reader::RECEIVE_BUFFER_BYTES;
use crate::origin::Origin;
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;

const SIZE_BYTES: u64 = 20_000;

/// The requests of a herd.
#[derive(Clone, Copy, Debug)]
struct HerdPlan {
    clients: usize,
    /// From one request to the next.
    pause: Duration,
    /// Until the origin begins to answer: no request is a hit while the others are sent.
    delay_ms: u64,
    rate_bytes_s: u64,
}

/// The small herd has a millisecond between two requests. The large one is as many as fit into a
/// process with the usual hard limit of open files, and sends as fast as one thread can.
const PLANS: [HerdPlan; 2] = [
    HerdPlan {
        clients: 50,
        pause: Duration::from_millis(1),
        delay_ms: 200,
        rate_bytes_s: 20_000,
    },
    HerdPlan {
        clients: 10_000,
        pause: Duration::ZERO,
        delay_ms: 2000,
        rate_bytes_s: 4000,
    },
];

/// Clients of each herd.
pub(crate) const CLIENTS: [usize; 2] = [PLANS[0].clients, PLANS[1].clients];

/// Between two looks at the clients.
const LOOK: Duration = Duration::from_millis(20);

/// Without a byte for any client.
const SILENCE_MAX: Duration = Duration::from_secs(20);

const LASTS_MAX: Duration = Duration::from_secs(90);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Herd {
    pub(crate) clients: usize,
    /// From the first request to the last.
    pub(crate) asking_ms: u64,
    /// Until no client waits any more.
    pub(crate) duration_ms: u64,
    /// Clients that received all of it, every byte right.
    pub(crate) whole: usize,
    /// The others by what went wrong.
    pub(crate) failed: BTreeMap<String, usize>,
    pub(crate) fetches: u64,
    pub(crate) fetched_bytes: u64,
}

/// The herd of so many [`CLIENTS`].
pub(crate) fn measure(subject: &Subject<'_>, clients: usize) -> Result<Herd, String> {
    let path = subject.path(&format!("herd-{clients}"));
    let version = subject.version;
    measure_by(
        version,
        &[subject.address],
        subject.origin,
        (&path, clients),
    )
}

/// The same, spread over several servers; they all request this path.
pub(crate) fn measure_at(
    servers: &[SocketAddr],
    origin: &Origin,
    path: &str,
    clients: usize,
) -> Result<Herd, String> {
    measure_by(ClientVersion::Http1, servers, origin, (path, clients))
}

fn measure_by(
    version: ClientVersion,
    servers: &[SocketAddr],
    origin: &Origin,
    (path, clients): (&str, usize),
) -> Result<Herd, String> {
    let plan = PLANS.iter().find(|plan| plan.clients == clients);
    let plan = plan.ok_or("there is no such herd")?;
    let spec = ResponseSpec {
        rate_bytes_per_s: Some(plan.rate_bytes_s),
        delay: Duration::from_millis(plan.delay_ms),
        ..ResponseSpec::new(path, SIZE_BYTES)
    };
    let mut group = ClientGroup::connect(servers, clients, RECEIVE_BUFFER_BYTES);
    let begun = Instant::now();
    group.ask(version, plan.pause, |_| spec.clone());
    let asking = begun.elapsed();
    let state = wait(&mut group, begun);
    let duration = begun.elapsed();
    let tally = origin.tally(path)?;
    let mut failed = state.failed;
    if state.reading > 0 {
        failed.insert("still waiting when time was up".to_owned(), state.reading);
    }
    Ok(Herd {
        clients,
        asking_ms: millis(asking),
        duration_ms: millis(duration),
        whole: state.whole,
        failed,
        fetches: tally.fetches,
        fetched_bytes: tally.acknowledged_bytes,
    })
}

/// Waits until each client is served or has failed, or no byte arrives any more.
fn wait(group: &mut ClientGroup, begun: Instant) -> GroupState {
    let mut last = group.state();
    let mut moved = Instant::now();
    loop {
        group.read(usize::MAX);
        let state = group.state();
        if state != last {
            moved = Instant::now();
        }
        let is_over =
            state.reading == 0 || moved.elapsed() > SILENCE_MAX || begun.elapsed() > LASTS_MAX;
        last = state;
        if is_over {
            return last;
        }
        std::thread::sleep(LOOK);
    }
}
