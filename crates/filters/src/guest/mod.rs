//! What a filter sees of the proxy: the messages of its streams, and the host's side of its calls.

pub(crate) mod content;
pub(crate) mod functions;
pub(crate) mod message_fields;
pub(crate) mod properties;

use crate::effects::{Effects, FunctionCall};
use crate::setup::Setup;
use content::Content;
use message_fields::MessageFields;
use properties::Facts;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;
use weir_wasm::{
    ContextId, ContextMap, Host, HttpCall, HttpMap, LocalResponse, LogLevel, Pairs, Side, Status,
};

/// Properties that a filter sets for one stream.
const OWN_PROPERTIES_MAX: usize = 32;

/// Their paths and values, bytes.
const OWN_PROPERTIES_BYTES_MAX: usize = 16 * 1024;

/// Streams whose room is kept for the next ones: two maps of at most 64 KiB each, and a section of
/// at most 16 KiB.
const SPARE_MAX: usize = 4;

/// Names of functions of the host begin so.
const FUNCTION_PREFIX: &str = "weir_object_";

/// Calls of functions of the host without a completion.
const FUNCTION_CALLS_MAX: usize = 64;

/// The proxy's side of one instance.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) setup: Arc<Setup>,
    pub(crate) streams: ContextMap<Box<StreamData>>,
    /// What streams had that are over, for the next ones.
    #[expect(
        clippy::vec_box,
        reason = "they move to the streams and back, and are not small"
    )]
    spare: Vec<Box<StreamData>>,
    pub(crate) effects: Effects,
    /// Streams that have HTTP calls under way, by the number of the call.
    callers: BTreeMap<u32, ContextId>,
    last_function: u32,
    /// Functions without a completion.
    pub(crate) functions_under_way: usize,
    /// Streams that the filter has yet to finish by itself.
    pub(crate) pending: usize,
}

/// What the instance has of one stream.
#[derive(Debug, Default)]
pub(crate) struct StreamData {
    pub(crate) facts: Facts,
    pub(crate) request: MessageData,
    pub(crate) response: MessageData,
    /// The response that the filter gave.
    pub(crate) answer: Option<LocalResponse>,
    /// The filter has reset the stream.
    pub(crate) is_closed: bool,
    /// A change of the filter cannot be carried out: the stream fails.
    pub(crate) is_broken: bool,
    /// Its request is over.
    is_pending: bool,
    /// HTTP calls under way.
    pub(crate) calls: usize,
    /// What the filter has set by itself.
    own_properties: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// One of the two messages of a stream.
#[derive(Debug, Default)]
pub(crate) struct MessageData {
    pub(crate) fields: MessageFields,
    /// They can be changed.
    pub(crate) is_open: bool,
    /// Its content that is in reach of the filter.
    pub(crate) body: Option<Content>,
    /// The content must stay as it is.
    pub(crate) keeps_body: bool,
    /// The filter has continued it since it paused.
    pub(crate) is_continued: bool,
    /// Wakes the task that waits until the filter continues it.
    pub(crate) waker: Option<Waker>,
}

impl StreamData {
    /// The same room, and nothing in it.
    fn clear(&mut self) {
        self.facts = Facts::default();
        self.request.clear();
        self.response.clear();
        self.answer = None;
        (self.is_closed, self.is_broken, self.is_pending) = (false, false, false);
        self.calls = 0;
        self.own_properties.clear();
    }

    pub(crate) fn message(&mut self, side: Side) -> &mut MessageData {
        match side {
            Side::Request => &mut self.request,
            Side::Response => &mut self.response,
        }
    }

    /// Whether a paused message need not wait any longer.
    pub(crate) fn is_decided(&mut self, side: Side) -> bool {
        self.answer.is_some() || self.is_closed || self.is_broken || self.message(side).is_continued
    }

