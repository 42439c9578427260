//! The result file of one run of the benchmark.
//!
//! A record is everything that is needed to believe a number and to get it again: the command, the
//! seed, the whole scenario as text, the tool, the host, the counts of both sides by phase, and
//! whether the run is valid. It is written as JSON with the names of the fields below; times of
//! single requests can be in a Parquet file beside it.
//!
//! The main choice: nothing that can be computed from the record is in it. Ratios and percentiles
//! are methods ([`Phase::hit_ratio`], [`Histogram::quantile_us`]), so that a table, a plot and a
//! test cannot disagree.
//!
//! Deliberately absent: reading and writing of files, and the clock.

mod client_side;
mod distribution;
mod generator;
mod link_shaping;
mod origin_side;
mod phase;
mod rule;
mod run;
mod series;
mod subject;
mod usage;
mod wrong_response;

pub use client_side::{CacheStatusAgreement, ClientSide, KindSide};
pub use distribution::Histogram;
pub use generator::Generator;
pub use link_shaping::LinkShaping;
pub use origin_side::OriginSide;
pub use phase::{Phase, ResponseTime};
pub use rule::Rule;
pub use run::{Host, Record, Tool};
pub use series::Second;
pub use subject::{Mode, Subject};
pub use usage::UsageSecond;
pub use wrong_response::WrongResponse;

/// What [`Record::format`] says in every record.
pub const FORMAT: &str = "weir-record";

/// The version of the schema that is written here. A field may be added without a new version; a
/// reader ignores unknown fields. A field that changes its meaning or goes away makes a new
/// version.
pub const VERSION: u32 = 1;
