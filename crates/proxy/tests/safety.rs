//! What a cache and an open door can be abused for: keys, errors, names and addresses.

mod support;

#[path = "safety/destination.rs"]
mod destination;
#[path = "safety/errors.rs"]
mod errors;
#[path = "safety/forwarded.rs"]
mod forwarded;
#[path = "safety/key.rs"]
mod key;
#[path = "safety/login.rs"]
mod login;
#[path = "safety/own_addresses.rs"]
mod own_addresses;
#[path = "safety/pac.rs"]
mod pac;
#[path = "safety/targeted.rs"]
mod targeted;
#[path = "safety/updates.rs"]
mod updates;
