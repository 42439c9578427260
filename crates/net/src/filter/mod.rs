//! Content that is changed between a stream and its user.

mod content_filter;
mod received_filter;
mod request_filter;

pub(crate) use content_filter::Filtering;
pub use content_filter::{ContentFilter, FilterFailed, Filtered};
pub(crate) use received_filter::ReceivedFilter;
pub(crate) use request_filter::RequestFilter;
