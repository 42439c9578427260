//! One reading of the trace for all networks.

use super::busiest::{NodeRequests, busiest};
use super::counts::{Counts, Tally};
use super::event::{Event, JOIN_TIME_MS, Stage};
use super::flash_crowd::flash_crowd;
use super::messages::Messages;
use super::network::{NodeNetwork, NodeRequest};
use super::outcome::ScaleOutcome;
use super::sample::{Batch, Sampler, ScaleRequest, access, connection, counted, target};
use super::setting::{ScaleSetting, ScaleSettingError};
use crate::hit_ratio::keys::TooManyKeys;
use crate::hit_ratio::mrc::group;
use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use weir_policy::Tick;
use weir_policy::route::NodeState;
use weir_trace::{Row, TraceError};

/// The rows of a trace, in order of arrival.
pub type Rows<'t> = Box<dyn Iterator<Item = Result<Row, TraceError>> + 't>;

/// Why there is no outcome.
#[derive(Debug)]
pub enum ScaleError {
    /// The setting cannot be.
    Setting(ScaleSettingError),
    /// The trace cannot be read.
    Trace(TraceError),
    /// It has more targets than can be numbered.
    Keys(TooManyKeys),
    /// The caller had it stopped.
    Stopped,
}

impl fmt::Display for ScaleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(error) => error.fmt(f),
            Self::Trace(error) => error.fmt(f),
            Self::Keys(error) => error.fmt(f),
            Self::Stopped => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for ScaleError {}

impl From<ScaleSettingError> for ScaleError {
    fn from(error: ScaleSettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<TraceError> for ScaleError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl From<TooManyKeys> for ScaleError {
    fn from(error: TooManyKeys) -> Self {
        Self::Keys(error)
    }
}

/// Batches that may wait for a thread.
const WAITING_MAX: usize = 8;

/// Simulates each network of the setting, in its order. `open` gives the trace from its beginning;
/// its beginning is read twice if there is a sample. The outcome does not depend on `threads`,
/// those beside the one that reads.
///
/// # Errors
/// The setting or the trace cannot be, or `is_stopped` said so.
pub fn simulate<'t>(
    setting: &ScaleSetting,
    open: &dyn Fn() -> Result<Rows<'t>, TraceError>,
    threads: NonZero<usize>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Vec<ScaleOutcome>, ScaleError> {
    let events = [Event::None, Event::Join, Event::Death];
    simulate_events(setting, &events, open, threads, is_stopped)
}

/// The same with these events, of which the first is none.
pub(super) fn simulate_events<'t>(
    setting: &ScaleSetting,
    events: &[Event],
    open: &dyn Fn() -> Result<Rows<'t>, TraceError>,
    threads: NonZero<usize>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Vec<ScaleOutcome>, ScaleError> {
    setting.check()?;
    let mut reading = Reading {
        sampler: sampler(setting, open, is_stopped)?,
        seed: setting.seed,
        rows: open()?,
        index: 0,
        requests_max: setting.requests.get(),
        requests: 0,
        bytes: 0,
    };
    let hot = reading.sampler.hot();
    let mut runs: Vec<Run<'_>> = setting
        .nodes
        .iter()
        .flat_map(|nodes| {
            let events = match nodes.get() {
                1 => &events[..1],
                _ => events,
            };
            events
                .iter()
                .map(move |event| Run::new(setting, nodes.get(), *event, hot))
        })
        .collect();
    share_out(&mut runs, threads, &mut reading, is_stopped)?;
    let mut runs = runs.into_iter().peekable();
    let mut outcomes = Vec::new();
    while let Some(base) = runs.next() {
        let mut with = |event: Event| runs.next_if(|run| run.event == event);
        let (join, death) = (with(Event::Join), with(Event::Death));
        outcomes.push(base.outcome(join, death, (reading.requests, reading.bytes)));
    }
    Ok(outcomes)
}

fn sampler<'t>(
    setting: &ScaleSetting,
    open: &dyn Fn() -> Result<Rows<'t>, TraceError>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Sampler, ScaleError> {
    let mut accesses = Vec::new();
    let rows = usize::try_from(counted(setting)).unwrap_or(usize::MAX);
    for (index, row) in open()?.take(rows).enumerate() {
        accesses.extend(access(&row?));
        if index % super::sample::BATCH == 0 && is_stopped() {
            return Err(ScaleError::Stopped);
        }
    }
    Ok(Sampler::new(setting, accesses.into_iter())?)
}

/// The trace as batches.
struct Reading<'t> {
    sampler: Sampler,
    seed: u64,
    rows: Rows<'t>,
    index: u64,
    requests_max: u64,
    requests: u64,
    bytes: u64,
}

