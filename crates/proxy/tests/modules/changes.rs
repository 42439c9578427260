//! What a module changes at each hook, and where that is seen.

use crate::support::{Setup, scripted};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn request_fields_set_by_a_module_reach_the_next_hop() {
    for hook in ["request-received", "request-sent"] {
        let change = |config: &mut weir_proxy::config::Config| {
            config.modules = vec![scripted("a", &[(hook, "set X-Module on")])];
        };
        Setup::each_with(change, |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/", "1.1", "x-module: off\r\nX-Other: 1\r\n"));
            let (_hop, head) = setup.origin.answer(FRESH);
            assert_eq!(head.all("x-module"), ["on"], "{hook}");
            assert_eq!(head.field("x-other"), Some("1"), "{hook}");
            assert_eq!(client.read_response().text(), "ok", "{hook}");
        });
    }
}

#[test]
fn response_fields_set_when_received_are_stored_and_those_set_when_sent_are_not() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![
            scripted("a", &[("response-received", "set X-Stored yes")]),
            scripted("b", &[("response-sent", "set X-Sent yes")]),
        ];
    };
    Setup::each_with(change, |setup| {
        let (miss, _hop) = setup.fetch("/", FRESH);
        setup.proxy.reload(|config| {
            config.modules.pop();
        });
        let hit = setup.proxy.client().ask(setup.get("/"));
        assert!(hit.is_hit());
        for (response, sent) in [(&miss, vec!["yes"]), (&hit, Vec::new())] {
            assert_eq!(response.head.all("x-stored"), ["yes"]);
            assert_eq!(response.head.all("x-sent"), sent);
            assert_eq!(response.text(), "ok");
        }
    });
}

#[test]
fn response_fields_are_set_for_every_client_of_a_hit() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![scripted("a", &[("response-sent", "set X-Sent yes")])];
    };
    Setup::each_with(change, |setup| {
        let (miss, _hop) = setup.fetch("/", FRESH);
        assert_eq!(miss.head.all("x-sent"), ["yes"]);
        for _ in 0..2 {
            let hit = setup.proxy.client().ask(setup.get("/"));
            assert!(hit.is_hit());
            assert_eq!(hit.head.all("x-sent"), ["yes"]);
            assert_eq!(hit.text(), "ok");
        }
    });
}

/// The first in the configuration stands nearest to the client.
#[test]
fn last_word_is_the_first_modules_toward_the_client_and_the_last_ones_toward_the_next_hop() {
    let all = |value: &str| {
        [
            ("request-sent", format!("set X-Word {value}")),
            ("response-sent", format!("set X-Word {value}")),
        ]
    };
    let module = |name: &str| {
        let actions = all(name);
        let actions = [0, 1].map(|at: usize| (actions[at].0, actions[at].1.as_str()));
        scripted(name, &actions)
    };
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![module("first"), module("second")];
    };
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (_hop, head) = setup.origin.answer(FRESH);
        assert_eq!(head.all("x-word"), ["second"]);
        assert_eq!(client.read_response().head.all("x-word"), ["first"]);
    });
}

#[test]
fn changed_path_is_the_one_requested_and_stored() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![scripted("a", &[("request-received", "path /new?x")])];
    };
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/old"));
        let (_hop, head) = setup.origin.answer(FRESH);
        assert_eq!(head.start_line(), "GET /new?x HTTP/1.1");
        assert_eq!(client.read_response().text(), "ok");
        setup.proxy.reload(|config| config.modules.clear());
        assert!(setup.proxy.client().ask(setup.get("/new?x")).is_hit());
    });
}

/// A changed destination passes the rules that a client's own would have to.
#[test]
fn changed_host_is_judged_by_the_destination_rules() {
    let setup = Setup::forward_with(|config| {
        config.modules = vec![scripted("a", &[("request-received", "host 10.1.2.3")])];
    });
    let response = setup.proxy.client().ask(setup.get("/"));
    assert_eq!(response.status(), 403);
    setup.origin.expect_untouched();
}

#[test]
fn changed_host_is_the_one_that_the_next_hop_of_a_gateway_gets() {
    let setup = Setup::gateway_with(|config| {
        config.modules = vec![scripted("a", &[("request-received", "host b.example")])];
    });
    let mut client = setup.proxy.client();
    client.send(setup.get("/"));
    let (_hop, head) = setup.origin.answer(FRESH);
    assert_eq!(head.all("host"), ["b.example"]);
    assert_eq!(client.read_response().text(), "ok");
}

#[test]
fn request_with_content_passes_modules() {
    let change = |config: &mut weir_proxy::config::Config| {
        let actions = [
            ("request-received", "set X-A 1"),
            ("request-sent", "set X-B 1"),
            ("response-received", "set X-C 1"),
            ("response-sent", "set X-D 1"),
            ("done", "set X-E 1"),
        ];
        config.modules = vec![scripted("a", &actions)];
    };
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 4\r\n") + "body");
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert_eq!(
            (head.field("x-a"), head.field("x-b")),
            (Some("1"), Some("1"))
        );
        assert_eq!(head.all("content-length"), ["4"]);
        hop.expect("body");
        hop.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
        let response = client.read_response();
        assert_eq!((response.status(), response.text()), (201, "ok".to_owned()));
        assert_eq!(response.head.field("x-c"), Some("1"));
        assert_eq!(response.head.field("x-d"), Some("1"));
    });
}

#[test]
fn followers_of_one_fetch_get_what_a_module_sets_for_each() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![scripted("a", &[("response-sent", "set X-Sent yes")])];
    };
    Setup::each_with(change, |setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(3, &setup.get("/"));
        hop.send(FRESH);
        for mut client in followers {
            let response = client.read_response();
            assert_eq!(response.head.all("x-sent"), ["yes"]);
            assert_eq!(response.text(), "ok");
        }
        assert_eq!(leader.read_response().head.all("x-sent"), ["yes"]);
    });
}
