//! Whether a response is the truth. Every byte is compared with what the origin would send; so are
//! status, length and validators.

mod cache_status;
mod examination;
mod grounds;
mod refusal;
mod wrong_response;

pub(crate) use examination::{Asked, Conclusion, Examination, Inspecting};
pub(crate) use grounds::Grounds;
pub(crate) use refusal::refusal;
pub use wrong_response::{HEAD_BYTES_MAX, WrongKind, WrongResponse};
