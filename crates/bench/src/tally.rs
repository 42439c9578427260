//! What the clients count: counts and times by phase and by second, samples, and how the
//! generator itself did.
//!
//! Everything merges without loss: threads and machines each bring theirs, and the sum is what one
//! would have counted.

mod health;
mod link_time;
mod outcome;
mod phase;
mod request_counts;
mod request_kind;
mod sample;
mod second;
mod times;

pub use health::{
    Health, LATE_SHARE_MAX, LATE_US, LINK_JUDGED_US, LINK_SLOWER_SHARE_MAX, LINK_SLOWEST_SHARE_MAX,
};
pub use link_time::LinkTime;
pub use outcome::{CrossCheck, ErrorKind, Outcome};
pub use phase::{PhaseTally, ResponseTimes};
pub use request_counts::RequestCounts;
pub use request_kind::RequestKind;
pub use sample::Sample;
pub use second::SecondTally;
pub use times::{LONGEST_US, Times};
