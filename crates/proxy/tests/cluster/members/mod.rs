//! What nodes have of the members: lists that differ for a moment, and URLs that lead elsewhere.

mod agreement;
mod lists;
mod own_urls;
mod secrets;
