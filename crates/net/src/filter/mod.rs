//! Content that is changed between a stream and its user.

mod content_filter;
mod received_filter;
mod request_filter;
mod sent_filter;

pub use content_filter::{ContentFilter, FilterFailed, Filtered};
pub(crate) use received_filter::ReceivedFilter;
pub(crate) use request_filter::RequestFilter;
pub(crate) use sent_filter::SentFilter;
