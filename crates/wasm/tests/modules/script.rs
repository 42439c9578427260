//! Modules in text form: what all of them have, and scripts of calls whose results become log
//! lines.

use crate::recorder::Recorder;
use std::sync::OnceLock;
use weir_wasm::{
    CallKind, Engine, Instance, InstanceSettings, LoadError, Module, ModuleOptions, StartError,
    Support, Template, supported_calls,
};

/// One for all tests without deadlines: it never ticks.
fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new().unwrap())
}

/// Imports of all calls that are implemented, with the types of the table.
pub(crate) fn imports() -> String {
    let supported = supported_calls().iter();
    let imported =
        supported.filter(|call| call.kind == CallKind::HostCall && call.support == Support::Full);
    let line = |call: &weir_wasm::SupportedCall| {
        let types = types(call.parameters, call.result);
        format!(
            "(import \"{}\" \"{}\" (func ${}{types}))",
            call.module, call.name, call.name
        )
    };
    imported.map(line).collect::<Vec<_>>().join("\n")
}

fn types(parameters: &str, result: &str) -> String {
    let words = |letters: &str| -> String {
        let word = |letter| if letter == 'I' { " i64" } else { " i32" };
        letters.chars().map(word).collect()
    };
    format!(" (param{}) (result{})", words(parameters), words(result))
}

/// What modules have in common: imports, memory, an allocator that only grows, and two functions
/// for scripts. `$say` logs a number as text, `$show` logs what a call gave at 0 (place) and 4
/// (size).
pub(crate) fn module(body: &str) -> String {
    format!(
        r#"(module
        {}
        (memory (export "memory") 1)
        (global $top (mut i32) (i32.const 32768))
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
            (global.get $top)
            (global.set $top (i32.add (global.get $top) (local.get $size))))
        (func $say (param $number i32)
            (local $at i32)
            (local.set $at (i32.const 31))
            (loop $digits
                (i32.store8 (local.get $at)
                    (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
                (local.set $at (i32.sub (local.get $at) (i32.const 1)))
                (local.set $number (i32.div_u (local.get $number) (i32.const 10)))
                (br_if $digits (local.get $number)))
            (drop (call $proxy_log (i32.const 2)
                (i32.add (local.get $at) (i32.const 1))
                (i32.sub (i32.const 31) (local.get $at)))))
        (func $show
            (drop (call $proxy_log (i32.const 2)
                (i32.load (i32.const 0)) (i32.load (i32.const 4)))))
        {body})"#,
        imports()
    )
}

pub(crate) fn compile_with(
    engine: &Engine,
    text: &str,
    options: ModuleOptions,
) -> Result<Module, LoadError> {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Module::compile(engine, &bytes, options)
}

pub(crate) fn compile(text: &str) -> Result<Module, LoadError> {
    compile_with(engine(), text, ModuleOptions::default())
}

/// Starts an instance of a module that can be loaded.
pub(crate) fn start_with(
    text: &str,
    host: Recorder,
    settings: InstanceSettings,
) -> Result<Instance<Recorder>, StartError> {
    let template = Template::new(&compile(text).unwrap()).unwrap();
    template.start(host, settings)
}

pub(crate) fn start(text: &str) -> Instance<Recorder> {
    start_with(text, Recorder::with_messages(), InstanceSettings::default()).unwrap()
}

/// Runs a script for the headers of a request: `statements` are shortened text, in which a number
/// stands for a constant. Gives the host.
pub(crate) fn run(data: &[(u32, &str)], statements: &str) -> Recorder {
    let mut instance = start(&script("proxy_on_request_headers", data, statements));
    let stream = instance.create_stream().unwrap();
    instance.request_headers(stream, true).unwrap();
    instance.into_host()
}

/// A module whose callback with three parameters and a result runs `statements`.
pub(crate) fn script(callback: &str, data: &[(u32, &str)], statements: &str) -> String {
    let segment = |(at, text): &(u32, &str)| format!("(data (i32.const {at}) \"{text}\")");
    let segments: Vec<String> = data.iter().map(segment).collect();
    module(&format!(
        "{}(func (export \"{callback}\") (param i32 i32 i32) (result i32) {} (i32.const 0))",
        segments.join("\n"),
        expand(statements)
    ))
}

/// Writes `name(1, 2)` as a folded call: numbers are constants of 32 bits, `7L` of 64, `@0` a
/// load. A call that is a statement says its result.
pub(crate) fn expand(statements: &str) -> String {
    let lines = statements
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty());
    lines.map(expand_line).collect::<Vec<_>>().join("\n")
}

fn expand_line(line: &str) -> String {
    let Some((name, arguments)) = line.split_once('(').filter(|_| !line.starts_with('(')) else {
        return match line {
            "show" => "(call $show)".to_owned(),
            wat => wat.to_owned(),
        };
    };
    let arguments = arguments.trim_end_matches(')').split(',').map(str::trim);
    let constant = |argument: &str| match argument.strip_suffix('L') {
        Some(wide) => format!("(i64.const {wide})"),
        None => match argument.strip_prefix('@') {
            Some(place) => format!("(i32.load (i32.const {place}))"),
            None => format!("(i32.const {argument})"),
        },
    };
    let arguments = arguments.filter(|it| !it.is_empty()).map(constant);
    let arguments: Vec<String> = arguments.collect();
    match name {
        "say" => format!("(call $say {})", arguments.join(" ")),
        name => format!("(call $say (call ${name} {}))", arguments.join(" ")),
    }
}
