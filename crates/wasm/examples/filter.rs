//! Runs a filter once: a request and its response go through it, and what it did is printed.
//!
//! ```text
//! cargo run -p weir-wasm --example filter -- FILTER.wasm [CONFIGURATION]
//! ```

use std::error::Error;
use std::ops::Range;
use std::time::{Duration, Instant};
use weir_wasm::{
    ContextId, Engine, Host, HttpMap, Instance, InstanceSettings, LocalResponse, LogLevel, Module,
    ModuleOptions, Pairs, Side, Status, Template,
};

/// How often the clock of the engine ticks.
const TICK: Duration = Duration::from_millis(1);

/// A request and a response, and what a filter logs.
#[derive(Debug)]
struct Printer {
    request: Pairs,
    response: Pairs,
    request_body: Vec<u8>,
    response_body: Vec<u8>,
}

impl Printer {
    fn body_mut(&mut self, side: Side) -> &mut Vec<u8> {
        match side {
            Side::Request => &mut self.request_body,
            Side::Response => &mut self.response_body,
        }
    }
}

impl Host for Printer {
    fn map(&mut self, context: ContextId, map: HttpMap) -> Option<&Pairs> {
        self.map_mut(context, map).map(|pairs| &*pairs)
    }

    fn map_mut(&mut self, _: ContextId, map: HttpMap) -> Option<&mut Pairs> {
        match map {
            HttpMap::RequestHeaders => Some(&mut self.request),
            HttpMap::ResponseHeaders => Some(&mut self.response),
            HttpMap::RequestTrailers | HttpMap::ResponseTrailers => None,
        }
    }

    fn body(&mut self, _: ContextId, side: Side) -> Option<&[u8]> {
        Some(self.body_mut(side))
    }

    fn replace_body(
        &mut self,
        _: ContextId,
        side: Side,
        range: Range<usize>,
        content: &[u8],
    ) -> Result<(), Status> {
        self.body_mut(side).splice(range, content.iter().copied());
        Ok(())
    }

    fn send_local_response(
        &mut self,
        context: ContextId,
        response: LocalResponse,
    ) -> Result<(), Status> {
        println!("context {context} responds: {response:?}");
        Ok(())
    }

    fn continue_stream(&mut self, context: ContextId, side: Side) {
        println!("context {context} continues its {side:?}");
    }

    fn close_stream(&mut self, context: ContextId, side: Side) -> Result<(), Status> {
        println!("context {context} closes its {side:?}");
        Ok(())
    }

    fn log(&mut self, _: Option<ContextId>, level: LogLevel, line: &[u8]) {
        println!("log, {level:?}: {}", String::from_utf8_lossy(line));
    }

    fn log_level(&self) -> LogLevel {
        LogLevel::Trace
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which filter? give its path")?;
    let configuration = arguments.next().unwrap_or_default();
    let engine = Engine::new()?;
    let clock = engine.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(TICK);
            clock.tick();
        }
    });
    let bytes = std::fs::read(&path)?;
    let begun = Instant::now();
    let module = Module::compile(&engine, &bytes, ModuleOptions::default())?;
    let took = begun.elapsed();
    println!("ABI {}, compiled in {took:?}", module.abi_version());
    let host = Printer {
        request: Pairs::of([
            (":method", "GET"),
            (":path", "/index.html"),
            (":authority", "example.com"),
            (":scheme", "http"),
            ("user-agent", "example"),
        ])?,
        response: Pairs::of([(":status", "200"), ("content-type", "text/plain")])?,
        request_body: b"request content".to_vec(),
        response_body: b"response content".to_vec(),
    };
    let settings = InstanceSettings {
        plugin_name: "example".to_owned(),
        plugin_configuration: configuration.into_bytes().into(),
        ..InstanceSettings::default()
    };
    let begun = Instant::now();
    let mut instance = Template::new(&module)?.start(host, settings)?;
    let took = begun.elapsed();
    println!("started in {took:?}, {} bytes", instance.memory_bytes());
    run(&mut instance)?;
    for import in module.unimplemented_imports() {
        println!("not implemented: {import}, {} calls", import.calls());
    }
    Ok(())
}

fn run(instance: &mut Instance<Printer>) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let stream = instance.create_stream()?;
    println!(
        "request head: {:?}",
        instance.request_headers(stream, false)?
    );
    println!("request body: {:?}", instance.request_body(stream, true)?);
    println!(
        "response head: {:?}",
        instance.response_headers(stream, false)?
    );
    println!("response body: {:?}", instance.response_body(stream, true)?);
    println!("end: {:?}", instance.finish_stream(stream)?);
    println!("a stream took {:?}", begun.elapsed());
    if instance.tick_period().is_some() {
        instance.tick()?;
    }
    let host = instance.host();
    println!("request: {:?}", host.request);
    println!("{}", String::from_utf8_lossy(&host.request_body));
    println!("response: {:?}", host.response);
    println!("{}", String::from_utf8_lossy(&host.response_body));
    Ok(())
}
