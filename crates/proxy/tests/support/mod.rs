//! What the tests of the live proxy share: peers that say exactly what they are told to, and a
//! running proxy.
//!
//! A test holds both ends: it sends as the client, accepts and answers as the next hop, in one
//! thread and in the order it writes down. So nothing has to be waited for but bytes, and every
//! wait has a limit.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(unused_imports, reason = "each test program uses a part of it")]

mod client;
mod deciding;
mod host_modules;
mod message;
mod modules;
mod names;
mod origin;
mod peer;
mod phases;
mod purge_message;
mod representation;
mod running;
mod setup;
mod stored_calls;
mod whole;

pub(crate) use client::RawClient;
pub(crate) use deciding::deciding;
pub(crate) use host_modules::asking;
pub(crate) use message::{Head, Response};
pub(crate) use modules::{IS_THREADED, scripted, set_state};
pub(crate) use names::NameServer;
pub(crate) use origin::{Answering, OriginConnection, ScriptedOrigin};
pub(crate) use peer::{End, Peer};
pub(crate) use phases::NotedPhases;
pub(crate) use purge_message::tell_to_validate;
pub(crate) use representation::Representation;
pub(crate) use running::{Running, localhost, span};
pub(crate) use setup::Setup;
pub(crate) use whole::turning;

use std::sync::Arc;
use std::time::Duration;
use weir_proxy::ModuleKinds;

/// Longer than anything takes on a busy machine; a longer wait never ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The kinds of modules that the tests' proxies have.
pub(crate) fn module_kinds() -> ModuleKinds {
    vec![
        Arc::new(modules::Scripted),
        Arc::new(host_modules::HostKind),
        Arc::new(deciding::Deciding),
        Arc::new(whole::Turning),
        Arc::new(weir_adaptation::Icap),
    ]
}

/// `length` bytes in which any loss, swap or repetition shows.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state >> 16).to_le_bytes()[..6]);
    }
    bytes.truncate(length);
    bytes
}
