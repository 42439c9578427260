//! The calls of the ABI as a table: what is supported, and with which types.
//!
//! The linker, the check of imports and exports, and the documentation are made from it.

/// Which way a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// The module calls the host: an import of the module.
    HostCall,
    /// The host calls the module: an export of the module, which it may lack.
    Callback,
}

/// How far a call is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// As the specification has it.
    Full,
    /// A host call links and answers that it is not implemented; a callback is never called.
    None,
}

/// One call of the ABI, or of WASI preview 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedCall {
    /// Which way it goes.
    pub kind: CallKind,
    /// The module that it is imported from; empty for a callback.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its parameters, a letter each: `i` is `i32`, `I` is `i64`.
    pub parameters: &'static str,
    /// Its result, in the same form; empty if it has none.
    pub result: &'static str,
    /// How far it is supported.
    pub support: Support,
}

/// The module of the ABI's own calls.
pub(crate) const ENV: &str = "env";

/// The module of WASI preview 1.
pub(crate) const WASI: &str = "wasi_snapshot_preview1";

/// All calls that the host has a name for. Other imports link too, see
/// [`Module::unimplemented_imports`](crate::Module::unimplemented_imports).
#[must_use]
pub fn supported_calls() -> &'static [SupportedCall] {
    CALLS
}

/// The entry of a host call.
#[cfg(feature = "vm")]
pub(crate) fn host_call(module: &str, name: &str) -> Option<&'static SupportedCall> {
    let mut calls = CALLS.iter().filter(|call| call.kind == CallKind::HostCall);
    calls.find(|call| call.module == module && call.name == name)
}

/// The callbacks that are called.
#[cfg(feature = "vm")]
pub(crate) fn callbacks() -> impl Iterator<Item = &'static SupportedCall> {
    let mut calls = CALLS.iter();
    std::iter::from_fn(move || {
        calls.find(|call| call.kind == CallKind::Callback && call.support == Support::Full)
    })
}

const fn env(name: &'static str, parameters: &'static str, support: Support) -> SupportedCall {
    SupportedCall {
        kind: CallKind::HostCall,
        module: ENV,
        name,
        parameters,
        result: "i",
        support,
    }
}

const fn wasi(name: &'static str, parameters: &'static str, support: Support) -> SupportedCall {
    SupportedCall {
        module: WASI,
        ..env(name, parameters, support)
    }
}

const fn callback(
    name: &'static str,
    parameters: &'static str,
    result: &'static str,
    support: Support,
) -> SupportedCall {
    SupportedCall {
        kind: CallKind::Callback,
        module: "",
        name,
        parameters,
        result,
        support,
    }
}

use Support::{Full, None};

