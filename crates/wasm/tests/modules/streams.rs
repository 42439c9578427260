//! Actions, local responses, continuing and closing, HTTP calls.

use crate::recorder::Recorder;
use crate::script::{expand, module, run, start, start_with};
use weir_wasm::{Action, CallError, HttpCallResponse, InstanceSettings, Limits, Pairs, Side};

#[test]
fn callback_gives_its_action_and_an_absent_one_continues() {
    let text = module(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
               (call $say (local.get 0)) (call $say (local.get 1)) (call $say (local.get 2))
               (i32.const 1))
           (func (export "proxy_on_response_body") (param i32 i32 i32) (result i32)
               (call $say (local.get 1)) (i32.const 0))
           (func (export "proxy_on_request_trailers") (param i32 i32) (result i32)
               (i32.const 7))"#,
    );
    let mut instance = start(&text);
    let stream = instance.create_stream().unwrap();
    assert_eq!(instance.request_headers(stream, true), Ok(Action::Pause));
    assert_eq!(instance.request_body(stream, true), Ok(Action::Continue));
    assert_eq!(instance.request_trailers(stream), Ok(Action::Pause));
    assert_eq!(
        instance.response_headers(stream, false),
        Ok(Action::Continue)
    );
    assert_eq!(instance.response_body(stream, true), Ok(Action::Continue));
    assert_eq!(instance.response_trailers(stream), Ok(Action::Continue));
    assert_eq!(instance.host().lines(), ["2", "2", "1", "8"]);
}

#[test]
fn local_response_is_sent_once() {
    let data = [
        (100, "why"),
        (110, "body"),
        (120, r"\01\00\00\00\01\00\00\00\01\00\00\00a\00b\00"),
    ];
    let host = run(
        &data,
        "proxy_send_local_response(199, 0, 0, 0, 0, 0, 0, -1)
         proxy_send_local_response(600, 0, 0, 0, 0, 0, 0, -1)
         proxy_send_local_response(200, 0, 0, 0, 0, 120, 5, -1)
         proxy_send_local_response(403, 100, 3, 110, 4, 120, 16, -1)
         proxy_send_local_response(403, 100, 3, 110, 4, 120, 16, -1)",
    );
    assert_eq!(host.lines(), ["2", "2", "2", "0", "2"]);
    let [(2, response)] = &host.responses[..] else {
        panic!("{:?}", host.responses);
    };
    assert_eq!(response.status, 403);
    assert_eq!(response.details, b"why");
    assert_eq!(response.body, b"body");
    assert_eq!(response.fields, Pairs::of([("a", "b")]).unwrap());
    assert_eq!(response.grpc_status, -1);
}

#[test]
fn stream_continues_once_after_a_pause() {
    let text = module(&format!(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
               (i32.const 1))
           (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32)
               {}
               (i32.const 1))
           (func (export "proxy_on_tick") (param i32)
               {})"#,
        expand("proxy_continue_stream(1)"),
        expand(
            "proxy_continue_stream(0)
             proxy_set_effective_context(99)
             proxy_set_effective_context(2)
             proxy_continue_stream(0)
             proxy_continue_stream(0)
             proxy_continue_stream(1)
             proxy_continue_stream(2)
             proxy_continue_stream(9)
             proxy_close_stream(1)
             proxy_close_stream(3)"
        )
    ));
    let mut instance = start(&text);
    let stream = instance.create_stream().unwrap();
    assert_eq!(instance.request_headers(stream, true), Ok(Action::Pause));
    let resumed = instance.response_headers(stream, true);
    assert_eq!(resumed, Ok(Action::Continue));
    instance.tick().unwrap();
    let host = instance.into_host();
    let expected = ["0", "2", "2", "0", "0", "0", "0", "12", "2", "0", "12"];
    assert_eq!(host.lines(), expected);
    assert_eq!(host.continued, [(2, Side::Request)]);
    assert_eq!(host.closed, [(2, Side::Response)]);
}

