//! Handing an open connection of a client over to the node that is to answer it: which request may
//! have that done, and the steps of it.
//!
//! Pai et al. (ASPLOS'98) hand over a connection once, with its first request: *single* hand-off.
//! Aron, Druschel and Zwaenepoel (USENIX 1999) do so for later requests, too: *multiple* hand-off.
//! What follows the request on the connection travels along, so pipelined requests are answered in
//! their order.
//!
//! [`Move`] is what the machine does that has the connection. Each failure leads back but one: the
//! connection goes on here, and its request is forwarded. If the node was told to go on and does
//! not say whether it does, two machines might send: that connection is reset.

mod flows;
mod later;

pub use flows::{FlowMessage, FlowRefusal, MOVE_MS_MAX, Steer, SteeredFlows};
pub use later::{LaterRequest, MOVE_BYTES_MIN, MOVE_EACH_MS, MOVES_AT_ONCE_MAX, MoveCredit};

use weir_semantics::{Method, words};

/// Connections that a machine hands over at once.
pub const MOVES_MAX: usize = 4096;

crate::choice! {
    /// How often a connection may be handed over.
    #[derive(Default)]
    pub enum HandOffKind {
        /// Once, with its first request: later ones are forwarded by the node that has it.
        #[default]
        Single = "single",
        /// With each request that is for another node than the one before.
        Multiple = "multiple",
    }
}

words! {
    /// Why a connection stays at the machine that has it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Stay {
        /// No other node is chosen for the request.
        Own = "own",
        /// It is not to the address of the service, which all machines have.
        Address = "address",
        /// It is encrypted, with keys that this process has.
        Tls = "tls",
        /// The request is neither GET nor HEAD, has content, awaits an interim response, or leaves
        /// HTTP.
        Content = "content",
        /// It is handed over with its first request alone.
        Later = "later",
        /// The client has not acknowledged more than may travel.
        Unacknowledged = "unacknowledged",
        /// Too many connections are being handed over, or are at other nodes.
        TooMany = "too-many",
        /// Its state does not permit it: one side has closed it, or the client sent more meanwhile.
        State = "state",
        /// The chosen node does not take it, or does not answer.
        Node = "node",
        /// The front end does not hold its packets, or does not answer.
        FrontEnd = "front-end",
        /// It was handed over with this very request, which is answered where it arrives.
        Arrived = "arrived",
        /// This node has the response or will keep it.
        Kept = "kept",
        /// The chosen node is not known to have the response.
        NotHeld = "not-held",
        /// The response is so short that forwarding costs less.
        Small = "small",
        /// It has moved so often of late that it may not now.
        Often = "often",
    }
}

/// A request whose head was read, with nothing of its response sent, and its connection.
#[derive(Clone, Copy, Debug)]
pub struct HandOffRequest {
    /// The connection is to the address of the service, which all machines have.
    pub is_to_service: bool,
    /// The connection is encrypted.
    pub is_tls: bool,
    /// The method.
    pub method: Method,
    /// It has content, if only of no bytes in chunks.
    pub has_content: bool,
    /// It has `Expect` (RFC 9110 §10.1.1).
    pub has_expectation: bool,
    /// It requests to switch protocols (RFC 9110 §7.8).
    pub is_upgrade: bool,
    /// The connection has had a request before, here or elsewhere.
    pub is_later: bool,
    /// Bytes of earlier responses that the client has not acknowledged.
    pub unacknowledged_bytes: usize,
    /// How many of them may travel.
    pub unacknowledged_bytes_max: usize,
    /// Other connections that this machine is handing over.
    pub other_moves: usize,
}

impl HandOffRequest {
    /// Whether the node can read the request again and answer it: nothing follows the head, and
    /// nothing comes between it and the response.
    const fn is_head_alone(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head)
            && !self.has_content
            && !self.has_expectation
            && !self.is_upgrade
    }
}

impl HandOffKind {
    /// Whether it is tried to hand a connection over with a request: the first one on this machine
    /// or a later one, of a connection that was handed over to this machine or is accepted here.
    #[must_use]
    pub const fn tries(self, is_first_here: bool, was_handed_over: bool) -> bool {
        match self {
            Self::Single => is_first_here && !was_handed_over,
            // it was handed over with the first one, which is answered where it arrives
            Self::Multiple => !(is_first_here && was_handed_over),
        }
    }

    /// Whether the connection may be handed over to the node that is chosen for a request. To be
    /// asked before one is chosen: a choice is counted, and may change the next one. If none is
    /// chosen, it stays for [`Stay::Own`].
    ///
    /// # Errors
    /// It stays, and why.
    pub fn judge(self, request: &HandOffRequest) -> Result<(), Stay> {
        let unacknowledged = request.unacknowledged_bytes > request.unacknowledged_bytes_max;
        let reasons = [
            (!request.is_to_service, Stay::Address),
            (request.is_tls, Stay::Tls),
            (!request.is_head_alone(), Stay::Content),
            (self == Self::Single && request.is_later, Stay::Later),
            (unacknowledged, Stay::Unacknowledged),
            (request.other_moves >= MOVES_MAX, Stay::TooMany),
        ];
        let reason = reasons.iter().find(|(holds, _)| *holds);
        reason.map_or(Ok(()), |(_, stay)| Err(*stay))
    }
}

