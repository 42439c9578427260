//! WASI preview 1.

use crate::recorder::Recorder;
use crate::script::{module, run, script, start, start_with};
use weir_wasm::{CallError, EndReason, InstanceSettings, LogLevel};

#[test]
fn outputs_become_lines() {
    // two vectors: `one\ntw` and `o\n`
    let data = [
        (100, r"one\0atwo\0athree"),
        (200, r"\64\00\00\00\06\00\00\00\6a\00\00\00\02\00\00\00"),
        (300, r"\6c\00\00\00\05\00\00\00"),
    ];
    let host = run(
        &data,
        "fd_write(1, 200, 2, 8)
         say(@8)
         fd_write(2, 300, 1, 8)
         fd_write(3, 200, 2, 8)
         fd_write(1, 65530, 1, 8)
         fd_write(1, 200, 65, 8)
         fd_write(1, 200, 2, 65533)",
    );
    // what has no end is written when the callback ends
    let expected = ["one", "two", "0", "8", "0", "8", "21", "28", "21", "three"];
    assert_eq!(host.lines(), expected);
    assert_eq!(host.log[0].1, LogLevel::Info);
    assert_eq!(host.log.last().unwrap().1, LogLevel::Error);
}

#[test]
fn standard_files_have_a_state_and_no_other_exists() {
    let host = run(
        &[],
        "fd_fdstat_get(1, 8)
         say(@8)
         fd_fdstat_get(3, 8)
         fd_fdstat_set_flags(0, 4)
         fd_fdstat_set_flags(3, 4)
         fd_prestat_get(3, 8)
         fd_prestat_dir_name(3, 8, 1)
         fd_fdstat_get(1, 65513)
         sched_yield()",
    );
    assert_eq!(host.lines(), ["0", "2", "8", "0", "8", "8", "8", "21", "0"]);
}

#[test]
fn random_bytes_differ_and_have_a_limit() {
    let statements = "random_get(8, 4)
         say(@8)
         random_get(65533, 4)
         random_get(0, 65537)";
    let (first, second) = (run(&[], statements), run(&[], statements));
    assert_ne!(first.lines()[1], second.lines()[1]);
    assert_eq!(first.lines()[2..], ["21", "28"]);
}

#[test]
fn arguments_and_environment_are_those_of_the_settings() {
    let statements = "args_sizes_get(8, 12)
         say(@8)
         environ_sizes_get(8, 12)
         say(@8)
         say(@12)
         environ_get(100, 200)
         proxy_log(2, @100, 3)
         proxy_log(2, @104, 4)
         environ_get(100, 65534)";
    let settings = InstanceSettings {
        environment: vec![
            ("A".to_owned(), "1".to_owned()),
            ("B".to_owned(), "22".to_owned()),
        ],
        ..InstanceSettings::default()
    };
    let text = script("proxy_on_request_headers", &[], statements);
    let mut instance = start_with(&text, Recorder::with_messages(), settings).unwrap();
    let stream = instance.create_stream().unwrap();
    instance.request_headers(stream, true).unwrap();
    let expected = ["0", "0", "0", "2", "9", "0", "A=1", "0", "B=22", "0", "21"];
    assert_eq!(instance.host().lines(), expected);
    assert_eq!(
        run(&[], "environ_sizes_get(8, 12)\nsay(@8)").lines(),
        ["0", "0"]
    );
}

#[test]
fn poll_answers_clocks_at_once_and_files_with_an_error() {
    // user data 7 and a clock; user data 9 and reading
    let data = [(100, r"\07"), (148, r"\09"), (156, r"\01")];
    let host = run(
        &data,
        "poll_oneoff(100, 300, 2, 8)
         say(@8)
         say(@300)
         say(@308)
         say(@332)
         say(@340)
         poll_oneoff(100, 300, 0, 8)
         poll_oneoff(100, 300, 65, 8)
         poll_oneoff(65500, 300, 1, 8)
         poll_oneoff(100, 65510, 1, 8)",
    );
    // error 8 and kind 1 are one word
    let expected = ["0", "2", "7", "0", "9", "65544", "28", "28", "21", "21"];
    assert_eq!(host.lines(), expected);
}

#[test]
fn exit_ends_the_instance() {
    let text =
        module("(func (export \"proxy_on_tick\") (param i32) (call $proc_exit (i32.const 3)))");
    let mut instance = start(&text);
    assert_eq!(instance.tick(), Err(CallError::Failed(EndReason::Exit(3))));
    assert_eq!(instance.tick(), Err(CallError::Ended(EndReason::Exit(3))));
}
