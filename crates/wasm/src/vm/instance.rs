//! An instance: one virtual machine with one plugin context and its streams.

use super::callbacks::{Callback, Callbacks};
use super::end::{CallError, EndReason, StartError};
use super::settings::InstanceSettings;
use super::state::State;
use crate::abi::{Action, ContextId, HttpMap, Side};
use crate::host::{Host, HttpCallId, HttpCallResponse};
use std::fmt;
use std::time::Duration;
use wasmtime::{InstancePre, Store, WasmParams, WasmResults};

/// A running module. It is called from one thread at a time, and each call returns when the module
/// returns or its deadline has passed, however many callbacks the call has.
pub struct Instance<H: Host> {
    store: Store<State<H>>,
    callbacks: Box<Callbacks>,
    ended: Option<EndReason>,
}

/// Whether a context is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It no longer exists.
    Finished,
    /// The module still uses it, until it calls `proxy_done`; then
    /// [`Host::finished`] is called.
    Pending,
}

impl<H: Host> fmt::Debug for Instance<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The plugin context as modules see it.
const PLUGIN: u32 = ContextId::PLUGIN.number();

impl<H: Host> Instance<H> {
    pub(crate) fn start(
        linked: &InstancePre<State<H>>,
        host: H,
        settings: InstanceSettings,
    ) -> Result<Self, StartError> {
        let engine = linked.module().engine();
        let mut store = Store::new(engine, State::new(host, settings));
        store.limiter(|state| &mut state.limiter);
        let deadline = store.data().settings.limits.start_deadline_ticks;
        store.set_epoch_deadline(deadline);
        let instance = linked.instantiate(&mut store).map_err(|error| {
            let limiter = &store.data().limiter;
            match EndReason::new(&error, limiter) {
                EndReason::Trap(why) => StartError::Instantiate(why),
                reason => StartError::Ended {
                    step: "start",
                    reason,
                },
            }
        })?;
        let mut callbacks = Box::new(Callbacks::find(&mut store, &instance));
        let memory = instance.get_memory(&mut store, "memory");
        let state = store.data_mut();
        state.memory = memory;
        state.allocate = callbacks.allocate.take().map(Box::new);
        let mut this = Self {
            store,
            callbacks,
            ended: None,
        };
        this.initialise()?;
        this.configure()?;
        Ok(this)
    }

    fn initialise(&mut self) -> Result<(), StartError> {
        if self.callbacks.initialize.is_some() {
            let result = self.start_step(None, |all| &all.initialize, ());
            during("_initialize", result)?;
            let main = self.start_step(None, |all| &all.main, (0, 0));
            during("main", main)?;
        } else {
            let start = self.start_step(None, |all| &all.start, ());
            during("_start", start)?;
        }
        Ok(())
    }

    fn configure(&mut self) -> Result<(), StartError> {
        let plugin = Some(ContextId::PLUGIN);
        let settings = &self.store.data().settings;
        let vm_size = number(settings.vm_configuration.len());
        let plugin_size = number(settings.plugin_configuration.len());
        let result = self.start_step(plugin, |all| &all.context_create, (PLUGIN, 0));
        during("proxy_on_context_create", result)?;
        let started = self.start_step(plugin, |all| &all.vm_start, (PLUGIN, vm_size));
        accepted("proxy_on_vm_start", started)?;
        let configured = self.start_step(plugin, |all| &all.configure, (PLUGIN, plugin_size));
        accepted("proxy_on_configure", configured)
    }

    /// A callback of the start, which has a deadline of its own.
    fn start_step<P: WasmParams, R: WasmResults>(
        &mut self,
        id: Option<ContextId>,
        callback: impl Fn(&Callbacks) -> &Callback<P, R>,
        arguments: P,
    ) -> Result<Option<R>, CallError> {
        let deadline = self.store.data().settings.limits.start_deadline_ticks;
        self.store.set_epoch_deadline(deadline);
        self.run(id, callback, arguments)
    }

    /// The user's side.
    #[must_use]
    pub fn host(&self) -> &H {
        &self.store.data().host
    }

