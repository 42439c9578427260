//! Filters that fail, or that take more than they may, while others are served.

use crate::bed::{Bed, get, post, text as text_option, wait_for};
use crate::http::{Origin, response};
use crate::text::{TextFilter, callback, data, heads_only, module, only};
use std::time::Instant;
use weir_proxy::config::{ByteSize, Config, FailurePolicy, Module as ModuleTable, ModuleOption};

/// A filter for paths below `/f`; other requests do not pass it.
fn apart(mut table: ModuleTable) -> ModuleTable {
    table.path = "/f".parse().expect("a path");
    table
}

/// Others are served while a request is refused.
#[track_caller]
fn check_others_served(bed: &Bed) {
    assert_eq!(bed.get("/other").status(), 200);
}

#[test]
fn trap_in_each_callback_fails_its_request_and_no_other() {
    for name in [
        "proxy_on_request_headers",
        "proxy_on_request_body",
        "proxy_on_response_headers",
        "proxy_on_response_body",
    ] {
        let file = TextFilter::new(&callback(name, "unreachable"));
        let bed = Bed::new(vec![apart(file.table(&[]))]);
        let response = bed.ask(&post("/f", "", "content"));
        assert!(
            response.status() == 502 || !response.is_whole,
            "{name}: {}",
            response.head
        );
        check_others_served(&bed);
        let notes = bed.report().notes.join("\n");
        assert!(notes.contains("unreachable"), "{name}: {notes}");
    }
}

#[test]
fn trap_at_the_end_of_a_stream_fails_later_requests_only() {
    for (name, result) in [
        ("proxy_on_done", "(result i32)"),
        ("proxy_on_log", ""),
        ("proxy_on_delete", ""),
    ] {
        let body = format!("(func (export \"{name}\") (param i32) {result} unreachable)");
        let file = TextFilter::new(&body);
        let bed = Bed::new(vec![apart(file.table(&heads_only()))]);
        assert_eq!(bed.get("/f").status(), 200, "{name}");
        wait_for(
            || bed.report().notes.join("\n").contains("unreachable"),
            name,
        );
        check_others_served(&bed);
    }
}

#[test]
fn endless_loop_ends_at_the_deadline_and_others_are_served_meanwhile() {
    let file = TextFilter::new(&callback(
        "proxy_on_request_headers",
        "(loop $l (br $l)) (i32.const 0)",
    ));
    let mut table = apart(file.table(&heads_only()));
    table.deadline = "10ms".parse().expect("a span");
    let bed = Bed::new(vec![table]);
    let begun = Instant::now();
    assert_eq!(bed.get("/f").status(), 502);
    assert!(begun.elapsed().as_millis() >= 10);
    for _ in 0..20 {
        check_others_served(&bed);
    }
    // until the next instance starts, nothing is called
    assert_eq!(bed.get("/f").status(), 502);
    let notes = bed.report().notes.join("\n");
    assert!(notes.contains("deadline"), "{notes}");
}

#[test]
fn next_instance_starts_after_a_pause_and_serves() {
    // traps at the path that has 10 characters
    let file = TextFilter::new(
        &callback(
            "proxy_on_request_headers",
            "(if (i32.eqz (call $proxy_get_header_map_value (i32.const 0) (i32.const 100)
            (i32.const 5) (i32.const 0) (i32.const 4))) (then
            (if (i32.eq (i32.load (i32.const 4)) (i32.const 10)) (then unreachable))))
         (i32.const 0)",
        )
        .replacen("(func", &format!("{}(func", data(100, ":path")), 1),
    );
    let mut table = apart(file.table(&heads_only()));
    table.on_failure = FailurePolicy::Refuse;
    let bed = Bed::new(vec![table]);
    assert_eq!(bed.get("/f").status(), 200);
    assert_eq!(bed.get("/f/3456789").status(), 502);
    assert_eq!(bed.get("/f").status(), 502);
    wait_for(|| bed.get("/f").status() == 200, "the next instance");
}

#[test]
fn request_of_a_failed_filter_passes_if_the_operator_says_so() {
    let file = TextFilter::new(&callback("proxy_on_request_headers", "unreachable"));
    let mut table = file.table(&heads_only());
    table.on_failure = FailurePolicy::Pass;
    let bed = Bed::new(vec![table]);
    assert_eq!(bed.get("/").status(), 200);
    assert_eq!(bed.get("/").status(), 200);
}

