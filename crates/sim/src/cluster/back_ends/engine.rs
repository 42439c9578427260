//! Connections in a closed loop: what happens to each, step by step.
//!
//! ```text
//! begin ── choose ── node: set-up, request ── in memory? ─┬─ yes ──────────────┬─ node: send ─┬── next request, next batch, or end
//!                                                         └─ disk: read (once) ┘              └─ (handling node, front end: pass on)
//! ```
//!
//! As many connections as are admitted are in the cluster; when one ends, the next begins. So what
//! is measured is the throughput at saturation, and a client's idle time does not occur.

use super::back_end::BackEnd;
use super::connection::{ChosenRequest, Connection, Stage};
use super::front_end::FrontEnd;
use super::mechanism_costs::Mechanism;
use super::outcome::{ClusterOutcome, NodeOutcome, ReasonCount, share};
use super::setting::{BackEndsSetting, Http, SettingError};
use super::station::Station;
use super::timeline::Timeline;
use crate::hashing::mix;
use crate::hit_ratio::keys::NumberedRequest;
use crate::results::spread::Spread;
use crate::world::{MICROSECOND, Nanos};
use std::num::NonZero;
use weir_policy::route::policy::Policy;
use weir_policy::route::{Load, Place, Why};
use weir_trace::grouping::{ConnectionTrace, GroupedRequest};

/// A run, from the first connection to the end of the last.
#[derive(Debug)]
pub struct ClusterRun<'a> {
    setting: BackEndsSetting,
    requests: &'a ConnectionTrace,
    front_end: FrontEnd,
    /// The front end's CPU: only a relay uses it.
    relay: Station,
    nodes: Vec<BackEnd>,
    /// As many as are admitted.
    connections: Vec<Connection>,
    timeline: Timeline,
    /// The first request of the next connection.
    next: usize,
    /// When the last connection ended.
    ended: Nanos,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    connections: u64,
    served: u64,
    lateral: u64,
    handed_off: u64,
    bytes: u64,
    choices: [u64; Why::ALL.len()],
    delay: Spread,
}

/// Events between two looks at whether the run is stopped.
const EVENTS_A_LOOK: u32 = 1 << 16;
/// Events between two checks of all loads, in debug builds.
const EVENTS_A_CHECK: u32 = 1 << 7;

/// A request for no content.
const NOTHING: NumberedRequest = NumberedRequest {
    number: 0,
    size_bytes: 0,
};

/// A connection.
const WHOLE: Load = Load::requests(1);

impl<'a> ClusterRun<'a> {
    /// A run of `requests`; caches are empty at its beginning.
    ///
    /// # Errors
    /// The setting cannot be simulated.
    pub fn new(
        setting: &BackEndsSetting,
        requests: &'a ConnectionTrace,
    ) -> Result<Self, SettingError> {
        let policy = setting.policy.build(&setting.rules, mix(setting.seed));
        Self::with_policy(setting, policy, requests)
    }

    /// The same with a policy that operators do not have.
    pub(crate) fn with_policy(
        setting: &BackEndsSetting,
        policy: Box<dyn Policy>,
        requests: &'a ConnectionTrace,
    ) -> Result<Self, SettingError> {
        setting.check()?;
        let uses_times = setting.policy.uses_response_time();
        let nodes = 0..setting.nodes.get();
        Ok(Self {
            front_end: FrontEnd::new(policy, setting.nodes.get(), uses_times, setting.seed),
            relay: Station::default(),
            nodes: nodes
                .map(|_| BackEnd::new(setting.cache, &setting.disk))
                .collect(),
            connections: Vec::new(),
            timeline: Timeline::default(),
            next: 0,
            ended: 0,
            counts: Counts::default(),
            setting: *setting,
            requests,
        })
    }

