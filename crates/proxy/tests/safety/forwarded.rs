//! For whom a request is forwarded (RFC 7239): what the next hop is told, whose word is believed,
//! and what two users of one cache get.

use crate::support::{Head, RawClient, Setup};
use std::net::Ipv4Addr;
use weir_policy::forwarded::{ClientName, ForwardedField};
use weir_proxy::config::Config;

/// A proxy in front of the gateway, whose word is believed.
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const OWN: &str = "for=127.0.0.1;host=a.example;proto=http";

fn trusting(config: &mut Config) {
    config.forwarded.trusted_proxies = vec!["127.0.0.2".parse().expect("an address")];
}

fn response(fields: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The head that the next hop gets of a request with these fields.
fn forwarded(setup: &Setup, mut client: RawClient, fields: &str) -> Head {
    client.send(setup.head("GET", "/", "1.1", &format!("Pragma: no-cache\r\n{fields}")));
    let (_hop, head) = setup.origin.answer(response("", "ok"));
    client.read_response();
    head
}

/// What the next hop is told: the lines of each of the four fields.
fn told(head: &Head) -> [Vec<&str>; 4] {
    ForwardedField::ALL.map(|field| head.all(field.as_str()))
}

#[test]
fn gateway_tells_its_next_hop_who_asked() {
    let setup = Setup::gateway();
    let head = forwarded(&setup, setup.proxy.client(), "");
    let expected = [
        vec!["127.0.0.1"],
        vec!["http"],
        vec!["a.example"],
        vec![OWN],
    ];
    assert_eq!(told(&head), expected);
    setup
        .proxy
        .reload(|config| config.forwarded.client = ClientName::AddressAndPort);
    let client = setup.proxy.client();
    let port = client.stream.local_addr().unwrap().port();
    let head = forwarded(&setup, client, "");
    let node = format!("for=\"127.0.0.1:{port}\";host=a.example;proto=http");
    assert_eq!(head.all("forwarded"), [node]);
    setup
        .proxy
        .reload(|config| config.forwarded.client = ClientName::Obfuscated);
    let node = |ip| {
        let head = forwarded(&setup, setup.proxy.client_at(ip), "");
        assert_eq!(head.all("x-forwarded-for"), ["unknown"]);
        head.field("forwarded").unwrap().to_owned()
    };
    let one = node(Ipv4Addr::LOCALHOST);
    let name = one
        .strip_prefix("for=_")
        .and_then(|rest| rest.split(';').next());
    let is_hidden = |name: &str| name.len() == 16 && !one.contains("127");
    assert!(name.is_some_and(is_hidden), "{one}");
    assert_eq!(node(Ipv4Addr::LOCALHOST), one);
    assert_ne!(node(PROXY), one);
    setup
        .proxy
        .reload(|config| config.forwarded.gateway_fields = vec![]);
    let head = forwarded(&setup, setup.proxy.client(), "X-Forwarded-For: a\r\n");
    assert!(told(&head).iter().all(Vec::is_empty), "{head:?}");
}

#[test]
fn claims_of_a_client_are_replaced_in_each_of_their_spellings() {
    let setup = Setup::gateway_with(trusting);
    let claims = "X-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 6.6.6.7\r\nX_Forwarded_For: 6.6.6.8\r\n\
                  X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nX-FORWARDED-PORT: 1\r\n\
                  Forwarded: for=6.6.6.6\r\nForwarded: for=\"\r\nX-Real-IP: 6.6.6.6\r\n\
                  X-Forwarded-Prefix: /evil\r\nConnection: x-forwarded-for, forwarded\r\n";
    let head = forwarded(&setup, setup.proxy.client(), claims);
    let expected = [
        vec!["127.0.0.1"],
        vec!["http"],
        vec!["a.example"],
        vec![OWN],
    ];
    assert_eq!(told(&head), expected);
    for name in [
        "x_forwarded_for",
        "x-forwarded-port",
        "x-real-ip",
        "x-forwarded-prefix",
    ] {
        assert!(!head.has(name), "{head:?}");
    }
}

#[test]
fn claims_of_a_trusted_proxy_are_sent_on_with_the_proxy_added() {
    let setup = Setup::gateway_with(trusting);
    let claims = "X-Forwarded-For: 192.0.2.7\r\nX_Forwarded_For: 6.6.6.8\r\nX-Real-IP: 192.0.2.7\r\n\
                  X-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\nX-Forwarded-Port: 443\r\n\
                  Forwarded: for=192.0.2.7;proto=https\r\nConnection: x-forwarded-for\r\n";
    let head = forwarded(&setup, setup.proxy.client_at(PROXY), claims);
    let own = OWN.replace("0.1", "0.2");
    let expected = [
        vec!["192.0.2.7, 127.0.0.2".to_owned()],
        vec!["https".into()],
        vec!["b.example".into()],
        vec![format!("for=192.0.2.7;proto=https, {own}")],
    ];
    assert_eq!(told(&head), expected);
    assert_eq!(head.field("x-real-ip"), Some("192.0.2.7"));
    assert_eq!(head.field("x-forwarded-port"), Some("443"));
    assert!(!head.has("x_forwarded_for"), "{head:?}");
    // at once after a reload
    setup
        .proxy
        .reload(|config| config.forwarded.trusted_proxies = vec![]);
    let head = forwarded(&setup, setup.proxy.client_at(PROXY), claims);
    assert_eq!(head.all("x-forwarded-for"), ["127.0.0.2"]);
}

/// What is known of a head does not say whose word it is.
#[test]
fn claims_that_a_trusted_proxy_has_sent_before_are_believed_of_no_other_client() {
    let setup = Setup::gateway_with(trusting);
    let claims = "X-Forwarded-For: 192.0.2.7\r\n";
    // it is remembered by the third time
    for _ in 0..3 {
        let head = forwarded(&setup, setup.proxy.client_at(PROXY), claims);
        assert_eq!(head.all("x-forwarded-for"), ["192.0.2.7, 127.0.0.2"]);
    }
    let head = forwarded(&setup, setup.proxy.client(), claims);
    assert_eq!(head.all("x-forwarded-for"), ["127.0.0.1"]);
}

#[test]
fn claims_in_the_trailer_section_go_no_further() {
    let setup = Setup::gateway_with(trusting);
    let mut client = setup.proxy.client_at(PROXY);
    let trailers = "X-Forwarded-For: 6.6.6.6\r\nx_forwarded_host: evil\r\nForwarded: for=a\r\n\
                    X-Forwarded-Uri: /a\r\nX_Forwarded_Client_Cert: b\r\nX-Own: 1\r\n";
    let head = setup.head("POST", "/", "1.1", "Transfer-Encoding: chunked\r\n");
    client.send(head + "2\r\nok\r\n0\r\n" + trailers + "\r\n");
    let mut hop = setup.origin.accept();
    assert_eq!(hop.read_head().all("x-forwarded-for"), ["127.0.0.2"]);
    assert_eq!(hop.read_chunks().1, "X-Own: 1\r\n");
    hop.send(response("", "ok"));
    client.read_response();
}

#[test]
fn forward_proxy_says_nothing_unless_it_is_told_to() {
    let setup = Setup::forward();
    let claims = "X-Forwarded-For: 192.0.2.7\r\nX_Forwarded_For: 1\r\n";
    let head = forwarded(&setup, setup.proxy.client(), claims);
    assert!(!head.has("x-forwarded-for") && !head.has("x_forwarded_for"));
    assert!(!head.has("forwarded") && !head.has("x-forwarded-host"));
    setup.proxy.reload(trusting);
    let head = forwarded(&setup, setup.proxy.client_at(PROXY), claims);
    assert_eq!(head.all("x-forwarded-for"), ["192.0.2.7"]);
    assert!(!head.has("x_forwarded_for") && !head.has("forwarded"));
    setup.proxy.reload(|config| {
        config.forwarded.forward_fields = vec![ForwardedField::XForwardedFor];
    });
    let head = forwarded(&setup, setup.proxy.client(), claims);
    assert_eq!(head.all("x-forwarded-for"), ["127.0.0.1"]);
    assert!(!head.has("x_forwarded_for") && !head.has("forwarded"));
}

/// What is stored depends on what the next hop got, not on what a client has sent.
#[test]
fn response_that_varies_on_the_client_is_for_that_client_alone() {
    let setup = Setup::gateway_with(trusting);
    for vary in ["X-Forwarded-For", "Forwarded"] {
        let path = format!("/{vary}");
        let get = |fields: &str| setup.head("GET", &path, "1.1", fields);
        let mut victim = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 3));
        victim.send(get(""));
        setup
            .origin
            .answer(response(&format!("Vary: {vary}\r\n"), "of 127.0.0.3"));
        victim.read_response();
        assert!(
            setup
                .proxy
                .client_at(Ipv4Addr::new(127, 0, 0, 3))
                .ask(get(""))
                .is_hit()
        );
        for claim in [
            "",
            "X-Forwarded-For: 127.0.0.3\r\n",
            "Forwarded: for=127.0.0.3;host=a.example;proto=http\r\n",
            "X-Forwarded-For: 127.0.0.3\r\nConnection: x-forwarded-for\r\n",
        ] {
            let mut other = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 4));
            other.send(get(&format!("Pragma: no-cache\r\n{claim}")));
            setup
                .origin
                .answer(response(&format!("Vary: {vary}\r\n"), "of 127.0.0.4"));
            assert_eq!(other.read_response().text(), "of 127.0.0.4", "{claim}");
            let again = setup
                .proxy
                .client_at(Ipv4Addr::new(127, 0, 0, 4))
                .ask(get(claim));
            assert!(again.is_hit() && again.text() == "of 127.0.0.4", "{claim}");
        }
        let again = setup
            .proxy
            .client_at(Ipv4Addr::new(127, 0, 0, 3))
            .ask(get(""));
        assert_eq!(again.text(), "of 127.0.0.3");
        // behind a trusted proxy, it is that of the client that the proxy names
        let mut behind = setup.proxy.client_at(PROXY);
        behind.send(get(
            "X-Forwarded-For: 127.0.0.3\r\nForwarded: for=127.0.0.3\r\n",
        ));
        setup.origin.answer(response("", "of both"));
        assert_eq!(behind.read_response().text(), "of both");
    }
}

