//! Whether a connection moves on with a later request: *multiple* hand-off.
//!
//! In the paper (Aron, Druschel, Zwaenepoel, USENIX 1999) the dispatcher of the front end sees each
//! request and chooses for it. Here the front end sees packets alone, and the node that has the
//! connection reads the requests: it chooses, as for a lateral fetch, with what it knows of the
//! members. It then either moves the connection to the chosen node, or forwards the request to it.
//!
//! A move has a fixed cost, and a response that is forwarded costs by its bytes. So a connection
//! moves for what this node neither has nor will keep, to a node that is known to have it.
//!
//! Two nodes that know different things of a third one's memory could send a connection back and
//! forth. So the request with which it has moved is answered where it arrives: each move is paid
//! for by a response. And moves are rationed by time ([`MoveCredit`]).

use super::Stay;
use crate::route::HoldsIt;

/// Bytes of a response from which a move costs less than forwarding, where its length is known: 12
/// KB for Apache, 6 KB for Flash in the paper (its section 6). Not measured for this proxy.
pub const MOVE_BYTES_MIN: u64 = 12 * 1024;

/// Moves that a connection may make at once: pages and their images came in 5.6 requests a
/// connection in the paper's trace.
pub const MOVES_AT_ONCE_MAX: u32 = 8;

/// After so many milliseconds it may make one more.
pub const MOVE_EACH_MS: u32 = 1000;

/// A request on a connection that was handed over to this node, and the node that is chosen for it.
#[derive(Clone, Copy, Debug)]
pub struct LaterRequest {
    /// The connection was handed over with this very request.
    pub is_first_here: bool,
    /// A stored response of this node is validated for it: a short answer, as a rule.
    pub is_stored: bool,
    /// This node keeps a copy of what the chosen node sends: later requests are hits.
    pub is_copied: bool,
    /// The digest of the chosen node has the response.
    pub holds: HoldsIt,
    /// The policy of this node has the target as mapped to the chosen one: it was asked for it
    /// before. Counts where there is no digest.
    pub is_mapped: bool,
    /// Bytes of the content of the response, as far as they are known.
    pub response_bytes: Option<u64>,
}

impl LaterRequest {
    /// Whether the connection moves to the chosen node. To be asked when
    /// [`HandOffKind::judge`](super::HandOffKind::judge) permits it.
    ///
    /// # Errors
    /// The request is forwarded, and why.
    pub fn judge(&self, credit: MoveCredit) -> Result<MoveCredit, Stay> {
        let is_held = match self.holds {
            HoldsIt::Yes => true,
            HoldsIt::No => false,
            HoldsIt::Unknown => self.is_mapped,
        };
        let is_small = self
            .response_bytes
            .is_some_and(|bytes| bytes < MOVE_BYTES_MIN);
        let reasons = [
            (self.is_first_here, Stay::Arrived),
            (self.is_stored || self.is_copied, Stay::Kept),
            (!is_held, Stay::NotHeld),
            (is_small, Stay::Small),
        ];
        match reasons.iter().find(|(holds, _)| *holds) {
            Some((_, stay)) => Err(*stay),
            None => credit.take().ok_or(Stay::Often),
        }
    }
}

/// How soon and how often a connection may move, in milliseconds of its life. It travels with the
/// connection, and grows with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveCredit {
    ms: u32,
}

impl MoveCredit {
    const MAX_MS: u32 = MOVES_AT_ONCE_MAX * MOVE_EACH_MS;

    /// That of a connection that begins.
    #[must_use]
    pub const fn full() -> Self {
        Self { ms: Self::MAX_MS }
    }

    /// As another node has said it; what is above the largest one is that.
    #[must_use]
    pub fn of_ms(ms: u32) -> Self {
        let ms = ms.min(Self::MAX_MS);
        Self { ms }
    }

    /// For another node.
    #[must_use]
    pub const fn as_ms(self) -> u32 {
        self.ms
    }

    /// After so many milliseconds more.
    #[must_use]
    pub fn after(self, elapsed_ms: u64) -> Self {
        let elapsed_ms = u32::try_from(elapsed_ms).unwrap_or(u32::MAX);
        Self::of_ms(self.ms.saturating_add(elapsed_ms))
    }

    /// What is left after a move; `None` if it may make none now.
    const fn take(self) -> Option<Self> {
        match self.ms.checked_sub(MOVE_EACH_MS) {
            Some(ms) => Some(Self { ms }),
            None => None,
        }
    }
}
