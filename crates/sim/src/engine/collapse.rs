//! Collapsed requests: what `policy::collapse` says is done here.

use super::Simulator;
use super::choose::{form, has_it_already};
use super::exchange::{Confirming, Reading, Stage};
use crate::cache::Which;
use crate::journal::What;
use crate::world::{self, MILLISECOND};
use weir_policy::collapse::{self, Collapse, GroupId, Selection, Terms};
use weir_policy::{Command, Event, Forwarding, JoinKind, Missing};

/// A variant of a target, by what the fields say that its origin looks at.
pub(super) type Variant = u64;

/// The requests that follow others or lead them: by target, exchange, in-flight response.
pub(super) type Requests = Collapse<u64, u32, u32, Variant>;

type Commands = Vec<(u32, collapse::Command<u32>)>;

/// What came of looking at an in-flight response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinResult {
    /// The request reads there, or was answered.
    Reads,
    /// It is not for this request, which is forwarded by itself.
    Bypass(Forwarding),
    /// What it wants is not to be had there.
    NotThere,
}

impl Simulator {
    /// Finds a group for the request, or begins one; whether another request brings what it waits
    /// for.
    pub(super) fn want(&mut self, id: u32) -> bool {
        loop {
            let (now, at) = (self.now(), self.world.at());
            let exchange = self.exchanges.at_mut(id);
            let terms = Terms {
                leads: exchange.tx().leads(),
                waits: exchange.waits_until.is_none_or(|until| until > at),
                waits_for_nodes: true,
                followers_max: usize::MAX,
            };
            let (ask, mut passes) = (*exchange.ask(), exchange.passes);
            let in_flight = &self.in_flight;
            let select = |response: &u32| in_flight.at(*response).select(&ask);
            let command = self
                .collapse
                .want(now, ask.target, id, terms, &mut passes, select);
            self.exchanges.at_mut(id).passes = passes;
            match command {
                collapse::Command::Lead(group) => {
                    self.exchanges.at_mut(id).leads = Some(group);
                    return false;
                }
                collapse::Command::Wait(follower) => {
                    self.exchanges.at_mut(id).follows = Some(follower);
                    self.wait(id);
                    return true;
                }
                collapse::Command::Read(group, in_flight) => {
                    match self.join(id, in_flight, group, JoinKind::InFlight) {
                        JoinResult::Reads => return true,
                        JoinResult::Bypass(forwarding) => {
                            self.exchanges.at_mut(id).forwarding = forwarding;
                            self.go(id);
                            return true;
                        }
                        JoinResult::NotThere => self.exchanges.at_mut(id).passes.pass(group),
                    }
                }
                collapse::Command::Bypass => return false,
                collapse::Command::LookUp(_)
                | collapse::Command::TakeOver(_)
                | collapse::Command::NotAwaited => {
                    debug_assert!(false, "{command:?} to a request that comes");
                    return false;
                }
            }
        }
    }

