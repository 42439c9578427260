//! LARD's figures: extended LARD for persistent connections, simulated again and laid beside what
//! was published.
//!
//! M. Aron, P. Druschel, W. Zwaenepoel: Efficient Support for P-HTTP in Cluster-Based Web Servers,
//! USENIX 1999. Its trace and the costs of its mechanisms are lost: `rice-1999` of
//! `weir_trace::generator` is calibrated to what it says of the trace, and the costs to its
//! crossovers. A number that something was calibrated to is shown as such, and not counted as
//! reproduced. The coordinates of its figures are not known; what its text says of them stands in
//! `claims.rs`.
//!
//! ```text
//! exhibits asked for ── which runs ── one trace, read by all ── clusters on each core ── figures, claims ── text, JSON, page
//!  (exhibit.rs)        (job.rs)                                 (runs.rs)                (tables.rs, claims.rs)  (text.rs, page.rs)
//! ```

mod claims;
mod error;
mod exhibit;
mod findings;
mod job;
mod line;
mod page;
mod runs;
mod shown;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub use claims::{Claim, ClaimKind, ClaimUnit, Within};
pub use error::LardError;
pub use exhibit::Exhibit;
pub use line::Line;
pub use page::html;
pub use runs::{Order, Progress, reproduce};
pub use shown::{About, Count, Grid, GridRow, Paper, ShownExhibit};
