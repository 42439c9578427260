//! What refuses a configuration, and what a reload does.

use crate::bed::{Bed, filter, text};
use crate::http::{Origin, response};
use crate::text::{TextFilter, callback, data, heads_only, module};
use std::path::Path;
use weir_proxy::config::ModuleOption;

fn origin() -> Origin {
    Origin::new(|_| response("", "content"))
}

#[track_caller]
fn check_refused(text: &str, (option, options): (&str, &[(&str, ModuleOption)]), parts: &[&str]) {
    let file = TextFilter::of(text);
    let error = Bed::try_before(origin(), vec![file.table(options)], 1);
    let error = error.err().expect("it is refused");
    let path = file.file.display().to_string();
    let option = format!("module[0].options.{option}");
    for part in [&*path, &option].iter().chain(parts) {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

#[test]
fn file_that_is_no_filter_refuses_the_configuration_with_file_and_reason() {
    check_refused("(module)", ("file", &[]), &["proxy_abi_version"]);
    let other =
        "(module (memory (export \"memory\") 1) (func (export \"proxy_abi_version_0_1_0\")))";
    check_refused(other, ("file", &[]), &["proxy_abi_version_0_1_0"]);
    let missing = filter(Path::new("/no/such/filter.wasm"), &[]);
    let error = Bed::try_before(origin(), vec![missing], 1);
    let error = error.err().expect("it is refused");
    assert!(error.contains("/no/such/filter.wasm"), "{error}");
}

#[test]
fn filter_that_does_not_start_refuses_the_configuration_with_what_it_said() {
    let refusing = module(&format!(
        "{} (func (export \"proxy_on_configure\") (param i32 i32) (result i32)
            (drop (call $proxy_log (i32.const 4) (i32.const 100) (i32.const 10)))
            (i32.const 0))",
        data(100, "bad option")
    ));
    check_refused(
        &refusing,
        ("file", &[]),
        &["proxy_on_configure", "it said: bad option"],
    );
    let looping = module("(func (export \"_start\") (loop $l (br $l)))");
    let deadline = [("start_deadline", ModuleOption::Number(20))];
    check_refused(&looping, ("file", &deadline), &["_start", "deadline"]);
    let trapping = module("(func (export \"_start\") unreachable)");
    check_refused(&trapping, ("file", &[]), &["_start", "unreachable"]);
    let large = module("(memory 1)").replace("(memory 1)", "");
    let memory = [("memory", text("64KiB"))];
    let large = large.replace(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") 2)",
    );
    check_refused(&large, ("file", &memory), &["memory"]);
}

#[test]
fn strict_filter_with_a_call_that_does_nothing_here_is_refused_and_another_names_it() {
    let text = module("").replace(
        "(memory",
        "(import \"env\" \"proxy_register_shared_queue\" (func (param i32 i32 i32) (result i32)))
         (memory",
    );
    check_refused(
        &text,
        ("strict", &[("strict", ModuleOption::Flag(true))]),
        &["proxy_register_shared_queue"],
    );
    let file = TextFilter::of(&text);
    let bed = Bed::new(vec![file.table(&[])]);
    let notes = bed.report().notes.join("\n");
    assert!(
        notes.contains("do nothing here: proxy_register_shared_queue"),
        "{notes}"
    );
}

fn adding(value: &str) -> String {
    let action = "(drop (call $proxy_add_header_map_value (i32.const 2)
        (i32.const 100) (i32.const 3) (i32.const 110) (i32.const 3)))
        (i32.const 0)";
    module(&format!(
        "{}{}{}",
        data(100, "x-a"),
        data(110, value),
        callback("proxy_on_response_headers", action)
    ))
}

#[test]
fn reload_puts_a_filter_into_the_way_changes_it_and_takes_it_out() {
    let bed = Bed::new(Vec::new());
    assert_eq!(bed.get("/").field("x-a"), None);
    let file = TextFilter::of(&adding("one"));
    let table = file.table(&heads_only());
    bed.reload(|modules| modules.push(table)).expect("accepted");
    assert_eq!(bed.get("/").field("x-a").as_deref(), Some("one"));
    // the same path, and another filter in it
    file.write(&adding("two"));
    bed.reload(|_| {}).expect("accepted");
    assert_eq!(bed.get("/").field("x-a").as_deref(), Some("two"));
    file.write("(module)");
    let error = bed.reload(|_| {}).expect_err("it is no filter");
    assert!(error.contains("proxy_abi_version"), "{error}");
    assert_eq!(bed.get("/").field("x-a").as_deref(), Some("two"));
    bed.reload(Vec::clear).expect("accepted");
    assert_eq!(bed.get("/").field("x-a"), None);
}

#[test]
fn hundred_reloads_under_load_fail_no_request() {
    let file = TextFilter::of(&adding("one"));
    let bed = Bed::new(vec![file.table(&heads_only())]);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = bed.client();
                    let mut count = 0;
                    while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
                        let response = client.ask(crate::bed::get("/", ""));
                        assert_eq!(response.status(), 200, "{}", response.head);
                        assert!(response.field("x-a").is_some(), "{}", response.head);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for round in 0..100 {
            let value = if round % 2 == 0 { "two" } else { "one" };
            file.write(&adding(value));
            bed.reload(|_| {}).expect("accepted");
        }
        is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        for load in loads {
            assert!(load.join().expect("no failed request") > 0);
        }
    });
}

#[test]
fn each_worker_has_an_instance_of_its_own() {
    // each instance counts its own requests in a global, and says the count
    let counting = module(&format!(
        "{}(global $count (mut i32) (i32.const 48)){}",
        data(100, "x-a"),
        callback(
            "proxy_on_response_headers",
            "(global.set $count (i32.add (global.get $count) (i32.const 1)))
             (i32.store8 (i32.const 110) (global.get $count))
             (drop (call $proxy_add_header_map_value (i32.const 2)
                (i32.const 100) (i32.const 3) (i32.const 110) (i32.const 1)))
             (i32.const 0)"
        )
    ));
    let file = TextFilter::of(&counting);
    let bed = Bed::try_before(origin(), vec![file.table(&heads_only())], 2).expect("it starts");
    // connections are spread over the workers by the kernel: in the end both have begun at one
    let is_first = || bed.get("/").field("x-a").as_deref() == Some("1");
    let mut firsts = 0;
    crate::bed::wait_for(
        || {
            firsts += usize::from(is_first());
            firsts == 2
        },
        "a request on each worker",
    );
}
