//! `weir bench` as a program: against this proxy and another one, on one machine and in separate
//! processes.

#[path = "../support/mod.rs"]
mod support;

mod apart;
mod bench;
mod ends;
mod experiments;
mod kernel_links;
mod mixes;
mod proxies;
