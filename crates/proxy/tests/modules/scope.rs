//! Which requests a module is called for.

use crate::support::{Setup, scripted};
use weir_proxy::config::Module;

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

/// A module that marks responses on their way into the store, and on their way to the client.
fn marking(name: &str, path: &str) -> Module {
    let received = format!("set X-Received-{name} yes");
    let sent = format!("set X-Sent-{name} yes");
    let actions = [
        ("response-received", received.as_str()),
        ("response-sent", &sent),
    ];
    Module {
        path: path.parse().expect("a path"),
        ..scripted(name, &actions)
    }
}

#[test]
fn module_is_called_for_requests_below_its_path_alone() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![marking("a", "/img")];
    };
    Setup::each_with(change, |setup| {
        for (path, marked) in [("/img/x?q", 1), ("/img", 1), ("/imgs", 0), ("/", 0)] {
            let (response, _hop) = setup.fetch(path, FRESH);
            assert_eq!(response.head.all("x-received-a").len(), marked, "{path}");
            let hit = setup.proxy.client().ask(setup.get(path));
            assert!(hit.is_hit());
            assert_eq!(hit.head.all("x-sent-a").len(), marked, "{path}");
        }
    });
}

#[test]
fn module_is_called_for_requests_to_its_hosts_alone() {
    for (host, marked) in [
        ("a.example", 1),
        ("*.example", 1),
        ("b.example", 0),
        ("*.a.example", 0),
    ] {
        let setup = Setup::gateway_with(|config| {
            let host = Some(host.parse().expect("a host"));
            config.modules = vec![Module {
                host,
                ..marking("a", "/")
            }];
        });
        let (response, _hop) = setup.fetch("/", FRESH);
        assert_eq!(response.head.all("x-sent-a").len(), marked, "{host}");
    }
}

#[test]
fn modules_of_the_new_target_are_called_for_a_request_sent_there() {
    let change = |config: &mut weir_proxy::config::Config| {
        config.modules = vec![
            Module {
                path: "/old".parse().expect("a path"),
                ..scripted("moved", &[("request-received", "path /new")])
            },
            marking("old", "/old"),
            marking("new", "/new"),
        ];
    };
    Setup::each_with(change, |setup| {
        let (response, _hop) = setup.fetch("/old", FRESH);
        for (name, marked) in [("new", 1), ("old", 0)] {
            let received = response.head.all(&format!("x-received-{name}"));
            let sent = response.head.all(&format!("x-sent-{name}"));
            assert_eq!((received.len(), sent.len()), (marked, marked), "{name}");
        }
        // what was stored is the same as if the new target had been requested
        let hit = setup.proxy.client().ask(setup.get("/new"));
        assert!(hit.is_hit());
        assert_eq!(hit.head.all("x-received-new"), ["yes"]);
        assert!(hit.head.all("x-received-old").is_empty());
    });
}

#[test]
fn module_behind_the_one_that_changes_the_target_sees_the_request_if_it_is_for_the_new_target() {
    let guard = |name: &str| Module {
        path: "/new".parse().expect("a path"),
        ..scripted(name, &[("request-received", "respond 403 no")])
    };
    let moved = || scripted("moved", &[("request-received", "path /new")]);
    let behind = Setup::gateway_with(|config| config.modules = vec![moved(), guard("guard")]);
    let refused = behind.proxy.client().ask(behind.get("/old"));
    assert_eq!(refused.status(), 403);
    // one that stands nearer to the client has seen the target of the client
    let before = Setup::gateway_with(|config| config.modules = vec![guard("guard"), moved()]);
    let (passed, _hop) = before.fetch("/old", FRESH);
    assert_eq!(passed.status(), 200);
}
