//! Which certificate a client gets, and for which hosts it may ask then.

use super::{Gateway, LOCATIONS, expect_handshakes, s_client};
use crate::support::{Config, Curl, Issued, KeyKind, Nginx, Weir};

#[test]
fn client_gets_the_certificate_for_the_name_that_it_can_verify_soonest() {
    let folder = tempfile::tempdir().expect("a folder");
    let issue = |name, hosts: &[&str], kind| Issued::new(folder.path(), name, hosts, kind);
    let default = issue("default", &["other.test", "192.0.2.7"], KeyKind::Ecdsa);
    let rsa = issue("rsa", &["a.test"], KeyKind::Rsa);
    let ecdsa = issue("ecdsa", &["a.test"], KeyKind::Ecdsa);
    let wildcard = issue("wildcard", &["*.a.test"], KeyKind::Rsa);
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::gateway(&[&nginx.origin()]).tls(&[&default, &rsa, &ecdsa, &wildcard]);
    let weir = Weir::serve(&config);
    // and an operator is told which one that is, and of which file
    for (host, files, is_for_it) in [
        ("A.Test", &[&ecdsa, &rsa][..], true),
        ("www.a.test", &[&wildcard], true),
        ("unknown.test", &[&default], false),
        ("127.0.0.1", &[&default], false),
        ("192.0.2.7", &[&default], true),
    ] {
        let path = format!("/explain?format=json&url=https://{host}/");
        let said = weir.ask("GET", &path).expect(200).text();
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let problem = said["certificate_problem"].as_str();
        assert_eq!(problem.is_none(), is_for_it, "{host}: {problem:?}");
        let said = said["certificates"].as_array().expect("a list").iter();
        let said: Vec<&str> = said.filter_map(|it| it["from"].as_str()).collect();
        let expected = files
            .iter()
            .map(|issued| issued.chain.display().to_string());
        assert_eq!(said, expected.collect::<Vec<_>>(), "{host}");
    }
    let all = weir.ask("GET", "/certificates").expect(200).text();
    assert_eq!(all.lines().count(), 5, "{all}");
    assert!(all.contains("*.a.test"), "{all}");
    assert!(all.contains("other.test, 192.0.2.7"), "{all}");
    let check = |arguments: &[&str], expected: &str| {
        let said = s_client(weir.address(), arguments);
        assert!(
            said.contains(&format!("subject=CN = {expected}\n")),
            "{arguments:?}: {said}"
        );
    };
    check(&["-servername", "a.test"], "ecdsa");
    check(&["-servername", "A.Test"], "ecdsa");
    check(
        &["-servername", "a.test", "-sigalgs", "RSA-PSS+SHA256"],
        "rsa",
    );
    check(
        &[
            "-servername",
            "a.test",
            "-tls1_2",
            "-cipher",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ],
        "rsa",
    );
    check(&["-servername", "www.a.test"], "wildcard");
    check(&["-servername", "x.y.a.test"], "default");
    check(&["-servername", "unknown.test"], "default");
    check(&["-noservername"], "default");
    // only an RSA signature can be verified, and the certificate has none
    let said = s_client(
        weir.address(),
        &["-servername", "other.test", "-sigalgs", "RSA-PSS+SHA256"],
    );
    assert!(said.contains("alert access denied"), "{said}");
    expect_handshakes(&weir, "no-certificate", 1);
}

#[test]
fn session_is_resumed_for_its_own_name_alone() {
    let gateway = Gateway::start();
    let path = gateway.folder.path().join("session");
    let path = path.to_string_lossy();
    for version in ["-tls1_2", "-tls1_3"] {
        let connect = |host: &str, session: [&str; 2]| {
            let arguments = [version, "-servername", host, session[0], session[1]];
            s_client(gateway.weir.address(), &arguments)
        };
        let said = connect("a.test", ["-sess_out", &path]);
        assert!(said.contains("New, "), "{said}");
        // on either worker
        for _ in 0..8 {
            let said = connect("a.test", ["-sess_in", &path]);
            assert!(said.contains("Reused, "), "{said}");
        }
        let said = connect("b.test", ["-sess_in", &path]);
        assert!(said.contains("New, "), "{said}");
        // a reload keeps the keys of tickets
        gateway.weir.ask("POST", "/reload").expect(200);
        let said = connect("a.test", ["-sess_in", &path]);
        assert!(said.contains("Reused, "), "{said}");
    }
    gateway.expect_handshakes("resumed", 18);
}