static CALLS: &[SupportedCall] = &[
    env("proxy_log", "iii", Full),
    env("proxy_get_log_level", "i", Full),
    env("proxy_get_current_time_nanoseconds", "i", Full),
    env("proxy_set_tick_period_milliseconds", "i", Full),
    env("proxy_set_effective_context", "i", Full),
    env("proxy_done", "", Full),
    env("proxy_get_buffer_bytes", "iiiii", Full),
    env("proxy_get_buffer_status", "iii", Full),
    env("proxy_set_buffer_bytes", "iiiii", Full),
    env("proxy_get_header_map_size", "ii", Full),
    env("proxy_get_header_map_pairs", "iii", Full),
    env("proxy_set_header_map_pairs", "iii", Full),
    env("proxy_get_header_map_value", "iiiii", Full),
    env("proxy_add_header_map_value", "iiiii", Full),
    env("proxy_replace_header_map_value", "iiiii", Full),
    env("proxy_remove_header_map_value", "iii", Full),
    env("proxy_continue_stream", "i", Full),
    env("proxy_close_stream", "i", Full),
    env("proxy_send_local_response", "iiiiiiii", Full),
    env("proxy_http_call", "iiiiiiiiii", Full),
    env("proxy_get_status", "iii", Full),
    env("proxy_get_property", "iiii", Full),
    env("proxy_set_property", "iiii", Full),
    env("proxy_call_foreign_function", "iiiiii", Full),
    env("proxy_get_shared_data", "iiiii", Full),
    env("proxy_set_shared_data", "iiiii", Full),
    env("proxy_define_metric", "iiii", Full),
    env("proxy_increment_metric", "iI", Full),
    env("proxy_record_metric", "iI", Full),
    env("proxy_get_metric", "ii", Full),
    env("proxy_register_shared_queue", "iii", None),
    env("proxy_resolve_shared_queue", "iiiii", None),
    env("proxy_enqueue_shared_queue", "iii", None),
    env("proxy_dequeue_shared_queue", "iii", None),
    env("proxy_grpc_call", "iiiiiiiiiiii", None),
    env("proxy_grpc_stream", "iiiiiiiii", None),
    env("proxy_grpc_send", "iiii", None),
    env("proxy_grpc_cancel", "i", None),
    env("proxy_grpc_close", "i", None),
    wasi("args_get", "ii", Full),
    wasi("args_sizes_get", "ii", Full),
    wasi("environ_get", "ii", Full),
    wasi("environ_sizes_get", "ii", Full),
    wasi("clock_res_get", "ii", Full),
    wasi("clock_time_get", "iIi", Full),
    wasi("random_get", "ii", Full),
    wasi("sched_yield", "", Full),
    wasi("poll_oneoff", "iiii", Full),
    SupportedCall {
        result: "",
        ..wasi("proc_exit", "i", Full)
    },
    wasi("fd_write", "iiii", Full),
    wasi("fd_fdstat_get", "ii", Full),
    wasi("fd_fdstat_set_flags", "ii", Full),
    // there is no directory: that they answer so ends the search of libraries for one
    wasi("fd_prestat_get", "ii", Full),
    wasi("fd_prestat_dir_name", "iii", Full),
    wasi("fd_advise", "iIIi", None),
    wasi("fd_allocate", "iII", None),
    wasi("fd_close", "i", None),
    wasi("fd_datasync", "i", None),
    wasi("fd_fdstat_set_rights", "iII", None),
    wasi("fd_filestat_get", "ii", None),
    wasi("fd_filestat_set_size", "iI", None),
    wasi("fd_filestat_set_times", "iIIi", None),
    wasi("fd_pread", "iiiIi", None),
    wasi("fd_pwrite", "iiiIi", None),
    wasi("fd_read", "iiii", None),
    wasi("fd_readdir", "iiiIi", None),
    wasi("fd_renumber", "ii", None),
    wasi("fd_seek", "iIii", None),
    wasi("fd_sync", "i", None),
    wasi("fd_tell", "ii", None),
    wasi("path_create_directory", "iii", None),
    wasi("path_filestat_get", "iiiii", None),
    wasi("path_filestat_set_times", "iiiiIIi", None),
    wasi("path_link", "iiiiiii", None),
    wasi("path_open", "iiiiiIIii", None),
    wasi("path_readlink", "iiiiii", None),
    wasi("path_remove_directory", "iii", None),
    wasi("path_rename", "iiiiii", None),
    wasi("path_symlink", "iiiii", None),
    wasi("path_unlink_file", "iii", None),
    wasi("proc_raise", "i", None),
    wasi("sock_accept", "iii", None),
    wasi("sock_recv", "iiiiii", None),
    wasi("sock_send", "iiiii", None),
    wasi("sock_shutdown", "ii", None),
    callback("_initialize", "", "", Full),
    callback("_start", "", "", Full),
    callback("main", "ii", "i", Full),
    callback("proxy_on_memory_allocate", "i", "i", Full),
    callback("malloc", "i", "i", Full),
    callback("proxy_on_context_create", "ii", "", Full),
    callback("proxy_on_vm_start", "ii", "i", Full),
    callback("proxy_on_configure", "ii", "i", Full),
    callback("proxy_on_tick", "i", "", Full),
    callback("proxy_on_request_headers", "iii", "i", Full),
    callback("proxy_on_request_body", "iii", "i", Full),
    callback("proxy_on_request_trailers", "ii", "i", Full),
    callback("proxy_on_response_headers", "iii", "i", Full),
    callback("proxy_on_response_body", "iii", "i", Full),
    callback("proxy_on_response_trailers", "ii", "i", Full),
    callback("proxy_on_http_call_response", "iiiii", "", Full),
    callback("proxy_on_foreign_function", "iii", "", Full),
    callback("proxy_on_done", "i", "i", Full),
    callback("proxy_on_log", "i", "", Full),
    callback("proxy_on_delete", "i", "", Full),
    callback("proxy_on_new_connection", "i", "i", None),
    callback("proxy_on_downstream_data", "iii", "i", None),
    callback("proxy_on_downstream_connection_close", "ii", "", None),
    callback("proxy_on_upstream_data", "iii", "i", None),
    callback("proxy_on_upstream_connection_close", "ii", "", None),
    callback("proxy_on_queue_ready", "ii", "", None),
    callback("proxy_on_grpc_receive_initial_metadata", "iii", "", None),
    callback("proxy_on_grpc_receive", "iii", "", None),
    callback("proxy_on_grpc_receive_trailing_metadata", "iii", "", None),
    callback("proxy_on_grpc_close", "iii", "", None),
];