    /// Runs to the end; none if `is_stopped` says so meanwhile.
    #[must_use]
    pub fn run(mut self, is_stopped: &dyn Fn() -> bool) -> Option<ClusterOutcome> {
        for id in 0..self.setting.admitted_max.get() {
            if self.next == self.requests.len() {
                break;
            }
            self.connections.push(Connection::default());
            self.begin(0, id);
        }
        let mut events: u32 = 0;
        while let Some((at, id)) = self.timeline.next() {
            self.step(at, id);
            events = events.wrapping_add(1);
            if events.is_multiple_of(EVENTS_A_LOOK) && is_stopped() {
                return None;
            }
            if cfg!(debug_assertions) && events.is_multiple_of(EVENTS_A_CHECK) {
                self.check();
            }
        }
        if cfg!(debug_assertions) {
            self.check_end();
        }
        Some(self.outcome())
    }

    /// The next connection begins in this place, if there is one.
    fn begin(&mut self, at: Nanos, id: u32) {
        if self.next == self.requests.len() {
            return;
        }
        let first = self.next;
        self.next = match self.setting.http {
            Http::V1_0 => first + 1,
            Http::Persistent => self.end(first, |request| request.begins_connection),
        };
        let connection = &mut self.connections[id as usize];
        connection.next = first;
        connection.end = self.next;
        connection.handling = None;
        connection.is_new = true;
        connection.is_open = true;
        self.counts.connections += 1;
        self.begin_batch(at, id);
    }

    /// The client sends a batch: a node is chosen for each of its requests, in their order.
    fn begin_batch(&mut self, at: Nanos, id: u32) {
        let first = self.connections[id as usize].next;
        let end = match self.setting.http {
            Http::V1_0 => first + 1,
            Http::Persistent => self.end(first, |request| request.begins_batch),
        };
        let connection = &mut self.connections[id as usize];
        connection.next = end;
        connection.batch_at = at;
        connection.served = 0;
        let mut batch = std::mem::take(&mut connection.batch);
        batch.clear();
        let together = u32::try_from(end - first).unwrap_or(u32::MAX);
        let part = Load::share_of(NonZero::new(together).unwrap_or(NonZero::<u32>::MIN));
        let mut handling = connection.handling;
        for place in first..end {
            let chosen = self.choose(at, id, place, handling, part);
            handling = match self.setting.mechanism {
                Mechanism::Relay => None,
                Mechanism::HandOff | Mechanism::Forwarding => handling.or(Some(chosen.place)),
                Mechanism::MultipleHandOff | Mechanism::ZeroCost => Some(chosen.place),
            };
            batch.push(chosen);
        }
        self.connections[id as usize].batch = batch;
        self.serve(at, id);
    }

    /// Where the connection or batch ends whose first request is at `first`.
    fn end(&self, first: usize, begins_next: fn(&GroupedRequest) -> bool) -> usize {
        let mut places = first + 1..self.requests.len();
        let next = places.find(|place| {
            let request = self.requests.get(*place);
            request.as_ref().is_some_and(begins_next)
        });
        next.unwrap_or(self.requests.len())
    }

    /// A node for a request that comes to the node `handling`, and its load there. The first choice
    /// for a connection is the node that handles it.
    fn choose(
        &mut self,
        at: Nanos,
        id: u32,
        place: usize,
        handling: Option<Place>,
        part: Load,
    ) -> ChosenRequest {
        let request = self.requests.get(place).map(|request| NumberedRequest {
            number: request.number,
            size_bytes: request.bytes,
        });
        // no connection ends behind the trace
        let request = request.unwrap_or(NOTHING);
        let mechanism = self.setting.mechanism;
        let (place, why) = match handling {
            Some(handling) if !mechanism.chooses_each_request() => (handling, None),
            _ => {
                let (place, why) = self.front_end.choose(at, request.number, handling);
                self.counts.choices[why as usize] += 1;
                (place, Some(why))
            }
        };
        let connection = &mut self.connections[id as usize];
        let share = match connection.handling {
            None if mechanism != Mechanism::Relay => {
                connection.handling = Some(place);
                self.front_end.begin(place, WHOLE);
                Load::NONE
            }
            Some(handling) if handling == place => Load::NONE,
            _ => {
                self.front_end.begin(place, part);
                part
            }
        };
        ChosenRequest {
            request,
            place,
            is_kept: why != Some(Why::DiskBusy),
            share,
        }
    }

