//! Modules that fail, or that take more than they may.

use crate::recorder::Recorder;
use crate::script::{compile_with, expand, module, start, start_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_wasm::{
    CallError, ContextId, EndReason, Engine, HttpCallResponse, Instance, InstanceSettings, Limits,
    ModuleOptions, Pairs, StartError, Template,
};

/// Runs `action` while the clock of the engine ticks.
fn with_ticks<R>(engine: &Engine, action: impl FnOnce() -> R) -> R {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                engine.tick();
                std::thread::yield_now();
            }
        });
        let result = action();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn starter(text: &str) -> (Engine, Template<Recorder>) {
    let engine = Engine::new().unwrap();
    let module = compile_with(&engine, text, ModuleOptions::default()).unwrap();
    let template = Template::new(&module).unwrap();
    (engine, template)
}

fn limited(limits: Limits) -> InstanceSettings {
    InstanceSettings {
        limits,
        ..InstanceSettings::default()
    }
}

#[test]
fn endless_loop_ends_at_its_deadline() {
    let text = module("(func (export \"proxy_on_tick\") (param i32) (loop $l (br $l)))");
    let (engine, template) = starter(&text);
    let mut instance = template
        .start(Recorder::default(), InstanceSettings::default())
        .unwrap();
    let failed = CallError::Failed(EndReason::DeadlineExceeded);
    assert_eq!(with_ticks(&engine, || instance.tick()), Err(failed));
    let ended = CallError::Ended(EndReason::DeadlineExceeded);
    assert_eq!(instance.tick(), Err(ended.clone()));
    assert_eq!(instance.create_stream(), Err(ended));
    assert_eq!(instance.streams(), 0);
}

#[test]
fn endless_calls_of_the_host_end_at_their_deadline() {
    for call in [
        "(call $sched_yield)",
        "(call $proxy_get_log_level (i32.const 0))",
    ] {
        let text = module(&format!(
            "(func (export \"proxy_on_tick\") (param i32) (loop $l (drop {call}) (br $l)))"
        ));
        let (engine, template) = starter(&text);
        let settings = InstanceSettings::default();
        let mut instance = template.start(Recorder::default(), settings).unwrap();
        let failed = CallError::Failed(EndReason::DeadlineExceeded);
        assert_eq!(with_ticks(&engine, || instance.tick()), Err(failed));
    }
}

#[test]
fn endless_start_ends_at_its_deadline() {
    let looping = "(loop $l (br $l))";
    for (text, step) in [
        (module(&format!("(func $s {looping}) (start $s)")), "start"),
        (
            module(&format!("(func (export \"_start\") {looping})")),
            "_start",
        ),
    ] {
        let (engine, template) = starter(&text);
        let settings = limited(Limits {
            start_deadline_ticks: 3,
            ..Limits::default()
        });
        let error = with_ticks(&engine, || template.start(Recorder::default(), settings));
        let reason = EndReason::DeadlineExceeded;
        assert_eq!(error.unwrap_err(), StartError::Ended { step, reason });
    }
}

#[test]
fn each_call_has_the_whole_deadline() {
    let text = module("(func (export \"proxy_on_tick\") (param i32))");
    let (engine, template) = starter(&text);
    let settings = InstanceSettings::default();
    let mut instance = template.start(Recorder::default(), settings).unwrap();
    for _ in 0..100 {
        for _ in 1..Limits::default().call_deadline_ticks {
            engine.tick();
        }
        instance.tick().unwrap();
    }
}

#[test]
fn contexts_that_a_call_completes_share_its_deadline() {
    // completes the streams 2 to 21, each of which takes a tick in each of its last callbacks
    let text = module(
        r#"(func (export "proxy_on_done") (param i32) (result i32) (i32.const 0))
           (func (export "proxy_on_log") (param i32) (call $say (i32.const 1)))
           (func (export "proxy_on_delete") (param i32) (call $say (i32.const 2)))
           (func (export "proxy_on_tick") (param i32)
               (local $stream i32)
               (local.set $stream (i32.const 2))
               (loop $more
                   (drop (call $proxy_set_effective_context (local.get $stream)))
                   (drop (call $proxy_done))
                   (local.set $stream (i32.add (local.get $stream) (i32.const 1)))
                   (br_if $more (i32.lt_u (local.get $stream) (i32.const 22)))))"#,
    );
    let (engine, template) = starter(&text);
    let engine = Arc::new(engine);
    let host = Recorder {
        ticked: Some(Arc::clone(&engine)),
        ..Recorder::default()
    };
    let settings = InstanceSettings::default();
    let mut instance = template.start(host, settings).unwrap();
    for _ in 0..20 {
        let stream = instance.create_stream().unwrap();
        instance.finish_stream(stream).unwrap();
    }
    let failed = CallError::Failed(EndReason::DeadlineExceeded);
    assert_eq!(instance.tick(), Err(failed));
    let ticks = instance.host().log.len() as u64;
    assert_eq!(ticks, Limits::default().call_deadline_ticks);
}

