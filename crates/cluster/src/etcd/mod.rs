//! etcd, by its JSON gateway over HTTP/1.1: leases, keys, ranges and watches.
//!
//! The gateway (grpc-gateway, in etcd since 3.0) has each call of etcd's API as a POST of a JSON
//! object under `/v3` (since 3.4; `/v3beta` before): keys and values in base64, 64-bit numbers as
//! strings. A watch is a response that does not end, a JSON object a line. Not the crate
//! `etcd-client`: it needs `protoc` to build.
//!
//! Members are listed under a prefix: `PREFIXmember/NAME` has a JSON object with `url`, `weight`
//! and `state`, and ends with the lease of the node that has set it.
//!
//! Each call has a connection of its own: there are few. Each wait and each buffer is bounded.

pub(crate) mod announcement;
mod client;
mod error;
mod http;
pub(crate) mod listing;
mod member_value;
mod messages;
mod purge_log;
mod watch;

pub use client::{Client, LeaseId};
pub use error::EtcdError;
pub use messages::{Header, KeyValue, Range};
pub use purge_log::{APPLY_MAX, Entered, LogPosition, PurgeLog, PurgeLogSink};
pub use watch::{Event, Events, Watch};