#[test]
fn endless_memory_is_refused_beyond_its_limit() {
    let file = TextFilter::new(&callback(
        "proxy_on_request_headers",
        "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
         unreachable",
    ));
    let options = [heads_only(), vec![("memory", text_option("8MiB"))]].concat();
    let bed = Bed::new(vec![apart(file.table(&options))]);
    assert_eq!(bed.get("/f").status(), 502);
    check_others_served(&bed);
    let notes = bed.report().notes.join("\n");
    assert!(notes.contains("at most 8388608"), "{notes}");
}

#[test]
fn pointers_outside_of_the_memory_change_nothing() {
    let file = TextFilter::new(&callback(
        "proxy_on_response_headers",
        "(if (i32.ne (call $proxy_add_header_map_value (i32.const 2) (i32.const -1)
            (i32.const 5) (i32.const 65535) (i32.const 100))  (i32.const 6)) (then unreachable))
         (if (i32.ne (call $proxy_set_header_map_pairs (i32.const 2) (i32.const 65000)
            (i32.const -1)) (i32.const 6)) (then unreachable))
         (i32.const 0)",
    ));
    let bed = Bed::new(vec![file.table(&heads_only())]);
    let response = bed.get("/");
    assert_eq!(
        (response.status(), response.text()),
        (200, "content".into())
    );
}

#[test]
fn million_fields_end_at_the_limit_of_a_map() {
    let file = TextFilter::new(&format!(
        "{}{}",
        data(100, "x-a"),
        callback(
            "proxy_on_response_headers",
            "(local $count i32)
             (loop $more
                (drop (call $proxy_add_header_map_value (i32.const 2) (i32.const 100)
                    (i32.const 3) (i32.const 100) (i32.const 3)))
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (br_if $more (i32.lt_u (local.get $count) (i32.const 1000000))))
             (i32.const 0)"
        )
    ));
    let bed = Bed::new(vec![apart(file.table(&heads_only()))]);
    // either the head is too large for a module, or it has as many fields as a map may have
    let status = bed.get("/f").status();
    assert!(status == 502 || status == 200, "{status}");
    check_others_served(&bed);
}

#[test]
fn response_in_the_place_of_one_that_was_of_no_use_passes_the_filter() {
    let file = TextFilter::new(&format!(
        "{}{}",
        data(100, "x-a"),
        callback(
            "proxy_on_response_headers",
            "(drop (call $proxy_add_header_map_value (i32.const 2) (i32.const 100)
                (i32.const 3) (i32.const 100) (i32.const 3)))
             (i32.const 0)"
        )
    ));
    // to a validation it answers for another representation than the one that is stored
    let origin = Origin::new(|request| match request.field("if-none-match") {
        Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\n\r\n".to_vec(),
        None => response("Cache-Control: no-cache\r\nETag: \"v1\"\r\n", "content"),
    });
    let mut options = heads_only();
    options.push(("stored", ModuleOption::Flag(true)));
    let bed = Bed::before(origin, vec![file.table(&options)]);
    for sent in [1, 3, 5] {
        let response = bed.get("/f");
        assert_eq!(response.text(), "content");
        assert_eq!(bed.origin.seen().len(), sent);
        assert_eq!(response.field("x-a").as_deref(), Some("x-a"), "{sent}");
    }
}

#[test]
fn continue_without_a_pause_and_twice_does_nothing() {
    let twice = "(drop (call $proxy_continue_stream (i32.const 0)))
        (drop (call $proxy_continue_stream (i32.const 0)))
        (drop (call $proxy_continue_stream (i32.const 1)))
        (drop (call $proxy_continue_stream (i32.const 9)))
        (i32.const 1)";
    let file = TextFilter::new(&callback("proxy_on_request_headers", twice));
    let bed = Bed::new(vec![file.table(&heads_only())]);
    assert_eq!(bed.get("/").status(), 200);
}

