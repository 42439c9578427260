//! What the clients count: counts and times by phase and by second, samples, and how the
//! generator itself did.
//!
//! Everything merges without loss: threads and machines each bring theirs, and the sum is what one
//! would have counted.

mod by_kind;
mod counts;
mod health;
mod link_time;
mod outcome;
mod phase;
mod request_counts;
mod sample;
mod second;
mod times;

pub use by_kind::{ByKind, RequestKind};
pub use counts::Counts;
pub use health::{
    BUSY_SECONDS_SHARE_MAX, BUSY_SHARE, Health, LATE_SHARE_MAX, LATE_US, LINK_JUDGED_US,
    LINK_SLOWER_SHARE_MAX, LINK_SLOWEST_SHARE_MAX,
};
pub use link_time::LinkTime;
pub use outcome::{CrossCheck, ErrorKind, Outcome};
pub use phase::{PhaseTally, ResponseTimes};
pub use request_counts::RequestCounts;
pub use sample::Sample;
pub use second::SecondTally;
pub use times::{LONGEST_US, Times};
