//! The start, the contexts, and their end.

use crate::recorder::Recorder;
use crate::script::{expand, module, start, start_with};
use weir_wasm::{CallError, ContextId, EndReason, Finish, InstanceSettings, Limits, StartError};

/// A callback that says the number of its line, and its two arguments.
fn traced(name: &str, number: u32, result: &str) -> String {
    let types = if result.is_empty() {
        ""
    } else {
        "(result i32)"
    };
    format!(
        "(func (export \"{name}\") (param i32 i32) {types}
            (call $say (i32.const {number}))
            (call $say (local.get 0)) (call $say (local.get 1)) {result})"
    )
}

#[test]
fn instance_is_initialised_created_and_configured_in_order() {
    let text = module(&format!(
        "(func (export \"_initialize\") (call $say (i32.const 100)))
         (func (export \"_start\") unreachable)
         {}{}{}{}",
        traced("main", 200, "(i32.const 0)"),
        traced("proxy_on_context_create", 300, ""),
        traced("proxy_on_vm_start", 400, "(i32.const 1)"),
        traced("proxy_on_configure", 500, "(i32.const 1)"),
    ));
    let settings = InstanceSettings {
        vm_configuration: b"vm".as_slice().into(),
        plugin_configuration: b"plugin".as_slice().into(),
        ..InstanceSettings::default()
    };
    let mut instance = start_with(&text, Recorder::default(), settings).unwrap();
    let stream = instance.create_stream().unwrap();
    assert_ne!(stream, ContextId::PLUGIN);
    let expected = [
        "100", "200", "0", "0", "300", "1", "0", "400", "1", "2", "500", "1", "6", "300", "2", "1",
    ];
    assert_eq!(instance.host().lines(), expected);
    assert_eq!(instance.host().log[0].0, None);
}

#[test]
fn start_is_called_only_without_initialize() {
    let text = module("(func (export \"_start\") (call $say (i32.const 7)))");
    assert_eq!(start(&text).host().lines(), ["7"]);
}

#[test]
fn refused_configuration_does_not_start() {
    for step in ["proxy_on_vm_start", "proxy_on_configure"] {
        let text = module(&traced(step, 1, "(i32.const 0)"));
        let error = start_with(&text, Recorder::default(), InstanceSettings::default());
        assert_eq!(error.unwrap_err(), StartError::Refused { step });
    }
}

#[test]
fn trap_during_the_start_names_the_step() {
    for (step, types) in [
        ("_initialize", ""),
        ("_start", ""),
        ("proxy_on_context_create", "(param i32 i32)"),
        ("proxy_on_vm_start", "(param i32 i32) (result i32)"),
        ("proxy_on_configure", "(param i32 i32) (result i32)"),
    ] {
        let text = module(&format!("(func (export \"{step}\") {types} unreachable)"));
        let error = start_with(&text, Recorder::default(), InstanceSettings::default());
        let error = error.unwrap_err();
        let is_named = matches!(&error, StartError::Ended { step: it, .. } if *it == step);
        assert!(is_named, "{error:?}");
        assert!(error.to_string().contains("unreachable"), "{error}");
    }
}

const ENDINGS: &str = r#"
    (func (export "proxy_on_log") (param i32)
        (call $say (i32.const 20)) (call $say (local.get 0)))
    (func (export "proxy_on_delete") (param i32)
        (call $say (i32.const 30)) (call $say (local.get 0)))"#;

#[test]
fn finished_stream_is_logged_and_deleted() {
    let mut instance = start(&module(ENDINGS));
    let stream = instance.create_stream().unwrap();
    assert_eq!(instance.finish_stream(stream), Ok(Finish::Finished));
    assert_eq!(instance.host().lines(), ["20", "2", "30", "2"]);
    assert_eq!(instance.host().finished, [2]);
    let unknown = CallError::UnknownContext(stream);
    assert_eq!(instance.finish_stream(stream), Err(unknown.clone()));
    assert_eq!(instance.request_headers(stream, true), Err(unknown));
    assert_eq!(instance.streams(), 0);
}

#[test]
fn pending_stream_is_deleted_after_done() {
    let text = module(&format!(
        r#"{ENDINGS}
           (func (export "proxy_on_done") (param i32) (result i32) (i32.const 0))
           (func (export "proxy_on_tick") (param i32) {})"#,
        expand(
            "proxy_done()
             proxy_set_effective_context(2)
             proxy_done()
             proxy_done()"
        )
    ));
    let mut instance = start(&text);
    let stream = instance.create_stream().unwrap();
    let other = instance.create_stream().unwrap();
    assert_eq!(instance.finish_stream(stream), Ok(Finish::Pending));
    assert_eq!(instance.finish_stream(stream), Ok(Finish::Pending));
    assert_eq!(instance.streams(), 2);
    instance.tick().unwrap();
    let expected = ["1", "0", "0", "1", "20", "2", "30", "2"];
    assert_eq!(instance.host().lines(), expected);
    assert_eq!(instance.streams(), 1);
    assert_eq!(instance.finish_stream(other), Ok(Finish::Pending));
    instance.delete_stream(other).unwrap();
    assert_eq!(instance.host().finished, [2, 3]);
}

#[test]
fn finished_plugin_ends_the_instance() {
    let mut instance = start(&module(ENDINGS));
    assert_eq!(instance.finish_plugin(), Ok(Finish::Finished));
    assert_eq!(instance.ended(), Some(&EndReason::Finished));
    let ended = CallError::Ended(EndReason::Finished);
    assert_eq!(instance.create_stream(), Err(ended));
}

#[test]
fn streams_have_a_limit_and_numbers_of_their_own() {
    let limits = Limits {
        streams_max: 2,
        ..Limits::default()
    };
    let settings = InstanceSettings {
        limits,
        ..InstanceSettings::default()
    };
    let mut instance = start_with(&module(""), Recorder::default(), settings).unwrap();
    let first = instance.create_stream().unwrap();
    let second = instance.create_stream().unwrap();
    assert_ne!(first, second);
    let full = CallError::TooManyStreams { streams_max: 2 };
    assert_eq!(instance.create_stream(), Err(full));
    instance.finish_stream(first).unwrap();
    let third = instance.create_stream().unwrap();
    assert!(third != first && third != second);
}

#[test]
fn allocator_may_log_and_make_no_other_call() {
    let text = module("").replace(
        "(global.get $top)\n            (global.set",
        "(call $say (call $proxy_done))
         (call $say (call $random_get (i32.const 0) (i32.const 4)))
         (global.get $top)\n            (global.set",
    );
    let text = text.replace("(module", "(module ;; its allocator calls the host\n");
    let text = format!(
        "{}(func (export \"proxy_on_tick\") (param i32) {}))",
        text.trim_end().strip_suffix(')').unwrap(),
        expand("proxy_get_buffer_bytes(6, 0, 9, 8, 12)")
    );
    let settings = InstanceSettings {
        vm_configuration: b"vm".as_slice().into(),
        ..InstanceSettings::default()
    };
    let mut instance = start_with(&text, Recorder::default(), settings).unwrap();
    instance.tick().unwrap();
    assert_eq!(instance.host().lines(), ["10", "0", "0"]);
}