    /// The request waits for the head of another one's response.
    fn wait(&mut self, id: u32) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        exchange.stage = Stage::Waiting;
        if let (None, Some(limit_ms)) = (exchange.waits_until, self.settings.follower_wait_ms) {
            let until = at + limit_ms * MILLISECOND;
            exchange.waits_until = Some(until);
            exchange.pending += 1;
            self.world.schedule(until, world::Event::WaitedLong(id));
        }
        let row = self.exchanges.at(id).number;
        self.enter(|| What::Follows { row });
    }

    /// The request has waited for others as long as it may: if it still waits, it is forwarded.
    pub(super) fn waited_long(&mut self, id: u32) {
        let exchange = self.exchanges.at_mut(id);
        exchange.pending -= 1;
        if exchange.stage == Stage::Waiting && exchange.follows.is_some() {
            self.leave_group(id);
            self.go(id);
        }
        self.release(id);
    }

    /// The request does not wait in its group any more.
    fn leave_group(&mut self, id: u32) {
        if let Some(follower) = self.exchanges.at_mut(id).follows.take() {
            // a leader is forwarded to the end, and whether a response without readers continues is
            // decided there
            let _ = self.collapse.leave(follower, &mut Commands::new());
        }
    }

    /// Answers a request from an in-flight response of this group, if it is entitled to it.
    fn join(&mut self, id: u32, in_flight: u32, group: GroupId, joined: JoinKind) -> JoinResult {
        let now = self.now();
        let response = self.in_flight.at_mut(in_flight);
        let exchange = self.exchanges.at_mut(id);
        let before = *exchange.tx();
        let own = response.stored.facts;
        let reuse = exchange.ask().ruled.storing.reuse;
        let commands = exchange.tx().joined(now, &reuse.of(&own), joined);
        self.note_rules(id, &own);
        let response = self.in_flight.at_mut(in_flight);
        let exchange = self.exchanges.at_mut(id);
        match commands.first() {
            Some(Command::Serve(_)) => {}
            Some(Command::Forward(forwarding)) => return JoinResult::Bypass(forwarding),
            _ => return JoinResult::NotThere,
        }
        let head_bytes = response.stored.head_bytes;
        if has_it_already(exchange, &response.stored) {
            self.plan(id, head_bytes, 0, true);
            self.serve_planned(id);
            return JoinResult::Reads;
        }
        let wants = exchange.wants(response.stored.complete_length);
        self.decide_from_now_on(in_flight);
        let response = self.in_flight.at_mut(in_flight);
        let exchange = self.exchanges.at_mut(id);
        // nothing is added to what is settled, nor for a request whose answer may not be joined
        // with it
        let lets_on =
            (before.completes() && !response.is_settled) || response.fill().is_coming(wants);
        let attached = lets_on.then(|| response.fill().attach(wants).ok());
        let Some(reader) = attached.flatten() else {
            *exchange.tx() = before;
            return JoinResult::NotThere;
        };
        response.readers.push((reader, id));
        exchange.reading = Some(Reading { in_flight, reader });
        exchange.confirming = Some(Confirming { before, group });
        exchange.stage = Stage::Waiting;
        self.drive(in_flight);
        JoinResult::Reads
    }

    /// From now on others may read the in-flight response, if it is for others.
    pub(super) fn publish(&mut self, id: u32, leads: Option<GroupId>, answers_others: bool) {
        match leads {
            Some(group) => {
                self.in_flight.at_mut(id).group = Some(group);
                self.tell_followers(|collapse, commands| collapse.head(group, id, commands));
            }
            None if answers_others => {
                let target = self.in_flight.at(id).stored.target;
                self.in_flight.at_mut(id).group = self.collapse.publish(target, id);
            }
            None => {}
        }
        if !self.in_flight.at(id).is_kept || self.is_outdated(id) {
            self.close_group(id, true);
        }
        let response = self.in_flight.at_mut(id);
        response.is_unpublished = false;
        if response.fill.is_some() {
            self.settle(id);
        }
    }

    /// The in-flight response is not for newcomers any more. Those that wait until it is stored
    /// look it up.
    pub(super) fn close_group(&mut self, id: u32, is_stored: bool) {
        let response = self.in_flight.at_mut(id);
        let (group, leads) = (response.group.take(), response.leads.take());
        if let Some(group) = group {
            let _ = self.collapse.close(group);
        }
        let Some(group) = leads else { return };
        let now = self.now();
        self.tell_followers(|collapse, commands| {
            if is_stored {
                collapse.stored(group, commands);
            } else {
                collapse.refused(now, group, None, commands);
            }
        });
    }

    /// The response of a leader is stored already.
    pub(super) fn lead_stored(&mut self, id: u32) {
        if let Some(group) = self.exchanges.at_mut(id).leads.take() {
            self.tell_followers(|collapse, commands| collapse.stored(group, commands));
        }
    }

    /// The response of a leader is not for others: each is forwarded by itself, and if that is
    /// remembered, so are later ones for a while.
    pub(super) fn refuse_followers(&mut self, id: u32, is_remembered: bool) {
        if let Some(group) = self.exchanges.at_mut(id).leads.take() {
            let now = self.now();
            let until = now.tick.plus_ms(self.settings.uncollapsible_ms);
            let until = is_remembered.then_some(until);
            self.tell_followers(|collapse, commands| {
                collapse.refused(now, group, until, commands);
            });
        }
    }

    /// A leader has no response for others.
    pub(super) fn lead_failed(&mut self, id: u32) {
        if let Some(group) = self.exchanges.at_mut(id).leads.take() {
            self.tell_followers(|collapse, commands| collapse.failed(group, commands));
        }
    }

    /// A group has a response, or none: its followers do what the policy says then.
    fn tell_followers(&mut self, event: impl FnOnce(&mut Requests, &mut Commands)) {
        let mut commands = Commands::new();
        event(&mut self.collapse, &mut commands);
        for (id, command) in commands {
            match command {
                collapse::Command::Read(group, in_flight) => {
                    self.read_or_pass(id, in_flight, group);
                    continue;
                }
                collapse::Command::LookUp(group) => self.look_again(id, group),
                collapse::Command::TakeOver(group) => {
                    self.exchanges.at_mut(id).leads = Some(group);
                    self.go_next(id);
                }
                collapse::Command::Bypass => self.go_next(id),
                collapse::Command::NotAwaited
                | collapse::Command::Lead(_)
                | collapse::Command::Wait(_) => {
                    debug_assert!(false, "{command:?} to a follower");
                }
            }
            self.exchanges.at_mut(id).follows = None;
        }
    }

    /// A follower reads the in-flight response, if that is for it.
    fn read_or_pass(&mut self, id: u32, in_flight: u32, group: GroupId) {
        let response = self.in_flight.at(in_flight);
        let exchange = self.exchanges.at_mut(id);
        let joined = match response.select(exchange.ask()) {
            Selection::Selected => self.join(id, in_flight, group, JoinKind::Waited),
            Selection::Other(variant) => {
                exchange.passes.wants_variant(variant);
                JoinResult::NotThere
            }
        };
        self.leave_group(id);
        match joined {
            JoinResult::Reads => {}
            JoinResult::Bypass(forwarding) => {
                self.exchanges.at_mut(id).forwarding = forwarding;
                self.go_next(id);
            }
            JoinResult::NotThere => {
                self.exchanges.at_mut(id).passes.pass(group);
                self.forward_next(id);
            }
        }
    }

    /// A follower looks up the stored response.
    fn look_again(&mut self, id: u32, group: GroupId) {
        let (now, rules) = (self.now(), self.settings.rules);
        let found = self.cache.find(self.exchanges.at(id).ask());
        if found == Err(Missing::Variant) {
            let exchange = self.exchanges.at_mut(id);
            let variant = exchange.ask().variant;
            exchange.passes.wants_variant(variant);
        }
        let is_whole = |which: &Which| {
            let stored = self.cache.get(*which);
            stored.is_some_and(|stored| stored.part.is_none())
        };
        let Some(which) = found.ok().filter(is_whole) else {
            self.exchanges.at_mut(id).passes.pass(group);
            self.forward_next(id);
            return;
        };
        self.uses(id, which);
        let chosen = self.forgotten(self.exchanges.at(id).ask().target);
        let exchange = self.exchanges.at_mut(id);
        let Some(stored) = self.cache.get(which) else {
            return;
        };
        let before = *exchange.tx();
        let own = stored.facts;
        let facts = exchange.ask().ruled.storing.reuse.of(&own);
        let commands = exchange.tx().joined(now, &facts, JoinKind::Waited);
        if let Some(Command::Serve(_)) = commands.first() {
            let (head, content) = form(exchange, stored);
            self.note_rules(id, &own);
            self.plan(id, head, content, true);
            self.serve_planned(id);
            return;
        }
        // what must be validated before each use is validated for this one too
        *exchange.tx() = before;
        let commands = exchange.tx().handle(now, &rules, Event::Found(&facts));
        exchange.kept = Some(Box::new(stored.clone()));
        exchange.chosen = chosen;
        if let Some(Command::Forward(forwarding)) = commands.first() {
            exchange.forwarding = forwarding;
        }
        self.go_next(id);
    }

    /// Looks for another group, once what is happening now has happened.
    pub(super) fn forward_next(&mut self, id: u32) {
        self.exchanges.at_mut(id).stage = Stage::Forward;
        let at = self.world.at();
        self.later(id, at);
    }
}
