//! Transfers from next hops into in-flight responses, and the requests that read these.

pub(crate) mod arrival;
pub(crate) mod collapse;
pub(crate) mod continuation;
pub(crate) mod held_content;
pub(crate) mod in_flight;
pub(crate) mod missing_range;
pub(crate) mod reader;
pub(crate) mod relay;
pub(crate) mod storable_head;
pub(crate) mod store_writer;
pub(crate) mod transfer;
pub(crate) mod waiting;
