//! The exports of an instance that the host calls. Each may be missing.

use super::state::State;
use crate::host::Host;
use wasmtime::{Instance, Store, TypedFunc, WasmParams, WasmResults};

/// An export, if the module has it.
pub(crate) type Callback<P, R> = Option<TypedFunc<P, R>>;

pub(crate) struct Callbacks {
    pub(crate) initialize: Callback<(), ()>,
    pub(crate) main: Callback<(u32, u32), u32>,
    pub(crate) start: Callback<(), ()>,
    pub(crate) context_create: Callback<(u32, u32), ()>,
    pub(crate) vm_start: Callback<(u32, u32), u32>,
    pub(crate) configure: Callback<(u32, u32), u32>,
    pub(crate) tick: Callback<u32, ()>,
    pub(crate) request_headers: Callback<(u32, u32, u32), u32>,
    pub(crate) request_body: Callback<(u32, u32, u32), u32>,
    pub(crate) request_trailers: Callback<(u32, u32), u32>,
    pub(crate) response_headers: Callback<(u32, u32, u32), u32>,
    pub(crate) response_body: Callback<(u32, u32, u32), u32>,
    pub(crate) response_trailers: Callback<(u32, u32), u32>,
    pub(crate) http_call_response: Callback<(u32, u32, u32, u32, u32), ()>,
    pub(crate) foreign_function: Callback<(u32, u32, u32), ()>,
    pub(crate) done: Callback<u32, u32>,
    pub(crate) log: Callback<u32, ()>,
    pub(crate) delete: Callback<u32, ()>,
    /// `proxy_on_memory_allocate`, or `malloc` in its absence.
    pub(crate) allocate: Callback<u32, u32>,
}

impl Callbacks {
    /// Finds the exports. Their types were checked when the module was compiled.
    pub(crate) fn find<H: Host>(store: &mut Store<State<H>>, instance: &Instance) -> Self {
        let mut exports = Exports { store, instance };
        Self {
            initialize: exports.find("_initialize"),
            main: exports.find("main"),
            start: exports.find("_start"),
            context_create: exports.find("proxy_on_context_create"),
            vm_start: exports.find("proxy_on_vm_start"),
            configure: exports.find("proxy_on_configure"),
            tick: exports.find("proxy_on_tick"),
            request_headers: exports.find("proxy_on_request_headers"),
            request_body: exports.find("proxy_on_request_body"),
            request_trailers: exports.find("proxy_on_request_trailers"),
            response_headers: exports.find("proxy_on_response_headers"),
            response_body: exports.find("proxy_on_response_body"),
            response_trailers: exports.find("proxy_on_response_trailers"),
            http_call_response: exports.find("proxy_on_http_call_response"),
            foreign_function: exports.find("proxy_on_foreign_function"),
            done: exports.find("proxy_on_done"),
            log: exports.find("proxy_on_log"),
            delete: exports.find("proxy_on_delete"),
            allocate: exports
                .find("proxy_on_memory_allocate")
                .or_else(|| exports.find("malloc")),
        }
    }
}

struct Exports<'a, H: 'static> {
    store: &'a mut Store<State<H>>,
    instance: &'a Instance,
}

impl<H: Host> Exports<'_, H> {
    fn find<P: WasmParams, R: WasmResults>(&mut self, name: &str) -> Callback<P, R> {
        self.instance.get_typed_func(&mut *self.store, name).ok()
    }
}
