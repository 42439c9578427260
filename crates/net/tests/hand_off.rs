//! Connections that move between machines: network namespaces, joined by a bridge.

#[path = "hand_off/load.rs"]
mod load;
#[path = "hand_off/machines.rs"]
mod machines;
#[path = "hand_off/mover.rs"]
mod mover;
#[path = "hand_off/pattern.rs"]
mod pattern;
#[path = "hand_off/repair.rs"]
mod repair;
#[path = "hand_off/steering.rs"]
mod steering;
