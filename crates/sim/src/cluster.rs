//! Clusters on paper, request by request.

pub mod peers;
