//! The live cache: drives `weir_policy` with sockets and a real clock.
//!
//! One thread a core, each with its own runtime, listening socket, counters and scratch memory; a
//! request stays on one of them. What they share is the store (locked by shard for a
//! look-up), the settings (swapped whole), and idle next-hop connections (taken from another worker
//! when one's own has none).
//!
//! Deliberately absent: any decision about caching, routing or retrying, which are values in
//! `weir_policy`; TLS and the frames of HTTP/2, which are `weir_net`'s; reading configuration
//! files, which is `weir_cli`'s.
//!
//! A request's way: `weir_net::workers` → `client::connection` → `request::judge` → `client::fast`
//! (answered from memory) or `exchange::state` → `exchange::forward` → `exchange::download` →
//! `fetch::relay` → `log::report`.

pub mod admin;
mod cache;
mod client;
mod cluster;
pub mod config;
mod exchange;
mod fetch;
mod host;
mod log;
mod modules;
mod request;
mod send;
mod server;
mod settings;
mod worker;

pub use cluster::report::{
    CandidateKind, CandidateReport, ClusterReport, LoadReport, MemberReport, MembersReport,
    RouteReport,
};
pub use log::access_log::log_fields;
pub use log::record;
pub use modules::loaded::{ModuleKinds, TableModule, check_modules, load_modules, module_warnings};
pub use modules::report::{ModuleReport, ModuleState};
pub use server::control::Control;
pub use server::control::reload_failure::ReloadFailure;
pub use server::disk_tier::{DiskTier, default_disk_path};
pub use server::machine::{
    CrowdedDisk, Unusable, check_machine, crowded_disks, newcomer_max_bytes, next_hop_warnings,
    try_places,
};
pub use server::on_disk;
pub use server::run::{Describe, Options, Proxy, Reload, StartError};
pub use server::signals::{Stopped, run_until_signalled};
pub use settings::hierarchy::ParentReport;
pub use settings::hooks::{Hook, HookFuture, Hooks};
pub use settings::tls::{certificate_warnings, check_certificates};
pub use weir_net::clock;
pub use weir_net::{ignore_file_size_signal, raise_descriptor_limit};
pub use worker::links::{link_line, state_file_warnings};
