//! What the user of the crate implements: the messages of its streams, and its side of the calls.

use crate::abi::{ContextId, HttpMap, LogLevel, Side, Status};
use crate::pairs::Pairs;
use std::ops::Range;
use std::time::Duration;

/// The proxy's side of an instance.
///
/// The instance owns it ([`Instance::host_mut`](crate::Instance::host_mut)): a user puts the
/// messages of a stream there before a callback and takes what became of them afterwards. Methods
/// are called within a callback, for the stream that the module chose, which may be another one
/// than that of the callback. They must not block.
///
/// Sizes of what arrives here are bounded, contents are not checked: field names and values can
/// hold any octet.
pub trait Host: 'static {
    /// The fields of a map, or `None` if the stream does not have it now.
    fn map(&mut self, context: ContextId, map: HttpMap) -> Option<&Pairs>;

    /// The same to change them, or `None` if they cannot be changed now.
    fn map_mut(&mut self, context: ContextId, map: HttpMap) -> Option<&mut Pairs>;

    /// How many fields a map has; none if the stream does not have it now.
    fn map_len(&mut self, context: ContextId, map: HttpMap) -> usize {
        self.map(context, map).map_or(0, Pairs::len)
    }

    /// Adds a field at the end of a map.
    ///
    /// # Errors
    /// The status for the module: the map cannot be changed now, or has no room.
    fn add_field(
        &mut self,
        context: ContextId,
        map: HttpMap,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), Status> {
        let pairs = self.map_mut(context, map).ok_or(Status::BadArgument)?;
        pairs.add(name, value).map_err(|_| Status::BadArgument)
    }

    /// The content of a message that is in reach of the module, or `None` if there is none now.
    fn body(&mut self, context: ContextId, side: Side) -> Option<&[u8]>;

    /// Replaces a part of what [`body`](Self::body) gave. `range` lies in it.
    ///
    /// # Errors
    /// The status for the module: it cannot be changed now, or it would become too large.
    fn replace_body(
        &mut self,
        context: ContextId,
        side: Side,
        range: Range<usize>,
        content: &[u8],
    ) -> Result<(), Status>;

    /// Sends this response to the client of the stream; a stream has one at most.
    ///
    /// # Errors
    /// The status for the module, `BadArgument` if another response has begun.
    fn send_local_response(
        &mut self,
        context: ContextId,
        response: LocalResponse,
    ) -> Result<(), Status>;

    /// A message that paused goes on. It is not called for a message that did not pause.
    fn continue_stream(&mut self, context: ContextId, side: Side);

    /// The stream is to be reset.
    ///
    /// # Errors
    /// The status for the module.
    fn close_stream(&mut self, context: ContextId, side: Side) -> Result<(), Status>;

    /// A line of the module's log, without its end, at most
    /// [`LOG_LINE_BYTES_MAX`](crate::LOG_LINE_BYTES_MAX). `context` is `None` while the module is
    /// initialised. The rate of lines is the host's to limit.
    fn log(&mut self, context: Option<ContextId>, level: LogLevel, line: &[u8]);

    /// The lowest level that is written.
    fn log_level(&self) -> LogLevel {
        LogLevel::Info
    }

    /// Starts an HTTP call. Its response is handed to
    /// [`Instance::http_call_response`](crate::Instance::http_call_response), at the latest after
    /// the timeout of the call.
    ///
    /// # Errors
    /// The status for the module: `BadArgument` for an unknown upstream.
    fn http_call(&mut self, context: ContextId, call: HttpCall) -> Result<(), Status> {
        let _ = (context, call);
        Err(Status::BadArgument)
    }

    /// The value of a property. Segments of the path are separated by NUL.
    fn property(&mut self, context: ContextId, path: &[u8]) -> Option<Vec<u8>> {
        let _ = (context, path);
        None
    }

    /// Sets a property.
    ///
    /// # Errors
    /// The status for the module, `NotFound` for a property that is unknown or read-only.
    fn set_property(
        &mut self,
        context: ContextId,
        path: &[u8],
        value: &[u8],
    ) -> Result<(), Status> {
        let _ = (context, path, value);
        Err(Status::NotFound)
    }

    /// Calls a function of the host that is not in the ABI, and gives its result.
    ///
    /// # Errors
    /// The status for the module, `NotFound` for an unknown function.
    fn call_foreign_function(
        &mut self,
        context: ContextId,
        name: &[u8],
        arguments: &[u8],
    ) -> Result<Vec<u8>, Status> {
        let _ = (context, name, arguments);
        Err(Status::NotFound)
    }

    /// The module has finished a context, which no longer exists: its last callbacks are over.
    fn finished(&mut self, context: ContextId) {
        let _ = context;
    }
}

/// A response that a module made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalResponse {
    /// From 200 to 599.
    pub status: u16,
    /// Why, for the log; not for the client.
    pub details: Vec<u8>,
    /// The header section.
    pub fields: Pairs,
    /// The content.
    pub body: Vec<u8>,
    /// The status for a gRPC client; -1 if the module gave none.
    pub grpc_status: i32,
}

/// Identifies an HTTP call within an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpCallId(pub(crate) u32);

impl HttpCallId {
    /// The number that the module uses.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A request that a module sends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCall {
    /// Its response carries this.
    pub id: HttpCallId,
    /// The name of the destination, as the module has it.
    pub upstream: Vec<u8>,
    /// The header section, with `:method`, `:path` and `:authority`.
    pub fields: Pairs,
    /// The content.
    pub body: Vec<u8>,
    /// The trailer section.
    pub trailers: Pairs,
    /// When the call has failed. The module chose it: the host has an upper limit of its own.
    pub timeout: Duration,
}

/// The response to an HTTP call. Without fields, it tells that the call failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpCallResponse {
    /// The header section, with `:status`.
    pub fields: Pairs,
    /// The content.
    pub body: Vec<u8>,
    /// The trailer section.
    pub trailers: Pairs,
}
