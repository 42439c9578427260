//! What a request is answered with: a stored response, one that is on its way, or the next hop's.

use super::Simulator;
use super::exchange::Stage;
use crate::cache::{StoredResponse, Which, digest};
use crate::journal::What;
use crate::network::connections::ConnectionUse;
use crate::settings::{Caching, Path};
use crate::world::Nanos;
use weir_policy::fetch::AbortPolicy;
use weir_policy::{Command, Covers, Event, Transaction};
use weir_workload::{Chance, Law};

impl Simulator {
    /// The request is at the proxy.
    pub(super) fn choose(&mut self, id: u32) {
        let (now, rules) = (self.now(), self.settings.rules);
        let exchange = self.exchanges.at(id);
        let (row, taken) = (exchange.number, exchange.connection);
        if let Some(ConnectionUse { id, is_new, .. }) = taken {
            self.enter(|| What::Request {
                row,
                connection: id,
                is_new,
            });
        }
        let exchange = self.exchanges.at_mut(id);
        let ruled = exchange.ask().ruled;
        if ruled.bypass {
            exchange.tx().bypass_by_rule();
        }
        let unshared =
            self.settings.caching == Caching::Off || exchange.ask().has_content || ruled.bypass;
        let mut commands = exchange
            .tx()
            .handle(now, &rules, Event::Request { unshared });
        if commands.first() == Some(Command::LookUp) {
            let found = self.cache.find(exchange.ask());
            commands = match found {
                Ok(which) => {
                    self.uses(id, which);
                    let Some(stored) = self.cache.get(which) else {
                        return;
                    };
                    let exchange = self.exchanges.at_mut(id);
                    let own = stored.facts;
                    let facts = &ruled.storing.reuse.of(&own);
                    let event = match &stored.part {
                        None => Event::Found(facts),
                        Some(_) if covers(exchange, stored) => {
                            Event::FoundPart(facts, Covers::Wanted)
                        }
                        Some(_) => Event::FoundPart(facts, Covers::Lacking),
                    };
                    let commands = exchange.tx().handle(now, &rules, event);
                    self.note_rules(id, &own);
                    commands
                }
                Err(missing) => exchange.tx().handle(now, &rules, Event::Missing(missing)),
            };
        }
        for command in commands.iter() {
            match command {
                Command::Serve(_) => {
                    let refreshes = commands.iter().count() > 1;
                    self.hit(id, refreshes);
                }
                Command::RefreshInBackground => self.refresh(id),
                Command::Forward(forwarding) => {
                    self.note(id);
                    self.exchanges.at_mut(id).forwarding = forwarding;
                    self.keep_copy(id);
                    self.forward(id);
                }
                Command::Answer(_) => self.forward_uncollapsed(id),
                _ => debug_assert!(false, "{command:?} before any response"),
            }
        }
    }

    /// The exchange has found a stored response, which is in use from now on.
    pub(super) fn uses(&mut self, id: u32, which: Which) {
        self.uses_no_more(id);
        let uses = self.cache.begin_use(which);
        let exchange = self.exchanges.at_mut(id);
        exchange.found = Some(which);
        exchange.uses = uses;
    }

    /// It reads nothing of it any more.
    pub(super) fn uses_no_more(&mut self, id: u32) {
        if let Some(content) = self.exchanges.at_mut(id).uses.take() {
            self.cache.end_use(content);
        }
    }

    /// Counts the request, if fetches are judged by how likely another request for them is.
    fn note(&mut self, id: u32) {
        if matches!(self.settings.abort, AbortPolicy::Value { .. }) {
            let target = self.exchanges.at(id).ask().target;
            self.popularity.note(digest(target, 0));
        }
    }

    fn hit(&mut self, id: u32, refreshes: bool) {
        let found = self.exchanges.at(id).found;
        let stored = found.and_then(|which| self.cache.get(which));
        let is_small = stored.is_some_and(|stored| {
            stored.complete_length.unwrap_or(0) <= NOT_NOTED_BYTES && !refreshes
        });
        if !is_small {
            self.note(id);
        }
        let exchange = self.exchanges.at(id);
        let Some(stored) = exchange.found.and_then(|which| self.cache.get(which)) else {
            return;
        };
        let (head, content) = form(exchange, stored);
        self.plan(id, head, content, true);
        let overhead = draw(self.settings.hit_overhead.as_ref(), &mut self.chance);
        self.serve_after(id, overhead);
    }

    /// What was found may leave before the answer is there: which may be to serve it, stale.
    fn keep_copy(&mut self, id: u32) {
        let chosen = self.forgotten(self.exchanges.at(id).ask().target);
        let exchange = self.exchanges.at_mut(id);
        exchange.chosen = chosen;
        let found = exchange.found.and_then(|which| self.cache.get(which));
        exchange.kept = found.cloned().map(Box::new);
    }

    /// The answer is a head and so much content, all of it at hand.
    pub(super) fn plan(&mut self, id: u32, head_bytes: u32, content_bytes: u64, from_store: bool) {
        let exchange = self.exchanges.at_mut(id);
        exchange.expect(head_bytes, content_bytes);
        exchange.written = u64::from(head_bytes) + content_bytes;
        exchange.is_all = true;
        exchange.from_store = from_store;
    }

