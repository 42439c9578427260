//! The beginning and the end of an exchange.

use weir_semantics::{Method as HttpMethod, Timestamp};
use weir_workload::{Ask, AskKind, Method};

use super::{Engine, Task};
use crate::check::{Asked, Examination};
use crate::client::agent::{Command, Event, Order};
use crate::client::connection::{self, Connection, Ending};
use crate::client::ledger::Transaction;
use crate::client::party::Party;
use crate::client::request::Particulars;
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
        let id = self.ledger.id(ask.phase, self.plan.share.index);
        let asked = self.asked(ask, id);
        let key = self.party(agent, place, order, asked);
        if is_fresh && self.hang_up(key) {
            self.parties[key].connection = Connection::new();
        }
        let number = self.agents[agent].number;
        let party = &mut self.parties[key];
        let head = std::mem::take(&mut party.examination.head);
        party.examination = Examination::new(asked, head);
        party.order = order;
        party.keep = keep;
        party.request.clear();
        party.written = 0;
        party.started_us = now_us;
        party.connect_us = None;
        party.head_us = None;
        party.arrived_us = 0;
        party.is_backlogged = false;
        let about = Particulars {
            id,
            agent: number,
            keep,
            modified_since: asked.modified_since,
        };
        self.requests
            .write(self.grounds.site, ask, about, &mut party.request);
        self.grounds.remember(ask.target);
        if !order.is_repeated {
            self.ledger.begun(&order, !is_fresh, now_us);
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

    fn asked(&self, ask: &Ask, id: Id) -> Asked {
        let modified_since = match ask.kind {
            AskKind::IfModifiedSince { newer } => {
                let described = self.grounds.site.describe(ask.target, self.grounds.now);
                let beside = if newer { 1 } else { -1 };
                described.modified.map(|at| Timestamp(at.0 + beside))
            }
            AskKind::Plain | AskKind::Reload => None,
        };
        Asked {
            target: ask.target,
            kind: ask.kind,
            method: ask.method,
            abort_at: ask.abort_at,
            id,
            at: self.grounds.now,
            modified_since,
        }
    }

    /// The party in this place of the agent, made if it was not there.
    fn party(&mut self, agent: usize, place: usize, order: Order, asked: Asked) -> usize {
        let parties = &mut self.agents[agent].parties;
        if let Some(&key) = parties.get(place) {
            return key;
        }
        let key = self.parties.len();
        debug_assert_eq!(parties.len(), place, "agents use their places in order");
        parties.push(key);
        let examination = Examination::new(asked, Vec::new());
        self.parties
            .push(Party::new(agent, place, order, examination));
        key
    }

    /// Ends a request.
    pub(super) fn finish(&mut self, key: usize, ending: Ending, keep: bool, at_us: u64) {
        self.parties[key].resume();
        if !keep {
            self.hang_up(key);
        }
        let party = &mut self.parties[key];
        let (agent, place, order) = (party.agent, party.place, party.order);
        let may_repeat = !order.is_repeated && !matches!(order.ask.method, Method::Post { .. });
        if let Ending::Stale(_) = ending
            && may_repeat
            && !self.is_over
        {
            self.ledger.repeated(&order);
            let command = self.agents[agent]
                .agent
                .handle(&self.rules, Event::Stale { place, order });
            self.tasks.push_back(Task::Obey(agent, command));
            return;
        }
        let conclusion = party.examination.conclude(&self.grounds, ending);
        let outcome = conclusion.outcome;
        let transaction = Transaction {
            agent: self.agents[agent].number,
            order: &order,
            examination: &party.examination,
            could_hit: order.ask.could_hit(self.grounds.site),
            started_us: party.started_us,
            sent_wall_us: self
                .clock
                .wall_us(party.started_us + party.connect_us.unwrap_or(0)),
            connect_us: party.connect_us,
            head_us: party.head_us,
            ended_us: at_us,
        };
        self.ledger.ended(transaction, conclusion);
        self.outstanding -= 1;
        if self.is_over {
            return;
        }
        if order.ask.with_embedded && has_page(outcome) {
            self.embed(agent, &order.ask, at_us);
        }
        if keep && self.parties[key].is_readable {
            // the end of a connection that was to be kept may have come with the response
            self.read(key);
        }
        let is_kept = keep && self.parties[key].connection.is_idle();
        self.free(agent, place, is_kept);
    }

    /// The connection in this place is free for the agent's next.
    fn free(&mut self, agent: usize, place: usize, keep: bool) {
        let member = &mut self.agents[agent];
        let command = member
            .agent
            .handle(&self.rules, Event::Ended { place, keep });
        if let Command::Start { .. } = command {
            self.ledger.waits_no_more();
        }
        self.tasks.push_back(Task::Obey(agent, command));
    }

    /// A page has arrived: what it embeds is due now.
    fn embed(&mut self, agent: usize, page: &Ask, at_us: u64) {
        for target in self.grounds.site.embedded(page.target) {
            let order = Order {
                ask: Ask {
                    was_asked_before: page.was_asked_before,
                    ..Ask::plain(page.phase, target)
                },
                scheduled_us: at_us,
                is_repeated: false,
            };
            self.hand_over(agent, order);
        }
    }

    /// The other side closed a connection that carried nothing.
    pub(super) fn close_idle(&mut self, key: usize) {
        if !self.hang_up(key) {
            return;
        }
        let party = &self.parties[key];
        let gone = Event::Gone { place: party.place };
        self.agents[party.agent].agent.handle(&self.rules, gone);
    }

    /// Closes the socket, if there is one.
    pub(super) fn hang_up(&mut self, key: usize) -> bool {
        let was_open = self.parties[key].hang_up();
        if was_open {
            self.ledger.closed();
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
