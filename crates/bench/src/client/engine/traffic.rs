//! Between sockets and connections: connecting, writing, reading, and what the link has to say
//! about each.

use std::io::{self, Read, Write};

use mio::Interest;
use mio::event::Event as Readiness;

use super::{Engine, Task, token, would_block};
use crate::check::Inspector;
use crate::client::connection::{Command, Ending, Event};
use crate::client::slot::Pause;
use crate::client::socket;
use crate::client::timers::NEVER_US;

/// A connection that takes so long was not set up by its first packet, in microseconds (RFC 6298
/// §2: repeated after a second).
const SLOW_CONNECT_US: u64 = 1_000_000;

impl Engine<'_> {
    /// A socket is ready for something.
    pub(in crate::client) fn ready(&mut self, key: usize, readiness: &Readiness) {
        let slot = &mut self.slots[key];
        if slot.socket.is_none() {
            return;
        }
        slot.is_readable |= readiness.is_readable() || readiness.is_error();
        slot.is_read_closed |= readiness.is_read_closed() || readiness.is_error();
        if slot.is_connecting {
            self.may_be_connected(key);
        } else {
            if readiness.is_writable()
                && slot.written < slot.request.len()
                && slot.pause == Pause::None
            {
                self.write(key);
            }
            if self.slots[key].pause == Pause::None {
                self.read(key);
            }
        }
        self.rearm(key);
    }

    /// Begins a connection: at once, or when the SYN has crossed the link.
    pub(super) fn connect(&mut self, key: usize) {
        let now_us = self.clock.now_us();
        let slot = &mut self.slots[key];
        let member = &mut self.agents[slot.agent];
        slot.silent_at_us = now_us.saturating_add(self.response_timeout_us);
        match &mut member.line {
            None => self.knock(key),
            Some(line) => {
                let set_up = line.connect(now_us);
                slot.arrived_us = set_up.ready_at_us;
                slot.pause(Pause::Knock, now_us, set_up.knock_at_us);
            }
        }
        self.rearm(key);
    }

    /// Opens the socket.
    pub(super) fn knock(&mut self, key: usize) {
        let slot = &self.slots[key];
        let member = &self.agents[slot.agent];
        let to = self.address_for(member.number, slot.order.ask.target.server);
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
                self.statistics.opened();
                let slot = &mut self.slots[key];
                slot.knocked_us = self.clock.now_us();
                slot.socket = Some(socket);
                slot.is_connecting = true;
            }
            Err(error) => self.tell(key, Event::NotConnected(socket::why_not(&error))),
        }
    }

    /// The socket says that its connection is there, or will not be.
    fn may_be_connected(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        let Some(socket) = &slot.socket else {
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
            // not connected yet: wait for the next event
            if error.kind() != io::ErrorKind::NotConnected {
                self.tell(key, Event::NotConnected(socket::why_not(&error)));
            }
            return;
        }
        slot.is_connecting = false;
        let now_us = self.clock.now_us();
        // without a link the answer is there now
        if slot.arrived_us > now_us {
            let at_us = slot.arrived_us;
            return slot.pause(Pause::SetUp, now_us, at_us);
        }
        self.tell(key, Event::Connected);
    }

    /// Reports an event to the connection, and carries out its commands.
    pub(super) fn tell(&mut self, key: usize, event: Event<'_>) {
        let slot = &mut self.slots[key];
        if event == Event::Connected {
            let now_us = self.clock.now_us();
            let took_us = now_us.saturating_sub(slot.started_us);
            let is_slow = now_us.saturating_sub(slot.knocked_us) >= SLOW_CONNECT_US
                && self.agents[slot.agent].line.is_none();
            slot.connect_us = Some(took_us);
            self.statistics.connected(&slot.order, took_us, is_slow);
        }
        let mut inspecting = Inspector {
            examination: &mut slot.examination,
            reference: &self.reference,
        };
        let command = slot.connection.handle(event, &mut inspecting);
        self.obey_connection(key, command);
    }

    fn obey_connection(&mut self, key: usize, command: Command) {
        match command {
            Command::Connect => self.connect(key),
            Command::Send => self.send(key),
            Command::Receive => {}
            Command::Finish { ending, keep } => {
                let now_us = self.clock.now_us();
                let slot = &mut self.slots[key];
                slot.silent_at_us = NEVER_US;
                if slot.arrived_us > now_us && !self.is_over {
                    let at_us = slot.arrived_us;
                    return slot.pause(Pause::Arrive { ending, keep }, now_us, at_us);
                }
                self.end_exchange(key, ending, keep, now_us);
            }
            Command::Close => self.close_idle(key),
        }
    }

    /// The exchange must end; until then its connection is not used.
    pub(super) fn end_exchange(&mut self, key: usize, ending: Ending, keep: bool, at_us: u64) {
        self.slots[key].pause(Pause::Arrive { ending, keep }, at_us, NEVER_US);
        self.tasks.push_back(Task::Finish {
            slot: key,
            ending,
            keep,
            at_us,
        });
    }

    /// Sends the request: at once, or when it has crossed the link.
    fn send(&mut self, key: usize) {
        let now_us = self.clock.now_us();
        let slot = &mut self.slots[key];
        slot.silent_at_us = now_us.saturating_add(self.response_timeout_us);
        if let Some(line) = &mut self.agents[slot.agent].line {
            let at_us = line.send(now_us, slot.request.len());
            if at_us > now_us {
                slot.silent_at_us = at_us.saturating_add(self.response_timeout_us);
                slot.pause(Pause::Send, now_us, at_us);
                return;
            }
        }
        self.write(key);
    }

    /// Writes what is left of the request.
    pub(super) fn write(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        let Some(socket) = &mut slot.socket else {
            return;
        };
        while slot.written < slot.request.len() {
            match socket.write(&slot.request[slot.written..]) {
                Ok(bytes) => slot.written += bytes,
                Err(error) if would_block(&error) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // a response may be there before the end of the connection shows
                    slot.written = slot.request.len();
                    slot.is_readable = true;
                    slot.is_read_closed = true;
                    self.tell(key, Event::Sent);
                    return self.read(key);
                }
            }
        }
        self.tell(key, Event::Sent);
        // a response that came before the request was written, or the end of a connection that was
        // kept
        if self.slots[key].is_readable {
            self.read(key);
        }
    }

    /// Reads until there is nothing more, the exchange is over, or the link says later.
    pub(super) fn read(&mut self, key: usize) {
        loop {
            let slot = &mut self.slots[key];
            if !slot.is_readable {
                return;
            }
            let mut room = self.scratch.len();
            if let Some(line) = &self.agents[slot.agent].line {
                let (at_us, now_us) = (line.may_read_at_us(slot.flow), self.clock.now_us());
                if at_us > now_us {
                    slot.is_backlogged = true;
                    return slot.pause(Pause::Read, now_us, at_us);
                }
                room = line.quantum_bytes();
            }
            let Some(socket) = &mut slot.socket else {
                return;
            };
            match socket.read(&mut self.scratch[..room]) {
                Ok(0) => {
                    slot.is_readable = false;
                    return self.tell(key, Event::Closed);
                }
                Ok(bytes) => {
                    // less than there was room for is all there was, and more is announced by
                    // another event; except for an end that was announced already
                    slot.is_readable = bytes == room || slot.is_read_closed;
                    if !self.received(key, bytes, bytes == room) {
                        return;
                    }
                }
                Err(error) if would_block(&error) => {
                    slot.is_readable = false;
                    slot.is_backlogged = false;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    slot.is_readable = false;
                    return self.tell(key, Event::Broken);
                }
            }
        }
    }

    /// Bytes were read; may reading go on?
    fn received(&mut self, key: usize, bytes: usize, more_follow: bool) -> bool {
        let now_us = self.clock.now_us();
        let slot = &mut self.slots[key];
        slot.arrived_us = now_us;
        if let Some(line) = &mut self.agents[slot.agent].line {
            let from_us = if slot.is_backlogged {
                line.went_on_at_us(slot.flow, now_us)
            } else {
                now_us
            };
            slot.arrived_us = line.receive(&mut slot.flow, from_us, bytes, more_follow);
            slot.is_backlogged &= more_follow;
        }
        slot.silent_at_us = slot.arrived_us.saturating_add(self.response_timeout_us);
        let had_head = slot.examination.status.is_some();
        let mut inspecting = Inspector {
            examination: &mut slot.examination,
            reference: &self.reference,
        };
        let event = Event::Bytes(&self.scratch[..bytes]);
        let command = slot.connection.handle(event, &mut inspecting);
        if !had_head && slot.examination.status.is_some() {
            slot.head_us = Some(slot.arrived_us);
        }
        self.obey_connection(key, command);
        command == Command::Receive
    }
}
