//! Modules in a live proxy: what they change, answer, wait for and break.

mod support;

#[path = "modules/answers.rs"]
mod answers;
#[path = "modules/changes.rs"]
mod changes;
#[path = "modules/content/mod.rs"]
mod content;
#[path = "modules/failures.rs"]
mod failures;
#[path = "modules/hits.rs"]
mod hits;
#[path = "modules/host/icap.rs"]
mod icap;
#[path = "modules/host/log_and_timers.rs"]
mod log_and_timers;
#[path = "modules/host/own_requests.rs"]
mod own_requests;
#[path = "modules/reload.rs"]
mod reload;
#[path = "modules/scope.rs"]
mod scope;
#[path = "modules/stored/set_aside.rs"]
mod set_aside;
#[path = "modules/soak/mod.rs"]
mod soak;
#[path = "modules/host/stored_admin.rs"]
mod stored_admin;
#[path = "modules/host/stored_calls.rs"]
mod stored_calls;
#[path = "modules/stored/storing.rs"]
mod storing;
#[path = "modules/stored/variants.rs"]
mod variants;