#[test]
fn paused_request_ends_after_its_wait() {
    let file = TextFilter::new(&callback("proxy_on_request_headers", "(i32.const 1)"));
    let mut table = apart(file.table(&heads_only()));
    table.wait = "50ms".parse().expect("a span");
    let bed = Bed::new(vec![table]);
    assert_eq!(bed.get("/f").status(), 502);
    check_others_served(&bed);
}

#[test]
fn ticks_of_a_millisecond_are_made_longer_and_others_are_served() {
    let file = TextFilter::new(&format!(
        "{}(func (export \"proxy_on_configure\") (param i32 i32) (result i32)
            (drop (call $proxy_define_metric (i32.const 0) (i32.const 100) (i32.const 5)
                (i32.const 200)))
            (drop (call $proxy_set_tick_period_milliseconds (i32.const 1)))
            (i32.const 1))
         (func (export \"proxy_on_tick\") (param i32)
            (drop (call $proxy_increment_metric (i32.load (i32.const 200)) (i64.const 1))))",
        data(100, "ticks")
    ));
    let bed = Bed::new(vec![apart(file.table(&heads_only()))]);
    assert_eq!(bed.get("/f").status(), 200);
    let begun = Instant::now();
    let before = bed.metric("ticks");
    bed.wait_for_metric("ticks", before + 5);
    assert!(begun.elapsed().as_millis() >= 40, "a tick takes 10 ms");
    check_others_served(&bed);
}

#[test]
fn content_beyond_what_may_be_held_is_refused_and_ends_no_instance() {
    let pausing = callback("proxy_on_request_body", "(i32.const 1)");
    let file = TextFilter::new(&pausing);
    let table = apart(file.table(&[("bodies", only("request"))]));
    let bed = Bed::new(vec![table]);
    let content = "x".repeat(300 * 1024);
    assert_eq!(bed.ask(&post("/f", "", &content)).status(), 413);
    assert!(!bed.report().notes.join("\n").contains("ended"));
    let pausing = callback("proxy_on_response_body", "(i32.const 1)");
    let file = TextFilter::new(&pausing);
    let origin = Origin::new(move |_| response("", &content));
    let bed = Bed::before(origin, vec![apart(file.table(&[]))]);
    let cut = bed.get("/f");
    assert!(cut.status() == 502 || !cut.is_whole, "{}", cut.head);
    assert!(!bed.report().notes.join("\n").contains("ended"));
}

#[test]
fn content_that_is_kept_for_a_filter_is_memory_of_the_proxy() {
    // pauses until the end
    let pausing = callback("proxy_on_request_body", "(i32.eqz (local.get 2))");
    // makes what it has into a megabyte, which is no more than one piece holds
    let growing = callback(
        "proxy_on_request_body",
        "(drop (call $proxy_set_buffer_bytes (i32.const 0) (i32.const 0) (i32.const 0)
            (i32.const 0) (i32.const 1000000)))
         (i32.const 0)",
    );
    for (body, content_bytes, memory_mib, expected) in [
        (&pausing, 2 << 20, 64, 200),
        (&pausing, 2 << 20, 2, 502),
        (&growing, 20_000, 64, 200),
        (&growing, 20_000, 1, 502),
    ] {
        let text = module(body).replace("\"memory\") 1)", "\"memory\") 16)");
        let file = TextFilter::of(&text);
        let mut table = apart(file.table(&[("bodies", only("request"))]));
        table.hold = ByteSize::from_mib(4);
        let mut config = Config {
            workers: 1,
            ..Config::default()
        };
        config.cache.memory = ByteSize::from_mib(memory_mib);
        config.cache.largest_response = ByteSize::from_mib(1);
        let origin = Origin::new(|_| response("", "content"));
        let bed = Bed::try_with(origin, vec![table], config).expect("it starts");
        let content = "x".repeat(content_bytes);
        let status = bed.ask(&post("/f", "", &content)).status();
        assert_eq!(status, expected, "{content_bytes} in {memory_mib} MiB");
        assert!(!bed.report().notes.join("\n").contains("ended"));
        check_others_served(&bed);
    }
}

#[test]
fn filter_that_never_finishes_its_streams_serves_on() {
    let file =
        TextFilter::new("(func (export \"proxy_on_done\") (param i32) (result i32) (i32.const 0))");
    let bed = Bed::new(vec![file.table(&heads_only())]);
    let mut client = bed.client();
    for _ in 0..300 {
        assert_eq!(client.ask(get("/", "")).status(), 200);
    }
}