impl Reading<'_> {
    /// The next requests; `None` at the end.
    fn next(&mut self) -> Result<Option<Batch>, ScaleError> {
        let mut batch = Batch::default();
        while !batch.is_full() && self.index < self.requests_max {
            let Some(row) = self.rows.next() else { break };
            let row = row?;
            let index = self.index;
            self.index += 1;
            let Some(access) = access(&row) else { continue };
            let connection = connection(&row, index);
            batch.connections.push(connection);
            batch.bytes += access.size_bytes;
            let target = target(access.key, self.seed);
            if let Some(access) = self.sampler.take(access)? {
                batch.asked.push(ScaleRequest {
                    index,
                    connection,
                    target,
                    access,
                });
            }
        }
        self.requests += batch.connections.len() as u64;
        self.bytes += batch.bytes;
        Ok((!batch.connections.is_empty()).then_some(batch))
    }
}

/// Has all runs get all batches in order.
fn share_out(
    runs: &mut [Run<'_>],
    threads: NonZero<usize>,
    reading: &mut Reading<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), ScaleError> {
    let mut shares: Vec<Vec<&mut Run<'_>>> = Vec::new();
    shares.resize_with(threads.get().min(runs.len()).max(1), Vec::new);
    let count = shares.len();
    for (index, run) in runs.iter_mut().enumerate() {
        shares[index % count].push(run);
    }
    std::thread::scope(|scope| {
        let mut ways: Vec<SyncSender<Arc<Batch>>> = Vec::new();
        for mut share in shares {
            let (way, batches): (_, Receiver<Arc<Batch>>) = sync_channel(WAITING_MAX);
            ways.push(way);
            scope.spawn(move || {
                for batch in batches {
                    for run in &mut share {
                        run.hear(&batch);
                    }
                }
            });
        }
        while let Some(batch) = reading.next()? {
            if is_stopped() {
                return Err(ScaleError::Stopped);
            }
            let batch = Arc::new(batch);
            for way in &ways {
                // a thread that has ended has panicked, and the scope reports it at its end
                let _gone = way.send(Arc::clone(&batch));
            }
        }
        Ok(())
    })
}

/// A network, and what is counted of it.
struct Run<'s> {
    setting: &'s ScaleSetting,
    nodes: u16,
    event: Event,
    stage: Stage,
    network: NodeNetwork,
    /// Until the middle of the trace, and from there on.
    tallies: [Tally; 2],
    /// By node; those of clients without an event alone.
    requests: Vec<NodeRequests>,
}

impl<'s> Run<'s> {
    fn new(setting: &'s ScaleSetting, nodes: u16, event: Event, hot: u32) -> Self {
        let mut network = NodeNetwork::new(setting, nodes, hot);
        let count = network.count();
        if event == Event::Join {
            network.set_state(count - 1, NodeState::Gone);
        }
        Self {
            setting,
            nodes,
            event,
            stage: Stage::Before,
            network,
            tallies: Default::default(),
            requests: vec![NodeRequests::default(); count],
        }
    }

    fn hear(&mut self, batch: &Batch) {
        if self.event == Event::None {
            for connection in &batch.connections {
                self.requests[self.network.node_of(*connection)].of_clients += 1;
            }
        }
        for request in &batch.asked {
            self.advance(request.index);
            self.ask(request);
        }
    }

