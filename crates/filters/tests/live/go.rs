//! A filter in Go, built by stock Go with the SDK for ABI 0.2.0.

use crate::bed::{Bed, built, filter, post, text};
use crate::http::{Message, Origin, response};
use std::collections::BTreeMap;
use weir_proxy::config::ModuleOption;

fn options(auth: &Origin) -> Vec<(&'static str, ModuleOption)> {
    let url = format!("http://{}", auth.address());
    let upstreams = BTreeMap::from([("auth".to_owned(), text(&url))]);
    vec![
        ("configuration", text("salut")),
        ("upstreams", ModuleOption::Table(upstreams)),
        ("bodies", ModuleOption::List(vec![text("request")])),
    ]
}

#[test]
fn filter_in_go_reads_changes_answers_and_calls() {
    let auth = Origin::new(|_| response("", "bob"));
    let origin = Origin::new(|request: &Message| response("", &request.text()));
    let table = filter(&built("go"), &options(&auth));
    let bed = Bed::before(origin, vec![table]);
    let plain = bed.get("/");
    assert_eq!(plain.status(), 200, "{}", bed.report().notes.join("\n"));
    assert_eq!(plain.field("x-greeting").as_deref(), Some("salut"));
    assert_eq!(bed.origin.last().field("x-filter").as_deref(), Some("go"));
    let denied = bed.get("/deny");
    assert_eq!((denied.status(), denied.text()), (403, "denied".into()));
    assert_eq!(denied.field("x-by").as_deref(), Some("go"));
    let whole = bed.ask(&post("/whole", "", "shout this"));
    assert_eq!(whole.text(), "SHOUT THIS");
    let called = bed.get("/call");
    assert_eq!(called.status(), 200, "{}", called.head);
    assert_eq!(bed.origin.last().field("x-user").as_deref(), Some("bob"));
    assert_eq!(bed.metric("requests"), 4);
}