    /// Without a proxy the server's answer is at hand.
    pub(super) fn plan_direct(&mut self, id: u32) {
        let ask = self.exchanges.at(id).ask();
        let (head_bytes, cut_at) = (ask.head_bytes, ask.cut_at);
        let content_bytes = cut_at.unwrap_or(ask.content_bytes);
        self.plan(id, head_bytes, content_bytes, false);
        if cut_at.is_some() {
            self.exchanges.at_mut(id).is_cut = true;
            self.tally.aborts.by_servers += 1;
        }
    }

    fn serve_after(&mut self, id: u32, overhead: Nanos) {
        self.exchanges.at_mut(id).stage = Stage::Serve;
        if overhead == 0 {
            self.serve_planned(id);
        } else {
            let at = self.world.at() + overhead;
            self.later(id, at);
        }
    }

    /// Sends what is planned.
    pub(super) fn serve_planned(&mut self, id: u32) {
        let exchange = self.exchanges.at_mut(id);
        if self.settings.path != Path::Proxy {
            // what a cache would have said is of no interest here
            exchange.tx = None;
        }
        exchange.stage = Stage::Sending;
        self.start_sending(id);
    }

    /// An answer of our own: a head.
    pub(super) fn forward_uncollapsed(&mut self, id: u32) {
        if self.exchanges.at(id).is_background {
            return;
        }
        self.plan(id, crate::facts::HEAD_BYTES, 0, false);
        self.serve_after(id, 0);
    }

    /// A stored response is validated for the store; its client is served already.
    fn refresh(&mut self, id: u32) {
        let now = self.now();
        let exchange = self.exchanges.at(id);
        let Some(which) = exchange.found else { return };
        let Some(stored) = self.cache.get(which).cloned() else {
            return;
        };
        let (ask, link) = (*exchange.ask(), exchange.link);
        if self
            .refreshes
            .begin(now, ask.target, &stored.facts)
            .is_err()
        {
            return;
        }
        let exchange = self.exchanges.at(id);
        let number = exchange.number;
        let server_delay = exchange.server_delay;
        let (tx, forwarding) = Transaction::refresh(ask.request, &stored.facts, now);
        let at = self.world.at();
        let chosen = self.forgotten(ask.target);
        let own = self.exchanges.reuse();
        let refreshing = self.exchanges.at_mut(own);
        refreshing.begin(&ask, now, at);
        refreshing.number = number;
        refreshing.tx = Some(tx);
        refreshing.link = link;
        self.links.stay(link);
        refreshing.is_background = true;
        refreshing.kept = Some(Box::new(stored));
        refreshing.chosen = chosen;
        refreshing.forwarding = forwarding;
        refreshing.server_delay = server_delay;
        self.uses(own, which);
        self.go(own);
    }

    /// The request must be forwarded: for others too, by another's fetch, or for itself.
    pub(super) fn forward(&mut self, id: u32) {
        if self.exchanges.at_mut(id).tx().follows() && self.want(id) {
            return;
        }
        self.go(id);
    }

    /// Forwards the request.
    pub(super) fn go(&mut self, id: u32) {
        let overhead = draw(self.settings.miss_overhead.as_ref(), &mut self.chance);
        self.exchanges.at_mut(id).stage = Stage::Ask;
        if overhead == 0 {
            self.ask(id);
        } else {
            let at = self.world.at() + overhead;
            self.later(id, at);
        }
    }

    /// The same once what is happening now has happened: a connection that falls idle with it can
    /// be used.
    pub(super) fn go_next(&mut self, id: u32) {
        let overhead = draw(self.settings.miss_overhead.as_ref(), &mut self.chance);
        self.exchanges.at_mut(id).stage = Stage::Ask;
        let at = self.world.at() + overhead;
        self.later(id, at);
    }
}

/// Whether a stored part holds the requested range (RFC 9111 §3.3). Without the complete length the
/// requested range is not known.
fn covers(exchange: &super::Exchange, stored: &StoredResponse) -> bool {
    let wants = exchange.wants(stored.complete_length);
    exchange.ask().is_bare()
        || has_it_already(exchange, stored)
        || (stored.complete_length.is_some() && stored.covers(wants))
}

/// A hit of so much content does not count as a demand for it: the live proxy answers it in one
/// pass, without a lock.
const NOT_NOTED_BYTES: u64 = 16 * 1024;

/// In what form a stored response answers a request: its head, and how much content.
pub(super) fn form(exchange: &super::Exchange, stored: &StoredResponse) -> (u32, u64) {
    let wants = exchange.wants(stored.complete_length);
    let content = if exchange.ask().is_bare() || has_it_already(exchange, stored) {
        0
    } else if stored.facts.status == 200 {
        wants.len()
    } else {
        stored.complete_length.unwrap_or(0)
    };
    (stored.head_bytes, content)
}

/// The client's own condition: what it has is what is stored (RFC 9110 §13.2.2), as the origin's
/// answer in the trace tells.
pub(super) fn has_it_already(exchange: &super::Exchange, stored: &StoredResponse) -> bool {
    let ask = exchange.ask();
    ask.request.preconditions
        && ask.response.status == 304
        && stored.facts.status == 200
        && ask.validators.still_hold(stored.validators)
}

fn draw(law: Option<&Law>, chance: &mut Chance) -> Nanos {
    let Some(law) = law else { return 0 };
    let seconds = law.draw(chance).max(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; saturates"
    )]
    let ns = (seconds * 1e9) as Nanos;
    ns
}
