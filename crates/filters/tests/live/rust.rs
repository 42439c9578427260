//! Filters in Rust, built by the SDK's crate: heads, content, responses of their own, HTTP calls,
//! ticks, shared data, metrics.

use crate::bed::{Bed, built, filter, get, post, text};
use crate::http::{Message, Origin, response};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_proxy::config::{Module as ModuleTable, ModuleOption};

fn exercise(options: &[(&str, ModuleOption)]) -> ModuleTable {
    filter(&built("exercise"), options)
}

/// An origin that answers with what it got.
fn echo() -> Origin {
    Origin::new(|request: &Message| {
        let text = request.text();
        response("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", &text)
    })
}

#[test]
fn heads_of_both_messages_are_changed_and_reserved_fields_are_not() {
    let bed = Bed::new(vec![exercise(&[])]);
    let answer = bed.ask(&get("/headers", "X-Secret: s\r\n"));
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.field("x-filter").as_deref(), Some("response"));
    let request = bed.origin.last();
    assert_eq!(request.field("x-secret"), None);
    assert_eq!(request.field("x-filter").as_deref(), Some("request"));
    assert_eq!(request.field("transfer-encoding"), None);
    let notes = bed.report().notes.join("\n");
    assert!(notes.contains("the last: transfer-encoding"), "{notes}");
    assert!(notes.contains("do nothing here: "), "{notes}");
}

#[test]
fn changed_path_is_the_target_that_is_forwarded_and_stored() {
    let bed = Bed::new(vec![exercise(&[(
        "bodies",
        ModuleOption::List(Vec::new()),
    )])]);
    assert_eq!(bed.get("/moved").status(), 200);
    assert!(bed.origin.last().head.starts_with("GET /target "));
    let hit = bed.get("/target");
    assert!(
        hit.field("cache-status").expect("a field").contains("hit"),
        "{}",
        hit.head
    );
}

#[test]
fn filter_answers_in_the_place_of_the_origin() {
    let bed = Bed::new(vec![exercise(&[])]);
    let denied = bed.get("/deny");
    assert_eq!((denied.status(), denied.text()), (403, "denied".into()));
    assert_eq!(denied.field("x-by").as_deref(), Some("filter"));
    assert_eq!(bed.get("/reset").status(), 502);
    assert!(bed.origin.seen().is_empty());
}

#[test]
fn content_is_rewritten_in_pieces_and_as_a_whole() {
    let bed = Bed::before(echo(), vec![exercise(&[])]);
    let long = "The quick brown fox. ".repeat(20_000);
    let shouted = bed.ask(&post("/shout", "", &long));
    assert_eq!(shouted.status(), 200);
    assert!(shouted.text() == long.to_uppercase(), "content differs");
    assert!(
        bed.origin.last().text() == long.to_uppercase(),
        "content differs"
    );
    assert_eq!(shouted.field("content-length"), None);
    let whole = bed.ask(&post("/whole", "", "abc"));
    assert_eq!(bed.origin.last().text(), "cba");
    assert_eq!(whole.text(), "3 bytes");
    let blocked = bed.ask(&post("/block", "", "something evil"));
    assert_eq!(
        (blocked.status(), blocked.text()),
        (403, "evil content".into())
    );
    let allowed = bed.ask(&post("/block", "", "something good"));
    assert_eq!(
        (allowed.status(), allowed.text()),
        (200, "something good".into())
    );
}

#[test]
fn content_of_a_request_with_no_transform_is_examined_and_not_changed() {
    let bed = Bed::before(echo(), vec![exercise(&[])]);
    let fields = "Cache-Control: no-transform\r\n";
    assert_eq!(bed.ask(&post("/block", fields, "evil")).status(), 403);
    let kept = bed.ask(&post("/shout", fields, "quiet"));
    assert_eq!((kept.status(), kept.text()), (200, "quiet".into()));
    assert_eq!(bed.origin.last().text(), "quiet");
    let notes = bed.report().notes.join("\n");
    assert!(notes.contains("which no-transform forbids"), "{notes}");
    assert!(!notes.contains("ended"), "{notes}");
}

#[test]
fn changes_of_responses_are_for_each_client_and_stored_only_by_choice() {
    for is_stored in [false, true] {
        let options = [("stored", ModuleOption::Flag(is_stored))];
        let bed = Bed::new(vec![exercise(&options)]);
        for _ in 0..2 {
            let shouted = bed.get("/shout");
            assert_eq!(shouted.text(), "CONTENT");
            assert_eq!(shouted.field("x-filter").as_deref(), Some("response"));
        }
        bed.reload(Vec::clear).expect("accepted");
        if !is_stored {
            // what is stored was not changed
            let plain = bed.get("/shout");
            assert_eq!(plain.text(), "content");
            assert!(
                plain
                    .field("cache-status")
                    .expect("a field")
                    .contains("hit")
            );
        }
    }
}

