//! Responses on their way to clients: in closed form where no other is on the link, packet by
//! packet elsewhere.
//!
//! A response that comes from a server while it is sent begins packet by packet; once all of it is
//! there, and no other is on the link, the rest is worked out at once ([`SendForecast`]), and
//! there is one event more: its end.

use super::Simulator;
use super::exchange::{SendForecast, Stage};
use crate::network::link::{Link, LinkTraffic};
use crate::network::tcp::{Alone, SendResult, Terms};
use crate::settings::Path;
use crate::world::{Event, Nanos};

impl Simulator {
    /// Something is there to be sent to the client of an exchange.
    pub(super) fn start_sending(&mut self, id: u32) {
        let link = self.exchanges.at(id).link;
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
        let link = &mut self.links[exchange.link];
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
                exchange.sender.last_at = last;
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

    /// The exchange ends at `at`: its client has all of it, or is known to have disconnected.
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

    /// Another response begins on the link of one that was sent in closed form: it continues packet
    /// by packet.
    fn by_packets(&mut self, id: u32) {
        let at = self.world.at();
        let terms = self.terms(id);
        let exchange = self.exchanges.at_mut(id);
        let Some(alone) = exchange.alone.take() else {
            self.up_to_now(id, &terms);
            return;
        };
        exchange.ends_at = Nanos::MAX;
        let link = &mut self.links[exchange.link].link;
        let sender = &mut exchange.sender;
        sender.begin(alone.window);
        // the queue is empty when it begins; no other has been there since
        let mut due = alone.begins_ns;
        let mut sent = SendResult::default();
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
        if exchange.stage != Stage::Sending || exchange.is_worked_out() {
            return;
        }
        let at = self.world.at();
        let terms = self.terms(id);
        let exchange = self.exchanges.at_mut(id);
        let link: &mut Link = match self.settings.path {
            Path::DirectInternet => &mut self.internet,
            Path::Proxy | Path::DirectClient => &mut self.links[exchange.link].link,
        };
        let carried: &mut LinkTraffic = &mut self.tally.to_clients;
        let sent = exchange.sender.send(&terms, link, carried, at);
        match sent.blocked_until {
            Some(until) if self.is_settled(id) => self.go_ahead(id, &terms, until),
            _ => self.follow(id, sent),
        }
    }

    /// Whether nothing can happen to what is being sent but that another response begins there.
    fn is_settled(&self, id: u32) -> bool {
        let exchange = self.exchanges.at(id);
        exchange.is_all
            && exchange.leaves_at.is_none()
            && self.links[exchange.link].sending == 1
            && self.settings.path != Path::DirectInternet
            && self.settings.network.client_link.queue_limit_bytes == 0
    }

    /// Computes the rest, which continues at `until`; the sender itself stays where it is, in case
    /// another response begins.
    fn go_ahead(&mut self, id: u32, terms: &Terms, until: Nanos) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        let scratch = &mut self.scratch;
        scratch.copy(&exchange.sender);
        let place = &mut self.links[exchange.link];
        place.alone = Some(id);
        let (mut link, mut carried) = (place.link, LinkTraffic::default());
        let mut due = until;
        while let Some(until) = scratch
            .send(terms, &mut link, &mut carried, due)
            .blocked_until
        {
            due = until;
        }
        exchange.ahead = Some(SendForecast {
            until,
            sent: scratch.sent,
            packets: scratch.packets,
            last_at: scratch.last_at,
            window: scratch.window_afterwards(&terms.tcp),
            link,
            carried,
        });
        let last = scratch.last_at.max(at);
        self.ends(id, last, true);
    }

    /// Another response begins beside one whose rest was computed: it is set to its present state,
    /// and continues packet by packet.
    fn up_to_now(&mut self, id: u32, terms: &Terms) {
        let at = self.world.at();
        let exchange = self.exchanges.at_mut(id);
        let Some(ahead) = exchange.ahead.take() else {
            return;
        };
        exchange.ends_at = Nanos::MAX;
        let link = &mut self.links[exchange.link].link;
        let mut sent = SendResult {
            blocked_until: Some(ahead.until),
            left_at: None,
        };
        while let Some(due) = sent.blocked_until.filter(|due| *due <= at) {
            let carried = &mut self.tally.to_clients;
            sent = exchange.sender.send(terms, link, carried, due);
        }
        self.follow(id, sent);
    }

    /// What follows from having sent.
    fn follow(&mut self, id: u32, sent: SendResult) {
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
                self.drive(reading.in_flight);
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
        let link = &mut self.links[exchange.link];
        link.sending -= 1;
        if let Some(ahead) = exchange.ahead.take() {
            link.alone = None;
            link.link = ahead.link;
            let sender = &mut exchange.sender;
            sender.end(ahead.sent, ahead.packets, ahead.last_at, ahead.window);
            self.tally.to_clients.add(&ahead.carried);
            return;
        }
        let Some(alone) = exchange.alone.take() else {
            return;
        };
        link.alone = None;
        let (sender, after) = (&mut exchange.sender, exchange.after_ns);
        // when the client has it, or disconnects, was computed at the beginning
        let (packets, departs) = match exchange.leaves_at {
            None => (alone.packets(), sender.last_at - after),
            Some(enough) => {
                let packets = alone.packets_until_left(alone.packets_for(enough));
                (packets, alone.departure_ns(packets))
            }
        };
        link.link.free_at = departs;
        let first = if packets == 1 {
            departs
        } else {
            alone.departure_ns(1)
        };
        sender.first_at = Some(first + after);
        sender.sent = alone.bytes_of(packets);
        sender.packets = packets;
        sender.window = alone.window_afterwards();
        let headers = packets * u64::from(alone.tcp.header_bytes);
        self.tally.to_clients.packets += packets;
        self.tally.to_clients.wire_bytes += sender.sent + headers;
    }
}
