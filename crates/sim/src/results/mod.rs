//! What a run came to: per request, in sums, beside other runs, and as text.

pub(crate) mod compare;
pub(crate) mod forecast;
pub(crate) mod outcome;
pub(crate) mod request_result;
pub(crate) mod rows;
pub(crate) mod spread;
pub(crate) mod table;