#[test]
fn endless_recursion_fills_the_stack() {
    let text = module("(func $f (export \"proxy_on_tick\") (param i32) (call $f (local.get 0)))");
    let mut instance = start(&text);
    let failed = CallError::Failed(EndReason::StackOverflow);
    assert_eq!(instance.tick(), Err(failed));
}

#[test]
fn memory_and_tables_do_not_grow_beyond_their_limits() {
    let text = module(
        r#"(table $t 1 funcref)
           (func (export "proxy_on_tick") (param i32)
               (loop $more (br_if $more
                   (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
               (call $say (memory.size))
               (call $say (i32.add (i32.const 1)
                   (table.grow $t (ref.null func) (i32.const 1000)))))
           (func (export "proxy_on_log") (param i32) unreachable)"#,
    );
    let limits = Limits {
        memory_bytes_max: 5 << 16,
        table_elements_max: 1000,
        ..Limits::default()
    };
    let mut instance = start_with(&text, Recorder::default(), limited(limits)).unwrap();
    instance.tick().unwrap();
    assert_eq!(instance.host().lines(), ["5", "0"]);
    assert_eq!(instance.memory_bytes(), 5 << 16);
    // a trap behind a refusal names it
    let stream = instance.create_stream().unwrap();
    let text = instance.finish_stream(stream).unwrap_err().to_string();
    assert!(text.contains("at most 327680"), "{text}");
}

#[test]
fn module_that_begins_beyond_the_limits_does_not_start() {
    let limits = Limits {
        memory_bytes_max: 0xffff,
        ..Limits::default()
    };
    let error = start_with(&module(""), Recorder::default(), limited(limits)).unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
    let tables = "(table 1 funcref)".repeat(5);
    let settings = InstanceSettings::default();
    let error = start_with(&module(&tables), Recorder::default(), settings).unwrap_err();
    assert!(matches!(error, StartError::Instantiate(_)), "{error}");
}

/// Callbacks with their types.
const CALLBACKS: [(&str, &str); 11] = [
    (
        "proxy_on_request_headers",
        "(param i32 i32 i32) (result i32)",
    ),
    ("proxy_on_request_body", "(param i32 i32 i32) (result i32)"),
    ("proxy_on_request_trailers", "(param i32 i32) (result i32)"),
    (
        "proxy_on_response_headers",
        "(param i32 i32 i32) (result i32)",
    ),
    ("proxy_on_response_body", "(param i32 i32 i32) (result i32)"),
    ("proxy_on_response_trailers", "(param i32 i32) (result i32)"),
    ("proxy_on_tick", "(param i32)"),
    ("proxy_on_foreign_function", "(param i32 i32 i32)"),
    ("proxy_on_done", "(param i32) (result i32)"),
    ("proxy_on_log", "(param i32)"),
    ("proxy_on_delete", "(param i32)"),
];

fn call(instance: &mut Instance<Recorder>, name: &str, stream: ContextId) -> Result<(), CallError> {
    match name {
        "proxy_on_request_headers" => instance.request_headers(stream, true).map(drop),
        "proxy_on_request_body" => instance.request_body(stream, true).map(drop),
        "proxy_on_request_trailers" => instance.request_trailers(stream).map(drop),
        "proxy_on_response_headers" => instance.response_headers(stream, true).map(drop),
        "proxy_on_response_body" => instance.response_body(stream, true).map(drop),
        "proxy_on_response_trailers" => instance.response_trailers(stream).map(drop),
        "proxy_on_tick" => instance.tick(),
        "proxy_on_foreign_function" => instance.foreign_function(1, Vec::new()),
        _ => instance.finish_stream(stream).map(drop),
    }
}

#[test]
fn trap_in_each_callback_ends_the_instance() {
    for (name, types) in CALLBACKS {
        let text = module(&format!("(func (export \"{name}\") {types} unreachable)"));
        let mut instance = start(&text);
        let stream = instance.create_stream().unwrap();
        let other = instance.create_stream().unwrap();
        let error = call(&mut instance, name, stream).unwrap_err();
        assert!(error.to_string().contains("unreachable"), "{name}: {error}");
        for (later, _) in CALLBACKS {
            let error = call(&mut instance, later, other);
            assert!(matches!(error, Err(CallError::Ended(_))), "{name}, {later}");
        }
    }
}

#[test]
fn trap_in_the_response_of_an_http_call_and_in_the_creation_of_a_stream_ends_the_instance() {
    let fields = [(":authority", "a"), (":method", "b"), (":path", "c")];
    let fields = Pairs::of(fields).unwrap().encode();
    let literal: String = fields.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let text = module(&format!(
        r#"(data (i32.const 100) "up") (data (i32.const 200) "{literal}")
           (func (export "proxy_on_context_create") (param $id i32) (param i32)
               (if (i32.eq (local.get $id) (i32.const 3)) (then unreachable)))
           (func (export "proxy_on_http_call_response") (param i32 i32 i32 i32 i32) unreachable)
           (func (export "proxy_on_tick") (param i32) {})"#,
        expand(&format!(
            "proxy_http_call(100, 2, 200, {}, 0, 0, 0, 0, 10, 8)",
            fields.len()
        ))
    ));
    let mut first = start(&text);
    first.create_stream().unwrap();
    assert!(matches!(first.create_stream(), Err(CallError::Failed(_))));
    assert!(first.ended().is_some());
    let mut second = start(&text);
    second.tick().unwrap();
    let id = second.host().calls[0].1.id;
    let error = second.http_call_response(id, HttpCallResponse::default());
    assert!(matches!(error, Err(CallError::Failed(_))));
    let error = second.http_call_response(id, HttpCallResponse::default());
    assert!(matches!(error, Err(CallError::Ended(_))));
}

/// A module whose allocator is `body`, and that reads its configuration.
fn with_allocator(body: &str) -> Instance<Recorder> {
    let text = module(&format!(
        "(func (export \"proxy_on_tick\") (param i32) {})",
        expand("proxy_get_buffer_bytes(7, 0, 9, 0, 4)")
    ));
    let (before, after) = text.split_once("(global.get $top)").unwrap();
    let after = &after[after.find("$size))))").unwrap() + "$size)))".len()..];
    let text = format!("{before} {body} {after}");
    let settings = InstanceSettings {
        plugin_configuration: b"plugin".as_slice().into(),
        ..InstanceSettings::default()
    };
    start_with(&text, Recorder::default(), settings).unwrap()
}

#[test]
fn place_from_the_allocator_is_checked() {
    for (place, status) in [("0", "6"), ("65531", "6"), ("-1", "6"), ("65530", "0")] {
        let mut instance = with_allocator(&format!("(i32.const {place})"));
        instance.tick().unwrap();
        assert_eq!(instance.host().lines(), [status], "{place}");
    }
}

#[test]
fn allocator_that_grows_the_memory_is_followed() {
    let mut instance = with_allocator("(i32.mul (memory.grow (i32.const 1)) (i32.const 65536))");
    instance.tick().unwrap();
    assert_eq!(instance.host().lines(), ["0"]);
}

#[test]
fn allocator_that_traps_ends_the_instance() {
    let mut instance = with_allocator("unreachable");
    assert!(matches!(instance.tick(), Err(CallError::Failed(_))));
}

#[test]
fn module_without_an_allocator_receives_a_failure() {
    let text = module(&format!(
        "(func (export \"proxy_on_tick\") (param i32) {})",
        expand("proxy_get_property(100, 11, 0, 4)")
    ));
    let text = text.replace("(export \"proxy_on_memory_allocate\")", "");
    let text = text.replacen(
        "(memory (export",
        "(data (i32.const 100) \"plugin_name\") (memory (export",
        1,
    );
    let settings = InstanceSettings {
        plugin_name: "x".to_owned(),
        ..InstanceSettings::default()
    };
    let mut instance = start_with(&text, Recorder::default(), settings).unwrap();
    instance.tick().unwrap();
    assert_eq!(instance.host().lines(), ["10"]);
}

#[test]
fn calls_before_there_is_a_context_are_refused() {
    let text = module(&format!(
        "(func $s {}) (start $s)",
        expand(
            "proxy_get_header_map_pairs(0, 0, 4)
             proxy_add_header_map_value(0, 100, 1, 100, 1)
             proxy_get_buffer_bytes(0, 0, 1, 0, 4)
             proxy_send_local_response(200, 0, 0, 0, 0, 0, 0, -1)
             proxy_continue_stream(0)
             proxy_close_stream(0)
             proxy_done()
             proxy_set_effective_context(1)
             proxy_set_effective_context(0)
             proxy_set_effective_context(2)"
        )
    ));
    let instance = start(&text);
    let mut expected = vec!["2"; 10];
    expected[7] = "0";
    assert_eq!(instance.host().lines(), expected);
}
