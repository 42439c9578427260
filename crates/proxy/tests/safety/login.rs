//! Logins of clients of a forward proxy: who is let in, and what becomes of the credentials.

use crate::support::{Response, Setup};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use weir_measure::{LoginOutcome, Metric};
use weir_proxy::config::{Config, TokenFile};

/// `ada` with the password `secret`, hashed by bcrypt.
const ADA: &str = "ada:$2y$04$ZwwYRlzsp6pZRoczVxKXeenYMgothR5R9gUWMb3PS3m2vfSjLyY5.\n";
const ADA_BASIC: &str = "Proxy-Authorization: Basic YWRhOnNlY3JldA==\r\n";
/// `eve` with the same password.
const EVE_BASIC: &str = "Proxy-Authorization: Basic ZXZlOnNlY3JldA==\r\n";
/// `ada` with the password `wrong`.
const WRONG_BASIC: &str = "Proxy-Authorization: Basic YWRhOndyb25n\r\n";
const TOKENS: &str = "ci:sha256:d1968d6184b8eddf4b0d9fee136141d5f88a53784b9aa94e0d648ffc5b952caf\n";
const BEARER: &str = "Proxy-Authorization: Bearer token-of-ci\r\n";

fn write(path: &Path, text: &str) -> TokenFile {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("its owner");
    TokenFile::At(path.to_owned())
}

fn asking(folder: &Path) -> impl FnOnce(&mut Config) {
    let (users, tokens) = (folder.join("users"), folder.join("tokens"));
    move |config| {
        config.login.users_file = write(&users, ADA);
        config.login.tokens_file = write(&tokens, TOKENS);
    }
}

fn answer(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\nConnection: close\r\n\r\nok")
}

const FRESH: &str = "Cache-Control: max-age=60\r\n";

fn ask(setup: &Setup, path: &str, fields: &str) -> Response {
    let head = setup.head("GET", path, "1.1", fields);
    setup.proxy.client().ask(head)
}

#[test]
fn client_without_a_right_login_gets_407_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::forward_with(asking(folder.path()));
    // what is stored is not for them either
    let mut client = setup.proxy.client();
    client.send(setup.head("GET", "/", "1.1", ADA_BASIC));
    let (_, head) = setup.origin.answer(answer(FRESH));
    assert!(!head.has("proxy-authorization"), "{head:?}");
    assert_eq!(client.read_response().status(), 200);
    let twice = [ADA_BASIC, ADA_BASIC].concat();
    let wrong = [
        "",
        WRONG_BASIC,
        EVE_BASIC,
        "Proxy-Authorization: Basic\r\n",
        "Authorization: Basic YWRhOnNlY3JldA==\r\n",
        &twice,
    ];
    for fields in wrong {
        let mut client = setup.proxy.client();
        for _ in 0..2 {
            let refused = client.ask(setup.head("GET", "/", "1.1", fields));
            assert_eq!(refused.status(), 407, "{fields}");
            let schemes = refused.head.all("proxy-authenticate");
            let expected = [
                "Basic realm=\"Weir\", charset=\"UTF-8\"",
                "Bearer realm=\"Weir\"",
            ];
            assert_eq!(schemes, expected);
            assert_eq!(refused.head.field("cache-control"), Some("no-store"));
            assert_eq!(refused.head.cache_status(), "detail=login");
        }
        // the connection goes on, as clients try without a login first
        let response = client.ask(setup.head("GET", "/", "1.1", ADA_BASIC));
        assert!(response.is_hit(), "{fields}");
    }
    let refused = setup
        .proxy
        .client()
        .ask("CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(refused.status(), 407);
    setup.origin.expect_untouched();
    let counted = |outcome| setup.proxy.count(Metric::Logins(outcome));
    assert_eq!(counted(LoginOutcome::Right), 1 + wrong.len() as u64);
    assert_eq!(counted(LoginOutcome::Wrong), 4);
}

