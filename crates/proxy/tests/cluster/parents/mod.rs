//! Parents and siblings of a forward proxy: which of them is sent what, and what follows when one
//! does not answer.
//!
//! Other proxies are scripted, or proxies in this process.

mod child;
mod direct;
mod parent;
mod sibling;
mod tunnel;
