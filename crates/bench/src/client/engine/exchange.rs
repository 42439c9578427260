//! The beginning and the end of an exchange.

use weir_semantics::{Method as HttpMethod, Timestamp};
use weir_workload::{Method, RequestType, WorkloadRequest};

use super::{Engine, Task};
use crate::check::{Examination, SentRequest};
use crate::client::agent::{Command, Event, Order};
use crate::client::connection::{self, Connection, Ending};
use crate::client::request::RequestDetails;
use crate::client::slot::Slot;
use crate::client::statistics::Transaction;
use crate::mark::Id;
use crate::tally::Outcome;

impl Engine<'_> {
    /// Begins a request on the connection in this place of the agent.
    pub(super) fn start(
        &mut self,
        agent: usize,
        place: usize,
        order: Order,
        is_fresh: bool,
        keep: bool,
    ) {
        let now_us = self.clock.now_us();
        let ask = &order.ask;
        let id = self.statistics.id(ask.phase, self.plan.share.index);
        let request = self.request(ask, id);
        let key = self.slot(agent, place, order, request);
        if is_fresh && self.disconnect(key) {
            self.slots[key].connection = Connection::new();
        }
        let number = self.agents[agent].number;
        let slot = &mut self.slots[key];
        let head = std::mem::take(&mut slot.examination.head);
        slot.examination = Examination::new(request, head);
        slot.order = order;
        slot.keep = keep;
        slot.request.clear();
        slot.written = 0;
        slot.started_us = now_us;
        slot.connect_us = None;
        slot.head_us = None;
        slot.arrived_us = 0;
        slot.is_backlogged = false;
        let about = RequestDetails {
            id,
            agent: number,
            keep,
            modified_since: request.modified_since,
        };
        self.requests
            .write(self.reference.site, ask, about, &mut slot.request);
        self.reference.remember(ask.target);
        if !order.is_repeated {
            self.statistics.begun(&order, !is_fresh, now_us);
        }
        let event = connection::Event::Ask {
            method: match ask.method {
                Method::Get => HttpMethod::Get,
                Method::Head => HttpMethod::Head,
                Method::Post { .. } => HttpMethod::Post,
            },
            keep,
        };
        self.tell(key, event);
        self.rearm(key);
    }

    fn request(&self, ask: &WorkloadRequest, id: Id) -> SentRequest {
        let modified_since = match ask.kind {
            RequestType::IfModifiedSince { newer } => {
                let described = self.reference.site.describe(ask.target, self.reference.now);
                let beside = if newer { 1 } else { -1 };
                described.modified.map(|at| Timestamp(at.0 + beside))
            }
            RequestType::Plain | RequestType::Reload => None,
        };
        SentRequest {
            target: ask.target,
            kind: ask.kind,
            method: ask.method,
            abort_at: ask.abort_at,
            id,
            at: self.reference.now,
            modified_since,
        }
    }

    /// The party in this place of the agent, made if it was not there.
    fn slot(&mut self, agent: usize, place: usize, order: Order, request: SentRequest) -> usize {
        let slots = &mut self.agents[agent].slots;
        if let Some(&key) = slots.get(place) {
            return key;
        }
        let key = self.slots.len();
        debug_assert_eq!(slots.len(), place, "agents use their places in order");
        slots.push(key);
        let examination = Examination::new(request, Vec::new());
        self.slots.push(Slot::new(agent, place, order, examination));
        key
    }

    /// Ends a request.
    pub(super) fn finish(&mut self, key: usize, ending: Ending, keep: bool, at_us: u64) {
        self.slots[key].resume();
        if !keep {
            self.disconnect(key);
        }
        let slot = &mut self.slots[key];
        let (agent, place, order) = (slot.agent, slot.place, slot.order);
        let may_repeat = !order.is_repeated && !matches!(order.ask.method, Method::Post { .. });
        if let Ending::Stale(_) = ending
            && may_repeat
            && !self.is_over
        {
            self.statistics.repeated(&order);
            let command = self.agents[agent]
                .agent
                .handle(&self.rules, Event::Stale { place, order });
            self.tasks.push_back(Task::Obey(agent, command));
            return;
        }
        let conclusion = slot.examination.conclude(&self.reference, ending);
        let outcome = conclusion.outcome;
        let transaction = Transaction {
            agent: self.agents[agent].number,
            order: &order,
            examination: &slot.examination,
            could_hit: order.ask.could_hit(self.reference.site),
            started_us: slot.started_us,
            sent_wall_us: self
                .clock
                .wall_us(slot.started_us + slot.connect_us.unwrap_or(0)),
            connect_us: slot.connect_us,
            head_us: slot.head_us,
            ended_us: at_us,
        };
        self.statistics
            .ended(transaction, conclusion, self.reference.site);
        self.outstanding -= 1;
        if self.is_over {
            return;
        }
        if order.ask.with_embedded && has_page(outcome) {
            self.embed(agent, &order.ask, at_us);
        }
        if keep && self.slots[key].is_readable {
            // the end of a connection that was to be kept may have come with the response
            self.read(key);
        }
        let is_kept = keep && self.slots[key].connection.is_idle();
        self.free(agent, place, is_kept);
    }

    /// The connection in this place is free for the agent's next.
    fn free(&mut self, agent: usize, place: usize, keep: bool) {
        let member = &mut self.agents[agent];
        let command = member
            .agent
            .handle(&self.rules, Event::Ended { place, keep });
        if let Command::Start { .. } = command {
            self.statistics.waits_no_more();
        }
        self.tasks.push_back(Task::Obey(agent, command));
    }

    /// A page has arrived: what it embeds is due now.
    fn embed(&mut self, agent: usize, page: &WorkloadRequest, at_us: u64) {
        for target in self.reference.site.embedded(page.target) {
            let order = Order {
                ask: WorkloadRequest {
                    is_repeat: page.is_repeat,
                    ..WorkloadRequest::plain(page.phase, target)
                },
                scheduled_us: at_us,
                is_repeated: false,
            };
            self.hand_over(agent, order);
        }
    }

    /// The other side closed a connection that carried nothing.
    pub(super) fn close_idle(&mut self, key: usize) {
        if !self.disconnect(key) {
            return;
        }
        let slot = &self.slots[key];
        let gone = Event::Gone { place: slot.place };
        self.agents[slot.agent].agent.handle(&self.rules, gone);
    }

    /// Closes the socket, if there is one.
    pub(super) fn disconnect(&mut self, key: usize) -> bool {
        let was_open = self.slots[key].disconnect();
        if was_open {
            self.statistics.closed();
        }
        was_open
    }
}

fn has_page(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Hit | Outcome::Validated | Outcome::Forwarded
    )
}
