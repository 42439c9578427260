//! The heads that go on: of the request to the next hop, and of its response.

pub(crate) mod fields;
pub(crate) mod inbound;
pub(crate) mod outbound;
