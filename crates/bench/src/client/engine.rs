//! What one thread of clients does: carries events from sockets, clock and schedule to the state
//! machines, and their commands back.
//!
//! Everything that decides is elsewhere and pure ([`Agent`], [`Connection`], [`Examination`],
//! [`Line`]); everything that counts is in the [`Statistics`]. Here are the sockets,
//! edge-triggered: a socket is read until it has no more, or the link says later.

mod exchange;
mod traffic;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use mio::{Poll, Token};
use weir_workload::{Addresses, Chance, Site};

use super::agent::{Agent, Command, Event, Order, Rules};
use super::clock::Clock;
use super::connection::Ending;
use super::request::Requests;
use super::slot::{Pause, Slot};
use super::socket::address_of;
use super::source::Source;
use super::statistics::Statistics;
use super::timers::Timers;
use super::{ClientPlan, Form};
use crate::check::Reference;
use crate::link::{Line, MADE_GOOD_US};
use crate::tally::{ErrorKind, LinkTime};
use weir_workload::microseconds;

/// What is read at once where no link says less, in bytes.
const SCRATCH_BYTES: usize = 65_536;

/// Agents' own streams of chance: for their connections, and for their links. Far from the streams
/// of the generators.
const CONNECTIONS_STREAM: u64 = 0xc11e_0001_0000_0000;
const LINKS_STREAM: u64 = 0xc11e_0002_0000_0000;

/// One thread of clients.
#[derive(Debug)]
pub(super) struct Engine<'r> {
    plan: &'r ClientPlan,
    rules: Rules,
    requests: Requests,
    reference: Reference<'r>,
    pub(super) clock: Clock,
    pub(super) poll: Poll,
    pub(super) timers: Timers,
    pub(super) source: Source,
    agents: Vec<Member>,
    slots: Vec<Slot>,
    pub(super) statistics: Statistics,
    tasks: VecDeque<Task>,
    scratch: Vec<u8>,
    response_timeout_us: u64,
    /// Requests that are due and have not ended.
    pub(super) outstanding: u64,
    /// Nothing new is begun.
    is_over: bool,
}

/// An agent, and what it has here.
#[derive(Debug)]
struct Member {
    number: u32,
    agent: Agent,
    /// Its link, if the scenario gives it one.
    line: Option<Box<Line>>,
    /// How long that held things up.
    link_time: LinkTime,
    /// Its address, if it has its own.
    address: Option<IpAddr>,
    /// By place, where its connections are among the parties.
    slots: Vec<usize>,
}

/// The remaining tasks. Kept in a queue and not done at once: a connection that fails as soon as it
/// is begun would otherwise have its agent begin the next one, and so on, down the stack.
#[derive(Debug)]
enum Task {
    /// The agent of a closed loop sends its next request.
    Ask(usize),
    /// What an agent decided.
    Obey(usize, Command),
    /// An exchange has ended.
    Finish {
        slot: usize,
        ending: Ending,
        keep: bool,
        at_us: u64,
    },
}

impl<'r> Engine<'r> {
    pub(super) fn new(
        plan: &'r ClientPlan,
        site: &'r Site,
        clock: Clock,
        poll: Poll,
        source: Source,
        statistics: Statistics,
    ) -> Self {
        let clients = &plan.scenario.clients;
        let usize_of = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let faults = &plan.scenario.origin.faults;
        Self {
            plan,
            rules: Rules {
                connections_max: usize_of(clients.connections_max.max(1)),
                queue_max: usize_of(clients.queue_max),
                keep_alive: clients.keep_alive,
                requests_per_connection: clients.requests_per_connection.clone(),
                by_server: matches!(plan.form, Form::Direct { .. }),
            },
            requests: Requests::new(&plan.scenario, &plan.form, site.servers()),
            reference: Reference::new(site, plan.seed, faults, clock.by_wall(0)),
            clock,
            poll,
            timers: Timers::default(),
            source,
            agents: Vec::new(),
            slots: Vec::new(),
            statistics,
            tasks: VecDeque::new(),
            scratch: vec![0; SCRATCH_BYTES],
            response_timeout_us: seconds_to_us(clients.response_timeout_s),
            outstanding: 0,
            is_over: false,
        }
    }

