//! Whether a response is the truth. Every byte is compared with what the origin would send; so are
//! status, length and validators.

mod cache_status;
mod examination;
mod reference;
mod refusal;
mod wrong_response;

pub(crate) use examination::{Conclusion, Examination, Inspector, SentRequest};
pub(crate) use reference::Reference;
pub(crate) use refusal::refusal;
pub use wrong_response::{HEAD_BYTES_MAX, WrongKind};
