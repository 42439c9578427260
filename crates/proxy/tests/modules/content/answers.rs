//! Modules that answer by themselves once they have seen content, and those that change a status.

use crate::support::{RawClient, Setup, scripted};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::Config;

fn fresh(content: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{content}", content.len())
}

fn with(actions: &[(&str, &str)]) -> impl Fn(&mut Config) {
    let modules = actions.iter().enumerate();
    let modules: Vec<_> = modules
        .map(|(at, action)| scripted(&format!("m{at}"), &[*action]))
        .collect();
    move |config| config.modules.clone_from(&modules)
}

/// Sends a request with this content, and reads the module's own response.
fn check_answered(setup: &Setup, mut client: RawClient, content: &str) {
    let fields = format!("Content-Length: {}\r\n", content.len());
    client.send(setup.head("POST", "/", "1.1", &fields));
    let content = content.to_owned();
    let sent = std::thread::spawn(move || {
        client.try_send(content);
        client
    });
    let hop = setup.origin.accept();
    let (bytes, _) = hop.into_peer().read_to_end();
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "it looks whole");
    let mut client = sent.join().expect("sent or answered");
    let response = client.read_response();
    assert_eq!(
        (response.status(), response.text()),
        (451, "not this".to_owned())
    );
    assert!(
        response.verdict().contains("detail=module"),
        "{}",
        response.verdict()
    );
    assert_eq!(response.head.all("x-seen"), ["first"]);
    assert_eq!(setup.proxy.count(Metric::ModuleResponses), 1);
    assert_eq!(setup.proxy.count(Metric::ClientAborts), 0);
}

#[test]
fn request_whose_content_a_module_answers_is_not_answered_by_the_next_hop() {
    for how in ["content respond", "content respond-late"] {
        let actions = [
            ("response-sent", "set X-Seen first"),
            ("request-received", how),
            ("response-sent", "set X-Seen third"),
        ];
        Setup::each_with(with(&actions), |setup| {
            check_answered(setup, setup.proxy.client(), &"x".repeat(300_000));
        });
    }
}

#[test]
fn response_whose_content_a_module_answers_is_not_sent_and_not_stored() {
    for hook in ["response-received", "response-sent"] {
        let actions = [
            ("response-sent", "set X-Seen first"),
            (hook, "content respond"),
            ("response-sent", "set X-Seen third"),
        ];
        Setup::each_with(with(&actions), |setup| {
            let mut client = setup.proxy.client();
            for at in 0..2 {
                client.send(setup.get("/"));
                if at == 0 || hook == "response-received" {
                    drop(setup.origin.answer(fresh("abc")));
                }
                let response = client.read_response();
                assert_eq!(
                    (response.status(), response.text()),
                    (451, "not this".to_owned())
                );
                assert_eq!(response.head.all("x-seen"), ["first"], "{hook}");
            }
            // what it answers is for its client: what is stored is as the next hop sent it
            let stored = setup.proxy.count(Metric::StoreEntries);
            assert_eq!(stored, u64::from(hook == "response-sent"));
            setup.proxy.reload(|config| config.modules.clear());
            if hook == "response-sent" {
                assert_eq!(client.ask(setup.get("/")).text(), "abc");
            }
        });
    }
}

#[test]
fn response_of_which_some_was_sent_is_cut_when_a_module_answers() {
    for hook in ["response-received", "response-sent"] {
        Setup::each_with(with(&[(hook, "content respond-late")]), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            // what it puts out first is sent before it has seen more
            let content = "x".repeat(300_000);
            let response = fresh(&content);
            let (now, later) = response.split_at(50_000);
            hop.send(now);
            let head = client.read_head();
            assert_eq!(head.status(), 200);
            let sent = {
                let later = later.to_owned();
                std::thread::spawn(move || hop.try_send(later))
            };
            client.read_cut(&head);
            sent.join().expect("sent or refused");
            assert_eq!(setup.proxy.count(Metric::ModuleResponses), 0);
        });
    }
}

#[test]
fn followers_of_a_response_that_a_module_answers_get_nothing_of_another_client() {
    Setup::each_with(with(&[("response-received", "content respond")]), |setup| {
        // its content is not whole: no connection is used again
        let begun = fresh("abc").replace("Length: 3", "Length: 9");
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(2, &setup.get("/"));
        hop.send(&begun);
        assert_eq!(leader.read_response().status(), 451);
        for _ in 0..2 {
            drop(setup.origin.answer(&begun));
        }
        for mut client in followers {
            assert_eq!(client.read_response().status(), 451);
        }
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    });
}

#[test]
fn response_with_a_changed_status_is_not_stored() {
    Setup::each_with(with(&[("response-received", "status 403")]), |setup| {
        let (changed, mut hop) = setup.fetch("/", &fresh("abc"));
        assert_eq!(changed.head.start_line(), "HTTP/1.1 403 Forbidden");
        assert_eq!(changed.text(), "abc");
        assert!(
            changed.verdict().contains("detail=module"),
            "{}",
            changed.verdict()
        );
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        hop.answer(fresh("abc"));
        assert_eq!(client.read_response().status(), 403);
    });
}

#[test]
fn response_with_a_changed_status_is_stored_if_the_operator_permits_it() {
    let change = |config: &mut Config| {
        let mut module = scripted("m0", &[("response-received", "status 404")]);
        module.may_store = true;
        config.modules = vec![module];
    };
    Setup::each_with(change, |setup| {
        let (changed, _hop) = setup.fetch("/", &fresh("abc"));
        assert_eq!(changed.status(), 404);
        let hit = setup.proxy.client().ask(setup.get("/"));
        assert_eq!((hit.is_hit(), hit.status()), (true, 404));
    });
}

#[test]
fn status_that_is_changed_for_one_client_is_a_failure_of_its_module() {
    Setup::each_with(with(&[("response-sent", "status 403")]), |setup| {
        let (refused, _hop) = setup.fetch("/", &fresh("abc"));
        assert_eq!(refused.status(), 502);
        let fault = Metric::ModuleFailures(ModuleFault::BadAnswer);
        assert_eq!(setup.proxy.count(fault), 1);
    });
}
