//! Synthetic traces, seeded, and calibrated to what is published of real ones that no longer exist
//! any more.
//!
//! A [`Profile`] is a file of constants with their sources. A [`Maker`] is the trace as an iterator
//! of rows in order of arrival: clients begin sessions, go from page to page, and request the items
//! of each page over few connections, so that requests come in the bursts that the reuse of
//! connections depends on. A [`Measurement`] counts the rows again, by definitions that know
//! nothing of the maker, and sets each number beside the published one.
//!
//! What is published are shares that are not exclusive, and ratios of hits. They are met by a model
//! with two classes of sites, with and without cookies: in each, the share of dynamic requests, of
//! reloads and of hits is what the marginals and the union leave open; `docs/trace-make.md` has the
//! arithmetic. Each share is kept by its debt, so that it holds for any length and seed.

mod client_link;
mod connections;
mod deficit;
mod endings;
mod item;
mod maker;
mod measurement;
mod metadata;
mod pages;
mod profile;
mod session;
mod site_class;
#[cfg(test)]
mod tests;
mod transaction;
mod world;

pub use maker::Maker;
pub use measurement::Measurement;
pub use measurement::figure::{Figure, Quantity, Unit};
pub use profile::{Profile, Published};
