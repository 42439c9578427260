//! Modules of the kind `wasm`: a proxy-wasm filter in the way of requests and responses.
//!
//! `weir_wasm` runs filters and knows no type of Weir; `weir_extend` is what a module is, and knows
//! no WebAssembly. This crate stands between them. It is the crate that `weir` is built with by its
//! feature `wasm`: the compiler of WebAssembly takes minutes to build.
//!
//! **One instance a worker and module**, as the SDKs of filters expect. Instances belong to the
//! module and end with it, whichever thread drops it last. They are started on threads of their
//! own: a filter that parses rules for a second delays the requests that wait for it, and no other.
//!
//! **The way of a request.** `filter` is the module, `plugin` what all workers share of it,
//! `exchange` one request. That calls the instance of its worker (`slot`), which carries out what
//! the filter asked for meanwhile (`effects`): lines of the log, HTTP calls, and wake-ups of
//! messages that were paused. `guest` is what the filter sees.
//!
//! **Failure.** A filter that traps or misses its deadline ends with its instance: its streams fail
//! by the rule of the operator (`on_failure`), and so do requests until the next instance starts,
//! after growing pauses. What a client alone could cause (content or heads that are too large for
//! the filter, `no-transform`) fails or passes that message, and does not end the instance.

mod apply;
mod clock;
mod compiled;
mod effects;
mod exchange;
mod filter;
mod guest;
mod options;
mod pairs_of_head;
mod plugin;
mod reference;
mod setup;
mod slot;

use std::sync::Arc;
use weir_extend::ModuleKind;

pub use reference::reference;

/// The kind of module `wasm`.
#[must_use]
pub fn kind() -> Arc<dyn ModuleKind> {
    Arc::new(filter::Wasm)
}
