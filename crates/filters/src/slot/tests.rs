//! An instance whose host has no task for it.

use crate::filter::Wasm;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::ready;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use weir_extend::{
    Answer, Call, Detached, FetchError, Fields, Host, ListenerMode, LogLevel, Module, ModuleKind,
    OptionValue, Options, OwnRequest, OwnResponse, Pending, RequestHead,
};
use weir_wasm::Pairs;

/// A worker without a task left, on which no time passes. It notes how long it was to sleep.
#[derive(Default)]
struct Full(RefCell<Vec<Duration>>);

impl Host for Full {
    fn worker(&self) -> usize {
        0
    }

    fn wall_ms(&self) -> u64 {
        0
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        Detached.fetch(request)
    }

    fn sleep(&self, time: Duration) -> Pending<()> {
        self.0.borrow_mut().push(time);
        Box::pin(ready(()))
    }
}

/// A filter that starts a call for each request, and the next one when a call is complete. It
/// counts those that are complete as `complete`.
fn caller(call: &str, callback: &str, parameters: &str) -> String {
    let fields = [(":authority", "a"), (":method", "GET"), (":path", "/")];
    let fields = Pairs::of(fields).expect("it fits").encode();
    let fields = fields.iter().fold(String::new(), |mut text, byte| {
        // writing to a string does not fail
        let _ = write!(text, "\\{byte:02x}");
        text
    });
    format!(
        r#"(module
        (import "env" "proxy_http_call"
            (func $http (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_call_foreign_function"
            (func $function (param i32 i32 i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_define_metric" (func $define (param i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_increment_metric" (func $increment (param i32 i64) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 100) "up")
        (data (i32.const 110) "complete")
        (data (i32.const 120) "weir_object_query")
        (data (i32.const 140) "gateway http://a/")
        (data (i32.const 200) "{fields}")
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 4096))
        (func $call (if (i32.ne (i32.const 0) {call}) (then unreachable)))
        (func (export "proxy_on_configure") (param i32 i32) (result i32)
            (drop (call $define (i32.const 0) (i32.const 110) (i32.const 8) (i32.const 0)))
            (i32.const 1))
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (call $call) (i32.const 0))
        (func (export "{callback}") (param {parameters})
            (drop (call $increment (i32.load (i32.const 0)) (i64.const 1)))
            (call $call)))"#
    )
}

/// With the 61 bytes of the fields above.
const HTTP_CALL: &str = "(call $http (i32.const 100) (i32.const 2) (i32.const 200) (i32.const 61)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1000) (i32.const 4))";

const FUNCTION_CALL: &str = "(call $function (i32.const 120) (i32.const 17) (i32.const 140)
    (i32.const 17) (i32.const 8) (i32.const 12))";

fn load(file: &Path) -> Arc<dyn Module> {
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let up = BTreeMap::from([("up".to_owned(), text("http://127.0.0.1:1"))]);
    let values = BTreeMap::from([
        ("file".to_owned(), text(&file.display().to_string())),
        ("upstreams".to_owned(), OptionValue::Table(up)),
        ("objects".to_owned(), OptionValue::Flag(true)),
    ]);
    let loaded = Wasm.load(Options::new(values));
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn call_without_a_task_is_completed_once_a_turn_and_not_within_itself() {
    let parameters = ["i32 i32 i32 i32 i32", "i32 i32 i32"];
    for (call, callback, parameters) in [
        (HTTP_CALL, "proxy_on_http_call_response", parameters[0]),
        (FUNCTION_CALL, "proxy_on_foreign_function", parameters[1]),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("filter.wasm");
        let text = caller(call, callback, parameters);
        let bytes = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"));
        std::fs::write(&file, bytes).expect("written");
        let module = load(&file);
        let full = Rc::new(Full::default());
        let host: Rc<dyn Host> = Rc::clone(&full) as Rc<dyn Host>;
        let mut exchange = module.begin(&host);
        let mut head = RequestHead::new("GET", "a", "/", Fields::default());
        let about = Call {
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            mode: ListenerMode::Gateway,
            now_ms: 0,
        };
        assert_eq!(
            exchange.request_received(&mut head, &about),
            Answer::Continue
        );
        for turn in 1..=3 {
            let mut turned = module.tick(&host).expect("a call to complete");
            let mut cx = Context::from_waker(Waker::noop());
            assert!(turned.as_mut().poll(&mut cx).is_ready());
            let metrics = module.metrics();
            assert_eq!((metrics.len(), metrics[0].value), (1, turn), "{callback}");
        }
        assert_eq!(*full.0.borrow(), [Duration::from_millis(10); 3]);
    }
}
