//! The budget of a link to next hops: bytes a second for fetches, and a quota of bytes for a day, a
//! week or a month.
//!
//! [`Link`] is a value with steps: a driver asks whether a request may be sent ([`Link::admit`])
//! and how many bytes may be moved now ([`Link::permit`]), reports what was moved
//! ([`Link::used`]), and writes what is to outlive the process ([`Link::to_save`],
//! [`Link::saved`]). Nothing here reads a clock or a file.
//!
//! *Booked bytes* make a quota hold over a crash: what is spent, what may still be moved before the
//! next state is written, and what open connections may bring. No byte is granted beyond the booked
//! bytes that were written, and a process that finds the state of one that was killed takes all
//! booked bytes as spent.
//!
//! A quota is of a period of the calendar, and what was spent is remembered for each. A clock that
//! jumps forward begins no new period until it has agreed with the monotonic clock for an hour; one
//! that jumps back finds the periods that it has spent already.

mod bucket;
mod clock_watch;
mod link;
mod notices;
mod period;
mod recent_ranges;
mod rules;
mod saved;
mod spending;
mod transfer;
mod window;
mod zone;

pub use bucket::{Class, GRANT_BYTES_MAX, SCARCE_AFTER_MS};
pub use clock_watch::{CLOCK_STEP_CONFIRM_MS, CLOCK_STEP_S};
pub use link::{
    Admission, BackgroundRoom, Link, LinkReport, Permit, QuotaReport, SpentNow, WindowWork,
};
pub use notices::{NEAR_PERCENT, Notice, Notices};
pub use period::{Every, Period, PeriodRules};
pub use recent_ranges::{RECENT_HALVED_MS, RECENT_TARGETS_MAX};
pub use rules::{
    CountedBytes, LinkRules, OVERHEAD_PERCENT_MAX, Quota, RESERVE_PERCENT_MAX, WhenSpent,
};
pub use saved::{SAVED_BYTES, SavedLink, SectorKind};
pub use spending::FORMER_PERIODS_MAX;
pub use transfer::Transfer;
pub use window::{Days, TimeWindow, WINDOWS_MAX};
pub use zone::{OFFSETS_MAX, Zone};

#[cfg(test)]
mod tests;