    /// The next request of the batch goes to its node.
    fn serve(&mut self, at: Nanos, id: u32) {
        let costs = self.setting.server;
        let connection = &mut self.connections[id as usize];
        let place = connection.current().place;
        let is_new = std::mem::take(&mut connection.is_new);
        let is_elsewhere = connection.handling != Some(place);
        let mut service = costs.request_us.nanos();
        match self.setting.mechanism {
            Mechanism::Relay if is_new => {
                connection.stage = Stage::Accepted;
                let leaves = self.relay.serve(at, costs.set_up_us.nanos());
                self.timeline.schedule(leaves, id);
                return;
            }
            Mechanism::Relay => {}
            _ if is_new => service += costs.set_up_us.nanos(),
            Mechanism::MultipleHandOff if is_elsewhere => {
                service += self.setting.costs.hand_off_us.nanos();
                self.hand_over(id, place);
            }
            Mechanism::ZeroCost if is_elsewhere => self.hand_over(id, place),
            Mechanism::Forwarding if is_elsewhere => self.counts.lateral += 1,
            _ => {}
        }
        let connection = &mut self.connections[id as usize];
        connection.stage = Stage::Asked;
        connection.asked_at = at;
        let leaves = self.nodes[place.index()].cpu.serve(at, service);
        self.timeline.schedule(leaves, id);
    }

    /// The connection is handed over to the node at `place`, with its load.
    fn hand_over(&mut self, id: u32, place: Place) {
        let connection = &mut self.connections[id as usize];
        let served = connection.served;
        let share = std::mem::take(&mut connection.batch[served].share);
        self.front_end.end(place, share);
        self.front_end.begin(place, WHOLE);
        if let Some(before) = connection.handling.replace(place) {
            self.front_end.end(before, WHOLE);
        }
        self.counts.handed_off += 1;
    }

    /// What a connection was waiting for has happened.
    fn step(&mut self, at: Nanos, id: u32) {
        match self.connections[id as usize].stage {
            Stage::Accepted => self.serve(at, id),
            Stage::Asked => self.find(at, id),
            Stage::Read => self.finish_read(at, id),
            Stage::Sent if self.passes_on(id) => self.pass_on(at, id),
            Stage::Sent | Stage::PassedOn => self.finish(at, id),
        }
    }

    fn find(&mut self, at: Nanos, id: u32) {
        let chosen = self.connections[id as usize].current();
        let node = &mut self.nodes[chosen.place.index()];
        if node.find(chosen.request) {
            self.send(at, id);
            return;
        }
        let disk = &self.setting.disk;
        if let Some(leaves) = node.read(at, chosen.request, chosen.is_kept, id, disk) {
            self.connections[id as usize].stage = Stage::Read;
            self.timeline.schedule(leaves, id);
            self.front_end
                .set_miss_pressure(chosen.place, node.pressure());
        }
    }

    fn finish_read(&mut self, at: Nanos, id: u32) {
        let chosen = self.connections[id as usize].current();
        let node = &mut self.nodes[chosen.place.index()];
        let joined = node.finish_read(chosen.request);
        self.front_end
            .set_miss_pressure(chosen.place, node.pressure());
        self.send(at, id);
        for id in joined {
            self.send(at, id);
        }
    }

    /// Whether the response under way passes another station before the client has it.
    fn passes_on(&self, id: u32) -> bool {
        let connection = &self.connections[id as usize];
        match self.setting.mechanism {
            Mechanism::Relay => true,
            Mechanism::Forwarding => connection.handling != Some(connection.current().place),
            _ => false,
        }
    }

    /// What the end of the connection takes, if this response is the last.
    fn tear_down(&self, id: u32) -> Nanos {
        match self.connections[id as usize].is_last() {
            true => self.setting.server.tear_down_us.nanos(),
            false => 0,
        }
    }

    fn send(&mut self, at: Nanos, id: u32) {
        let chosen = self.connections[id as usize].current();
        let mut service = self.setting.server.send(chosen.request.size_bytes);
        if !self.passes_on(id) {
            service += self.tear_down(id);
        }
        self.connections[id as usize].stage = Stage::Sent;
        let leaves = self.nodes[chosen.place.index()].cpu.serve(at, service);
        self.timeline.schedule(leaves, id);
    }

