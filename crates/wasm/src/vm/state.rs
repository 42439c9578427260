//! What the calls of a module work on: the data of its store.

use super::contexts::Contexts;
use super::limiter::Limiter;
use super::output::LineBuffer;
use super::settings::InstanceSettings;
use crate::abi::{ContextId, LogLevel, Status};
use crate::host::{Host, HttpCallResponse};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wasmtime::{Memory, TypedFunc};

pub(crate) struct State<H> {
    pub(crate) host: H,
    pub(crate) settings: InstanceSettings,
    pub(crate) limiter: Limiter,
    pub(crate) contexts: Contexts,
    /// The context that calls without one are for; none while the module is initialised.
    pub(crate) effective: Option<ContextId>,
    pub(crate) memory: Option<Memory>,
    /// The allocator of the module; taken while it is called, which it cannot be within itself.
    pub(crate) allocate: Option<Box<TypedFunc<u32, u32>>>,
    /// The module allocates for the host: it is within a host call.
    pub(crate) is_allocating: bool,
    /// Room for a value on its way to the module.
    pub(crate) copy: Vec<u8>,
    /// What `proxy_on_http_call_response` can read.
    pub(crate) http_call_response: Option<HttpCallResponse>,
    /// HTTP calls without a response.
    pub(crate) http_calls: BTreeSet<u32>,
    pub(crate) last_http_call: u32,
    /// What `proxy_on_foreign_function` can read.
    pub(crate) foreign_arguments: Option<Vec<u8>>,
    pub(crate) tick_period: Option<Duration>,
    /// Arguments and environment as WASI gives them.
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) environment: Vec<Vec<u8>>,
    stdout: LineBuffer,
    stderr: LineBuffer,
    /// The zero of the monotonic clock.
    pub(crate) started: Instant,
}

impl<H: Host> State<H> {
    pub(crate) fn new(host: H, settings: InstanceSettings) -> Self {
        let arguments = settings.arguments.iter().map(|it| it.clone().into_bytes());
        let variable = |(name, value): &(String, String)| format!("{name}={value}").into_bytes();
        Self {
            host,
            limiter: Limiter::new(&settings.limits),
            contexts: Contexts::default(),
            effective: None,
            memory: None,
            allocate: None,
            is_allocating: false,
            copy: Vec::new(),
            http_call_response: None,
            http_calls: BTreeSet::new(),
            last_http_call: 0,
            foreign_arguments: None,
            tick_period: None,
            arguments: arguments.collect(),
            environment: settings.environment.iter().map(variable).collect(),
            stdout: LineBuffer::default(),
            stderr: LineBuffer::default(),
            started: Instant::now(),
            settings,
        }
    }

    /// The effective context.
    pub(crate) fn context(&self) -> Result<ContextId, Status> {
        self.effective.ok_or(Status::BadArgument)
    }

    /// Writes to standard output or standard error.
    pub(crate) fn write(&mut self, level: LogLevel, bytes: &[u8]) {
        let context = self.effective;
        let host = &mut self.host;
        let buffer = match level {
            LogLevel::Error => &mut self.stderr,
            _ => &mut self.stdout,
        };
        buffer.write(bytes, |line| host.log(context, level, line));
    }

    /// Writes lines that have no end yet.
    pub(crate) fn flush(&mut self) {
        let context = self.effective;
        let host = &mut self.host;
        self.stdout
            .flush(|it| host.log(context, LogLevel::Info, it));
        self.stderr
            .flush(|it| host.log(context, LogLevel::Error, it));
    }
}
