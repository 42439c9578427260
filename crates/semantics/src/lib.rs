#![cfg_attr(not(test), no_std)]
//! What HTTP says about one request and one response: RFC 9110, 9111, 5861, 9209, 9211 and 9213 as
//! values and functions.
//!
//! The input is field lines, the output facts: the target, the directives of `Cache-Control`,
//! whether a response is storable, its age, which precondition holds. What *we* choose to do with a
//! fact (admit or refuse, serve stale, bound a lifetime) is not here, that is `weir-policy`; how a
//! message is framed is not here either, that is `weir-wire`.
//!
//! The main choice: the functions of the hot path borrow and copy, they do not allocate. A request
//! is read into [`RequestFacts`] and [`Target`] once; no later decision looks for field lines by
//! name again. Parsers are tolerant where the RFC requires it of recipients; of two readings of a
//! value they take the one that reuses less. There is no clock in here: the time is an argument.

extern crate alloc;

mod caching;
mod date;
mod facts;
mod fields;
mod method;
mod proxy_status;
mod ranges;
mod status;
mod targets;
mod time;
mod validation;
mod words;

pub use caching::cache_control::{
    Directive, Reading, RequestDirective, RequestDirectives, ResponseDirective, ResponseDirectives,
    directives,
};
pub use caching::cache_status::{CacheStatus, Fwd, has_detail, is_hit};
pub use caching::freshen::{MergedFields, StoredValidators, merge};
pub use caching::freshness::{
    Heuristic, Lifetime, LifetimeSource, corrected_initial_age, current_age, freshness_lifetime,
    heuristic_permitted, sourced_lifetime,
};
pub use caching::storable::{NotStorable, storable};
pub use caching::targeted::{DecidedBy, TARGETED_FIELDS_MAX, TargetedFields};
pub use caching::vary::{VaryKind, feed_selecting, nominated};
pub use date::{Civil, parse_http_date, parse_retry_after, write_http_date};
pub use facts::{Expires, NOMINATED_FIELDS_MAX, RequestFacts, ResponseFacts};
pub use fields::claim::is_forwarding_claim;
pub use fields::field::{FieldLine, is_token, line_named, lines_named, list_elements};
pub use fields::hop_by_hop::{
    CONNECTION_BYTES_MAX, CONNECTION_OPTIONS_MAX, ConnectionOptions, NamedFields,
    is_for_one_client, is_freshened, is_hop_by_hop, is_stored,
};
pub use fields::known::{Known, identify};
pub use fields::names::{FieldNames, is_same_field};
pub use fields::peer::{NODE_NAME_BYTES_MAX, PEER_FIELD, PeerReport, PeerRequest, is_node_name};
pub use fields::preference::preferences;
pub use fields::priority::Urgency;
pub use fields::purge_message::{
    BEHIND_NAMES_MAX, MembersBehind, PURGE_HOLD_MS_MAX, PURGE_MESSAGE_BYTES_MAX, PURGE_ORDERS_MAX,
    PurgeAnswer, PurgeMessage, PurgeOrder, PurgeOutcome, PurgeSequence, PurgedTarget,
    UNKNOWN_SESSION, split_purge_proof, write_purge_proof,
};
pub use fields::upgrade::switches_as_offered;
pub use fields::via::contains_pseudonym;
pub use method::Method;
pub use proxy_status::{ProxyError, write_proxy_status};
pub use ranges::content_range::ContentRange;
pub use ranges::part::{Fits, RequestedPart, combines};
pub use ranges::range::{ByteRange, RangeKind, RangeOutcome, RangeSpan, select, single_range};
pub use status::{is_final, is_heuristically_cacheable, is_understood};
pub use targets::host::{Authority, AuthorityError, HostName};
pub use targets::target::{Form, Scheme, Target, TargetError, canonical_target, without_query};
pub use time::{DeltaSeconds, Timestamp};
pub use validation::conditional::{Precondition, Validators, evaluate, if_range_holds};
pub use validation::entity_tag::{EntityTag, Strength};
