//! What a transfer over a link is, as far as that decides how soon it gets bytes.

use super::bucket::Class;
use crate::digest::Digest;

/// One direction of a connection in use by one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that it has moved.
    pub moved: u64,
    /// No client waits for it.
    pub is_background: bool,
    /// It is of a range: of this target, for this client.
    pub range_of: Option<Digest>,
}

impl Transfer {
    /// Its class, where content beyond `bulk_above` bytes is bulk, and `recent_bytes` were moved
    /// lately in ranges of the same target for the same client.
    pub(super) fn class(&self, bulk_above: u64, recent_bytes: u64) -> Class {
        if self.is_background {
            Class::Background
        } else if self.moved.max(recent_bytes) > bulk_above {
            Class::Bulk
        } else {
            Class::Interactive
        }
    }
}
