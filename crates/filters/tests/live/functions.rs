//! Functions of the host about stored responses, called by a filter.

use crate::bed::Bed;
use crate::text::{TextFilter, callback, data, heads_only};
use weir_proxy::config::{Module as ModuleTable, ModuleOption};

/// A filter that calls a function with these arguments for each request, and answers with what the
/// completion says; it answers 500 if the function is refused.
fn calling(name: &str, arguments: &str) -> TextFilter {
    let length = arguments.replace("\\n", "\n").len();
    TextFilter::new(&format!(
        r#"{}{}(global $stream (mut i32) (i32.const 0)) (global $token (mut i32) (i32.const 0))
        {}
        (func (export "proxy_on_foreign_function") (param $id i32) (param $token i32) (param i32)
            (if (i32.ne (local.get $token) (global.get $token)) (then unreachable))
            (drop (call $proxy_get_buffer_bytes (i32.const 8) (i32.const 0) (i32.const 4096)
                (i32.const 0) (i32.const 4)))
            (drop (call $proxy_set_effective_context (global.get $stream)))
            (drop (call $proxy_send_local_response (i32.const 200) (i32.const 0) (i32.const 0)
                (i32.load (i32.const 0)) (i32.load (i32.const 4)) (i32.const 0) (i32.const 0)
                (i32.const -1))))"#,
        data(100, name),
        data(200, arguments),
        callback(
            "proxy_on_request_headers",
            &format!(
                "(global.set $stream (local.get 0))
                 (if (call $proxy_call_foreign_function (i32.const 100) (i32.const {})
                    (i32.const 200) (i32.const {length}) (i32.const 0) (i32.const 4)) (then
                    (drop (call $proxy_send_local_response (i32.const 500) (i32.const 0)
                        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
                        (i32.const -1)))
                    (return (i32.const 1))))
                 (global.set $token (i32.load (i32.load (i32.const 0))))
                 (i32.const 1)",
                name.len()
            )
        )
    ))
}

#[track_caller]
fn check(name: &str, arguments: &str, status: u16, begins: &str) {
    check_with(true, (name, arguments), status, begins);
}

#[track_caller]
fn check_with(is_permitted: bool, (name, arguments): (&str, &str), status: u16, begins: &str) {
    let file = calling(name, arguments);
    let mut options = heads_only();
    if is_permitted {
        options.push(("objects", ModuleOption::Flag(true)));
    }
    let bed = Bed::new(vec![file.table(&options)]);
    let answer = bed.get("/");
    assert_eq!(answer.status(), status, "{}", bed.report().notes.join("\n"));
    assert!(answer.text().starts_with(begins), "{}", answer.text());
}

#[test]
fn call_about_a_stored_response_is_completed_later_and_decides_about_a_paused_request() {
    let target = "gateway http://a.example/nothing";
    check("weir_object_query", target, 200, "error: ");
    check("weir_object_query", "no target", 200, "error: the target");
    check(
        "weir_object_set_expiry",
        "gateway http://a.example/\\nsoon",
        200,
        "error: the target",
    );
}

#[test]
fn function_about_stored_responses_needs_the_permission_of_the_operator() {
    let query = ("weir_object_query", "gateway http://a.example/nothing");
    check_with(true, query, 200, "error: ");
    check_with(false, query, 500, "");
}

#[test]
fn function_that_is_not_known_is_refused() {
    check("weir_object_none", "", 500, "");
    check("clear_route_cache", "", 500, "");
}

/// A filter for requests of `path` alone that makes this call.
fn at(path: &str, file: &TextFilter) -> ModuleTable {
    let mut options = heads_only();
    options.push(("objects", ModuleOption::Flag(true)));
    let mut table = file.table(&options);
    table.name = path.trim_start_matches('/').to_owned();
    table.path = path.parse().expect("a path");
    table
}

#[test]
fn filter_injects_a_response_that_clients_get_and_another_one_reads() {
    let target = "gateway http://a.example/made";
    let response = "200\\nContent-Type: text/plain\\nCache-Control: max-age=60\\n\\nmade here";
    let injecting = calling("weir_object_inject", &format!("{target}\\n{response}"));
    let (reading, querying) = (
        calling("weir_object_read", target),
        calling("weir_object_query", target),
    );
    let deleting = calling("weir_object_delete", target);
    let bed = Bed::new(vec![
        at("/inject", &injecting),
        at("/read", &reading),
        at("/query", &querying),
        at("/delete", &deleting),
    ]);
    assert_eq!(
        bed.get("/read").text(),
        "error: no such response is stored\n"
    );
    let injected = bed.get("/inject").text();
    assert!(
        injected.starts_with("ok\nstatus: 200\nstored-bytes: 9\n"),
        "{injected}"
    );
    let read = bed.get("/read").text();
    let (head, content) = read.split_once("\n\n").expect("a head and content");
    assert!(
        head.starts_with("ok\nstatus: 200\nstored-bytes: 9\n"),
        "{head}"
    );
    assert_eq!(content, "made here");
    assert!(bed.get("/query").text().contains("\nstored-bytes: 9\n"));
    let hit = bed.get("/made");
    assert_eq!((hit.status(), hit.text()), (200, "made here".to_owned()));
    assert_eq!(hit.field("content-type").as_deref(), Some("text/plain"));
    assert_eq!(bed.origin.seen().len(), 0);
    assert_eq!(bed.get("/delete").text(), "ok\ndeleted: 1\n");
    // from here on it is the origin's again
    assert_eq!(bed.get("/made").text(), "content");
    assert_eq!(bed.origin.seen().len(), 1);
}