/// Origins redirect to `https`, and make links of the host, without a word by `Vary`.
#[test]
fn response_is_for_the_protocol_and_host_that_its_next_hop_was_told() {
    let setup = Setup::gateway_with(trusting);
    let (_, _hop) = setup.fetch("/", &response("", "plain"));
    let ask = |fields: &str, text: Option<&str>| {
        let mut client = setup.proxy.client_at(PROXY);
        client.send(setup.head("GET", "/", "1.1", fields));
        if let Some(text) = text {
            setup.origin.answer(response("", text));
        }
        let response = client.read_response();
        assert_eq!(response.is_hit(), text.is_none(), "{fields}");
        response.text()
    };
    let kinds = [
        "X-Forwarded-Proto: https\r\n",
        "X-Forwarded-Host: b.example\r\n",
        "X-Forwarded-Port: 8443\r\n",
        "Forwarded: for=a;host=c.example\r\n",
        "Forwarded: for=a;host=d.example;proto=https\r\n",
    ];
    for fields in kinds {
        ask(fields, Some(fields));
    }
    for fields in kinds {
        assert_eq!(ask(fields, None), fields);
        // for each client of the proxy
        let other = match fields.strip_prefix("Forwarded: for=a") {
            Some(rest) => format!("Forwarded: for=192.0.2.1{rest}"),
            None => format!("X-Forwarded-For: 192.0.2.1\r\n{fields}"),
        };
        assert_eq!(ask(&other, None), fields);
        // a client that claims it gets what others get
        let response = setup
            .proxy
            .client()
            .ask(setup.head("GET", "/", "1.1", fields));
        assert!(response.is_hit(), "{fields}");
        assert_eq!(response.text(), "plain", "{fields}");
    }
    // the next hop is told the same in both families
    let https = "X-Forwarded-Proto: https\r\n";
    assert_eq!(ask("Forwarded: for=a;proto=https\r\n", None), https);
    for plain in [
        "X-Forwarded-Proto: http\r\nX-Forwarded-Host: A.example\r\n",
        // of several the last is sent, which the trusted proxy has written
        "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n",
        "Forwarded: for=a;proto=https, !!!\r\n",
    ] {
        assert_eq!(ask(plain, None), "plain", "{plain}");
    }
    assert_eq!(
        setup.proxy.purge("http://a.example/"),
        1 + kinds.len() as u64
    );
}

