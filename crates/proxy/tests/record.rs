//! What a recorder is told: everything that clients asked, as it was; and what it costs when it
//! stands still.

mod support;

#[path = "record/recorded_requests.rs"]
mod recorded_requests;
#[path = "record/stalled_recorder.rs"]
mod stalled_recorder;