    /// The user's side, to change it between calls.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.store.data_mut().host
    }

    /// Gives the user's side back, and drops the instance with its memory.
    #[must_use]
    pub fn into_host(self) -> H {
        self.store.into_data().host
    }

    /// Why the instance ended, if it did. Its streams are gone then.
    #[must_use]
    pub fn ended(&self) -> Option<&EndReason> {
        self.ended.as_ref()
    }

    /// Streams that exist, those that are pending included.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.store.data().contexts.len()
    }

    /// The size of its memory, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let memory = self.store.data().memory;
        memory.map_or(0, |memory| memory.data_size(&self.store))
    }

    /// How often [`tick`](Self::tick) is to be called, if at all. A callback can change it.
    #[must_use]
    pub fn tick_period(&self) -> Option<Duration> {
        self.store.data().tick_period
    }

    /// A stream begins: creates its context.
    ///
    /// # Errors
    /// [`CallError`]; `TooManyStreams` at the limit.
    pub fn create_stream(&mut self) -> Result<ContextId, CallError> {
        self.check()?;
        let state = self.store.data_mut();
        let streams_max = state.settings.limits.streams_max;
        let id = state.contexts.create(streams_max);
        let id = id.ok_or(CallError::TooManyStreams { streams_max })?;
        self.call(id, |all| &all.context_create, (id.number(), PLUGIN))?;
        Ok(id)
    }

    /// The header section of a request is there.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn request_headers(
        &mut self,
        stream: ContextId,
        end_of_stream: bool,
    ) -> Result<Action, CallError> {
        let count = self.count(stream, HttpMap::RequestHeaders);
        let arguments = (stream.number(), count, end_of_stream.into());
        self.message(stream, Side::Request, |all| &all.request_headers, arguments)
    }

    /// Content of a request is there: what the host's `body` gives.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn request_body(
        &mut self,
        stream: ContextId,
        end_of_stream: bool,
    ) -> Result<Action, CallError> {
        let size = self.body_size(stream, Side::Request);
        let arguments = (stream.number(), size, end_of_stream.into());
        self.message(stream, Side::Request, |all| &all.request_body, arguments)
    }

    /// The trailer section of a request is there.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn request_trailers(&mut self, stream: ContextId) -> Result<Action, CallError> {
        let count = self.count(stream, HttpMap::RequestTrailers);
        self.message(
            stream,
            Side::Request,
            |all| &all.request_trailers,
            (stream.number(), count),
        )
    }

    /// The header section of a response is there.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn response_headers(
        &mut self,
        stream: ContextId,
        end_of_stream: bool,
    ) -> Result<Action, CallError> {
        let count = self.count(stream, HttpMap::ResponseHeaders);
        let arguments = (stream.number(), count, end_of_stream.into());
        self.message(
            stream,
            Side::Response,
            |all| &all.response_headers,
            arguments,
        )
    }

    /// Content of a response is there: what the host's `body` gives.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn response_body(
        &mut self,
        stream: ContextId,
        end_of_stream: bool,
    ) -> Result<Action, CallError> {
        let size = self.body_size(stream, Side::Response);
        let arguments = (stream.number(), size, end_of_stream.into());
        self.message(stream, Side::Response, |all| &all.response_body, arguments)
    }

    /// The trailer section of a response is there.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn response_trailers(&mut self, stream: ContextId) -> Result<Action, CallError> {
        let count = self.count(stream, HttpMap::ResponseTrailers);
        self.message(
            stream,
            Side::Response,
            |all| &all.response_trailers,
            (stream.number(), count),
        )
    }

    /// An HTTP call has its response; a default one if it failed.
    ///
    /// # Errors
    /// [`CallError`]; `UnknownHttpCall` for a second response.
    pub fn http_call_response(
        &mut self,
        call: HttpCallId,
        response: HttpCallResponse,
    ) -> Result<(), CallError> {
        self.check()?;
        let state = self.store.data_mut();
        if !state.http_calls.remove(&call.number()) {
            return Err(CallError::UnknownHttpCall(call.number()));
        }
        let sizes = [
            response.fields.len(),
            response.body.len(),
            response.trailers.len(),
        ];
        let [fields, body, trailers] = sizes.map(number);
        state.http_call_response = Some(response);
        let arguments = (PLUGIN, call.number(), fields, body, trailers);
        let result = self.call(ContextId::PLUGIN, |all| &all.http_call_response, arguments);
        self.store.data_mut().http_call_response = None;
        result.map(|_| ())
    }

    /// The period of the timer has passed.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn tick(&mut self) -> Result<(), CallError> {
        self.call(ContextId::PLUGIN, |all| &all.tick, PLUGIN)?;
        Ok(())
    }

    /// Calls a function of the module that is not in the ABI.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn foreign_function(&mut self, function: u32, arguments: Vec<u8>) -> Result<(), CallError> {
        let size = number(arguments.len());
        self.store.data_mut().foreign_arguments = Some(arguments);
        let result = self.call(
            ContextId::PLUGIN,
            |all| &all.foreign_function,
            (PLUGIN, function, size),
        );
        self.store.data_mut().foreign_arguments = None;
        result.map(|_| ())
    }

    /// The host is done with a stream: the module logs and forgets it.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn finish_stream(&mut self, stream: ContextId) -> Result<Finish, CallError> {
        self.check_stream(stream)?;
        self.finish(stream)
    }

    /// Deletes a stream without waiting for `proxy_done`.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn delete_stream(&mut self, stream: ContextId) -> Result<(), CallError> {
        self.check_stream(stream)?;
        self.arm();
        self.delete(stream)
    }

    /// Finishes the plugin context. The instance has ended when the module agrees.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn finish_plugin(&mut self) -> Result<Finish, CallError> {
        self.check()?;
        self.finish(ContextId::PLUGIN)
    }

    fn finish(&mut self, id: ContextId) -> Result<Finish, CallError> {
        if self.store.data_mut().contexts.is_pending(id) {
            return Ok(Finish::Pending);
        }
        // an absent callback has nothing left to do
        let is_done = self.call(id, |all| &all.done, id.number())?;
        if is_done == Some(0) {
            self.store.data_mut().contexts.set_pending(id);
            return Ok(Finish::Pending);
        }
        self.delete(id)?;
        Ok(Finish::Finished)
    }

    /// The last callbacks of a context, within the deadline of the call that it is deleted in.
    fn delete(&mut self, id: ContextId) -> Result<(), CallError> {
        self.run(Some(id), |all| &all.log, id.number())?;
        self.run(Some(id), |all| &all.delete, id.number())?;
        let state = self.store.data_mut();
        state.contexts.remove(id);
        state.host.finished(id);
        if id == ContextId::PLUGIN {
            self.end(EndReason::Finished);
        }
        Ok(())
    }

    fn message<P: WasmParams>(
        &mut self,
        id: ContextId,
        side: Side,
        callback: impl Fn(&Callbacks) -> &Callback<P, u32>,
        arguments: P,
    ) -> Result<Action, CallError> {
        self.check()?;
        let stream = self.store.data_mut().contexts.stream(id);
        stream.ok_or(CallError::UnknownContext(id))?.begin(side);
        let action = self.call(id, callback, arguments)?.unwrap_or(0);
        // as in other hosts, an unknown action pauses: the content was not released
        let action = Action::from_number(action).unwrap_or(Action::Pause);
        let stream = self.store.data_mut().contexts.stream(id);
        Ok(stream.map_or(action, |stream| stream.end(side, action)))
    }

    /// A callback and the last callbacks of contexts that it completed, all within one deadline.
    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        id: ContextId,
        callback: impl Fn(&Callbacks) -> &Callback<P, R>,
        arguments: P,
    ) -> Result<Option<R>, CallError> {
        self.arm();
        let result = self.run(Some(id), callback, arguments)?;
        while let Some(completed) = self.store.data_mut().contexts.take_completed() {
            self.delete(completed)?;
        }
        Ok(result)
    }

    fn run<P: WasmParams, R: WasmResults>(
        &mut self,
        id: Option<ContextId>,
        callback: impl Fn(&Callbacks) -> &Callback<P, R>,
        arguments: P,
    ) -> Result<Option<R>, CallError> {
        self.check()?;
        let Some(callback) = callback(&self.callbacks) else {
            return Ok(None);
        };
        self.store.data_mut().effective = id;
        let result = callback.call(&mut self.store, arguments);
        let state = self.store.data_mut();
        state.effective = id;
        state.flush();
        state.effective = None;
        result.map(Some).map_err(|error| {
            let reason = EndReason::new(&error, &self.store.data().limiter);
            self.end(reason.clone());
            CallError::Failed(reason)
        })
    }

    fn end(&mut self, reason: EndReason) {
        let state = self.store.data_mut();
        state.contexts.clear();
        state.http_calls.clear();
        state.tick_period = None;
        self.ended = Some(reason);
    }

    fn check(&self) -> Result<(), CallError> {
        match &self.ended {
            Some(reason) => Err(CallError::Ended(reason.clone())),
            None => Ok(()),
        }
    }

    fn check_stream(&mut self, id: ContextId) -> Result<(), CallError> {
        self.check()?;
        match self.store.data_mut().contexts.stream(id) {
            Some(_) => Ok(()),
            None => Err(CallError::UnknownContext(id)),
        }
    }

    /// The deadline of a call begins: it is one for all callbacks of the call.
    fn arm(&mut self) {
        let deadline = self.store.data().settings.limits.call_deadline_ticks;
        self.store.set_epoch_deadline(deadline);
    }

    fn count(&mut self, id: ContextId, map: HttpMap) -> u32 {
        number(self.host_mut().map_len(id, map))
    }

    fn body_size(&mut self, id: ContextId, side: Side) -> u32 {
        number(self.host_mut().body(id, side).map_or(0, <[u8]>::len))
    }
}

/// A size as modules see it; one beyond 32 bits is not readable whole.
fn number(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// A step of the start whose result says whether the module accepts its configuration.
fn accepted(step: &'static str, result: Result<Option<u32>, CallError>) -> Result<(), StartError> {
    match during(step, result)? {
        Some(0) => Err(StartError::Refused { step }),
        _ => Ok(()),
    }
}

/// The error of a step of the start.
fn during<T>(step: &'static str, result: Result<T, CallError>) -> Result<T, StartError> {
    result.map_err(|error| match error {
        CallError::Failed(reason) | CallError::Ended(reason) => StartError::Ended { step, reason },
        other => StartError::Instantiate(other.to_string()),
    })
}