    fn ask(&mut self, request: &ScaleRequest) {
        let ScaleRequest { access, target, .. } = *request;
        let answer = self.network.ask(NodeRequest {
            at: Tick(self.setting.time_ms(request.index, self.nodes)),
            node: self.network.node_of(request.connection),
            target,
            access,
        });
        let Some(answer) = answer else { return };
        let is_hot = self.network.caches.is_hot(access.number);
        let counts = self.tallies[self.half(request.index)].of(access.number, is_hot);
        counts.misses_here += 1;
        if answer.is_from_origin {
            counts.origin_requests += 1;
            counts.origin_bytes += access.size_bytes;
        }
        let Some(owner) = answer.lateral else { return };
        counts.lateral_requests += 1;
        counts.lateral_bytes += access.size_bytes;
        let requests = &mut self.requests[owner];
        match is_hot {
            true => requests.hot += 1,
            false => requests.groups[group(access.number) as usize] += 1,
        }
    }

    fn middle(&self) -> u64 {
        self.setting.requests.get() / 2
    }

    fn half(&self, index: u64) -> usize {
        usize::from(index >= self.middle())
    }

    /// What is due before the request at `index`.
    fn advance(&mut self, index: u64) {
        if index < self.middle() {
            return;
        }
        let last = self.network.count() - 1;
        match (self.event, self.stage) {
            (Event::Join, Stage::Before) => {
                self.network.set_state(last, NodeState::Joining);
                self.stage = Stage::After;
            }
            (Event::Join, Stage::After) => {
                let time_ms = |index| self.setting.time_ms(index, self.nodes);
                if time_ms(index) >= time_ms(self.middle()) + JOIN_TIME_MS {
                    self.network.set_state(last, NodeState::In);
                    self.stage = Stage::Joined;
                }
            }
            (Event::Death, Stage::Before) => {
                self.network.set_state(last, NodeState::Gone);
                self.stage = Stage::After;
            }
            _ => {}
        }
    }

    fn outcome(
        mut self,
        join: Option<Self>,
        death: Option<Self>,
        (requests, bytes): (u64, u64),
    ) -> ScaleOutcome {
        let one_in = self.setting.one_in.get();
        let [before, after] = &self.tallies;
        let all = before.plus(after);
        let of = |count: fn(&Counts) -> u64| all.estimate(one_in, count);
        let excess = |run: Option<Self>| {
            run.map(|run| run.tallies[1].excess(after, one_in, |counts| counts.origin_requests))
        };
        let origin_requests = of(|counts| counts.origin_requests);
        let lateral_requests = of(|counts| counts.lateral_requests);
        let whole = requests as f64;
        let duration_s = self.setting.duration_s(self.nodes);
        let residents = self.network.caches.residents() / u64::from(self.nodes);
        let additions_per_s = origin_requests.value / f64::from(self.nodes) / duration_s;
        let lateral_share = lateral_requests.of(whole).value;
        let from_ms = self
            .setting
            .time_ms(self.setting.requests.get(), self.nodes);
        let (join, death) = (excess(join), excess(death));
        let busiest = busiest(&self.requests, one_in, lateral_requests, self.setting.seed);
        ScaleOutcome {
            nodes: self.nodes,
            requests,
            bytes,
            duration_s,
            hit_ratio: origin_requests.of(whole).complement(),
            own_hit_ratio: of(|counts| counts.misses_here).of(whole).complement(),
            origin_requests,
            origin_bytes: of(|counts| counts.origin_bytes),
            lateral_requests,
            lateral_bytes: of(|counts| counts.lateral_bytes),
            busiest,
            busiest_by_clients: self.busiest_by_clients(),
            residents,
            messages: Messages::of(self.nodes, residents, additions_per_s),
            join,
            death,
            flash_crowd: (self.nodes > 1)
                .then(|| flash_crowd(&mut self.network, self.setting, from_ms, lateral_share)),
        }
    }

    /// Clients' requests of the node that has most, in parts of the mean.
    fn busiest_by_clients(&self) -> f64 {
        let of_clients = || self.requests.iter().map(|node| node.of_clients);
        let most = of_clients().max().unwrap_or(0) as f64;
        let all = of_clients().sum::<u64>().max(1) as f64;
        most * f64::from(self.nodes) / all
    }
}
