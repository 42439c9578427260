//! RFC 9111: directives, freshness, storing, variants, updates; and the field of RFC 9211.

pub(crate) mod cache_control;
pub(crate) mod cache_status;
pub(crate) mod freshen;
pub(crate) mod freshness;
pub(crate) mod storable;
pub(crate) mod targeted;
pub(crate) mod vary;
