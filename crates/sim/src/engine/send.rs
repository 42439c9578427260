//! Responses on their way to clients: in closed form where nobody else is on the link, packet by packet elsewhere.

use super::Simulator;
use super::exchange::Stage;
use crate::link::{Carried, Link};
use crate::settings::Path;
use crate::tcp::{Alone, Sender, Sent, Terms};
use crate::world::{Event, Nanos};

impl Simulator {
    /// Something is there to be sent to the client of an exchange.
    pub(super) fn start_sending(&mut self, id: u32) {
        let link = self.exchanges.at(id).link as usize;
        self.links[link].sending += 1;
        if let Some(other) = self.links[link].alone.take() {
            self.by_packets(other);
        }
        let exchange = self.exchanges.at_mut(id);
        let window = exchange.connection.map_or(1, |taken| taken.window);
        exchange.sender.begin(window);
        let is_alone = exchange.is_all
            && self.links[link].sending == 1
            && self.settings.path != Path::DirectInternet
            && self.settings.network.client_link.queue_limit_bytes == 0;
        if is_alone {
            self.send_alone(id);
        } else {
            self.send(id);
        }
    }

    /// All of it, in closed form.
    fn send_alone(&mut self, id: u32) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        let link = &mut self.links[exchange.link as usize];
        let alone = Alone {
            tcp: self.settings.network.tcp,
            window: exchange.sender.window,
            rate: self.settings.network.client_link,
            begins_ns: at.max(link.link.free_at),
            loop_ns: exchange.loop_ns,
            bytes: exchange.written,
        };
        link.alone = Some(id);
        exchange.alone = Some(alone);
        match exchange.leaves_at {
            None => {
                let last = alone.departure_ns(alone.packets()) + exchange.after_ns;
                self.ends(id, last, true);
            }
            Some(enough) => {
                let departs = alone.departure_ns(alone.packets_for(enough));
                let left = departs + exchange.after_ns;
                let known = departs + exchange.loop_ns;
                exchange.sender.last_at = left;
                self.ends(id, known, false);
            }
        }
    }

    /// The exchange ends at `at`: its client has all of it, or it is learnt that it has left.
    fn ends(&mut self, id: u32, at: Nanos, is_whole: bool) {
        let exchange = self.exchanges.at_mut(id);
        exchange.ends_at = at;
        exchange.pending += 1;
        let event = if is_whole {
            Event::Received(id)
        } else {
            Event::Left(id)
        };
        self.world.schedule(at, event);
    }

    /// Somebody else begins to send on the link of one that was sent in closed form: it goes on packet by packet.
    fn by_packets(&mut self, id: u32) {
        let at = self.world.at();
        let terms = self.terms(id);
        let exchange = self.exchanges.at_mut(id);
        let Some(alone) = exchange.alone.take() else {
            return;
        };
        exchange.ends_at = Nanos::MAX;
        let link = &mut self.links[exchange.link as usize].link;
        let sender = &mut exchange.sender;
        sender.begin(alone.window);
        // the queue is empty when it begins; nobody else has been there since
        let mut due = alone.begins_ns;
        let mut sent = Sent::default();
        while due <= at {
            let step = sender.send(&terms, link, &mut self.tally.to_clients, due);
            sent.left_at = sent.left_at.or(step.left_at);
            sent.blocked_until = step.blocked_until;
            match step.blocked_until {
                Some(until) => due = until,
                None => break,
            }
        }
        if due > at && exchange.sender.packets == 0 {
            // it has not begun: what was in the queue before it is still leaving
            self.send(id);
            return;
        }
        self.follow(id, sent);
    }

    /// Sends what may be sent now.
    pub(super) fn send(&mut self, id: u32) {
        let exchange = self.exchanges.at(id);
        if exchange.stage != Stage::Sending || exchange.alone.is_some() {
            return;
        }
        let at = self.world.at();
        let terms = self.terms(id);
        let exchange = self.exchanges.at_mut(id);
        let link: &mut Link = match self.settings.path {
            Path::DirectInternet => &mut self.internet,
            Path::Proxy | Path::DirectClient => &mut self.links[exchange.link as usize].link,
        };
        let carried: &mut Carried = &mut self.tally.to_clients;
        let sent = exchange.sender.send(&terms, link, carried, at);
        self.follow(id, sent);
    }

    /// What follows from having sent.
    fn follow(&mut self, id: u32, sent: Sent) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        if let Some(left_at) = sent.left_at {
            let known = left_at - exchange.after_ns + exchange.loop_ns;
            self.ends(id, known.max(at), false);
        } else if exchange.is_all
            && exchange.sender.sent >= exchange.written
            && exchange.ends_at == Nanos::MAX
        {
            let last = exchange.sender.last_at.max(at);
            self.ends(id, last, true);
        }
        if let Some(until) = sent.blocked_until {
            let exchange = self.exchanges.at_mut(id);
            if exchange.is_blocked_until != until {
                exchange.is_blocked_until = until;
                exchange.pending += 1;
                self.world.schedule(until.max(at), Event::Acknowledged(id));
            }
        }
    }

    /// An acknowledgement that was waited for is there.
    pub(super) fn acknowledged(&mut self, id: u32) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        exchange.pending -= 1;
        if exchange.stage == Stage::Sending && exchange.is_blocked_until == at {
            // it may be blocked again until this very moment, where there is no way between the two
            exchange.is_blocked_until = Nanos::MAX;
            self.send(id);
            let exchange = self.exchanges.at(id);
            if let (false, Some(reading)) = (exchange.is_all, exchange.reading) {
                self.drive(reading.arriving);
            }
        }
        self.release(id);
    }

    fn terms(&self, id: u32) -> Terms {
        let exchange = self.exchanges.at(id);
        let network = &self.settings.network;
        Terms {
            tcp: network.tcp,
            rate: match self.settings.path {
                Path::DirectInternet => network.internet,
                Path::Proxy | Path::DirectClient => network.client_link,
            },
            loop_ns: exchange.loop_ns,
            after_ns: exchange.after_ns,
            written: exchange.written,
            is_all: exchange.is_all,
            leaves_at: exchange.leaves_at,
        }
    }

    /// Nothing more is sent: what was sent in closed form is entered into the accounts.
    pub(super) fn end_sending(&mut self, id: u32) {
        let exchange = self.exchanges.at_mut(id);
        let link = &mut self.links[exchange.link as usize];
        link.sending -= 1;
        let Some(alone) = exchange.alone.take() else {
            return;
        };
        link.alone = None;
        let packets = match exchange.leaves_at {
            None => alone.packets(),
            Some(enough) => alone.packets_until_left(alone.packets_for(enough)),
        };
        let after = exchange.after_ns;
        let last = alone.departure_ns(packets);
        link.link.free_at = last;
        let sender: &mut Sender = &mut exchange.sender;
        sender.first_at = Some(alone.departure_ns(1) + after);
        if exchange.leaves_at.is_none() {
            sender.last_at = last + after;
        }
        sender.sent = alone.bytes_of(packets);
        sender.packets = packets;
        sender.window = alone.window_afterwards();
        let headers = packets * u64::from(alone.tcp.header_bytes);
        self.tally.to_clients.packets += packets;
        self.tally.to_clients.wire_bytes += sender.sent + headers;
    }
}
