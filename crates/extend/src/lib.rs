#![cfg_attr(not(test), no_std)]
//! The contract between Weir and a module: what a module may see and change of a request and its
//! response, and at which hooks.
//!
//! A module is made from its options when a configuration is loaded ([`ModuleKind::load`]), and
//! begins an [`Exchange`] for each request that its route gives it. The exchange is called at the
//! hooks that the module has named ([`Module::hooks`]), on the thread that serves the request: a
//! call must not block. A module that has to wait defers, and is polled.
//!
//! A module sees heads as they are received ([`HeadFields`]), and changes them by the methods of
//! [`Fields`], which copies them first: what would change the framing of a message, or forge the
//! path that it took, is refused there. The proxy judges a changed head as if it had been received
//! so.
//!
//! At the heads of a response a module may have the content pass a [`Transform`]
//! ([`ResponseHead::transform`]): from the next hop before it is judged and stored, or to one
//! client. At the head of a request it may do so for the content of the request.
//!
//! What a module needs of the proxy beside the messages, it gets from its [`Host`]: requests of its
//! own, the time, tasks beside the requests, the log, and stored responses ([`StoredResponses`]).

extern crate alloc;

mod answer;
mod call;
mod coding;
mod content;
mod detached;
mod fields;
mod head;
mod head_fields;
mod hook;
mod host;
mod module;
mod options;
mod pending;
mod stored;
mod whole;

pub use answer::{Answer, LocalResponse, RESPONSE_CONTENT_BYTES_MAX, StatusError};
pub use call::{Call, ListenerMode};
pub use coding::{CODINGS_MAX, Coding, Codings};
pub use content::{PIECE_BYTES_MAX, Piece, Progress, Transform, TransformError};
pub use detached::Detached;
pub use fields::{FIELDS_MAX, FieldError, FieldRule, FieldRuleError, Fields, SECTION_BYTES_MAX};
pub use head::{RequestHead, ResponseHead, TargetError, VariantError};
pub use head_fields::{FieldIter, HeadFields};
pub use hook::{Hook, Hooks};
pub use host::{
    FETCH_CONTENT_BYTES_MAX, FETCH_TIMEOUT_MAX, FetchError, Host, LogLevel, OwnRequest,
    OwnResponse, TASKS_MAX,
};
pub use module::{Exchange, Module, ModuleKind, ModuleMetric, PERIOD_MIN};
pub use options::{LoadError, ModuleSettings, OptionValue, Options};
pub use pending::Pending;
pub use stored::{
    InjectedHead, Injection, LACKS_RULE, NoStore, STORED_PIECE_BYTES_MAX, StoredContent,
    StoredError, StoredInfo, StoredReader, StoredResponses, StoredTarget, Validation,
    WHOLE_CONTENT_BYTES_MAX,
};
pub use whole::{
    ContentMemory, Larger, UnchargedMemory, Whole, WholeHandle, WholeState, Work, Worked,
};
