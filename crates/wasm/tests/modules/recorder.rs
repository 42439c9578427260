//! A host that has one set of messages for all streams, and records what modules do.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use weir_wasm::{
    ContextId, Engine, Host, HttpCall, HttpMap, LocalResponse, LogLevel, Pairs, Side, Status,
};

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) maps: BTreeMap<HttpMap, Pairs>,
    pub(crate) bodies: BTreeMap<Side, Vec<u8>>,
    pub(crate) log: Vec<(Option<u32>, LogLevel, Vec<u8>)>,
    pub(crate) responses: Vec<(u32, LocalResponse)>,
    pub(crate) continued: Vec<(u32, Side)>,
    pub(crate) closed: Vec<(u32, Side)>,
    pub(crate) calls: Vec<(u32, HttpCall)>,
    pub(crate) properties: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) finished: Vec<u32>,
    /// The clock of this engine ticks at each line of the log.
    pub(crate) ticked: Option<Arc<Engine>>,
}

impl Recorder {
    /// With two fields and a body on each side.
    pub(crate) fn with_messages() -> Self {
        let mut this = Self::default();
        let request = [(":path", "/"), ("x-a", "1")];
        let response = [(":status", "200"), ("x-a", "2")];
        for (map, fields) in [
            (HttpMap::RequestHeaders, request),
            (HttpMap::ResponseHeaders, response),
        ] {
            this.maps.insert(map, Pairs::of(fields).unwrap());
        }
        this.bodies.insert(Side::Request, b"request".to_vec());
        this.bodies.insert(Side::Response, b"response".to_vec());
        this
    }

    /// The lines of the log as text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |(_, _, line): &(_, _, Vec<u8>)| String::from_utf8_lossy(line).into_owned();
        self.log.iter().map(line).collect()
    }

    /// The fields of a map as text.
    pub(crate) fn fields(&self, map: HttpMap) -> String {
        let text = |(name, value): (&[u8], &[u8])| {
            let [name, value] = [name, value].map(String::from_utf8_lossy);
            format!("{name}={value}")
        };
        let fields: Vec<String> = self.maps[&map].iter().map(text).collect();
        fields.join(" ")
    }
}

impl Host for Recorder {
    fn map(&mut self, _: ContextId, map: HttpMap) -> Option<&Pairs> {
        self.maps.get(&map)
    }

    fn map_mut(&mut self, _: ContextId, map: HttpMap) -> Option<&mut Pairs> {
        self.maps.get_mut(&map)
    }

    fn body(&mut self, _: ContextId, side: Side) -> Option<&[u8]> {
        self.bodies.get(&side).map(|body| &**body)
    }

    fn replace_body(
        &mut self,
        _: ContextId,
        side: Side,
        range: Range<usize>,
        content: &[u8],
    ) -> Result<(), Status> {
        let body = self.bodies.get_mut(&side).ok_or(Status::NotFound)?;
        body.splice(range, content.iter().copied());
        Ok(())
    }

    fn send_local_response(
        &mut self,
        context: ContextId,
        response: LocalResponse,
    ) -> Result<(), Status> {
        self.responses.push((context.number(), response));
        Ok(())
    }

    fn continue_stream(&mut self, context: ContextId, side: Side) {
        self.continued.push((context.number(), side));
    }

    fn close_stream(&mut self, context: ContextId, side: Side) -> Result<(), Status> {
        self.closed.push((context.number(), side));
        Ok(())
    }

    fn log(&mut self, context: Option<ContextId>, level: LogLevel, line: &[u8]) {
        let context = context.map(ContextId::number);
        self.log.push((context, level, line.to_vec()));
        if let Some(engine) = &self.ticked {
            engine.tick();
        }
    }

    fn log_level(&self) -> LogLevel {
        LogLevel::Warn
    }

    fn http_call(&mut self, context: ContextId, call: HttpCall) -> Result<(), Status> {
        if call.upstream != b"up" {
            return Err(Status::BadArgument);
        }
        self.calls.push((context.number(), call));
        Ok(())
    }

    fn property(&mut self, _: ContextId, path: &[u8]) -> Option<Vec<u8>> {
        self.properties.get(path).cloned()
    }

    fn set_property(&mut self, _: ContextId, path: &[u8], value: &[u8]) -> Result<(), Status> {
        self.properties.insert(path.to_vec(), value.to_vec());
        Ok(())
    }

    fn call_foreign_function(
        &mut self,
        _: ContextId,
        name: &[u8],
        arguments: &[u8],
    ) -> Result<Vec<u8>, Status> {
        match name {
            b"reverse" => Ok(arguments.iter().rev().copied().collect()),
            _ => Err(Status::NotFound),
        }
    }

    fn finished(&mut self, context: ContextId) {
        self.finished.push(context.number());
    }
}
