//! Routing policies: playbooks of each, and what holds of all.

#![expect(
    clippy::unwrap_used,
    reason = "a script that cannot be read fails its test"
)]

#[path = "routing/agreement.rs"]
mod agreement;
#[path = "routing/every_policy.rs"]
mod every_policy;
#[path = "routing/lard_and_costs.rs"]
mod lard_and_costs;
#[path = "routing/lateral.rs"]
mod lateral;
#[path = "routing/lateral_script.rs"]
mod lateral_script;
#[path = "routing/node_health.rs"]
mod node_health;
#[path = "routing/playbook.rs"]
mod playbook;
#[path = "routing/random.rs"]
mod random;
#[path = "routing/script.rs"]
mod script;
#[path = "routing/shares.rs"]
mod shares;
#[path = "routing/stage.rs"]
mod stage;
