//! A module may forbid storing; to have more stored than the rules allow it needs permission.

use crate::support::{Setup, scripted};
use weir_proxy::config::Config;

fn response(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 4\r\n\r\nmine")
}

/// Whether another client gets what came for the first request.
fn is_shared(setup: &Setup, request: &str, fields: &str) -> bool {
    let mut client = setup.proxy.client();
    client.send(setup.head("GET", "/", "1.1", request));
    let (mut hop, _) = setup.origin.answer(response(fields));
    assert_eq!(client.read_response().text(), "mine");
    let mut other = setup.proxy.client();
    other.send(setup.get("/"));
    // what is asked for next shows whether that was forwarded
    let last = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nours";
    other.send(setup.get("/last"));
    let is_hit = hop.answer(last).start_line().contains("/last");
    if !is_hit {
        hop.answer(last);
    }
    let shared = other.read_response().text() == "mine";
    assert_eq!(shared, is_hit);
    other.read_response();
    shared
}

fn with(hook: &str, action: &str, may_store: bool) -> impl Fn(&mut Config) {
    move |config| {
        let mut module = scripted("a", &[(hook, action)]);
        module.may_store = may_store;
        config.modules = vec![module];
    }
}

#[test]
fn response_made_storable_by_a_module_is_stored_only_by_permission() {
    for (action, fields) in [
        ("set Cache-Control max-age=60", "Cache-Control: private\r\n"),
        (
            "set Cache-Control max-age=60",
            "Cache-Control: no-store\r\n",
        ),
        ("set Cache-Control max-age=60", ""),
        (
            "remove Set-Cookie",
            "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
        ),
        ("remove Vary", "Cache-Control: max-age=60\r\nVary: *\r\n"),
    ] {
        for may_store in [false, true] {
            Setup::each_with(with("response-received", action, may_store), |setup| {
                let shared = is_shared(setup, "", fields);
                assert_eq!(shared, may_store, "{action} {fields}");
            });
        }
    }
}

#[test]
fn permission_of_one_module_is_not_that_of_another() {
    let change = |config: &mut Config| {
        let mut permitted = scripted("a", &[("response-received", "set X-A b")]);
        permitted.may_store = true;
        let action = "set Cache-Control max-age=60";
        config.modules = vec![permitted, scripted("b", &[("response-received", action)])];
    };
    Setup::each_with(change, |setup| {
        assert!(!is_shared(setup, "", "Cache-Control: private\r\n"));
    });
}

#[test]
fn response_forbidden_by_a_module_is_not_stored() {
    for may_store in [false, true] {
        let action = "set Cache-Control no-store";
        Setup::each_with(with("response-received", action, may_store), |setup| {
            assert!(!is_shared(setup, "", "Cache-Control: max-age=60\r\n"));
        });
    }
}

#[test]
fn response_is_stored_if_a_module_changed_nothing_that_decides_it() {
    Setup::each_with(with("response-received", "set X-A b", false), |setup| {
        assert!(is_shared(setup, "", "Cache-Control: max-age=60\r\n"));
    });
}

#[test]
fn request_whose_credentials_a_module_removed_is_still_one_with_credentials() {
    for (action, request) in [
        ("remove Authorization", "Authorization: Basic eDp5\r\n"),
        ("remove Cache-Control", "Cache-Control: no-store\r\n"),
    ] {
        for may_store in [false, true] {
            Setup::each_with(with("request-received", action, may_store), |setup| {
                let shared = is_shared(setup, request, "Cache-Control: max-age=60\r\n");
                assert_eq!(shared, may_store, "{action}");
            });
        }
    }
}

#[test]
fn response_to_credentials_that_a_module_added_is_stored_only_by_permission() {
    let action = "set Authorization Basic-eDp5";
    for may_store in [false, true] {
        Setup::each_with(with("request-sent", action, may_store), |setup| {
            assert_eq!(
                is_shared(setup, "", "Cache-Control: max-age=60\r\n"),
                may_store
            );
        });
    }
}

/// The head that the module makes has no such fault any more.
#[test]
fn response_with_mixed_line_ends_is_not_stored_after_a_module_changed_it() {
    Setup::each_with(with("response-received", "set X-A b", true), |setup| {
        let mixed = "Cache-Control: max-age=60\nX-Split: 1\r\n";
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        drop(setup.origin.answer(response(mixed)));
        assert_eq!(client.read_response().text(), "mine");
        let (again, _) = setup.fetch("/", &response("Cache-Control: max-age=60\r\n"));
        assert!(!again.is_hit());
    });
}
