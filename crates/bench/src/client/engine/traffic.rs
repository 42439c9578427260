//! Between sockets and connections: connecting, writing, reading, and what the link has to say
//! about each.

use std::io::{self, Read, Write};

use mio::Interest;
use mio::event::Event as Readiness;

use super::{Engine, Task, token, would_block};
use crate::check::Inspecting;
use crate::client::connection::{Command, Ending, Event};
use crate::client::party::Pause;
use crate::client::socket;
use crate::client::timers::NEVER_US;

/// A connection that takes so long was not set up by its first packet, in microseconds (RFC 6298
/// §2: repeated after a second).
const SLOW_CONNECT_US: u64 = 1_000_000;

impl Engine<'_> {
    /// A socket is ready for something.
    pub(in crate::client) fn ready(&mut self, key: usize, readiness: &Readiness) {
        let party = &mut self.parties[key];
        if party.socket.is_none() {
            return;
        }
        party.is_readable |= readiness.is_readable() || readiness.is_error();
        party.is_read_closed |= readiness.is_read_closed() || readiness.is_error();
        if party.is_connecting {
            self.may_be_connected(key);
        } else {
            if readiness.is_writable()
                && party.written < party.request.len()
                && party.pause == Pause::None
            {
                self.write(key);
            }
            if self.parties[key].pause == Pause::None {
                self.read(key);
            }
        }
        self.rearm(key);
    }

    /// Begins a connection: at once, or when the SYN has crossed the link.
    pub(super) fn connect(&mut self, key: usize) {
        let now_us = self.clock.now_us();
        let party = &mut self.parties[key];
        let member = &mut self.agents[party.agent];
        party.silent_at_us = now_us.saturating_add(self.response_timeout_us);
        match &mut member.line {
            None => self.knock(key),
            Some(line) => {
                let set_up = line.connect(now_us);
                party.arrived_us = set_up.ready_at_us;
                party.pause(Pause::Knock, now_us, set_up.knock_at_us);
            }
        }
        self.rearm(key);
    }

    /// Opens the socket.
    pub(super) fn knock(&mut self, key: usize) {
        let party = &self.parties[key];
        let member = &self.agents[party.agent];
        let to = self.address_for(member.number, party.order.ask.target.server);
        // where the kernel is the link, a small buffer would be another one
        let is_behind_link = member.line.is_some() && self.plan.namespace.is_none();
        let opened = socket::connect(to, member.address, is_behind_link);
        let registered = opened.and_then(|mut socket| {
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut socket, token(key), both)?;
            Ok(socket)
        });
        match registered {
            Ok(socket) => {
                self.ledger.opened();
                let party = &mut self.parties[key];
                party.knocked_us = self.clock.now_us();
                party.socket = Some(socket);
                party.is_connecting = true;
            }
            Err(error) => self.tell(key, Event::NotConnected(socket::why_not(&error))),
        }
    }

    /// The socket says that its connection is there, or will not be.
    fn may_be_connected(&mut self, key: usize) {
        let party = &mut self.parties[key];
        let Some(socket) = &party.socket else {
            return;
        };
        let failure = match socket.take_error() {
            Ok(None) => None,
            Ok(Some(error)) | Err(error) => Some(error),
        };
        if let Some(error) = failure {
            return self.tell(key, Event::NotConnected(socket::why_not(&error)));
        }
        if let Err(error) = socket.peer_addr() {
            // not there yet: the next event tells
            if error.kind() != io::ErrorKind::NotConnected {
                self.tell(key, Event::NotConnected(socket::why_not(&error)));
            }
            return;
        }
        party.is_connecting = false;
        let now_us = self.clock.now_us();
        // without a link the answer is there now
        if party.arrived_us > now_us {
            let at_us = party.arrived_us;
            return party.pause(Pause::SetUp, now_us, at_us);
        }
        self.tell(key, Event::Connected);
    }

    /// Tells the connection, and does what it says.
    pub(super) fn tell(&mut self, key: usize, event: Event<'_>) {
        let party = &mut self.parties[key];
        if event == Event::Connected {
            let now_us = self.clock.now_us();
            let took_us = now_us.saturating_sub(party.started_us);
            let is_slow = now_us.saturating_sub(party.knocked_us) >= SLOW_CONNECT_US
                && self.agents[party.agent].line.is_none();
            party.connect_us = Some(took_us);
            self.ledger.connected(&party.order, took_us, is_slow);
        }
        let mut inspecting = Inspecting {
            examination: &mut party.examination,
            grounds: &self.grounds,
        };
        let command = party.connection.handle(event, &mut inspecting);
        self.obey_connection(key, command);
    }

    fn obey_connection(&mut self, key: usize, command: Command) {
        match command {
            Command::Connect => self.connect(key),
            Command::Send => self.send(key),
            Command::Receive => {}
            Command::Finish { ending, keep } => {
                let now_us = self.clock.now_us();
                let party = &mut self.parties[key];
                party.silent_at_us = NEVER_US;
                if party.arrived_us > now_us && !self.is_over {
                    let at_us = party.arrived_us;
                    return party.pause(Pause::Arrive { ending, keep }, now_us, at_us);
                }
                self.end_exchange(key, ending, keep, now_us);
            }
            Command::Close => self.close_idle(key),
        }
    }

    /// The exchange is to be ended; until then nothing moves on its connection.
    pub(super) fn end_exchange(&mut self, key: usize, ending: Ending, keep: bool, at_us: u64) {
        self.parties[key].pause(Pause::Arrive { ending, keep }, at_us, NEVER_US);
        self.tasks.push_back(Task::Finish {
            party: key,
            ending,
            keep,
            at_us,
        });
    }

    /// Sends the request: at once, or when it has crossed the link.
    fn send(&mut self, key: usize) {
        let now_us = self.clock.now_us();
        let party = &mut self.parties[key];
        party.silent_at_us = now_us.saturating_add(self.response_timeout_us);
        if let Some(line) = &mut self.agents[party.agent].line {
            let at_us = line.send(now_us, party.request.len());
            if at_us > now_us {
                party.silent_at_us = at_us.saturating_add(self.response_timeout_us);
                party.pause(Pause::Send, now_us, at_us);
                return;
            }
        }
        self.write(key);
    }

    /// Writes what is left of the request.
    pub(super) fn write(&mut self, key: usize) {
        let party = &mut self.parties[key];
        let Some(socket) = &mut party.socket else {
            return;
        };
        while party.written < party.request.len() {
            match socket.write(&party.request[party.written..]) {
                Ok(bytes) => party.written += bytes,
                Err(error) if would_block(&error) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // a response may be there before the end of the connection shows
                    party.written = party.request.len();
                    party.is_readable = true;
                    party.is_read_closed = true;
                    self.tell(key, Event::Sent);
                    return self.read(key);
                }
            }
        }
        self.tell(key, Event::Sent);
        // a response that came before the request was written, or the end of a connection that was
        // kept
        if self.parties[key].is_readable {
            self.read(key);
        }
    }

    /// Reads until there is nothing more, the exchange is over, or the link says later.
    pub(super) fn read(&mut self, key: usize) {
        loop {
            let party = &mut self.parties[key];
            if !party.is_readable {
                return;
            }
            let mut room = self.scratch.len();
            if let Some(line) = &self.agents[party.agent].line {
                let (at_us, now_us) = (line.may_read_at_us(party.flow), self.clock.now_us());
                if at_us > now_us {
                    party.is_backlogged = true;
                    return party.pause(Pause::Read, now_us, at_us);
                }
                room = line.quantum_bytes();
            }
            let Some(socket) = &mut party.socket else {
                return;
            };
            match socket.read(&mut self.scratch[..room]) {
                Ok(0) => {
                    party.is_readable = false;
                    return self.tell(key, Event::Closed);
                }
                Ok(bytes) => {
                    // less than there was room for is all there was, and more is announced by
                    // another event; except for an end that was announced already
                    party.is_readable = bytes == room || party.is_read_closed;
                    if !self.received(key, bytes, bytes == room) {
                        return;
                    }
                }
                Err(error) if would_block(&error) => {
                    party.is_readable = false;
                    party.is_backlogged = false;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    party.is_readable = false;
                    return self.tell(key, Event::Broken);
                }
            }
        }
    }

    /// Bytes were read; may reading go on?
    fn received(&mut self, key: usize, bytes: usize, more_follow: bool) -> bool {
        let now_us = self.clock.now_us();
        let party = &mut self.parties[key];
        party.arrived_us = now_us;
        if let Some(line) = &mut self.agents[party.agent].line {
            let from_us = if party.is_backlogged {
                line.went_on_at_us(party.flow, now_us)
            } else {
                now_us
            };
            party.arrived_us = line.receive(&mut party.flow, from_us, bytes, more_follow);
            party.is_backlogged &= more_follow;
        }
        party.silent_at_us = party.arrived_us.saturating_add(self.response_timeout_us);
        let had_head = party.examination.status.is_some();
        let mut inspecting = Inspecting {
            examination: &mut party.examination,
            grounds: &self.grounds,
        };
        let event = Event::Bytes(&self.scratch[..bytes]);
        let command = party.connection.handle(event, &mut inspecting);
        if !had_head && party.examination.status.is_some() {
            party.head_us = Some(party.arrived_us);
        }
        self.obey_connection(key, command);
        command == Command::Receive
    }
}
