//! When the host of a URL is asked itself, and which hosts are refused whatever a parent would say.

use crate::parents::child::{answering, child, child_with, get, nothing, parent, parent_and};
use weir_proxy::config::{Direct, Parent};

#[test]
fn origin_is_asked_where_no_parent_can_be_reached_unless_that_is_forbidden() {
    let origin = answering("origin");
    let url = format!("http://{}/", origin.address());
    let check = |direct, expected: u16| {
        let child = child(vec![parent_and(nothing(), direct)]);
        // the second time the parent is ejected
        for _ in 0..2 {
            let response = child.client().ask(get(&url, ""));
            assert_eq!(response.status(), expected, "{direct}");
            child.purge_all();
        }
    };
    check(Direct::Never, 502);
    assert_eq!(origin.seen().len(), 0);
    check(Direct::Fallback, 200);
    assert_eq!(origin.seen().len(), 2);
}

#[test]
fn origin_is_preferred_to_parents_where_that_is_wanted() {
    let (origin, upper) = (answering("origin"), answering("parent"));
    let child = child(vec![parent_and(upper.address(), Direct::Prefer)]);
    let near = format!("http://{}/", origin.address());
    assert_eq!(child.client().ask(get(&near, "")).text(), "origin");
    let gone = format!("http://{}/", nothing());
    assert_eq!(child.client().ask(get(&gone, "")).text(), "parent");
    assert_eq!(upper.seen().len(), 1);
}

#[test]
fn table_without_url_keeps_its_hosts_from_all_parents() {
    let (origin, upper) = (answering("origin"), answering("parent"));
    let always = Parent {
        url: None,
        host: Some("127.0.0.1".parse().expect("a host")),
        ..parent_and(nothing(), Direct::Always)
    };
    let child = child(vec![parent_and(upper.address(), Direct::Never), always]);
    let near = format!("http://{}/", origin.address());
    assert_eq!(child.client().ask(get(&near, "")).text(), "origin");
    assert_eq!(
        child.client().ask(get("http://a.example/", "")).text(),
        "parent"
    );
}

#[test]
fn destination_that_is_denied_is_not_asked_through_a_parent() {
    let upper = answering("parent");
    for direct in [Direct::Fallback, Direct::Never, Direct::Prefer] {
        let parents = vec![parent_and(upper.address(), direct)];
        let child = child_with(parents, |config| config.access.allow_destinations.clear());
        for host in [
            "127.0.0.1:8080",
            "10.0.0.1",
            "[::1]",
            "169.254.169.254",
            "localhost",
        ] {
            let response = child.client().ask(get(&format!("http://{host}/"), ""));
            assert_eq!(response.status(), 403, "{host}, {direct}");
            let tunnel = format!(
                "CONNECT {}:443 HTTP/1.1\r\nHost: a\r\n\r\n",
                host.trim_end_matches(":8080")
            );
            assert_eq!(child.client().ask(tunnel).status(), 403, "{host}, {direct}");
        }
    }
    assert_eq!(upper.seen().len(), 0);
}

#[test]
fn name_that_a_parent_resolves_is_judged_by_the_parent() {
    let upper = answering("parent");
    let parents = vec![parent_and(upper.address(), Direct::Never)];
    let child = child_with(parents, |config| config.access.allow_destinations.clear());
    let response = child
        .client()
        .ask(get("http://resolved-by-the-parent.example/", ""));
    assert_eq!(response.text(), "parent");
}

#[test]
fn request_for_this_proxy_itself_is_not_sent_to_a_parent() {
    let upper = answering("parent");
    let child = child(vec![parent(upper.address())]);
    let own = format!("http://{}/", child.address());
    assert_eq!(child.client().ask(get(&own, "")).status(), 403);
    assert_eq!(upper.seen().len(), 0);
}
