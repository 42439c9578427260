//! Why the catalog did not take something.

use core::fmt;
use weir_semantics::words;

words! {
    /// Why the catalog did not take a response, or a new size of one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Refusal {
        /// It would not fit even if everything else were evicted.
        TooLarge {
            /// The requested size.
            size_bytes: u64,
            /// The largest that would fit.
            size_max_bytes: u64,
        } = "too-large",
        /// It is larger than the queue that new responses enter: it would evict all of that queue,
        /// and be the next victim.
        TooLargeForSmallQueue {
            /// The requested size.
            size_bytes: u64,
            /// The size of that queue.
            size_max_bytes: u64,
        } = "too-large-for-small-queue",
        /// All 2^32 - 1 slots are in use, and the bytes would still have allowed one more.
        NoSlot = "no-slot",
        /// Another node of the cluster keeps it, and it is not requested so often that a copy here
        /// would pay.
        OnPeer = "on-peer",
        /// It came from a parent whose responses are not stored here (`keep = false`).
        OnParent = "on-parent",
        /// It came from a sibling whose responses are not stored here (`keep = false`).
        OnSibling = "on-sibling",
        /// This node is a front end of its cluster, which stores nothing.
        FrontEnd = "front-end",
        /// Its entry was removed meanwhile: evicted, purged or replaced.
        NotResident = "not-resident",
        /// The entries that would have to be evicted are being read: evicting them would give no
        /// bytes back.
        AllInUse {
            /// The requested size.
            size_bytes: u64,
        } = "all-in-use",
        /// Responses that are still arriving are never evicted, and they hold all the room that
        /// they may together.
        NoRoomInFlight {
            /// The requested bytes, with those it holds already.
            size_bytes: u64,
            /// The bytes the others leave of the share of those arriving.
            room_bytes: u64,
        } = "no-room-in-flight",
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge {
                size_bytes,
                size_max_bytes,
            } => write!(
                f,
                "{size_bytes} bytes are more than the {size_max_bytes} that fit"
            ),
            Self::TooLargeForSmallQueue {
                size_bytes,
                size_max_bytes,
            } => write!(
                f,
                "{size_bytes} bytes are more than the {size_max_bytes} of the small queue"
            ),
            Self::NoSlot => f.write_str("all slots are in use"),
            Self::OnPeer => f.write_str("another node of the cluster keeps it"),
            Self::OnParent => f.write_str("responses of this parent are not stored"),
            Self::OnSibling => f.write_str("responses of this sibling are not stored"),
            Self::FrontEnd => f.write_str("a front end stores nothing"),
            Self::NotResident => f.write_str("the entry is no longer resident"),
            Self::AllInUse { size_bytes } => write!(
                f,
                "{size_bytes} bytes are more than is left by entries that are being read"
            ),
            Self::NoRoomInFlight {
                size_bytes,
                room_bytes,
            } => write!(
                f,
                "{size_bytes} bytes are more than the {room_bytes} that others leave to those arriving"
            ),
        }
    }
}

impl core::error::Error for Refusal {}
