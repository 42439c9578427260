//! What is refused before a module runs, and imports that are not implemented.

use crate::recorder::Recorder;
use crate::script::{compile, compile_with, module, start_with};
use weir_wasm::{
    AbiVersion, CallKind, EndReason, Engine, InstanceSettings, LoadError, Module, ModuleOptions,
    Support, Template, supported_calls,
};

const MARKER: &str = "(func (export \"proxy_abi_version_0_2_1\"))";
const MEMORY: &str = "(memory (export \"memory\") 1)";

fn refusal(body: &str) -> String {
    compile(&format!("(module {body})"))
        .unwrap_err()
        .to_string()
}

#[test]
fn every_version_but_0_2_is_refused_with_its_name() {
    for (marker, version) in [("0_2_0", AbiVersion::V0_2_0), ("0_2_1", AbiVersion::V0_2_1)] {
        let text = format!("(module {MEMORY} (func (export \"proxy_abi_version_{marker}\")))");
        assert_eq!(compile(&text).unwrap().abi_version(), version);
    }
    let old = refusal(&format!(
        "{MEMORY} (func (export \"proxy_abi_version_0_1_0\"))"
    ));
    assert!(
        old.contains("`proxy_abi_version_0_1_0`") && old.contains("0.2.1"),
        "{old}"
    );
    let none = refusal(MEMORY);
    assert!(none.contains("not a proxy-wasm filter"), "{none}");
}

#[test]
fn module_without_memory_is_refused() {
    assert!(refusal(MARKER).contains("exports no memory"));
    let other = format!("{MARKER} (func (export \"memory\"))");
    assert!(refusal(&other).contains("exports no memory"));
}

#[test]
fn function_of_another_type_is_refused_with_both_types() {
    let export = "(func (export \"proxy_on_tick\") (param i64))";
    let text = refusal(&format!("{MARKER} {MEMORY} {export}"));
    assert!(text.contains("`proxy_on_tick`"), "{text}");
    assert!(
        text.contains("(param i64)") && text.contains("(param i32)"),
        "{text}"
    );
    let global = "(global (export \"malloc\") i32 (i32.const 0))";
    let text = refusal(&format!("{MARKER} {MEMORY} {global}"));
    assert!(text.contains("`malloc` has the type a global"), "{text}");
    let import = "(import \"env\" \"proxy_log\" (func (param i32) (result i32)))";
    let text = refusal(&format!("{import} {MARKER} {MEMORY}"));
    assert!(text.contains("`env.proxy_log`"), "{text}");
}

#[test]
fn import_that_is_not_a_function_is_refused() {
    let text = refusal(&format!(
        "(import \"env\" \"g\" (global i32)) {MARKER} {MEMORY}"
    ));
    assert!(text.contains("`env.g` is not a function"), "{text}");
}

#[test]
fn bytes_that_are_no_module_are_refused() {
    let engine = Engine::new().unwrap();
    let refusal = |bytes: &[u8]| {
        let refused = Module::compile(&engine, bytes, ModuleOptions::default());
        refused.expect_err("it is no module")
    };
    assert!(matches!(
        refusal(b"\0asm\x01\0\0\0\xff"),
        LoadError::Compile(_)
    ));
    assert_eq!(refusal(b"\0asm\x0d\0\x01\0"), LoadError::Component);
    for (bytes, start) in [(&b""[..], ""), (b"<html>\n<head>", "<html>\\n<")] {
        let start = start.to_owned();
        assert_eq!(refusal(bytes), LoadError::NotWasm { start });
    }
}

/// A module that imports every call that is not implemented.
fn everything() -> String {
    let missing = supported_calls()
        .iter()
        .filter(|call| call.kind == CallKind::HostCall && call.support == Support::None);
    let import = |call: &weir_wasm::SupportedCall| {
        let words = |letters: &str| -> String {
            let word = |letter| if letter == 'I' { " i64" } else { " i32" };
            letters.chars().map(word).collect()
        };
        format!(
            "(import \"{}\" \"{}\" (func (param{}) (result{})))",
            call.module,
            call.name,
            words(call.parameters),
            words(call.result)
        )
    };
    let imports: Vec<String> = missing.map(import).collect();
    module("").replacen("(module", &format!("(module {}", imports.join("\n")), 1)
}

#[test]
fn every_name_of_the_abi_links_and_the_missing_ones_are_listed() {
    let missing = supported_calls()
        .iter()
        .filter(|call| call.kind == CallKind::HostCall && call.support == Support::None);
    let module = compile(&everything()).unwrap();
    assert_eq!(module.unimplemented_imports().len(), missing.count());
    start_with(
        &everything(),
        Recorder::default(),
        InstanceSettings::default(),
    )
    .unwrap();
}

#[test]
fn strict_refuses_missing_calls_by_name() {
    let strict = ModuleOptions { strict: true };
    let engine = Engine::new().unwrap();
    let error = compile_with(&engine, &everything(), strict).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("env.proxy_grpc_call, "), "{text}");
    assert!(text.contains("wasi_snapshot_preview1.path_open"), "{text}");
    compile_with(&engine, &module(""), strict).unwrap();
}

#[test]
fn missing_call_answers_or_traps_by_its_type_and_is_counted() {
    let imports = r#"
        (import "env" "proxy_grpc_cancel" (func $cancel (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "unheard_of" (func $unheard (result i32)))
        (import "env" "emscripten_notify" (func $notify (param f64)))
        (import "other" "thing" (func $thing (result i32)))"#;
    let body = r#"
        (func (export "proxy_on_tick") (param i32)
            (call $say (call $cancel (i32.const 1)))
            (call $say (call $close (i32.const 1)))
            (call $say (call $unheard)))
        (func (export "proxy_on_log") (param i32) (call $notify (f64.const 0)))
        (func (export "proxy_on_foreign_function") (param i32 i32 i32)
            (drop (call $thing)))"#;
    let text = module(body).replacen("(module", &format!("(module {imports}"), 1);
    let module = compile(&text).unwrap();
    let template = Template::new(&module).unwrap();
    let start = || template.start(Recorder::default(), InstanceSettings::default());
    let mut instance = start().unwrap();
    instance.tick().unwrap();
    assert_eq!(instance.host().lines(), ["12", "8", "52"]);
    let stream = instance.create_stream().unwrap();
    let error = instance.finish_stream(stream).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`env.emscripten_notify`"), "{text}");
    assert!(matches!(instance.ended(), Some(EndReason::Trap(_))));
    assert!(start().unwrap().foreign_function(1, Vec::new()).is_err());
    let calls: Vec<u64> = module
        .unimplemented_imports()
        .iter()
        .map(|it| it.calls())
        .collect();
    assert_eq!(calls, [1, 1, 1, 1, 1]);
}
