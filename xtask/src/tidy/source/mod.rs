//! What every source file keeps to.

pub(super) mod calls;
pub(super) mod columns;
pub(super) mod length;
pub(super) mod purity;
pub(super) mod rust_text;
pub(super) mod spdx;
pub(super) mod vocabulary;
pub(super) mod whitespace;
pub(super) mod words;
