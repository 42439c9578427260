//! The request head as facts, and the judgement whether it is permitted.

pub(crate) mod answer;
mod denied_client;
pub(crate) mod facts;
pub(crate) mod fields;
pub(crate) mod judge;
pub(crate) mod key;
pub(crate) mod max_forwards;
pub(crate) mod pac;
pub(crate) mod recent_heads;
pub(crate) mod vary;
pub(crate) mod who_asked;