#[test]
fn key_of_session_tickets_is_forgotten_after_two_periods() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "a", &["a.test"], KeyKind::Ecdsa);
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::gateway(&[&nginx.origin()]);
    let config = config.tls_with(&[&issued], ", ticket_rotation = \"1s\"");
    let weir = Weir::serve(&config);
    let path = folder.path().join("session");
    let path = path.to_string_lossy();
    let said = s_client(
        weir.address(),
        &["-servername", "a.test", "-sess_out", &path],
    );
    assert!(said.contains("New, "), "{said}");
    // other sessions go on meanwhile: keys change when tickets are made
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    loop {
        let said = s_client(
            weir.address(),
            &["-servername", "a.test", "-sess_in", &path],
        );
        if said.contains("New, ") {
            break;
        }
        assert!(std::time::Instant::now() < until, "it is never forgotten");
    }
}

#[test]
fn request_for_a_host_that_the_certificate_is_not_for_gets_421() {
    let gateway = Gateway::start();
    let ask = |host: &str| {
        let curl = gateway.curl().field(&format!("Host: {host}"));
        curl.fetch("https://a.test/cached").reply()
    };
    assert_eq!(ask("a.test").status(), 200);
    // one that the same certificate is for: HTTP/2 has such requests on one connection
    assert_eq!(ask("b.test").status(), 200);
    assert_eq!(ask("B.TEST:443").status(), 200);
    let refused = ask("c.test").expect(421);
    assert!(
        refused.field("proxy-status").contains("http_request_error"),
        "{}",
        refused.head
    );
    // a name that only the default certificate is for, which it has not called
    let to = format!("::{}", gateway.weir.address());
    let unknown = |host: &str| {
        let curl = Curl::direct().args(["-k", "--connect-to", &to, "-H", &format!("Host: {host}")]);
        curl.fetch("https://unknown.test/cached").reply().status()
    };
    assert_eq!(unknown("unknown.test"), 200);
    assert_eq!(unknown("c.test"), 421);
    // a client that names no host, such as one that checks whether this one is well
    let url = format!("https://{}/cached", gateway.weir.address());
    Curl::direct().args(["-k"]).fetch(&url).reply().expect(200);
    // the scheme of a whole URL is that of the connection
    let target = |url: &str| {
        let curl = gateway.curl().args(["--http1.1", "--request-target", url]);
        curl.fetch("https://a.test/").reply().status()
    };
    assert_eq!(target("https://a.test/cached"), 200);
    assert_eq!(target("http://a.test/cached"), 421);
    assert_eq!(target("https://c.test/cached"), 421);
}

#[test]
fn head_that_came_before_gets_421_on_a_connection_for_another_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = Issued::new(folder.path(), "c", &["c.test"], KeyKind::Ecdsa);
    let gateway = Gateway::with_certificates(LOCATIONS, &[&other]);
    let to = format!("::{}", gateway.weir.address());
    // the same bytes, on a connection for the host of the URL
    let ask = |url: &str| {
        let options = ["-k", "--http1.1", "--connect-to", &to, "-H", "Host: c.test"];
        Curl::direct().args(options).fetch(url).reply().status()
    };
    // more than once for each worker: then it is known
    for _ in 0..20 {
        assert_eq!(ask("https://c.test/cached"), 200);
        assert_eq!(ask("https://a.test/cached"), 421);
    }
}
