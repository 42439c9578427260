//! The live cache: drives `weir_policy` with sockets and a real clock.
//!
//! One thread a core, each with its own runtime, listening socket, counters and scratch memory; a
//! request lives and dies on one of them. What they share is the store (locked by shard for a
//! look-up), the settings (swapped whole), and idle next-hop connections (taken from another worker
//! when one's own has none).
//!
//! Deliberately absent: any decision about caching, routing or retrying, which are values in
//! `weir_policy`; TLS and HTTP/2; reading configuration files, which is `weir_cli`'s.
//!
//! A request's way: `listener` → `client` → `request` → `fast` (answered from memory) or `exchange`
//! → `forward` → `download` → `relay` → `report`.

mod access_log;
mod account;
pub mod admin;
mod advice;
mod ahead;
mod answer;
mod arrival;
mod arriving;
mod chosen;
mod client;
mod client_disconnect;
pub mod clock;
pub mod config;
mod connect;
mod continuation;
mod control;
mod crew;
mod deadline;
mod demand;
mod descriptors;
mod destination;
mod dial;
mod disk_lookup;
mod disk_read;
mod disk_tier;
mod download;
mod downloaded;
mod exchange;
mod fast;
mod fetch;
mod flights;
mod flow;
mod follow;
mod forward;
mod freshen;
mod gap;
mod hit;
mod inbound;
mod invalidate;
mod keeper;
mod kept;
mod listener;
mod local_address;
mod machine;
mod max_forwards;
mod next_hop;
pub mod on_disk;
mod open_connections;
mod outbound;
mod outbox;
mod outgoing;
mod pool;
mod reader;
pub mod record;
mod refresh;
mod relay;
mod report;
mod request;
mod resolver;
mod run;
mod seek;
mod served;
mod settings;
mod shared;
mod signals;
mod sink;
mod stored_piece;
mod switch;
mod to_come;
mod tunnel;
mod unsent;
mod until_restart;
mod upload;
mod uses;
mod vary;
mod waiting;
mod worker;

pub use control::Control;
pub use descriptors::raise_descriptor_limit;
pub use disk_tier::{DiskTier, default_disk_path};
pub use machine::{
    CrowdedDisk, Unusable, check_machine, crowded_disks, newcomer_max_bytes, try_places,
};
pub use run::{Describe, Options, Proxy, Reload, StartError};
pub use signals::{Stopped, run_until_signalled};
