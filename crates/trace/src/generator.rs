//! Synthetic traces, seeded, and calibrated to what is published of real ones that no longer exist
//! any more.
//!
//! A [`Recipe`] is a file of constants with their sources and the model that makes rows of them, in
//! order of arrival. A [`Measurement`] counts the rows again, by definitions that know nothing of
//! the recipe, and sets each number beside the published one.

mod measurement;
mod proxy_log;
mod recipe;
mod site_log;

pub use measurement::Measurement;
pub use measurement::figure::{Figure, Published, Quantity, Unit};
pub use recipe::Recipe;