    /// Every agent of a closed loop sends its first request.
    pub(super) fn begin(&mut self) {
        for place in 0..self.source.closed_agents() {
            self.admit(place);
            self.tasks.push_back(Task::Ask(place));
        }
    }

    pub(super) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The second that begins now, by the wall.
    pub(super) fn set_wall(&mut self, now_us: u64) {
        self.reference.now = self.clock.by_wall(now_us);
    }

    /// Hands requests that are due to their agents.
    pub(super) fn start_due(&mut self, now_us: u64) {
        while let Some(due) = self.source.due(now_us) {
            self.statistics.came_to(due.at_us, now_us);
            let place = self.source.place_of(due.agent);
            self.admit(place);
            let order = Order {
                ask: due.request,
                scheduled_us: due.at_us,
                is_repeated: false,
            };
            self.hand_over(place, order);
            self.work(TASKS_A_TURN);
        }
    }

    /// Handles the timers that have expired.
    pub(super) fn wake_due(&mut self, now_us: u64) {
        while let Some((key, at_us)) = self.timers.due(now_us) {
            if self.slots[key].armed.is_for(at_us) {
                self.woken(key, now_us);
                self.rearm(key);
                self.work(TASKS_A_TURN);
            }
        }
    }

    /// Carries out tasks, so many at most.
    pub(super) fn work(&mut self, tasks_max: usize) {
        for _ in 0..tasks_max {
            let Some(task) = self.tasks.pop_front() else {
                return;
            };
            match task {
                Task::Ask(place) => self.ask_next(place),
                Task::Obey(place, command) => self.obey(place, command),
                Task::Finish {
                    slot,
                    ending,
                    keep,
                    at_us,
                } => self.finish(slot, ending, keep, at_us),
            }
        }
    }

    /// The run is over: what is under way or waits ends as unfinished.
    pub(super) fn end(&mut self) {
        let now_us = self.clock.now_us();
        // tasks that are due are carried out, and nothing that follows from them is begun
        self.is_over = true;
        while self.has_tasks() {
            self.work(TASKS_A_TURN);
        }
        for key in 0..self.slots.len() {
            // what is on its way over a link was answered
            match self.slots[key].pause {
                Pause::Arrive { ending, .. } => self.finish(key, ending, false, now_us),
                _ => self.tell(key, super::connection::Event::Over),
            }
            while self.has_tasks() {
                self.work(TASKS_A_TURN);
            }
        }
        for member in &mut self.agents {
            self.statistics.link_used(&member.link_time);
            for order in member.agent.take_queued() {
                self.statistics
                    .not_sent(&order, ErrorKind::Unfinished, now_us);
                self.statistics.waits_no_more();
                self.outstanding -= 1;
            }
        }
    }

    /// Makes room for the agent in this place, and for those before it.
    fn admit(&mut self, place: usize) {
        while self.agents.len() <= place {
            let number = self.source.number_at(self.agents.len());
            let member = Member::new(self.plan, number);
            self.agents.push(member);
        }
    }

    fn ask_next(&mut self, place: usize) {
        if self.is_over {
            return;
        }
        let now_us = self.clock.now_us();
        let Some(ask) = self.source.next_of(place, now_us) else {
            return;
        };
        let order = Order {
            ask,
            scheduled_us: now_us,
            is_repeated: false,
        };
        self.hand_over(place, order);
    }

    /// Gives an agent a request that is due.
    fn hand_over(&mut self, place: usize, order: Order) {
        self.statistics.due(&order);
        self.outstanding += 1;
        let member = &mut self.agents[place];
        let command = member.agent.handle(&self.rules, Event::Due(order));
        if command == Command::Wait {
            self.statistics.waits(member.agent.queued());
        }
        self.tasks.push_back(Task::Obey(place, command));
    }

