//! The parts of the measurement, each with what it hands back.

pub(super) mod choice;
pub(super) mod hand_off;
pub(super) mod hit_ratio;
pub(super) mod hot;
pub(super) mod join;
pub(super) mod kill;
pub(super) mod lateral;
pub(super) mod links;
pub(super) mod purge;
pub(super) mod speed;
