//! What nodes have of the members: lists that differ for a moment, URLs that lead elsewhere, and
//! what waits for members.

mod agreement;
mod awaited;
mod lists;
mod own_urls;
mod secrets;
