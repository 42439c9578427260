//! One fetch for all, never far ahead, and worth its end: the decisions about transfers from a next
//! hop.
//!
//! A *fetch* is one transfer from a next hop of one span of one representation. An in-flight
//! response is filled by one fetch or several (one a missing span) and read by any number of
//! readers, each at its own speed and place; [`InFlightState`] decides which reader reads and which
//! waits, how much each fetch may take, and which is to be begun. [`Pace`] bounds how far a fetch
//! runs ahead of its fastest reader, [`judge`] decides whether it continues without readers, by
//! [`Popularity`] (will it be requested again?) and [`Background`] (is there a budget now?);
//! [`BackgroundValidations`] which stale responses are validated in the background.
//!
//! No content is here, and no connection: spans and numbers go in, numbers come out.

mod abort;
mod background;
mod background_validations;
mod byte_span;
pub mod collapse;
mod continuation;
mod in_flight;
mod least_progress;
mod pace;
pub mod page_cache;
mod paused_parts;
mod places;
mod popularity;
mod refreshed_targets;
mod rest_refusal;

pub use abort::{
    AbortDecision, AbortKind, AbortPolicy, ContinueReason, StopReason, UnreadFetch, judge,
};
pub use background::Background;
pub use background_validations::{BackgroundValidations, NoBackgroundValidation};
pub use byte_span::{ByteSpan, ByteSpans};
pub use continuation::{Continuation, NoContinuation, RemainingRange, continuation};
pub use in_flight::{
    AttachError, Confirm, CutReason, DeliveryCount, FETCHES_MAX, FetchEnd, FetchId, InFlightRules,
    InFlightState, NEAR_BYTES, PART_BYTES_MIN, PASSING_AHEAD_BYTES_MAX, PASSING_BEHIND_BYTES,
    PASSING_BEHIND_READER_BYTES, READERS_MAX, ReadPermit, ReaderId, SPANS_MAX, Step,
};
pub use least_progress::{LeastProgress, PROGRESS_BYTES_MIN, PROGRESS_EACH_MS};
pub use pace::{Pace, ReadAhead};
pub use paused_parts::{
    PAUSED_ATTEMPTS_MAX, PAUSED_KEPT_MS, PAUSED_PARTS_MAX, PAUSED_REST_MS, PausedParts,
    UnreadOverLink,
};
pub use places::{PLACE_TURN_MS, PLACES_MAX, PLACES_OF_HOP_MAX, gives_way, has_place};
pub use popularity::{Chance, Popularity};
pub use refreshed_targets::{
    REFRESH_AHEAD_S, REFRESH_EACH_MS, REFRESHED_MAX, RefreshedTargets, is_to_refresh,
};
pub use rest_refusal::{RETRY_AFTER_MAX_S, RestRefusal};