#[test]
fn lines_of_the_log_have_a_limit_a_call() {
    let file = TextFilter::new(&format!(
        "{}{}",
        data(100, "line"),
        callback(
            "proxy_on_request_headers",
            "(local $count i32)
             (loop $more
                (drop (call $proxy_log (i32.const 2) (i32.const 100) (i32.const 4)))
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (br_if $more (i32.lt_u (local.get $count) (i32.const 1000))))
             (i32.const 0)"
        )
    ));
    let bed = Bed::new(vec![file.table(&heads_only())]);
    assert_eq!(bed.get("/").status(), 200);
    let notes = bed.report().notes.join("\n");
    assert!(
        notes.contains("936 lines of its log were dropped"),
        "{notes}"
    );
}

#[test]
fn option_that_is_wrong_names_itself() {
    let file = TextFilter::new("");
    let table = file.table(&[("memory", ModuleOption::Flag(true))]);
    let error = Bed::try_before(Origin::new(|_| response("", "")), vec![table], 1);
    let error = error.err().expect("it is refused");
    assert!(error.contains("module[0].options.memory"), "{error}");
}

/// What a filter does to Cache-Control of responses: it removes that, or puts its own in its place;
/// it puts "X" in the place of all content, too.
fn without_cache_control(replacement: &str) -> TextFilter {
    let action = match replacement.len() {
        0 => "(drop (call $proxy_remove_header_map_value (i32.const 2)
            (i32.const 100) (i32.const 13)))"
            .to_owned(),
        length => format!(
            "(drop (call $proxy_replace_header_map_value (i32.const 2)
                (i32.const 100) (i32.const 13) (i32.const 120) (i32.const {length})))"
        ),
    };
    let body = "(drop (call $proxy_set_buffer_bytes (i32.const 1) (i32.const 0)
        (i32.const 100000) (i32.const 120) (i32.const 1))) (i32.const 0)";
    TextFilter::of(&module(&format!(
        "{}{}{}{}",
        data(100, "cache-control"),
        data(
            120,
            if replacement.is_empty() {
                "X"
            } else {
                replacement
            }
        ),
        callback(
            "proxy_on_response_headers",
            &format!("{action} (i32.const 0)")
        ),
        callback("proxy_on_response_body", body),
    )))
}

#[test]
fn filter_that_removes_no_transform_does_not_take_it_back() {
    for is_stored in [false, true] {
        let file = without_cache_control("");
        let origin =
            Origin::new(|_| response("Cache-Control: no-transform, max-age=60\r\n", "content"));
        let bed = Bed::before(
            origin,
            vec![file.table(&[("stored", ModuleOption::Flag(is_stored))])],
        );
        for _ in 0..2 {
            let got = bed.get("/");
            assert_eq!(got.text(), "content", "stored = {is_stored}");
            if is_stored {
                // for later modules, and for caches behind this one
                assert_eq!(got.field("cache-control").as_deref(), Some("no-transform"));
            }
        }
    }
}

#[test]
fn filter_that_replaces_cache_control_has_nothing_stored_that_may_not_be() {
    for (received, may_store, fetches) in [
        ("private, max-age=60", false, 2),
        ("no-store", false, 2),
        // what the rules would store, as long as another would have it
        ("max-age=60", false, 2),
        ("private, max-age=60", true, 1),
    ] {
        let file = without_cache_control("public, max-age=600");
        let origin =
            Origin::new(move |_| response(&format!("Cache-Control: {received}\r\n"), "content"));
        let mut table = file.table(&[("stored", ModuleOption::Flag(true))]);
        table.may_store = may_store;
        let bed = Bed::before(origin, vec![table]);
        for _ in 0..2 {
            let got = bed.get("/");
            let sent = got.field("cache-control");
            assert_eq!(sent.as_deref(), Some("public, max-age=600"), "{received}");
            let status = got.field("cache-status").expect("a field");
            assert_eq!(
                status.contains(";hit") || status.contains("stored"),
                may_store,
                "{status}"
            );
        }
        assert_eq!(bed.origin.seen().len(), fetches, "{received}");
    }
}
