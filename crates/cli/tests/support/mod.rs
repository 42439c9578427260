//! Real parts for the tests that start the real binary: the proxy itself, nginx as origin, curl and
//! raw sockets as clients.
//!
//! Everything listens on a port the system chose, every wait ends, and every process ends with its
//! handle.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses its own part of this"
)]

#[path = "../../../net/tests/support/certificates.rs"]
mod certificates;
mod chromium;
mod clients_end;
mod config;
mod content;
mod curl;
#[path = "../../../cluster/tests/support/dnsmasq.rs"]
mod dnsmasq;
#[path = "../../../cluster/tests/support/etcd.rs"]
mod etcd;
mod haproxy;
mod icap;
mod metrics;
mod nginx;
mod pebble;
mod raw_client;
mod reply;
mod terminal;
mod tmux;
mod weir;

pub(crate) use certificates::{Issued, KeyKind};
pub(crate) use chromium::Chromium;
pub(crate) use clients_end::ClientsEnd;
pub(crate) use config::Config;
pub(crate) use content::content;
pub(crate) use curl::{Curl, Fetched};
pub(crate) use dnsmasq::Dnsmasq;
pub(crate) use etcd::Etcd;
pub(crate) use haproxy::HaProxy;
pub(crate) use icap::{CIcap, Squid, VirusScanner, WeirIcap};
pub(crate) use metrics::Metrics;
pub(crate) use nginx::{Nginx, start_program};
pub(crate) use pebble::Pebble;
pub(crate) use raw_client::RawClient;
pub(crate) use reply::Reply;
pub(crate) use terminal::Terminal;
pub(crate) use tmux::Tmux;
pub(crate) use weir::{Signal, Weir, ask};

use std::time::Duration;

/// The longest any wait may take: far beyond what a loaded machine needs, far below what a person
/// would sit through.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