    fn pass_on(&mut self, at: Nanos, id: u32) {
        let tear_down = self.tear_down(id);
        let connection = &mut self.connections[id as usize];
        connection.stage = Stage::PassedOn;
        let bytes = connection.current().request.size_bytes;
        let costs = &self.setting.costs;
        let leaves = match connection.handling {
            Some(place) => {
                let cpu = &mut self.nodes[place.index()].cpu;
                cpu.serve(at, costs.forward(bytes) + tear_down)
            }
            None => self.relay.serve(at, costs.relay(bytes) + tear_down),
        };
        self.timeline.schedule(leaves, id);
    }

    /// The client has the response; the connection is torn down if it was the last.
    fn finish(&mut self, at: Nanos, id: u32) {
        let received_at = at - self.tear_down(id);
        let connection = &mut self.connections[id as usize];
        let chosen = connection.current();
        let delay = received_at - connection.batch_at;
        self.counts.delay.add(delay / MICROSECOND);
        self.counts.bytes += chosen.request.size_bytes;
        self.counts.served += 1;
        self.front_end.end(chosen.place, chosen.share);
        let after = received_at - connection.asked_at;
        self.front_end.responded(received_at, chosen.place, after);
        connection.served += 1;
        if connection.served < connection.batch.len() {
            self.serve(at, id);
        } else if connection.next < connection.end {
            self.begin_batch(at, id);
        } else {
            connection.is_open = false;
            if let Some(place) = connection.handling {
                self.front_end.end(place, WHOLE);
            }
            self.ended = at;
            self.begin(at, id);
        }
    }

    /// The load that the front end counts of each node is that of its connections, and of the
    /// requests that it serves for others.
    fn check(&self) {
        let mut loads = vec![Load::NONE; self.nodes.len()];
        let mut add = |place: Place, load: Load| {
            loads[place.index()] = loads[place.index()].plus(load);
        };
        for connection in self.connections.iter().filter(|one| one.is_open) {
            if let Some(place) = connection.handling {
                add(place, WHOLE);
            }
            for chosen in &connection.batch[connection.served..] {
                add(chosen.place, chosen.share);
            }
        }
        for (node, load) in self.front_end.view().iter().zip(loads) {
            assert_eq!(node.load, load, "seed {}", self.setting.seed);
        }
    }

    /// All requests have been answered, nothing is under way, and no station was busy for longer
    /// than time passed.
    fn check_end(&self) {
        self.check();
        assert_eq!(self.counts.served, self.requests.len() as u64);
        assert!(self.connections.iter().all(|one| !one.is_open));
        assert!(self.relay.busy() <= self.ended);
        for node in &self.nodes {
            assert_eq!(node.pressure(), 0, "a read has not ended");
            assert!(node.cpu.busy() <= self.ended && node.disk_busy() <= self.ended);
        }
    }

    fn outcome(&self) -> ClusterOutcome {
        let Counts {
            connections,
            served,
            lateral,
            handed_off,
            bytes,
            choices,
            delay,
        } = &self.counts;
        let sum = |of: fn(&BackEnd) -> u64| self.nodes.iter().map(of).sum();
        let counted = Why::ALL.into_iter().zip(choices);
        let counted = counted.filter(|(_, count)| **count > 0);
        ClusterOutcome {
            requests: *served,
            connections: *connections,
            hits: sum(|node| node.hits),
            files_read: sum(|node| node.files_read),
            lateral: *lateral,
            handed_off: *handed_off,
            bytes: *bytes,
            elapsed_ns: self.ended,
            choices: counted
                .map(|(why, count)| ReasonCount {
                    why: why.as_str(),
                    count: *count,
                })
                .collect(),
            nodes: self
                .nodes
                .iter()
                .map(|node| NodeOutcome {
                    requests: node.requests,
                    hits: node.hits,
                    cpu_busy: share(node.cpu.busy(), self.ended),
                    disk_busy: share(node.disk_busy(), self.ended),
                })
                .collect(),
            front_end_busy: share(self.relay.busy(), self.ended),
            delay: delay.summary(),
        }
    }
}

#[cfg(test)]
mod tests;
