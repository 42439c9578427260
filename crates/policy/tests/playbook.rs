//! Playbooks for a transaction, and for collapsed requests: on this event expect these commands,
//! the whole conversation compared as text.
//!
//! A script is what happened with what was done about it; `script::check` tells the transaction the
//! events alone, writes the script again from what it answered, and compares; `collapse_script` has
//! the same for the groups of collapsed requests. Together the scripts of the transaction take
//! every edge of the diagram in `transaction.rs`, and stand on both sides of each boundary of time;
//! those of collapsing take every event and command of the diagram in `collapse/mod.rs`.

#[path = "playbook/collapse.rs"]
mod collapse;
#[path = "playbook/collapse_script.rs"]
mod collapse_script;
#[path = "playbook/forward.rs"]
mod forward;
#[path = "playbook/http1998.rs"]
mod http1998;
#[path = "playbook/parts.rs"]
mod parts;
#[path = "playbook/random.rs"]
mod random;
#[path = "playbook/refresh.rs"]
mod refresh;
#[path = "playbook/reuse.rs"]
mod reuse;
#[path = "playbook/script.rs"]
mod script;
#[path = "playbook/modules/set_aside.rs"]
mod set_aside;
#[path = "playbook/sharing.rs"]
mod sharing;
#[path = "playbook/stale.rs"]
mod stale;
#[path = "playbook/storing.rs"]
mod storing;
#[path = "playbook/modules/transformed.rs"]
mod transformed;
#[path = "playbook/validation.rs"]
mod validation;
#[path = "playbook/world.rs"]
mod world;