#[test]
fn response_to_head_has_the_head_of_the_response_to_get() {
    let bed = Bed::new(vec![exercise(&[])]);
    let whole = bed.get("/shout");
    let head = bed
        .client()
        .ask_head(get("/shout", "").replace("GET", "HEAD"));
    for name in ["etag", "content-length", "x-filter"] {
        assert_eq!(head.field(name), whole.field(name), "{name}: {}", head.head);
    }
    assert_eq!(whole.field("etag").as_deref(), Some("W/\"v1\""));
}

#[test]
fn response_that_a_filter_refuses_late_does_not_reach_its_client() {
    for is_stored in [false, true] {
        let options = [("stored", ModuleOption::Flag(is_stored))];
        let bed = Bed::new(vec![exercise(&options)]);
        let late = bed.get("/late");
        assert_eq!(
            (late.status(), late.text()),
            (403, "late".into()),
            "{is_stored}"
        );
        let head = bed
            .client()
            .ask_head(get("/late", "").replace("GET", "HEAD"));
        assert!(
            head.status() == 502 || head.status() == 403,
            "{}",
            head.head
        );
    }
}

#[test]
fn http_call_decides_about_a_paused_request() {
    let calls = AtomicUsize::new(0);
    let auth = Origin::new(move |request: &Message| {
        let is_first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        if is_first && request.field("x-token").as_deref() == Some("t") {
            response("", "alice")
        } else {
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
    });
    let bed = Bed::new(vec![exercise(&[upstream(&auth)])]);
    let allowed = bed.get("/call");
    assert_eq!(allowed.status(), 200, "{}", allowed.head);
    assert_eq!(bed.origin.last().field("x-user").as_deref(), Some("alice"));
    assert!(auth.last().head.starts_with("GET /check "));
    assert_eq!(bed.get("/call/2").status(), 401);
    assert_eq!(bed.origin.seen().len(), 1);
}

#[test]
fn http_call_that_fails_or_has_no_server_is_told_to_the_filter() {
    let gone = Origin::new(|_| response("", ""));
    let options = [upstream(&gone)];
    drop(gone);
    let bed = Bed::new(vec![exercise(&options)]);
    assert_eq!(bed.get("/call").status(), 401);
    let without = Bed::new(vec![exercise(&[])]);
    assert_eq!(without.get("/call").status(), 500);
}

/// The option that names the server of calls.
fn upstream(auth: &Origin) -> (&'static str, ModuleOption) {
    let url = format!("http://{}", auth.address());
    let upstreams = BTreeMap::from([("auth".to_owned(), text(&url))]);
    ("upstreams", ModuleOption::Table(upstreams))
}

#[test]
fn ticks_metrics_shared_data_and_properties_are_there() {
    let bed = Bed::new(vec![exercise(&[])]);
    let visits: Vec<_> = (0..3).map(|_| bed.get("/visits").text()).collect();
    assert_eq!(visits, ["1", "2", "3"]);
    assert_eq!(bed.metric("requests"), 3);
    bed.wait_for_metric("ticks", 3);
    let properties = bed.ask(&get("/properties?q", "X-A: a\r\n"));
    assert_eq!(properties.text(), "/properties?q a 127.0.0.1:0 filter -");
}

#[test]
fn panic_in_a_filter_fails_its_request_and_the_next_instance_serves() {
    let bed = Bed::new(vec![exercise(&[])]);
    assert_eq!(bed.get("/").status(), 200);
    assert_eq!(bed.get("/trap").status(), 502);
    crate::bed::wait_for(|| bed.get("/").status() == 200, "the next instance");
    let notes = bed.report().notes.join("\n");
    assert!(notes.contains("1 instances ended"), "{notes}");
}

#[test]
fn filter_that_refuses_its_configuration_refuses_that_of_the_proxy() {
    let table = exercise(&[("configuration", text("refuse"))]);
    let error = Bed::try_before(echo(), vec![table], 1).err();
    let error = error.expect("it is refused");
    assert!(
        error.contains("it said: the configuration is `refuse`"),
        "{error}"
    );
}

#[test]
fn filter_of_the_tutorial_greets() {
    let options = [
        ("configuration", text("hello")),
        ("bodies", ModuleOption::List(Vec::new())),
    ];
    let bed = Bed::new(vec![filter(&built("greeting"), &options)]);
    let greeted = bed.get("/");
    assert_eq!(greeted.field("x-greeting").as_deref(), Some("hello"));
    assert_eq!(greeted.field("content-length").as_deref(), Some("7"));
    assert_eq!(greeted.field("etag").as_deref(), Some("\"v1\""));
}
