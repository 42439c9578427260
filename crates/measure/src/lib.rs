#![cfg_attr(not(test), no_std)]
//! Counters, gauges and histograms.
//!
//! Every counter and gauge of the proxy is one row of the table in [`metric`]: its Rust name, its
//! Prometheus name, its unit, its label and its explanation. What is shown on `/metrics`, what the
//! documents print and what the code counts are therefore the same thing.
//!
//! The main choice: each worker owns a block of numbers ([`Counters`]) that no other thread writes,
//! and the blocks are summed on request ([`Snapshot`]). Counting is then a plain load, add and
//! store of memory that no other core touches; a shared counter bumped by eight cores would cost
//! more than a whole hit.
//!
//! What costs memory that does not depend on the stream is here as values: the heavy hitters of a
//! stream ([`sketch`]), the last hour and week ([`history`]), and what is told of both ([`live`]).
//! Threads, locks and names are the driver's.
//!
//! The result file of a benchmark run ([`record`]) is here too: other programs read it, so its
//! schema belongs neither to the program that writes it nor to the one that draws it.
//!
//! Deliberately absent: any text format (that is `proxy`'s admin), labels with unbounded values
//! (hosts, clients, targets: those belong in the access log), and any clock.

extern crate alloc;

pub mod counters;
pub mod histogram;
pub mod history;
pub mod label;
pub mod live;
pub mod merge;
pub mod metric;
pub mod named;
pub mod quantile;
pub mod ratio;
pub mod record;
pub mod sketch;
pub mod snapshot;

pub use counters::Counters;
pub use histogram::{
    HOLD_TIME_HELP, Histogram, HistogramSnapshot, OCTAVES, RESPONSE_TIME_HELP, octave_limit_us,
};
pub use label::{
    Aborted, AcmeOrderEnd, ContentLoadEnd, DiskLookupEnd, DiskRefusal, DnsOutcome, HandOffRefusal,
    HopOutcome, Http2End, Http2Reset, HttpVersion, Joined, Label, LoginOutcome, Lost, ModuleFault,
    ModuleRequestEnd, NextHopHttp2End, NotStored, OpenReason, PeerRefusal, ProxyHeaderEnd,
    ReloadOutcome, RequestPhase, Reuse, RouteChoice, RuleDeviation, Source, StatusClass, Supply,
    TlsHandshakeEnd, Unrecorded, Verdict, WaitEnd, WaitReason,
};
pub use merge::Merge;
pub use metric::{Family, Kind, LabelSet, Metric, SLOTS};
pub use named::NamedFamily;
pub use ratio::{float, ratio, share};
pub use snapshot::Snapshot;
