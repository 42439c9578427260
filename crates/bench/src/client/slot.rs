//! A connection of an agent: socket, state, examination, and the event it waits for.

use mio::net::TcpStream;

use super::agent::Order;
use super::connection::{Connection, Ending};
use super::timers::{NEVER_US, TimerId};
use crate::check::Examination;
use crate::link::Flow;

/// What a connection waits for beside its socket: the link, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Nothing.
    None,
    /// The SYN is on its way.
    Knock,
    /// The answer to it is.
    SetUp,
    /// The request is.
    Send,
    /// More may be read then.
    Read,
    /// The end of the response is on its way.
    Arrive {
        /// How it ended.
        ending: Ending,
        /// May another exchange follow?
        keep: bool,
    },
}

/// A connection slot. There is one for each place of each agent; it is reused, so that a request
/// allocates nothing.
#[derive(Debug)]
pub(super) struct Slot {
    /// The agent's place among those of this thread, and the connection's among those of the agent.
    pub(super) agent: usize,
    pub(super) place: usize,
    pub(super) socket: Option<TcpStream>,
    pub(super) connection: Connection,
    pub(super) examination: Examination,
    pub(super) order: Order,
    pub(super) keep: bool,
    /// The request, and how much of it is written.
    pub(super) request: Vec<u8>,
    pub(super) written: usize,
    pub(super) flow: Flow,
    pub(super) pause: Pause,
    /// When the pause began, and when it is over.
    pub(super) pause_from_us: u64,
    pub(super) pause_until_us: u64,
    /// Was there more to read when the link said later? Then the link continues as soon as it is
    /// free, however late we look.
    pub(super) is_backlogged: bool,
    /// When silence is too long.
    pub(super) silent_at_us: u64,
    pub(super) armed: TimerId,
    /// Is the connection not there yet?
    pub(super) is_connecting: bool,
    /// May there be something to read?
    pub(super) is_readable: bool,
    /// Has the other side closed? Then reading continues until that is seen.
    pub(super) is_read_closed: bool,
    pub(super) started_us: u64,
    /// When the socket began to connect.
    pub(super) knocked_us: u64,
    pub(super) connect_us: Option<u64>,
    pub(super) head_us: Option<u64>,
    /// When the last bytes that were read have arrived, over the link.
    pub(super) arrived_us: u64,
}

impl Slot {
    pub(super) fn new(agent: usize, place: usize, order: Order, examination: Examination) -> Self {
        Self {
            agent,
            place,
            socket: None,
            connection: Connection::new(),
            examination,
            order,
            keep: false,
            request: Vec::new(),
            written: 0,
            flow: Flow::default(),
            pause: Pause::None,
            pause_from_us: 0,
            pause_until_us: NEVER_US,
            is_backlogged: false,
            silent_at_us: NEVER_US,
            armed: TimerId::default(),
            is_connecting: false,
            is_readable: false,
            is_read_closed: false,
            started_us: 0,
            knocked_us: 0,
            connect_us: None,
            head_us: None,
            arrived_us: 0,
        }
    }

    /// When it must be woken.
    pub(super) fn wake_us(&self) -> u64 {
        self.pause_until_us.min(self.silent_at_us)
    }

    /// Waits for the link.
    pub(super) fn pause(&mut self, pause: Pause, from_us: u64, until_us: u64) {
        self.pause = pause;
        self.pause_from_us = from_us;
        self.pause_until_us = until_us;
    }

    /// The pause is over.
    pub(super) fn resume(&mut self) -> Pause {
        self.pause_until_us = NEVER_US;
        std::mem::replace(&mut self.pause, Pause::None)
    }

    /// Forgets the socket, which closes it; was there one?
    pub(super) fn disconnect(&mut self) -> bool {
        self.is_connecting = false;
        self.is_readable = false;
        self.is_read_closed = false;
        self.is_backlogged = false;
        self.silent_at_us = NEVER_US;
        self.resume();
        self.socket.take().is_some()
    }
}