/// `{":authority": "a", ":method": "b", ":path": "c"}`, as a literal of the text format.
fn target() -> (String, usize) {
    let fields = [(":authority", "a"), (":method", "b"), (":path", "c")];
    let bytes = Pairs::of(fields).unwrap().encode();
    let text = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    (text, bytes.len())
}

fn caller() -> String {
    let (fields, size) = target();
    let call = format!("proxy_http_call(100, 2, 120, {size}, 110, 4, 0, 0, 1500, 8)");
    module(&format!(
        r#"(data (i32.const 100) "up") (data (i32.const 110) "body")
           (data (i32.const 120) "{fields}") (data (i32.const 300) ":status")
           (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
               {} (i32.const 1))
           (func (export "proxy_on_http_call_response") (param i32 i32 i32 i32 i32)
               (call $say (local.get 0)) (call $say (local.get 1)) (call $say (local.get 2))
               (call $say (local.get 3)) (call $say (local.get 4))
               {})
           (func (export "proxy_on_tick") (param i32) {})"#,
        expand(&format!(
            "{call}
             say(@8)
             proxy_http_call(101, 1, 120, {size}, 0, 0, 0, 0, 1, 8)
             proxy_http_call(100, 2, 0, 0, 0, 0, 0, 0, 1, 8)
             {call}
             {call}"
        )),
        expand(
            "proxy_get_header_map_value(6, 300, 7, 0, 4)
             show
             proxy_get_buffer_bytes(4, 0, 100, 0, 4)
             show
             proxy_get_status(8, 0, 4)
             say(@8)
             proxy_add_header_map_value(6, 300, 7, 300, 1)"
        ),
        expand("proxy_get_buffer_bytes(4, 0, 100, 0, 4)")
    ))
}

#[test]
fn http_call_has_one_response_and_their_number_a_limit() {
    let limits = Limits {
        http_calls_max: 2,
        ..Limits::default()
    };
    let settings = InstanceSettings {
        limits,
        ..InstanceSettings::default()
    };
    let mut instance = start_with(&caller(), Recorder::with_messages(), settings).unwrap();
    let stream = instance.create_stream().unwrap();
    instance.request_headers(stream, true).unwrap();
    // the upstream `p` is unknown, there is no target, the third call is one too many
    let lines = std::mem::take(&mut instance.host_mut().log);
    let lines: Vec<_> = lines.into_iter().map(|(_, _, line)| line).collect();
    assert_eq!(lines, [&b"0"[..], b"1", b"2", b"2", b"0", b"10"]);
    let (context, call) = instance.host_mut().calls.remove(0);
    assert_eq!((context, call.upstream.as_slice()), (2, &b"up"[..]));
    assert_eq!(call.timeout.as_millis(), 1500);
    assert_eq!(call.body, b"body");

    let response = HttpCallResponse {
        fields: Pairs::of([(":status", "204")]).unwrap(),
        body: b"content".to_vec(),
        trailers: Pairs::new(),
    };
    instance
        .http_call_response(call.id, response.clone())
        .unwrap();
    let again = instance.http_call_response(call.id, response);
    assert_eq!(again, Err(CallError::UnknownHttpCall(1)));
    instance.tick().unwrap();
    let expected = [
        "1", "1", "1", "7", "0", "0", "204", "0", "content", "0", "204", "2", "1",
    ];
    assert_eq!(instance.host().lines(), expected);
}

#[test]
fn failed_http_call_has_no_fields() {
    let mut instance = start(&caller());
    let stream = instance.create_stream().unwrap();
    instance.request_headers(stream, true).unwrap();
    instance.host_mut().log.clear();
    let (_, call) = instance.host_mut().calls.remove(0);
    let failed = HttpCallResponse::default();
    instance.http_call_response(call.id, failed).unwrap();
    assert_eq!(instance.host().lines()[..6], ["1", "1", "0", "0", "0", "1"]);
}