    fn obey(&mut self, place: usize, command: Command) {
        match command {
            Command::Start { order, .. } if self.is_over => {
                let now_us = self.clock.now_us();
                self.statistics
                    .not_sent(&order, ErrorKind::Unfinished, now_us);
                self.outstanding -= 1;
            }
            Command::Start {
                place: connection,
                order,
                is_fresh,
                keep,
            } => self.start(place, connection, order, is_fresh, keep),
            Command::Wait => {}
            Command::Ready => self.tasks.push_back(Task::Ask(place)),
            Command::Refuse(order) => {
                let now_us = self.clock.now_us();
                self.statistics
                    .not_sent(&order, ErrorKind::QueueFull, now_us);
                self.outstanding -= 1;
            }
        }
    }

    /// Where a request of an agent goes.
    fn address_for(&self, agent: u32, server: u32) -> SocketAddr {
        if let Some(namespace) = &self.plan.namespace {
            return namespace.near(agent, self.plan.proxy.port());
        }
        match &self.plan.form {
            Form::Direct { servers } => servers[usize::try_from(server).unwrap_or(usize::MAX)],
            Form::Forward { .. } | Form::Gateway { .. } => self.plan.proxy,
        }
    }

    /// Sets the connection's wake-up to what it waits for now.
    fn rearm(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        let at_us = slot.wake_us();
        self.timers.arm(&mut slot.armed, key, at_us);
    }

    /// A wake-up of this connection.
    fn woken(&mut self, key: usize, now_us: u64) {
        let slot = &mut self.slots[key];
        if slot.pause != Pause::None && slot.pause_until_us <= now_us {
            let made_good_us = match slot.pause {
                Pause::Read => MADE_GOOD_US,
                _ => 0,
            };
            let (from_us, until_us) = (slot.pause_from_us, slot.pause_until_us);
            let time = &mut self.agents[slot.agent].link_time;
            time.turn(from_us, until_us, now_us, made_good_us);
            match slot.resume() {
                Pause::None => {}
                Pause::Knock => self.knock(key),
                Pause::SetUp => self.tell(key, super::connection::Event::Connected),
                Pause::Send => self.write(key),
                Pause::Read => self.read(key),
                Pause::Arrive { ending, keep } => self.end_exchange(key, ending, keep, now_us),
            }
            return;
        }
        if slot.silent_at_us <= now_us {
            self.tell(key, super::connection::Event::Silent);
        }
    }
}

impl Member {
    fn new(plan: &ClientPlan, number: u32) -> Self {
        let clients = &plan.scenario.clients;
        let chance = |base: u64| Chance::new(plan.seed, base + u64::from(number));
        let link = clients.link.as_ref();
        let has_address = clients.addresses == Addresses::Each;
        let (line, address): (fn(&_, _) -> _, _) = match &plan.namespace {
            Some(namespace) => (Line::without_rates, Some(namespace.client(number))),
            None => (
                Line::new,
                has_address.then(|| address_of(number, clients.agents_per_address)),
            ),
        };
        Self {
            number,
            agent: Agent::new(chance(CONNECTIONS_STREAM)),
            line: link.map(|link| Box::new(line(link, chance(LINKS_STREAM)))),
            link_time: LinkTime::default(),
            address,
            slots: Vec::new(),
        }
    }
}

/// How many tasks are done before the sockets are looked at again.
const TASKS_A_TURN: usize = 64;

/// Not negative, and a year at most.
fn seconds_to_us(seconds: f64) -> u64 {
    microseconds(seconds.clamp(0.0, 31_536_000.0))
}

/// The token of a connection is its place among the parties.
pub(super) fn token(key: usize) -> Token {
    Token(key)
}

/// Reads whether a call would have had to wait.
fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
