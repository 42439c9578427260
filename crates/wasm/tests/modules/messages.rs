//! Header maps and buffers.

use crate::recorder::Recorder;
use crate::script::{run, start};
use weir_wasm::{HttpMap, PAIRS_MAX, Pairs, Side};

const DATA: &[(u32, &str)] = &[(100, "x-a"), (110, "x-b"), (120, "value")];

fn check(statements: &str, expected: &[&str]) -> Recorder {
    let host = run(DATA, statements);
    assert_eq!(host.lines(), expected, "{statements}");
    host
}

#[test]
fn value_is_given_by_its_name_or_is_not_found() {
    check(
        "proxy_get_header_map_value(0, 100, 3, 0, 4)
         show
         proxy_get_header_map_value(2, 100, 3, 0, 4)
         show
         proxy_get_header_map_value(0, 110, 3, 0, 4)
         proxy_get_header_map_value(1, 100, 3, 0, 4)
         proxy_get_header_map_value(4, 100, 3, 0, 4)
         proxy_get_header_map_value(8, 100, 3, 0, 4)",
        &["0", "1", "0", "2", "1", "1", "12", "2"],
    );
}

#[test]
fn fields_are_added_replaced_and_removed() {
    let host = check(
        "proxy_add_header_map_value(0, 110, 3, 120, 5)
         proxy_add_header_map_value(0, 110, 3, 120, 1)
         proxy_replace_header_map_value(0, 100, 3, 120, 2)
         proxy_replace_header_map_value(2, 110, 3, 120, 3)
         proxy_remove_header_map_value(2, 100, 3)
         proxy_remove_header_map_value(2, 100, 3)
         proxy_add_header_map_value(1, 110, 3, 120, 5)",
        &["0", "0", "0", "0", "0", "0", "2"],
    );
    let request = host.fields(HttpMap::RequestHeaders);
    assert_eq!(request, ":path=/ x-a=va x-b=value x-b=v");
    let response = host.fields(HttpMap::ResponseHeaders);
    assert_eq!(response, ":status=200 x-b=val");
}

#[test]
fn all_pairs_are_given_and_set_in_serialised_form() {
    let host = check(
        "proxy_get_header_map_size(0, 8)
         say(@8)
         proxy_get_header_map_pairs(0, 0, 4)
         say(@4)
         proxy_set_header_map_pairs(2, @0, @4)
         proxy_get_header_map_pairs(1, 0, 4)
         say(@4)
         proxy_set_header_map_pairs(2, @0, 3)
         proxy_set_header_map_pairs(9, @0, 0)",
        &["0", "34", "0", "34", "0", "0", "0", "2", "2"],
    );
    let expected = Pairs::of([(":path", "/"), ("x-a", "1")]).unwrap();
    assert_eq!(host.maps[&HttpMap::ResponseHeaders], expected);
}

#[test]
fn map_that_does_not_exist_reads_as_empty() {
    check(
        "proxy_get_header_map_pairs(3, 0, 4)
         say(@0)
         say(@4)
         proxy_get_header_map_pairs(6, 0, 4)
         say(@4)",
        &["0", "0", "0", "0", "0"],
    );
}

#[test]
fn fields_beyond_the_limits_are_refused() {
    let host = run(
        DATA,
        "(local $left i32)
         (local.set $left (i32.const 1000000))
         (loop $more
             (drop (call $proxy_add_header_map_value (i32.const 0)
                 (i32.const 110) (i32.const 3) (i32.const 120) (i32.const 5)))
             (local.set $left (i32.sub (local.get $left) (i32.const 1)))
             (br_if $more (local.get $left)))
         proxy_add_header_map_value(0, 110, 3, 120, 5)
         (i32.store (i32.const 200) (i32.const 1000000))
         proxy_set_header_map_pairs(0, 200, 4)
         proxy_set_header_map_pairs(0, 0, 65537)
         proxy_set_header_map_pairs(0, 200, 65336)",
    );
    // the last two are outside of the memory, and inside
    assert_eq!(host.lines(), ["2", "2", "6", "2"]);
    assert_eq!(host.maps[&HttpMap::RequestHeaders].len(), PAIRS_MAX);
}

