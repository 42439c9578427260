//! Stored responses on disk, through the live proxy: what is there after a restart or a kill, what
//! is read while it is written, what damage and a failing device do to clients, and that what was
//! purged stays purged (R01-R08, R10, R14).
//!
//! The origin's bytes tell where they are from, and every byte a client gets is compared.

mod support;

#[path = "disk/content_loads.rs"]
mod content_loads;
#[path = "disk/corrupt_stale.rs"]
mod corrupt_stale;
#[path = "disk/faults/corruption.rs"]
mod corruption;
#[path = "disk/faults/device.rs"]
mod device;
#[path = "disk/faults/faulty_files.rs"]
mod faulty_files;
#[path = "disk/in_flight.rs"]
mod in_flight;
#[path = "disk/invalidation.rs"]
mod invalidation;
#[path = "disk/purge.rs"]
mod purge;
#[path = "disk/purge_during_request.rs"]
mod purge_during_request;
#[path = "disk/read_faults.rs"]
mod read_faults;
#[path = "disk/restart.rs"]
mod restart;
#[path = "disk/setup.rs"]
mod setup;
#[path = "disk/small_memory.rs"]
mod small_memory;
#[path = "disk/faults/stalled_device.rs"]
mod stalled_device;
#[path = "disk/start.rs"]
mod start;
#[path = "disk/stored_parts.rs"]
mod stored_parts;
#[path = "disk/told_to_validate.rs"]
mod told_to_validate;
#[path = "disk/vary.rs"]
mod vary;
