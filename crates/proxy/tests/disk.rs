//! Stored responses on disk, through the live proxy: what is there after a restart or a kill, what
//! is read while it is written, what damage and a failing device do to clients, and that what was
//! purged stays purged (R01-R08, R10, R14).
//!
//! The origin's bytes tell where they are from, and every byte a client gets is compared.

mod support;

#[path = "disk/arriving.rs"]
mod arriving;
#[path = "disk/chosen.rs"]
mod chosen;
#[path = "disk/faults/damage.rs"]
mod damage;
#[path = "disk/depot.rs"]
mod depot;
#[path = "disk/faults/device.rs"]
mod device;
#[path = "disk/memory.rs"]
mod memory;
#[path = "disk/outdated.rs"]
mod outdated;
#[path = "disk/parts.rs"]
mod parts;
#[path = "disk/purge.rs"]
mod purge;
#[path = "disk/reading.rs"]
mod reading;
#[path = "disk/restart.rs"]
mod restart;
#[path = "disk/stale.rs"]
mod stale;
#[path = "disk/start.rs"]
mod start;
#[path = "disk/faults/stopped.rs"]
mod stopped;
#[path = "disk/faults/troubled.rs"]
mod troubled;
#[path = "disk/vary.rs"]
mod vary;
