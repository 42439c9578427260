//! What a recorder is told: everything that clients asked, as it was; and what it costs when it
//! stands still.

mod support;

#[path = "record/stands_still.rs"]
mod stands_still;
#[path = "record/told.rs"]
mod told;
