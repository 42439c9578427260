//! A paper as a command: PROXIM's tables and figures, made again and laid beside what was
//! published.
//!
//! PROXIM is A. Feldmann, R. Cáceres, F. Douglis, G. Glass, M. Rabinovich: Performance of Web Proxy
//! Caching in Heterogeneous Bandwidth Environments, INFOCOM 1999. Its traces are lost; those of
//! `weir_trace::generator` are calibrated to what it says of them. What it says of its simulations
//! is given to nothing here: it stands in `published.rs`, which only the comparison reads.
//!
//! ```text
//! exhibits asked for ── which runs ── batches ─┬─ trace, made anew ── simulators ─┬── findings ── tables, figures ── text, JSON, page
//!  (exhibit.rs)        (experiment.rs)         └─ ... on each core (run.rs) ──────┘  (tables/*)   (shown.rs)        (text.rs, page.rs)
//! ```

mod compared;
mod exhibit;
mod experiment;
mod facts;
mod findings;
mod page;
mod published;
mod reuse;
mod run;
mod shown;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod why;

pub use compared::{Cell, PERCENT_MAX, POINTS_MAX};
pub use exhibit::Exhibit;
pub use experiment::{Cache, Kind, Persistent, Run};
pub use page::html;
pub use published::{Bound, PUBLISHED, PublishedValue, Unit};
pub use run::{Order, PaperError, Progress, reproduce};
pub use shown::{About, ComparedExhibit, Count, Line, Note, Paper};
