//! The end of a request: its client has the whole response, or has disconnected.

use super::Simulator;
use super::exchange::{Exchange, Stage};
use crate::journal::What;
use crate::results::request_result::RequestResult;
use crate::settings::{Keep, Path};
use crate::world::{MICROSECOND, Nanos};
use weir_trace::AbortedBy;

impl Simulator {
    /// The client has the last byte.
    pub(super) fn received(&mut self, id: u32) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        exchange.pending -= 1;
        if exchange.stage == Stage::Sending && exchange.ends_at == at {
            self.end_sending(id);
            self.account(id);
            let is_reusable = self.give_connection_back(id);
            self.enter_done(id, is_reusable);
            self.over(id);
        }
        self.release(id);
    }

    /// The client has disconnected, and its sender has noticed.
    pub(super) fn left(&mut self, id: u32) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        exchange.pending -= 1;
        if exchange.stage == Stage::Sending && exchange.ends_at == at {
            exchange.has_left = true;
            let (row, is_early) = (exchange.number, !exchange.is_all);
            let is_cut = exchange.is_cut;
            self.enter(|| What::Left {
                row,
                is_early,
                is_cut,
            });
            self.tally.aborts.by_clients += 1;
            self.end_sending(id);
            self.account(id);
            self.enter_done(id, false);
            if let Some(taken) = self.exchanges.at_mut(id).connection.take() {
                self.clients.close(taken.id);
            }
            self.over(id);
            self.leave(id);
        }
        self.release(id);
    }

    fn enter_done(&mut self, id: u32, is_reusable: bool) {
        let exchange = self.exchanges.at(id);
        let Some(tx) = &exchange.tx else { return };
        let (row, verdict) = (exchange.number, *tx.verdict());
        let bytes = exchange.sender.sent.saturating_sub(exchange.head_bytes);
        self.enter(|| What::Done {
            row,
            verdict,
            bytes,
            is_reusable,
        });
    }

    /// Enters a request into the accounts.
    fn account(&mut self, id: u32) {
        let exchange = self.exchanges.at(id);
        let sender = &exchange.sender;
        let first = sender.first_at.unwrap_or(exchange.ready);
        let last = if exchange.has_left {
            // with the last packet it was there for
            exchange.left_at()
        } else {
            sender.last_at
        };
        let tally = &mut self.tally;
        tally.setup.add(us(exchange.ready - exchange.began));
        tally.response.add(us(first.saturating_sub(exchange.ready)));
        tally.transfer.add(us(last.saturating_sub(first)));
        tally.total.add(us(last.saturating_sub(exchange.began)));
        let head = exchange.head_bytes.min(sender.sent);
        let content = sender.sent - head;
        tally.traffic.to_clients_head_bytes += head;
        tally.traffic.to_clients_bytes += content;
        let received = match exchange.leaves_at {
            Some(enough) => content.min(enough.saturating_sub(head)),
            None => content,
        };
        let cached = if exchange.from_store {
            received
        } else {
            received.min(exchange.again_bytes)
        };
        tally.requests.content_bytes += received;
        tally.requests.hit_bytes += cached;
        if let Some(tx) = &exchange.tx {
            tally.verdict(tx.verdict());
            if let Some(recorded) = &mut self.recorded {
                recorded.push((exchange.number, *tx.verdict()));
            }
            if let Some(sink) = &mut self.results {
                let since_arrival = |at: Nanos| us(at.saturating_sub(exchange.began));
                let is_new = exchange.ready > exchange.began;
                sink.take(&RequestResult {
                    number: exchange.number,
                    verdict: *tx.verdict(),
                    setup_us: is_new.then(|| since_arrival(exchange.ready)),
                    request_us: since_arrival(exchange.ready),
                    response_us: sender.first_at.map(since_arrival),
                    last_byte_us: since_arrival(last),
                    received_bytes: received,
                    cached_bytes: cached,
                    aborted_by: aborted_by(exchange),
                });
            }
        }
    }

    /// Whether it can be used again.
    fn give_connection_back(&mut self, id: u32) -> bool {
        let now = self.now();
        let tcp = &self.settings.network.tcp;
        let exchange = self.exchanges.at_mut(id);
        let Some(taken) = exchange.connection.take() else {
            return false;
        };
        let window = exchange.sender.window_afterwards(tcp);
        let is_persistent = match self.settings.client_connections {
            Keep::Never => false,
            Keep::Always => true,
            Keep::AsInTrace if self.settings.path == Path::Proxy => exchange.ask().persistent.0,
            // one connection all the way
            Keep::AsInTrace => exchange.ask().persistent.0 && exchange.ask().persistent.1,
        };
        let is_reusable = is_persistent && !exchange.is_cut;
        if is_reusable {
            self.clients.give_back(now, taken.id, window);
        } else {
            self.clients.close(taken.id);
        }
        is_reusable
    }

    /// The request is done.
    pub(super) fn over(&mut self, id: u32) {
        let exchange = self.exchanges.at_mut(id);
        exchange.stage = Stage::Over;
        exchange.kept = None;
        debug_assert!(exchange.leads.is_none(), "it still leads others");
        self.uses_no_more(id);
        self.release(id);
    }

    /// Gives its place away once nothing more comes for it.
    pub(super) fn release(&mut self, id: u32) {
        let exchange = self.exchanges.at_mut(id);
        if exchange.stage == Stage::Over
            && exchange.pending == 0
            && exchange.reading.is_none()
            && !exchange.is_released
        {
            exchange.is_released = true;
            self.links.leave(exchange.link);
            self.exchanges.remove(id);
        }
    }
}

const fn aborted_by(exchange: &Exchange) -> AbortedBy {
    if exchange.has_left {
        AbortedBy::Client
    } else if exchange.is_cut {
        AbortedBy::Server
    } else {
        AbortedBy::Neither
    }
}

const fn us(ns: Nanos) -> u64 {
    ns / MICROSECOND
}
