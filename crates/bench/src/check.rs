//! Whether a response is the truth. Every byte is compared with what the origin would send; so are
//! status, length and validators.

mod cache_status;
mod examination;
mod grounds;
mod lie;
mod refusal;

pub(crate) use examination::{Asked, Conclusion, Examination, Inspecting};
pub(crate) use grounds::Grounds;
pub use lie::{HEAD_BYTES_MAX, Lie, LieKind};
pub(crate) use refusal::refusal;
