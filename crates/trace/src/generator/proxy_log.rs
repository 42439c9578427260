//! A trace as a proxy sees it: clients that go from page to page of many sites.
//!
//! Clients begin sessions, go from page to page, and request the items of each page over few
//! connections, so that requests come in the bursts that the reuse of connections depends on.
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
mod metadata;
mod pages;
mod profile;
mod session;
mod site_class;
#[cfg(test)]
mod tests;
mod transaction;
mod world;

pub(super) use maker::Maker;
pub(super) use profile::Profile;