#[test]
fn buffer_is_given_in_part() {
    check(
        "proxy_get_buffer_bytes(0, 2, 3, 0, 4)
         show
         proxy_get_buffer_bytes(1, 0, 0xffffffff, 0, 4)
         show
         proxy_get_buffer_bytes(0, 7, 1, 0, 4)
         say(@4)
         proxy_get_buffer_bytes(0, 1, 0xffffffff, 0, 4)
         proxy_get_buffer_bytes(2, 0, 1, 0, 4)
         proxy_get_buffer_bytes(3, 0, 1, 0, 4)
         proxy_get_buffer_bytes(4, 0, 1, 0, 4)
         proxy_get_buffer_bytes(8, 0, 1, 0, 4)
         proxy_get_buffer_bytes(9, 0, 1, 0, 4)
         proxy_get_buffer_status(0, 0, 4)
         say(@0)
         say(@4)",
        &[
            "0", "que", "0", "response", "0", "0", "2", "12", "12", "1", "1", "2", "0", "7", "0",
        ],
    );
}

#[test]
fn buffer_is_prepended_replaced_and_appended() {
    let host = check(
        "proxy_set_buffer_bytes(0, 0, 0, 120, 1)
         proxy_set_buffer_bytes(0, 1, 3, 120, 2)
         proxy_set_buffer_bytes(0, 0xffffffff, 0, 120, 3)
         proxy_set_buffer_bytes(1, 0, 0xffffffff, 120, 5)
         proxy_set_buffer_bytes(6, 0, 0, 120, 1)
         proxy_set_buffer_bytes(2, 0, 0, 120, 1)",
        &["0", "0", "0", "0", "2", "12"],
    );
    assert_eq!(host.bodies[&Side::Request], b"vvauestval");
    assert_eq!(host.bodies[&Side::Response], b"value");
}

#[test]
fn body_that_is_not_there_is_not_found() {
    let text = crate::script::script(
        "proxy_on_response_body",
        DATA,
        "proxy_get_buffer_bytes(1, 0, 1, 0, 4)
         proxy_set_buffer_bytes(1, 0, 0, 120, 1)",
    );
    let mut instance = start(&text);
    instance.host_mut().bodies.clear();
    let stream = instance.create_stream().unwrap();
    instance.response_body(stream, true).unwrap();
    assert_eq!(instance.host().lines(), ["1", "1"]);
}

#[test]
fn pointer_outside_of_the_memory_is_an_invalid_access() {
    let outside = [
        "proxy_log(2, 65535, 2)",
        "proxy_log(2, 0xffffffff, 0xffffffff)",
        "proxy_get_log_level(65533)",
        "proxy_get_current_time_nanoseconds(65529)",
        "proxy_get_header_map_value(0, 65536, 1, 0, 4)",
        "proxy_get_header_map_value(0, 100, 3, 65533, 4)",
        "proxy_get_header_map_value(0, 100, 3, 0, 0xffffffff)",
        "proxy_get_header_map_pairs(0, 65533, 4)",
        "proxy_get_header_map_size(0, 65533)",
        "proxy_set_header_map_pairs(0, 65530, 7)",
        "proxy_add_header_map_value(0, 100, 3, 65535, 2)",
        "proxy_replace_header_map_value(0, 65535, 2, 100, 3)",
        "proxy_remove_header_map_value(0, 65535, 2)",
        "proxy_get_buffer_bytes(0, 0, 1, 65533, 4)",
        "proxy_get_buffer_status(0, 0, 65533)",
        "proxy_set_buffer_bytes(0, 0, 0, 65535, 2)",
        "proxy_send_local_response(200, 65535, 2, 0, 0, 0, 0, -1)",
        "proxy_send_local_response(200, 0, 0, 65535, 2, 0, 0, -1)",
        "proxy_send_local_response(200, 0, 0, 0, 0, 65535, 2, -1)",
        "proxy_http_call(100, 2, 100, 1, 100, 1, 100, 1, 10, 65533)",
        "proxy_get_status(65533, 0, 4)",
        "proxy_get_property(65535, 2, 0, 4)",
        "proxy_set_property(100, 1, 65535, 2)",
        "proxy_call_foreign_function(65535, 2, 100, 1, 0, 4)",
        "proxy_get_shared_data(65535, 2, 0, 4, 8)",
        "proxy_set_shared_data(100, 1, 65535, 2, 0)",
        "proxy_define_metric(0, 100, 1, 65533)",
        "proxy_define_metric(0, 65535, 2, 8)",
    ];
    let expected = vec!["6"; outside.len()];
    let host = check(&outside.join("\n"), &expected);
    assert!(host.responses.is_empty() && host.calls.is_empty());
}
