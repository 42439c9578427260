//! Limits of what a module can use.
//!
//! Constants bound single arguments of calls; [`Limits`] has what an operator may choose.

use std::time::Duration;

/// The size of a module, bytes. A large filter (a WAF with its rules) has 25 MB.
pub const MODULE_BYTES_MAX: usize = 64 << 20;

/// Imports of a module. The ABI and WASI have 85 names together.
pub const IMPORTS_MAX: usize = 1000;

/// Tables of an instance. Compilers make one or two.
pub const TABLES_MAX: usize = 4;

/// The stack of a module, bytes: the default of wasmtime. Recursion beyond it traps.
pub const STACK_BYTES_MAX: usize = 512 << 10;

/// A log line, bytes; the rest of a longer line is dropped (`proxy_log`) or becomes the next line
/// (standard output). How many lines a second are written is the host's decision.
pub const LOG_LINE_BYTES_MAX: usize = 4 << 10;

/// The path of a property, bytes.
pub const PROPERTY_PATH_BYTES_MAX: usize = 1 << 10;

/// A name of a metric, a foreign function or an upstream, and a key of shared data, bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Arguments and results of a foreign function and the value of a property, bytes.
pub const FOREIGN_ARGUMENTS_BYTES_MAX: usize = 64 << 10;

/// Random bytes in one call.
pub const RANDOM_BYTES_MAX: usize = 64 << 10;

/// What one `fd_write` takes, bytes. A longer one is a partial write, which libraries continue.
pub const WRITE_BYTES_MAX: usize = 64 << 10;

/// Vectors of one `fd_write`, and subscriptions of one `poll_oneoff`.
pub const WASI_VECTORS_MAX: usize = 64;

/// What an instance may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory, bytes. Default 64 MiB; a Rust filter starts with 1 MiB, a large Go filter
    /// with 13 MiB. `memory.grow` beyond it fails, and most modules then trap.
    pub memory_bytes_max: usize,
    /// Elements of each table: functions that can be called indirectly. Default 100 000.
    pub table_elements_max: usize,
    /// How long one call may last, ticks of [`Engine::tick`](crate::Engine::tick). The first
    /// tick can follow at once, so that `n` ticks are at least `n - 1` periods. Default 11: 10 ms
    /// where a tick comes each millisecond. The last callbacks of contexts that the module
    /// completes in a call are part of that.
    pub call_deadline_ticks: u64,
    /// How long each step of the start may last, ticks: initialisation, `proxy_on_vm_start`,
    /// `proxy_on_configure`. Default 5000: filters compile their rules there.
    pub start_deadline_ticks: u64,
    /// Stream contexts at one time, those that the module has not finished included. Default 10
    /// 000.
    pub streams_max: usize,
    /// HTTP calls without a response at one time. Default 64.
    pub http_calls_max: usize,
    /// Content that a module makes in one call, bytes: of a local response, of an HTTP call, of a
    /// replacement in a body. Default 1 MiB.
    pub content_bytes_max: usize,
    /// The shortest period of ticks; shorter ones are made this long. Default 10 ms.
    pub tick_period_min: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 64 << 20,
            table_elements_max: 100_000,
            call_deadline_ticks: 11,
            start_deadline_ticks: 5000,
            streams_max: 10_000,
            http_calls_max: 64,
            content_bytes_max: 1 << 20,
            tick_period_min: Duration::from_millis(10),
        }
    }
}