    fn wake(&mut self, effects: &mut Effects) {
        let wakers = [self.request.waker.take(), self.response.waker.take()];
        effects.wakers.extend(wakers.into_iter().flatten());
    }
}

impl MessageData {
    /// The same room, and nothing in it.
    fn clear(&mut self) {
        self.fields.clear();
        (self.is_open, self.keeps_body, self.is_continued) = (false, false, false);
        (self.body, self.waker) = (None, None);
    }
}

impl Guest {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self {
            setup,
            streams: ContextMap::default(),
            spare: Vec::new(),
            effects: Effects::default(),
            callers: BTreeMap::new(),
            last_function: 0,
            functions_under_way: 0,
            pending: 0,
        }
    }

    /// A stream begins, of a request of which this is known.
    pub(crate) fn begin(&mut self, context: ContextId, facts: Facts) {
        let mut stream = self.spare.pop().unwrap_or_default();
        stream.facts = facts;
        self.streams.insert(context, stream);
    }

    /// An HTTP call is over: its stream may decide anew whether it waits.
    pub(crate) fn end_call(&mut self, call: u32) {
        let caller = self.callers.remove(&call);
        if let Some(stream) = caller.and_then(|id| self.streams.get_mut(&id)) {
            stream.calls = stream.calls.saturating_sub(1);
            stream.wake(&mut self.effects);
        }
    }

    /// The request of a stream is over, and the filter has yet to finish it.
    pub(crate) fn set_pending(&mut self, context: ContextId) {
        if let Some(stream) = self.streams.get_mut(&context) {
            // what it still has is the filter's alone
            **stream = StreamData {
                is_pending: true,
                ..StreamData::default()
            };
            self.pending += 1;
        }
    }

    /// Wakes the tasks that wait for a stream: the instance has ended, and they must learn that.
    pub(crate) fn wake_all(&mut self) {
        for stream in self.streams.values_mut() {
            stream.wake(&mut self.effects);
        }
    }

    /// The message that a map is of.
    fn message(&mut self, context: ContextId, map: HttpMap) -> Option<&mut MessageData> {
        let stream = self.streams.get_mut(&context)?;
        match map {
            HttpMap::RequestHeaders => Some(&mut stream.request),
            HttpMap::ResponseHeaders => Some(&mut stream.response),
            // trailer sections are not forwarded
            HttpMap::RequestTrailers | HttpMap::ResponseTrailers => None,
        }
    }
}

impl Host for Guest {
    fn map(&mut self, context: ContextId, map: HttpMap) -> Option<&Pairs> {
        self.message(context, map)?.fields.read()
    }

    fn map_len(&mut self, context: ContextId, map: HttpMap) -> usize {
        let message = self.message(context, map);
        message.map_or(0, |message| message.fields.len())
    }

    fn map_mut(&mut self, context: ContextId, map: HttpMap) -> Option<&mut Pairs> {
        let message = self.message(context, map)?;
        match message.is_open {
            true => message.fields.change(),
            false => None,
        }
    }

    fn add_field(
        &mut self,
        context: ContextId,
        map: HttpMap,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), Status> {
        let message = self.message(context, map).filter(|message| message.is_open);
        let message = message.ok_or(Status::BadArgument)?;
        let added = message.fields.add(name, value);
        added.map_err(|_| Status::BadArgument)
    }

    fn body(&mut self, context: ContextId, side: Side) -> Option<&[u8]> {
        let stream = self.streams.get_mut(&context)?;
        stream.message(side).body.as_ref().map(Content::bytes)
    }

    /// The Rust SDK ends a filter that receives a failure here. What a client can cause is
    /// therefore a failure of the stream, or of the change alone.
    fn replace_body(
        &mut self,
        context: ContextId,
        side: Side,
        range: Range<usize>,
        content: &[u8],
    ) -> Result<(), Status> {
        let limit = self.setup.body_bytes_max.max(content.len());
        let stream = self.streams.get_mut(&context).ok_or(Status::BadArgument)?;
        let message = stream.message(side);
        if message.keeps_body {
            self.setup.counts.note_kept_content();
            return Ok(());
        }
        let body = message.body.as_mut().ok_or(Status::BadArgument)?;
        let is_larger = body.bytes().len() - range.len() + content.len() > limit;
        if is_larger || body.replace(range, content).is_err() {
            stream.is_broken = true;
            // the message may be paused in a call of another stream
            stream.wake(&mut self.effects);
        }
        Ok(())
    }

