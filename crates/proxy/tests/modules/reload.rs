//! Modules are loaded, changed and unloaded under traffic.

use crate::support::{Setup, deciding, scripted};
use weir_proxy::ModuleState;
use weir_proxy::config::{ExecutionModel, ModuleOption};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn request_keeps_the_modules_that_it_began_with() {
    Setup::each(|setup| {
        setup.proxy.reload(|config| {
            config.modules = vec![scripted("a", &[("response-sent", "set X-Sent old")])];
        });
        let (mut client, mut hop) = setup.lead(&setup.get("/"));
        setup.proxy.reload(|config| {
            config.modules = vec![scripted("a", &[("response-sent", "set X-Sent new")])];
        });
        hop.send(FRESH);
        assert_eq!(client.read_response().head.all("x-sent"), ["old"]);
        let hit = client.ask(setup.get("/"));
        assert!(hit.is_hit());
        assert_eq!(hit.head.all("x-sent"), ["new"]);
        setup.proxy.reload(|config| config.modules.clear());
        assert!(client.ask(setup.get("/")).head.all("x-sent").is_empty());
    });
}

#[test]
fn configuration_with_a_module_that_does_not_load_is_refused_and_changes_nothing() {
    let setup = Setup::gateway_with(|config| {
        config.modules = vec![scripted("a", &[("response-sent", "set X-Sent old")])];
    });
    let unknown = setup
        .proxy
        .try_reload(|config| config.modules[0].kind = "none".into());
    let unknown = unknown.expect_err("there is no such kind");
    assert!(
        unknown.contains("module[0].kind") && unknown.contains("scripted"),
        "{unknown}"
    );
    let misspelt = setup.proxy.try_reload(|config| {
        config.modules[0].kind = "scripted".into();
        let options = &mut config.modules[0].options;
        options.insert("misspelt".into(), ModuleOption::Flag(true));
    });
    let misspelt = misspelt.expect_err("there is no such option");
    assert!(
        misspelt.contains("module[0].options.misspelt"),
        "{misspelt}"
    );
    let (response, _hop) = setup.fetch("/", FRESH);
    assert_eq!(response.head.all("x-sent"), ["old"]);
}

#[test]
fn module_that_decides_by_content_does_not_load_on_threads() {
    let setup = Setup::gateway();
    for (run, loads) in [
        (ExecutionModel::Worker, true),
        (ExecutionModel::Threads, false),
    ] {
        let mut module = deciding("a", "response-received", 1, "pass");
        module.run = run;
        let loaded = setup
            .proxy
            .try_reload(|config| config.modules = vec![module.clone()]);
        match loaded {
            Ok(_) => assert!(loads),
            Err(error) => assert!(!loads && error.contains("module[0].run"), "{error}"),
        }
    }
}

#[test]
fn disabled_module_is_not_called_until_it_is_enabled_also_after_a_reload() {
    Setup::each(|setup| {
        let sent = [("response-sent", "set X-Sent yes")];
        setup.proxy.reload(|config| {
            config.modules = vec![scripted("a", &sent), scripted("b", &[("done", "panic")])];
        });
        let (response, _hop) = setup.fetch("/", FRESH);
        assert_eq!(response.head.all("x-sent"), ["yes"]);
        let sent_to = |setup: &Setup| {
            let hit = setup.proxy.client().ask(setup.get("/"));
            assert!(hit.is_hit());
            hit.head.all("x-sent").len()
        };
        let control = setup.proxy.control();
        assert!(control.set_module_enabled("a", false));
        assert!(!control.set_module_enabled("c", false));
        assert_eq!(sent_to(setup), 0);
        setup.proxy.reload(|config| config.cache.enabled = true);
        assert_eq!(sent_to(setup), 0, "a reload does not enable it");
        let states = || -> Vec<_> {
            let modules = control.modules().into_iter();
            modules.map(|it| (it.name, it.state)).collect()
        };
        assert_eq!(states()[0], ("a".to_owned(), ModuleState::Disabled));
        assert!(control.set_module_enabled("a", true));
        assert_eq!(sent_to(setup), 1);
        assert_eq!(states()[0], ("a".to_owned(), ModuleState::Enabled));
    });
}

#[test]
fn request_keeps_a_module_that_is_disabled_while_it_is_under_way() {
    let setup = Setup::gateway_with(|config| {
        config.modules = vec![scripted("a", &[("response-sent", "set X-Sent yes")])];
    });
    let (mut client, mut hop) = setup.lead(&setup.get("/"));
    let control = setup.proxy.control();
    assert!(control.set_module_enabled("a", false));
    hop.send(FRESH);
    assert_eq!(client.read_response().head.all("x-sent"), ["yes"]);
    assert!(client.ask(setup.get("/")).head.all("x-sent").is_empty());
}

/// The rest of a stored part is requested in the background, for a client that reads.
#[test]
fn what_is_requested_for_a_client_in_the_background_has_the_modules_of_its_request() {
    let part = |range: &str, content: &str| {
        let head = "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"v\"\r\n";
        let fields = "Content-Length: 3\r\nConnection: close\r\n";
        format!("{head}{fields}Content-Range: bytes {range}/9\r\n\r\n{content}")
    };
    for is_enabled in [true, false] {
        Setup::each_with(
            |config| {
                config.modules = vec![
                    scripted("a", &[("response-received", "set X-A b")]),
                    scripted("b", &[("response-received", "set X-B c")]),
                ];
            },
            |setup| {
                let control = setup.proxy.control();
                assert!(control.set_module_enabled("b", is_enabled));
                let mut client = setup.proxy.client();
                client.send(setup.head("GET", "/", "1.1", "Range: bytes=3-5\r\n"));
                drop(setup.origin.answer(part("3-5", "def")));
                assert_eq!(client.read_response().text(), "def");
                client.send(setup.get("/"));
                let mut hop = setup.origin.accept();
                assert_eq!(hop.read_head().field("range"), Some("bytes=0-2"));
                assert!(control.set_module_enabled("b", !is_enabled));
                hop.send(part("0-2", "abc"));
                drop(hop);
                let (_hop, head) = setup.origin.answer(part("6-8", "ghi"));
                assert_eq!(head.field("range"), Some("bytes=6-8"));
                assert_eq!(client.read_response().text(), "abcdefghi");
            },
        );
    }
}
