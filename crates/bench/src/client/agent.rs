//! One agent, without sockets and clock: requests that are due go in, commands come out.
//!
//! A client of a closed loop and a robot of an open one differ in where their requests come from.
//! Both have a queue of requests that are due, and a few connections; a request takes an idle
//! connection, else a new one if there may be another, else it waits for the first that ends. A
//! connection carries as many requests as were drawn for it when it was opened (PolyMix: zipf(64)).

use std::collections::VecDeque;

use weir_workload::whole;
use weir_workload::{Chance, Law, WorkloadRequest};

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) ask: WorkloadRequest,
    /// When it should start, in microseconds since the start of the run.
    pub(crate) scheduled_us: u64,
    /// Was it sent before, on a connection that was closing?
    pub(crate) is_repeated: bool,
}

/// What holds for every agent of a run.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The most connections of an agent; at least 1.
    pub(crate) connections_max: usize,
    /// The most requests that wait for one.
    pub(crate) queue_max: usize,
    /// Are connections kept?
    pub(crate) keep_alive: bool,
    /// How many requests a connection carries; `None`: as many as come.
    pub(crate) requests_per_connection: Option<Law>,
    /// Does each server need a connection of its own? So it is without a proxy.
    pub(crate) by_server: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// A request is due.
    Due(Order),
    /// The request on the connection in this place has ended. `keep`: it may carry another.
    Ended {
        /// Which connection.
        place: usize,
        /// May it carry another?
        keep: bool,
    },
    /// The connection was closing when the request came.
    Stale {
        /// Which connection.
        place: usize,
        /// The request.
        order: Order,
    },
    /// An idle connection was closed by the other side.
    Gone {
        /// Which connection.
        place: usize,
    },
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Command {
    /// Send the request on the connection in this place.
    Start {
        /// Which connection.
        place: usize,
        /// The request.
        order: Order,
        /// Open a new connection, and close the one that is there, if any.
        is_fresh: bool,
        /// Request that the connection be kept.
        keep: bool,
    },
    /// Nothing: requests are under way, and the next one waits if there is one.
    Wait,
    /// Nothing is under way or waits: an agent of a closed loop sends its next request.
    Ready,
    /// The queue is at its limit: the request will not be sent.
    Refuse(Order),
}

/// An agent.
#[derive(Debug)]
pub(crate) struct Agent {
    chance: Chance,
    places: Vec<Place>,
    queue: VecDeque<Order>,
}

/// Where a connection is, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    state: State,
    /// The server it goes to, if each has its own.
    server: u32,
    /// How many more requests it may carry.
    uses_left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Idle,
    Busy,
}

impl Agent {
    /// `chance` is the agent's own: its connections do not depend on whose thread it is on.
    pub(crate) fn new(chance: Chance) -> Self {
        Self {
            chance,
            places: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// Requests that wait for a connection.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the requests that wait, at the end of a run.
    pub(crate) fn take_queued(&mut self) -> impl Iterator<Item = Order> + '_ {
        self.queue.drain(..)
    }

    pub(crate) fn handle(&mut self, rules: &Rules, event: Event) -> Command {
        match event {
            Event::Due(order) => {
                // requests that wait already go first
                if self.queue.is_empty()
                    && let Some(place) = self.place_for(rules, order.ask.target.server)
                {
                    return self.start(rules, place, order);
                }
                if self.queue.len() >= rules.queue_max {
                    return Command::Refuse(order);
                }
                self.queue.push_back(order);
                Command::Wait
            }
            Event::Ended { place, keep } => {
                let kept = keep && self.places[place].uses_left > 0;
                self.places[place].state = if kept { State::Idle } else { State::Empty };
                self.next(rules)
            }
            Event::Stale { place, mut order } => {
                self.places[place].state = State::Empty;
                order.is_repeated = true;
                self.start(rules, place, order)
            }
            Event::Gone { place } => {
                self.places[place].state = State::Empty;
                Command::Wait
            }
        }
    }

    fn next(&mut self, rules: &Rules) -> Command {
        let Some(order) = self.queue.front().copied() else {
            let is_busy = self.places.iter().any(|place| place.state == State::Busy);
            return if is_busy {
                Command::Wait
            } else {
                Command::Ready
            };
        };
        let Some(place) = self.place_for(rules, order.ask.target.server) else {
            return Command::Wait;
        };
        self.queue.pop_front();
        self.start(rules, place, order)
    }

    /// An idle connection that fits, else room for a new one, else an idle one that does not fit.
    fn place_for(&mut self, rules: &Rules, server: u32) -> Option<usize> {
        let fits = |place: &Place| !rules.by_server || place.server == server;
        let mut empty = None;
        let mut unfit = None;
        for (at, place) in self.places.iter().enumerate() {
            match place.state {
                State::Idle if fits(place) => return Some(at),
                State::Idle => unfit = Some(at),
                State::Empty => empty = Some(at),
                State::Busy => {}
            }
        }
        if empty.is_none() && self.places.len() < rules.connections_max {
            self.places.push(Place {
                state: State::Empty,
                server,
                uses_left: 0,
            });
            empty = Some(self.places.len() - 1);
        }
        empty.or(unfit)
    }

    fn start(&mut self, rules: &Rules, at: usize, order: Order) -> Command {
        let server = order.ask.target.server;
        let place = &mut self.places[at];
        let is_fresh = place.state != State::Idle || (rules.by_server && place.server != server);
        if is_fresh {
            place.server = server;
            place.uses_left = match (rules.keep_alive, &rules.requests_per_connection) {
                (false, _) => 1,
                (true, None) => u32::MAX,
                (true, Some(law)) => uses(law.draw(&mut self.chance)),
            };
        }
        place.state = State::Busy;
        place.uses_left -= 1;
        Command::Start {
            place: at,
            order,
            is_fresh,
            keep: place.uses_left > 0,
        }
    }
}

/// A draw as a number of requests: whole, and at least 1.
fn uses(draw: f64) -> u32 {
    whole(draw.max(1.0))
}

#[cfg(test)]
mod tests;
