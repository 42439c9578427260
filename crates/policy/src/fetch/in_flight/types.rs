//! The words a [`InFlightState`](super::InFlightState) and its driver talk in.

use crate::fetch::byte_span::ByteSpan;
use crate::fetch::pace::ReadAhead;
use weir_semantics::words;

/// A reader of an in-flight response; not used again while the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(pub u32);

/// A fetch for an in-flight response; not used again while the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u32);

/// What holds for an in-flight response as long as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightRules {
    /// How far a fetch may run ahead of its fastest reader.
    pub read_ahead: ReadAhead,
    /// How many fetches may run at a time; 1 at least. [`FETCHES_MAX`] by default.
    pub fetches_max: u32,
    /// The representation has a strong entity tag: what is missing can be fetched by `Range` with
    /// `If-Range` (RFC 9110 §13.1.5). Without one no fetch is begun but the first.
    pub can_range: bool,
}

impl Default for InFlightRules {
    fn default() -> Self {
        Self {
            read_ahead: ReadAhead::DEFAULT,
            fetches_max: FETCHES_MAX,
            can_range: false,
        }
    }
}

words! {
    /// Why a reader cannot read here. It looks for its response elsewhere, and nothing was sent to
    /// it yet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum AttachError {
        /// A fetch was cut or found another representation, and the reader's span is not all here;
        /// or a module ended the fetch.
        Closed = "closed",
        /// No fetch will receive its span, and without a strong validator none can begin.
        CannotRange = "cannot-range",
        /// Its span has nothing of this content.
        BeyondEnd = "beyond-end",
        /// The content lies in so many pieces already that another would be one too many
        /// ([`SPANS_MAX`]).
        TooManySpans = "too-many-spans",
        /// There are too many readers ([`READERS_MAX`]).
        TooManyReaders = "too-many-readers",
    }
}

/// What a reader can do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes are here and are its next.
    Read(ByteSpan),
    /// Its next byte is on its way: look again when the content has grown or a fetch has ended.
    Wait,
    /// Its driver begins this fetch now, and then looks again. It counts as begun.
    Fetch {
        /// The fetch.
        fetch: FetchId,
        /// The span to request; open if nothing is here or on its way further on, and the length is
        /// not known.
        span: ByteSpan,
    },
    /// It has read its whole span.
    Done,
    /// Its next byte will not come. What it has had is right and incomplete.
    Cut(CutReason),
}

/// Whether a reader that was sent nothing so far can be sent its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// Its whole span is here, or in fetches whose response heads were of this representation.
    Yes,
    /// A fetch that it needs has no response head yet: look again when one has come, or has ended.
    Wait,
    /// Its driver begins this fetch now, and then looks again. It counts as begun, and waits for
    /// its reader.
    Fetch {
        /// The fetch.
        fetch: FetchId,
        /// The span to request.
        span: ByteSpan,
    },
    /// It will not get all of it here, or not for certain: its request is forwarded.
    No,
}

words! {
    /// Why a reader's next byte will not come.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CutReason {
        /// The next hop cut a fetch short.
        NextHop = "next-hop-cut",
        /// What is missing is now another representation's, or was refused.
        Changed = "changed",
        /// The missing content may not be shared any more: each reader must fetch its own.
        NotShared = "not-shared",
        /// The fetch was stopped and cannot be resumed without a strong validator.
        Stopped = "stopped",
        /// A module ended it: the response is not what any client should get from here on. A reader
        /// that was sent nothing is forwarded by itself, so that the module decides for it.
        Module = "module",
    }
}

impl CutReason {
    /// Whether what is stored of the response may not be used any more either.
    #[must_use]
    pub const fn outdates_stored(self) -> bool {
        matches!(self, Self::Changed | Self::NotShared)
    }
}

/// How much a fetch may take from its next hop now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPermit {
    /// Up to so many bytes, at least one.
    UpTo(u64),
    /// Nothing until a reader has moved.
    Wait,
    /// No reader is left, it was decided to go on: as much as the background budget gives, within
    /// [`InFlightState::remaining`].
    ///
    /// [`InFlightState::remaining`]: super::InFlightState::remaining
    Background,
    /// No reader is left: to be judged.
    /// [`InFlightState::continue_unread`](super::InFlightState::continue_unread), or stop and
    /// [`FetchEnd::Stopped`].
    Unread,
    /// It has reached present content or another fetch, or the end of its span: end it as
    /// [`FetchEnd::Met`]. If more would come on its connection, that is closed.
    Complete,
    /// Another reader can only go on if this fetch, which waits or has no reader, makes room: stop
    /// it and [`FetchEnd::Stopped`]. It begins again where it stopped when its readers have come so
    /// far.
    Yield,
}

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchEnd {
    /// With the last byte of its span, or of the content (whose length is then known). Before that
    /// it counts as cut.
    Whole,
    /// Where it got [`ReadPermit::Complete`], or where it received a byte beyond that. If another
    /// fetch was to bring what follows, and has been stopped since, another one is begun for the
    /// readers of that.
    Met,
    /// The connection failed.
    Cut,
    /// The next hop has another representation now, or refuses.
    Changed,
    /// The next hop has this representation still, and the rules of storing refuse what it sends of
    /// it now.
    NotShared,
    /// By our decision.
    Stopped,
    /// By a module, which changes or inspects the content: it gave up, or answers by itself.
    Module,
}

/// Of the bytes a reader was given, those that no reader had before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCount {
    /// Bytes fetched here and delivered for the first time.
    pub live: u64,
    /// All others: they did not have to be fetched for this reader.
    pub again: u64,
    /// Those among `again` that were here before the first fetch: parts kept earlier.
    pub kept: u64,
}

/// Fetches an in-flight response has at a time by default: readers of one response at more places
/// than that are rare, and each is a connection to the same next hop.
pub const FETCHES_MAX: u32 = 8;
/// A fetch that is no further than this before a missing byte is waited for: at 2 Mbit/s that is
/// one second, and a request of its own would take a round trip and perhaps a connection.
pub const NEAR_BYTES: u64 = 256 * 1024;
/// A next hop that sends less than it was asked for is asked for the rest if it has sent as much: a
/// request for a few bytes each time would cost more than these.
pub const PART_BYTES_MIN: u64 = 4096;
/// A reader that would begin yet another run of bytes beyond so many reads elsewhere.
pub const SPANS_MAX: usize = 1024;
/// Readers of one in-flight response.
pub const READERS_MAX: usize = 65_536;
/// If the delivered bytes are in so many pieces, a delivery that would make one more is not
/// counted: wasted bytes may be reported too high, never too low.
pub(super) const DELIVERED_RUNS_MAX: usize = 4096;