#[test]
fn what_was_stored_before_a_proxy_is_trusted_is_not_for_another_protocol() {
    let setup = Setup::gateway();
    let (_, _hop) = setup.fetch("/", &response("", "plain"));
    setup.proxy.reload(trusting);
    let https = setup.head("GET", "/", "1.1", "X-Forwarded-Proto: https\r\n");
    let mut client = setup.proxy.client_at(PROXY);
    assert!(client.ask(setup.get("/")).is_hit());
    client.send(&https);
    setup.origin.answer(response("", "https"));
    assert_eq!(client.read_response().text(), "https");
    assert!(client.ask(&https).is_hit());
}

/// Requests of two protocols do not wait for one response.
#[test]
fn requests_for_other_protocols_are_not_collapsed() {
    let setup = Setup::gateway_with(trusting);
    let mut plain = setup.proxy.client_at(PROXY);
    plain.send(setup.get("/"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let mut https = setup.proxy.client_at(PROXY);
    https.send(setup.head("GET", "/", "1.1", "X-Forwarded-Proto: https\r\n"));
    hop.send(response("", "plain"));
    assert_eq!(plain.read_response().text(), "plain");
    setup.origin.answer(response("", "https"));
    assert_eq!(https.read_response().text(), "https");
}

/// A rule names the client itself; what it puts there is the operator's word.
#[test]
fn field_that_a_rule_sets_is_not_taken_for_a_claim() {
    let setup = Setup::gateway_with(|config| {
        let rules = r#"[{"request": ["set X-Real-IP: {client}", "set X-Forwarded-Port: 80"]}]"#;
        config.rules = serde_json::from_str(rules).unwrap();
    });
    let claims = "X-Real-IP: 6.6.6.6\r\nX-Forwarded-For: 6.6.6.6\r\n";
    let head = forwarded(&setup, setup.proxy.client(), claims);
    assert_eq!(head.all("x-real-ip"), ["127.0.0.1"]);
    assert_eq!(head.all("x-forwarded-port"), ["80"]);
    assert_eq!(head.all("x-forwarded-for"), ["127.0.0.1"]);
}
