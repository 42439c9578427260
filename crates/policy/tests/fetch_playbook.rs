//! Playbooks for an in-flight response: what happens to it, and what its readers and fetches are
//! told.
//!
//! A script is a conversation with a `InFlightState`; `script::check` tells it the events alone,
//! writes the script again from what it answered, and compares. That a response turns out to be
//! private, so that those who waited for it go alone, is decided before there is anything to read:
//! see the playbooks of the transaction.

#![expect(
    clippy::unwrap_used,
    reason = "a script that cannot be read fails its test"
)]

#[path = "fetch_playbook/confirming.rs"]
mod confirming;
#[path = "fetch_playbook/ending.rs"]
mod ending;
#[path = "fetch_playbook/gaps.rs"]
mod gaps;
#[path = "fetch_playbook/leaving.rs"]
mod leaving;
#[path = "fetch_playbook/pacing.rs"]
mod pacing;
#[path = "fetch_playbook/passing.rs"]
mod passing;
#[path = "fetch_playbook/reading.rs"]
mod reading;
#[path = "fetch_playbook/script.rs"]
mod script;