/// RFC 9111 §3.5 is about `Authorization`: what a proxy asks for itself says nothing of a response.
#[test]
fn response_is_shared_by_all_who_have_logged_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::forward_with(asking(folder.path()));
    let mut client = setup.proxy.client();
    client.send(setup.head("GET", "/", "1.1", ADA_BASIC));
    let vary = "Vary: Proxy-Authorization\r\n";
    setup.origin.answer(answer(&[FRESH, vary].concat()));
    client.read_response();
    assert!(ask(&setup, "/", BEARER).is_hit());
    assert!(ask(&setup, "/", ADA_BASIC).is_hit());
    // a private one is not
    for user in [ADA_BASIC, BEARER] {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/private", "1.1", user));
        setup
            .origin
            .answer(answer("Cache-Control: private, max-age=60\r\n"));
        assert!(!client.read_response().is_hit());
    }
}

#[test]
fn requests_behind_one_that_is_verified_keep_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::forward_with(asking(folder.path()));
    let mut client = setup.proxy.client();
    let refused = setup.head("GET", "/1", "1.1", "");
    let asked = setup.head("GET", "/2", "1.1", ADA_BASIC);
    let wrong = setup.head("GET", "/3", "1.1", WRONG_BASIC);
    client.send([&*refused, &asked, &wrong, &refused].concat());
    assert_eq!(client.read_response().status(), 407);
    let (_, head) = setup.origin.answer(answer(FRESH));
    assert!(head.start_line().starts_with("GET /2 "), "{head:?}");
    assert_eq!(client.read_response().status(), 200);
    for _ in 0..2 {
        assert_eq!(client.read_response().status(), 407);
    }
    // content behind a refused head is not read as a request
    let post = setup.head("POST", "/", "1.1", "Content-Length: 5\r\n") + "GET /";
    let mut client = setup.proxy.client();
    let refused = client.ask(post);
    assert_eq!(refused.status(), 407);
    assert_eq!(refused.head.field("connection"), Some("close"));
}

/// Each has its own share of the queue.
#[test]
fn clients_behind_a_trusted_proxy_take_no_places_of_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::forward_with(|config| {
        asking(folder.path())(config);
        // that takes long to verify
        let slow = ADA.replace("$04$", "$09$");
        config.login.users_file = write(&folder.path().join("users"), &slow);
        config.forwarded.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    });
    let asking = |client: &str, number: usize| {
        let login = BASE64_STANDARD.encode(format!("ada:wrong-{client}-{number}"));
        let fields = format!(
            "X-Forwarded-For: 198.51.100.1, {client}\r\nProxy-Authorization: Basic {login}\r\n"
        );
        let mut asking = setup.proxy.client();
        asking.send(setup.head("GET", "/", "1.1", &fields));
        asking
    };
    let many: Vec<_> = (0..9).map(|number| asking("192.0.2.1", number)).collect();
    let mut other = asking("192.0.2.2", 0);
    assert_eq!(other.read_response().status(), 407);
    for mut one in many {
        let status = one.read_response().status();
        assert!(matches!(status, 407 | 503), "{status}");
    }
}

#[test]
fn files_are_read_again_on_reload_and_a_wrong_line_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::forward_with(asking(folder.path()));
    let path = folder.path().join("users");
    let login = |fields: &str| {
        ask(
            &setup,
            "/",
            &format!("Cache-Control: only-if-cached\r\n{fields}"),
        )
    };
    assert_eq!(login(ADA_BASIC).status(), 504);
    assert_eq!(login(EVE_BASIC).status(), 407);
    write(&path, &format!("{ADA}eve:secret\n"));
    let refused = setup.proxy.try_reload(|_| {}).expect_err("a wrong line");
    assert!(
        refused.contains("line 2: the password is not hashed"),
        "{refused}"
    );
    assert!(!refused.contains("secret"), "{refused}");
    assert_eq!(login(ADA_BASIC).status(), 504);
    write(&path, &ADA.replace("ada", "eve"));
    setup.proxy.reload(|_| {});
    // what was remembered is forgotten
    assert_eq!(login(ADA_BASIC).status(), 407);
    assert_eq!(login(EVE_BASIC).status(), 504);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("its owner");
    let refused = setup.proxy.try_reload(|_| {}).expect_err("open to others");
    assert!(refused.contains("its mode is 0644"), "{refused}");
}

#[test]
fn status_407_of_an_origin_is_not_stored() {
    Setup::each(|setup| {
        for _ in 0..2 {
            let answer = answer(FRESH).replace("200 OK", "407 No");
            let (response, _) = setup.fetch("/", &answer);
            assert_eq!(response.status(), 407);
        }
    });
}
