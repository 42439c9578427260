//! What a transaction answers.

use crate::stored::StoredFacts;
use crate::verdict::RefuseReason;
use weir_semantics::DeltaSeconds;

/// What the driver is to do, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Look for a stored response.
    LookUp,
    /// Send the stored response.
    Serve(Serving),
    /// Send the request to the next hop.
    Forward(Forwarding),
    /// Validate the stored response in the background; the client is served already.
    RefreshInBackground,
    /// Answer without a stored response; the driver knows status and text.
    Answer(RefuseReason),
    /// Relay the next hop's response to the client.
    Relay,
    /// Store what is relayed under these facts; a 206 as the part it is.
    Store(StoredFacts),
    /// Join what is relayed with the stored part (RFC 9111 §3.4), and update the stored fields by
    /// those of the 206 just received. These are the facts of the merged response. The client gets
    /// the response in the form that it requested, with the stored bytes and the received ones.
    Combine(StoredFacts),
    /// Keep what has arrived of the response that was being stored, as a part, if it is a byte or
    /// more. Where this is not said after `Incomplete`, nothing of it may stay.
    KeepPart,
    /// Let go of the response just received, unread and unseen by the client, and send the request
    /// once more as the client sent it: nothing replaced, nothing added. The result is reported as
    /// `Response`.
    ForwardAgain,
    /// Put the merged response in the place of the stored one (RFC 9111 §3.2, §4.3.4, §4.3.5);
    /// these are its facts.
    Freshen(StoredFacts),
    /// Send the client the merged response, with the fields of the update that are for this client
    /// alone. `Freshen` or `Drop`, which comes before it, says whether others get it too.
    ServeMerged(Serving),
    /// Forget what is stored for the target and for same-origin Location and Content-Location (RFC
    /// 9111 §4.4).
    Invalidate,
    /// Forget the stored response that was being validated or completed: the origin has another
    /// one, which is not stored.
    Drop,
}

/// How a stored response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Value for Age (RFC 9111 §5.1), seconds.
    pub age: DeltaSeconds,
}

/// How a request is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// Replace the client's preconditions by the stored response's validators (RFC 9111 §4.3.1).
    pub validate: bool,
    /// Replace the client's preconditions and its Range by a Range for what the stored part lacks
    /// and an If-Range with its entity tag (RFC 9110 §13.1.5). Never together with `validate`. A
    /// 206 is reported as `Update`.
    pub complete: bool,
}

/// At most four commands, in order, without allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commands {
    slots: [Option<Command>; Self::MAX],
}

impl Commands {
    /// Most commands one event can give.
    pub const MAX: usize = 4;

    pub(super) fn with(mut self, command: Command) -> Self {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(command);
        } else {
            debug_assert!(false, "more than {} commands", Self::MAX);
        }
        self
    }

    pub(super) fn and(self, others: Self) -> Self {
        others.iter().fold(self, Self::with)
    }

    pub(super) fn one(command: Command) -> Self {
        Self::default().with(command)
    }

    /// The commands in order.
    pub fn iter(&self) -> impl Iterator<Item = Command> + '_ {
        self.slots.iter().map_while(|slot| *slot)
    }

    /// The first command; every event but the last of a transaction gives at least one.
    #[must_use]
    pub fn first(&self) -> Option<Command> {
        self.slots[0]
    }

    /// The commands as a list, for comparing whole conversations in tests.
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<Command> {
        self.iter().collect()
    }
}
