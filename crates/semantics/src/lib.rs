#![cfg_attr(not(test), no_std)]
//! What HTTP says about one request and one response: RFC 9110, 9111, 5861, 9209, 9211 and 9213 as
//! values and functions.
//!
//! Bytes that are already cut into field lines go in, facts come out: which target is asked for,
//! what `Cache-Control` says, whether a response is storable, how old it is, which precondition
//! holds. What *we* choose to do with a fact (admit or refuse, serve stale, bound a lifetime) is
//! not here, that is `weir-policy`; how a message is framed is not here either, that is
//! `weir-wire`.
//!
//! The main choice: the functions of the hot path borrow and copy, they do not allocate. A request
//! is read into [`RequestFacts`] and [`Target`] once; afterwards nobody looks at field lines by
//! name again to decide about it. Parsers are tolerant where the RFC asks recipients to be, and
//! where a value can be read in two ways the reading that reuses less is taken. There is no clock
//! in here: the time is an argument.

extern crate alloc;

mod cache_control;
mod cache_status;
mod conditional;
mod content_range;
mod date;
mod entity_tag;
mod facts;
mod field;
mod freshen;
mod freshness;
mod hop_by_hop;
mod host;
mod known;
mod method;
mod part;
mod proxy_status;
mod range;
mod status;
mod storable;
mod structured;
mod target;
mod targeted;
mod time;
mod vary;
mod via;

pub use cache_control::{RequestDirectives, ResponseDirectives};
pub use cache_status::{CacheStatus, Fwd};
pub use conditional::{Precondition, Validators, evaluate, if_range_holds};
pub use content_range::ContentRange;
pub use date::{parse_http_date, write_http_date};
pub use entity_tag::{EntityTag, Strength};
pub use facts::{Expires, NOMINATED_FIELDS_MAX, RequestFacts, ResponseFacts};
pub use field::{FieldLine, is_token, line_named, lines_named, list_elements};
pub use freshen::{Compared, Merged, merge};
pub use freshness::{
    Heuristic, Lifetime, corrected_initial_age, current_age, freshness_lifetime,
    heuristic_permitted,
};
pub use hop_by_hop::{
    CONNECTION_OPTIONS_MAX, ConnectionOptions, is_for_one_client, is_freshened, is_hop_by_hop,
    is_stored,
};
pub use host::{Authority, AuthorityError, HostName};
pub use known::{Known, identify};
pub use method::Method;
pub use part::{AskedPart, Fits, combines};
pub use proxy_status::{ProxyError, write_proxy_status};
pub use range::{ByteRange, RangeKind, RangeOutcome, RangeSpan, select, single_range};
pub use status::{is_final, is_heuristically_cacheable, is_understood};
pub use storable::{NotStorable, storable};
pub use target::{Form, Scheme, Target, TargetError, canonical_target};
pub use targeted::{DecidedBy, TARGETED_FIELDS_MAX, TargetedFields};
pub use time::{DeltaSeconds, Timestamp};
pub use vary::{VaryKind, feed_selecting, nominated};
pub use via::contains_pseudonym;