/// What happens to a connection that is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEvent {
    /// Its packets are dropped from now on.
    Held,
    /// They cannot be.
    NotHeld,
    /// The front end does not do it, or does not say that it does.
    NotPermitted,
    /// Its state was read.
    Frozen,
    /// Its state cannot be read.
    NotFrozen,
    /// It was read, and there is no memory for what is to be sent of it.
    NoRoom,
    /// The node has adopted it.
    Adopted,
    /// The node does not, or does not answer in time.
    NotAdopted,
    /// No packet of the client was taken since the state was read.
    Unchanged,
    /// One was.
    Changed,
    /// Its packets go to the node from now on.
    Steered,
    /// They cannot be led there.
    NotSteered,
    /// It is not known whether they go there: the front end that leads them does not answer.
    SteeredPerhaps,
    /// The client was asked for a packet when its packets were dropped no longer: one came here.
    Reached,
    /// None came here in time.
    NotReached,
    /// The node goes on with it.
    WentOn,
    /// The node does not have it any more, and has sent nothing.
    NotWentOn,
    /// The node does not say in time whether it goes on with it.
    NotAnswered,
}

/// What is to be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveCommand {
    /// Drop its packets.
    Hold,
    /// Read its state.
    Freeze,
    /// Send the state to the node.
    Send,
    /// See whether a packet was taken meanwhile.
    Look,
    /// Lead its packets to the node, and drop them no longer, at once.
    Steer,
    /// See where its packets go, when they are dropped no longer: ask the client for one.
    Probe,
    /// Tell the node to go on with it.
    Go,
    /// Close it here, and send the client nothing.
    Drop,
    /// Go on with it here.
    Thaw,
    /// Drop its packets no longer.
    Release,
    /// Lead its packets here again.
    Return,
    /// The same, where there will be no such connection: they are answered with a reset.
    Unsteer,
    /// Close it here, and send the client a reset: it may be silent.
    Reset,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEnd {
    /// The node has it.
    HandedOver,
    /// It goes on here, and its request is forwarded: why.
    Stays(Stay),
    /// No machine has it, and its client was told.
    Lost,
}

/// A connection that is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move(Step);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Holding,
    Freezing,
    Sending,
    Looking,
    Steering,
    Probing,
    Telling,
    Over(MoveEnd),
}

/// Of one event; carried out in order.
pub type MoveCommands = &'static [MoveCommand];

impl Move {
    /// Begins it.
    #[must_use]
    pub const fn begin() -> (Self, MoveCommands) {
        (Self(Step::Holding), &[MoveCommand::Hold])
    }

    /// What became of it, when nothing more is to be done.
    #[must_use]
    pub const fn end(self) -> Option<MoveEnd> {
        match self.0 {
            Step::Over(end) => Some(end),
            _ => None,
        }
    }

    /// The outcome of the last command that has one. One of another command changes nothing.
    pub const fn handle(&mut self, event: MoveEvent) -> MoveCommands {
        use MoveCommand::{
            Drop, Freeze, Go, Look, Probe, Release, Reset, Return, Send, Steer, Thaw, Unsteer,
        };
        const fn stays(why: Stay) -> Step {
            Step::Over(MoveEnd::Stays(why))
        }
        let (step, commands): (Step, MoveCommands) = match (self.0, event) {
            (Step::Holding, MoveEvent::Held) => (Step::Freezing, &[Freeze]),
            (Step::Holding, MoveEvent::NotHeld) => (stays(Stay::TooMany), &[]),
            (Step::Holding, MoveEvent::NotPermitted) => (stays(Stay::FrontEnd), &[Release]),
            (Step::Freezing, MoveEvent::Frozen) => (Step::Sending, &[Send]),
            (Step::Freezing, MoveEvent::NotFrozen) => (stays(Stay::State), &[Release]),
            (Step::Freezing, MoveEvent::NoRoom) => (stays(Stay::TooMany), &[Thaw, Release]),
            (Step::Sending, MoveEvent::Adopted) => (Step::Looking, &[Look]),
            (Step::Sending, MoveEvent::NotAdopted) => (stays(Stay::Node), &[Thaw, Release]),
            (Step::Looking, MoveEvent::Unchanged) => (Step::Steering, &[Steer]),
            (Step::Looking, MoveEvent::Changed) => (stays(Stay::State), &[Thaw, Release]),
            // frozen until it is known whether the node goes on: two machines must not send
            (Step::Steering, MoveEvent::Steered) => (Step::Telling, &[Go]),
            // packets that come here do so for good: they can be led away only while they are held
            (Step::Steering, MoveEvent::SteeredPerhaps) => (Step::Probing, &[Probe]),
            (Step::Probing, MoveEvent::Reached) => (stays(Stay::FrontEnd), &[Thaw]),
            (Step::Probing, MoveEvent::NotReached) => (Step::Telling, &[Go]),
            (Step::Steering, MoveEvent::NotSteered) => (stays(Stay::TooMany), &[Thaw, Release]),
            (Step::Telling, MoveEvent::WentOn) => (Step::Over(MoveEnd::HandedOver), &[Drop]),
            (Step::Telling, MoveEvent::NotWentOn) => (stays(Stay::Node), &[Return, Thaw]),
            (Step::Telling, MoveEvent::NotAnswered) => {
                (Step::Over(MoveEnd::Lost), &[Unsteer, Reset])
            }
            (step, _) => (step, &[]),
        };
        self.0 = step;
        commands
    }
}
