//! The connections that nodes have, as their front end knows them: multiple hand-off.
//!
//! The node that has a connection asks the front end to hold its packets, and then to steer them to
//! another node. A message is believed if it names the *ticket* of the connection: what the node
//! has given it when it adopted it, which is known to the front end and to that node alone. A flow
//! is an address and a port, which another connection may have in a moment; a ticket is never given
//! twice. So what is said of a connection that has ended changes nothing of a later one.
//!
//! The packets are steered by the kernel, which knows of a segment with SYN before this table does.
//! What a move needs is therefore asked of the kernel again when it steers: the driver changes the
//! flow only if it is steered, and held without a break.

use crate::now::Tick;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::net::SocketAddrV4;
use weir_semantics::words;

/// Milliseconds within which a node has the connection steered that it asked to hold: less than the
/// kernel holds packets.
pub const MOVE_MS_MAX: u64 = 1500;

words! {
    /// Why the front end does not move a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FlowRefusal {
        /// The node does not have that connection: another one has it, or it has ended.
        Unknown = "unknown",
        /// It has asked that before: a copy of an old message does.
        Repeated = "repeated",
        /// The connection is being moved.
        Moving = "moving",
        /// It did not ask to have it held, or too long ago.
        NotHeld = "not-held",
    }
}

/// Which connection a node speaks of.
#[derive(Clone, Copy, Debug)]
pub struct FlowMessage<'m> {
    /// The client's end.
    pub flow: SocketAddrV4,
    /// The node that says so, which has the connection.
    pub node: &'m str,
    /// Its ticket there.
    pub ticket: &'m str,
    /// Which of its attempts to move the connection this is, from 1.
    pub attempt: u32,
}

/// The connections that nodes have.
#[derive(Debug)]
pub struct SteeredFlows {
    flows: BTreeMap<SocketAddrV4, SteeredFlow>,
    max: usize,
}

#[derive(Debug)]
struct SteeredFlow {
    node: Box<str>,
    ticket: Box<str>,
    /// The attempt that was begun last.
    attempt: u32,
    moving: Option<Moving>,
    /// The ticket that it had at the node before, if it has moved.
    ticket_before: Option<Box<str>>,
}

#[derive(Debug)]
struct Moving {
    to: Box<str>,
    since: Tick,
    /// The kernel is told to steer it.
    is_steered: bool,
}

/// Where a connection is to be steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steer {
    /// To this node.
    To(Box<str>),
    /// It is steered there already: the answer to the same message was lost.
    Done,
}

impl SteeredFlows {
    /// None yet; never more than `max`.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self {
            flows: BTreeMap::new(),
            max,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Whether a node has a connection with this flow.
    #[must_use]
    pub fn contains(&self, flow: &SocketAddrV4) -> bool {
        self.flows.contains_key(flow)
    }

    /// The front end has handed the connection over to `node`, which knows it by `ticket`.
    pub fn insert(&mut self, flow: SocketAddrV4, node: &str, ticket: &str) {
        // nodes that failed have not said what ended with them; the kernel forgets it by itself
        if self.flows.len() >= self.max && !self.flows.contains_key(&flow) {
            self.flows.pop_first();
        }
        let steered = SteeredFlow {
            node: node.into(),
            ticket: ticket.into(),
            attempt: 0,
            moving: None,
            ticket_before: None,
        };
        self.flows.insert(flow, steered);
    }

    /// The front end itself has a connection with this flow: what nodes say of it is of another
    /// one, which has ended.
    pub fn forget(&mut self, flow: SocketAddrV4) {
        self.flows.remove(&flow);
    }

    /// The connection with this ticket has ended; whether it was the one with this flow.
    pub fn end(&mut self, flow: SocketAddrV4, ticket: &str) -> bool {
        let steered = self.flows.get(&flow);
        let is_known = steered.is_some_and(|steered| *steered.ticket == *ticket);
        if is_known {
            self.flows.remove(&flow);
        }
        is_known
    }

    fn get_mut(&mut self, message: &FlowMessage<'_>) -> Result<&mut SteeredFlow, FlowRefusal> {
        let steered = self.flows.get_mut(&message.flow);
        let of_node =
            |it: &&mut SteeredFlow| *it.node == *message.node && *it.ticket == *message.ticket;
        steered.filter(of_node).ok_or(FlowRefusal::Unknown)
    }

    /// The node asks to have the packets of a connection held, to move it to the node `to`.
    ///
    /// # Errors
    /// They are not to be held, and why.
    pub fn hold(
        &mut self,
        now: Tick,
        message: &FlowMessage<'_>,
        to: &str,
    ) -> Result<(), FlowRefusal> {
        let steered = self.get_mut(message)?;
        if message.attempt <= steered.attempt {
            return Err(FlowRefusal::Repeated);
        }
        if steered.is_moving(now) {
            return Err(FlowRefusal::Moving);
        }
        steered.attempt = message.attempt;
        steered.moving = Some(Moving {
            to: to.into(),
            since: now,
            is_steered: false,
        });
        Ok(())
    }

    /// The node asks to have the packets steered to where it moves the connection. To be followed
    /// by [`Self::moved`] or [`Self::release`].
    ///
    /// # Errors
    /// They are not to be steered, and why: [`FlowRefusal::Moving`] if they may be already.
    pub fn steer(&mut self, now: Tick, message: &FlowMessage<'_>) -> Result<Steer, FlowRefusal> {
        if let Some(steered) = self.flows.get(&message.flow)
            && steered.ticket_before.as_deref() == Some(message.ticket)
        {
            return Ok(Steer::Done);
        }
        let steered = self.get_mut(message)?;
        let is_in_time = steered.is_moving(now);
        let of_attempt = steered.attempt == message.attempt;
        let moving = steered.moving.as_mut().filter(|_| of_attempt);
        let moving = moving.ok_or(FlowRefusal::NotHeld)?;
        // however long that takes: the node must not take it for refused
        if moving.is_steered {
            return Err(FlowRefusal::Moving);
        }
        if !is_in_time {
            return Err(FlowRefusal::NotHeld);
        }
        moving.is_steered = true;
        Ok(Steer::To(moving.to.clone()))
    }

    /// The packets are steered: the other node has the connection, and knows it by `ticket`.
    /// `false` if another connection has the flow meanwhile.
    pub fn moved(&mut self, message: &FlowMessage<'_>, ticket: &str) -> bool {
        let Ok(steered) = self.get_mut(message) else {
            return false;
        };
        let Some(moving) = steered.moving.take_if(|moving| moving.is_steered) else {
            return false;
        };
        let before = core::mem::replace(&mut steered.ticket, ticket.into());
        steered.node = moving.to;
        steered.ticket_before = Some(before);
        steered.attempt = 0;
        true
    }

    /// The connection stays at the node: its packets are held no longer.
    ///
    /// # Errors
    /// The node has asked for no such move.
    pub fn release(&mut self, message: &FlowMessage<'_>) -> Result<(), FlowRefusal> {
        let steered = self.get_mut(message)?;
        if message.attempt > steered.attempt {
            // the message to hold them is late: it must hold nothing when it comes
            steered.attempt = message.attempt;
            return Err(FlowRefusal::NotHeld);
        }
        if steered.attempt != message.attempt || steered.moving.take().is_none() {
            return Err(FlowRefusal::NotHeld);
        }
        Ok(())
    }
}

impl SteeredFlow {
    fn is_moving(&self, now: Tick) -> bool {
        let moving = self.moving.as_ref();
        moving.is_some_and(|moving| now.ms_since(moving.since) < MOVE_MS_MAX)
    }
}
