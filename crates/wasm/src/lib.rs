//! A host for proxy-wasm modules: [ABI 0.2.1][spec], and 0.2.0 where it is the same, over
//! `wasmtime`.
//!
//! The crate has no type of a proxy in its interface. A proxy implements [`Host`], compiles a
//! [`Module`] (off its workers: a large module takes seconds), makes a [`Template`] of it, and
//! starts one [`Instance`] a worker. An instance is one virtual machine with one plugin context; it
//! is called synchronously, from one thread at a time.
//!
//! Deliberately absent: TCP streams, gRPC, shared queues, files, sockets. What is absent *links*,
//! because SDKs import all names of the ABI, and answers `Unimplemented`; see
//! [`supported_calls`] and [`Module::unimplemented_imports`].
//!
//! **Limit in time.** Epochs, not fuel: the user calls [`Engine::tick`] at a constant rate, and a
//! call that lasts longer than its deadline in ticks traps. The host's side of a call is not
//! interrupted, so every size that a module chooses has a limit ([`Limits`], [`PAIRS_MAX`], …).
//!
//! **Failure.** A trap, a deadline that passed or an exit ends the instance: its memory can be in
//! any state. Every later call fails with [`CallError::Ended`]. The user fails the streams of the
//! instance by its own rules and starts another instance after the pause that [`Restart`] gives.
//!
//! `examples/filter.rs` is a complete host, which runs a filter once.
//!
//! Without the feature `vm` only the formats are left, and `wasmtime` is not built.
//!
//! [spec]: https://github.com/proxy-wasm/spec/blob/main/abi-versions/v0.2.1/README.md

mod abi;
mod calls;
mod host;
mod limits;
mod metrics;
mod pairs;
mod restart;
mod shared_data;
#[cfg(feature = "vm")]
mod vm;

pub use abi::{
    AbiVersion, Action, ContextHasher, ContextId, ContextMap, HttpMap, LogLevel, MetricKind, Side,
    Status,
};
pub use calls::{CallKind, Support, SupportedCall, supported_calls};
pub use host::{Host, HttpCall, HttpCallId, HttpCallResponse, LocalResponse};
pub use limits::{
    FOREIGN_ARGUMENTS_BYTES_MAX, IMPORTS_MAX, LOG_LINE_BYTES_MAX, Limits, MODULE_BYTES_MAX,
    NAME_BYTES_MAX, PROPERTY_PATH_BYTES_MAX, RANDOM_BYTES_MAX, STACK_BYTES_MAX, TABLES_MAX,
    WASI_VECTORS_MAX, WRITE_BYTES_MAX,
};
pub use metrics::{Metric, MetricValue, Metrics};
pub use pairs::{PAIRS_BYTES_MAX, PAIRS_MAX, Pairs, PairsError};
pub use restart::{PAUSE_MAX, PAUSE_MIN, Restart};
pub use shared_data::{SharedData, SharedDataLimits};
#[cfg(feature = "vm")]
pub use vm::{
    CallError, EndReason, Engine, Finish, Instance, InstanceSettings, LoadError, Module,
    ModuleOptions, StartError, Template, UnimplementedImport,
};