    fn send_local_response(
        &mut self,
        context: ContextId,
        response: LocalResponse,
    ) -> Result<(), Status> {
        let stream = self.streams.get_mut(&context).ok_or(Status::BadArgument)?;
        stream.answer = Some(response);
        stream.wake(&mut self.effects);
        Ok(())
    }

    fn continue_stream(&mut self, context: ContextId, side: Side) {
        if let Some(stream) = self.streams.get_mut(&context) {
            stream.message(side).is_continued = true;
            stream.wake(&mut self.effects);
        }
    }

    fn close_stream(&mut self, context: ContextId, _: Side) -> Result<(), Status> {
        let stream = self.streams.get_mut(&context).ok_or(Status::BadArgument)?;
        stream.is_closed = true;
        stream.wake(&mut self.effects);
        Ok(())
    }

    fn log(&mut self, _: Option<ContextId>, level: LogLevel, line: &[u8]) {
        let level = match level {
            LogLevel::Trace | LogLevel::Debug => weir_extend::LogLevel::Debug,
            LogLevel::Info => weir_extend::LogLevel::Info,
            LogLevel::Warn => weir_extend::LogLevel::Warning,
            LogLevel::Error | LogLevel::Critical => weir_extend::LogLevel::Error,
        };
        self.effects.log(level, line, &self.setup.counts);
    }

    fn http_call(&mut self, context: ContextId, call: HttpCall) -> Result<(), Status> {
        if !self.setup.upstreams.contains_key(&call.upstream) {
            return Err(Status::BadArgument);
        }
        if let Some(stream) = self.streams.get_mut(&context) {
            stream.calls += 1;
            self.callers.insert(call.id.number(), context);
        }
        self.effects.calls.push((context, call));
        Ok(())
    }

    fn property(&mut self, context: ContextId, path: &[u8]) -> Option<Vec<u8>> {
        let stream = self.streams.get_mut(&context)?;
        let own = stream.own_properties.get(path).cloned();
        own.or_else(|| properties::value(path, stream))
    }

    fn set_property(
        &mut self,
        context: ContextId,
        path: &[u8],
        value: &[u8],
    ) -> Result<(), Status> {
        let stream = self.streams.get_mut(&context).ok_or(Status::NotFound)?;
        if properties::is_own(path) {
            return Err(Status::NotFound);
        }
        let own = &mut stream.own_properties;
        let others = own.iter().filter(|(known, _)| *known != path);
        let (count, bytes) = others.fold((1, path.len() + value.len()), |(count, bytes), it| {
            (count + 1, bytes + it.0.len() + it.1.len())
        });
        if count > OWN_PROPERTIES_MAX || bytes > OWN_PROPERTIES_BYTES_MAX {
            return Err(Status::InternalFailure);
        }
        own.insert(path.to_vec(), value.to_vec());
        Ok(())
    }

    /// The result is the number of the call, which `proxy_on_foreign_function` has when the call is
    /// complete.
    fn call_foreign_function(
        &mut self,
        _: ContextId,
        name: &[u8],
        arguments: &[u8],
    ) -> Result<Vec<u8>, Status> {
        let name = str::from_utf8(name).map_err(|_| Status::NotFound)?;
        let is_known = name.starts_with(FUNCTION_PREFIX) && functions::is_known(name);
        if !is_known || !self.setup.objects {
            return Err(Status::NotFound);
        }
        if self.functions_under_way >= FUNCTION_CALLS_MAX {
            return Err(Status::InternalFailure);
        }
        self.functions_under_way += 1;
        self.last_function = self.last_function.wrapping_add(1);
        self.effects.functions.push(FunctionCall {
            token: self.last_function,
            name: name.to_owned(),
            arguments: arguments.to_vec(),
        });
        Ok(self.last_function.to_le_bytes().to_vec())
    }

    fn finished(&mut self, context: ContextId) {
        let Some(mut stream) = self.streams.remove(&context) else {
            return;
        };
        self.pending -= usize::from(stream.is_pending);
        if self.spare.len() < SPARE_MAX {
            stream.clear();
            self.spare.push(stream);
        }
    }
}
