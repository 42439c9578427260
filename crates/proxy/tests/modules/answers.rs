//! Modules that answer in the place of a next hop.

use crate::support::{Setup, scripted};
use weir_extend::RESPONSE_CONTENT_BYTES_MAX;
use weir_measure::{Metric, ModuleFault};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn request_answered_by_a_module_is_not_forwarded() {
    let change = |config: &mut weir_proxy::config::Config| {
        let actions = [("request-received", "respond 403 not here")];
        config.modules = vec![
            scripted("first", &[("response-sent", "set X-Seen first")]),
            scripted("second", &actions),
            scripted("third", &[("response-sent", "set X-Seen third")]),
        ];
    };
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        let response = client.ask(setup.get("/"));
        assert_eq!(
            (response.status(), response.text()),
            (403, "not here".to_owned())
        );
        assert_eq!(response.head.field("x-by"), Some("module"));
        assert_eq!(response.head.all("x-seen"), ["first"]);
        assert!(
            response.verdict().contains("detail=module"),
            "{}",
            response.verdict()
        );
        // the connection is good for another request, also after one with content that is not read
        let head = setup.head("POST", "/", "1.1", "Content-Length: 4\r\n");
        assert_eq!(client.ask(head + "body").status(), 403);
        assert_eq!(client.ask(setup.get("/")).status(), 403);
        setup.origin.expect_untouched();
        assert_eq!(setup.proxy.count(Metric::ModuleResponses), 3);
    });
}

#[test]
fn answer_to_head_has_no_content_and_an_answer_without_content_has_none() {
    for (status, length) in [(404, Some(4)), (204, None)] {
        let change = |config: &mut weir_proxy::config::Config| {
            let action = format!("respond {status} text");
            config.modules = vec![scripted("a", &[("request-received", action.as_str())])];
        };
        Setup::each_with(change, |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.head("HEAD", "/", "1.1", ""));
            let head = client.read_head();
            assert_eq!((head.status(), head.length()), (status, length));
            client.send(setup.head("HEAD", "/", "1.1", ""));
            assert_eq!(client.read_head().status(), status);
        });
    }
}

#[test]
fn module_may_answer_in_the_place_of_the_next_hop_or_of_its_response() {
    for hook in ["request-sent", "response-received"] {
        let change = |config: &mut weir_proxy::config::Config| {
            config.modules = vec![scripted("a", &[(hook, "respond 451 no")])];
        };
        Setup::each_with(change, |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            if hook == "response-received" {
                drop(setup.origin.answer(FRESH));
            }
            let response = client.read_response();
            assert_eq!(
                (response.status(), response.text()),
                (451, "no".to_owned()),
                "{hook}"
            );
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
            setup
                .proxy
                .wait_for(Metric::NextHopsOpen, u64::from(hook == "request-sent"));
        });
    }
}

/// Each follower would get the module's answer by itself; none may be left waiting.
#[test]
fn followers_are_answered_when_a_module_answers_their_leader() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![scripted("a", &[("response-received", "respond 451 no")])];
    };
    Setup::each_with(change, |setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(2, &setup.get("/"));
        hop.send(FRESH);
        assert_eq!(leader.read_response().status(), 451);
        for _ in 0..2 {
            drop(setup.origin.answer(FRESH));
        }
        for mut client in followers {
            assert_eq!(client.read_response().status(), 451);
        }
    });
}

#[test]
fn module_that_answers_with_more_content_than_it_may_has_failed() {
    for (more, status) in [(0, 403), (1, 502)] {
        let content = "x".repeat(RESPONSE_CONTENT_BYTES_MAX + more);
        let module = scripted(
            "a",
            &[("request-received", &format!("respond 403 {content}"))],
        );
        let change = move |config: &mut weir_proxy::config::Config| {
            config.modules = vec![module.clone()];
        };
        Setup::each_with(change, |setup| {
            let mut client = setup.proxy.client();
            assert_eq!(client.ask(setup.get("/")).status(), status);
            let failed = Metric::ModuleFailures(ModuleFault::BadAnswer);
            assert_eq!(setup.proxy.count(failed), more as u64);
        });
    }
}
