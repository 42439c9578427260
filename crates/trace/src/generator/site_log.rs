//! A trace as the servers of one site see it: clients that load pages with their images over
//! persistent connections.
//!
//! What is published is how many bytes of targets have which share of the requests. So the targets,
//! their sizes, and how often each page is visited are quantiles of laws and not drawn: the numbers
//! are met for every seed. Chance decides the order: visits are the shuffled multiset, without a
//! locality in time beyond what popularity and connections give.

mod connections;
mod frequency_tree;
mod maker;
mod page_law;
mod profile;
mod sizes;
#[cfg(test)]
mod tests;
mod visits;

pub(super) use maker::SiteMaker;
pub(super) use profile::SiteProfile;
