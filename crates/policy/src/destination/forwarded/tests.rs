use super::*;
use alloc::string::String;
use proptest::prelude::*;

fn rules(client: ClientName) -> ForwardedRules {
    ForwardedRules {
        trusted: ["10.0.0.0/8", "fd00::/8"]
            .map(|net| net.parse().unwrap())
            .to_vec(),
        sent: ForwardedField::ALL.to_vec(),
        client,
    }
}

fn hop(client: &str) -> ClientHop<'static> {
    ClientHop {
        client: Some(client.parse().unwrap()),
        identifier: "0f",
        authority: b"a.example:8080",
    }
}

fn lines(text: &'static str) -> Vec<FieldLine<'static>> {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

#[track_caller]
fn check(client: ClientName, from: &str, claims: &'static str, expected: &[&str]) {
    let (rules, hop) = (rules(client), hop(from));
    let claims = lines(claims);
    let values = rules.sent.iter().map(|field| {
        let value = rules.value(*field, &claims, &hop).unwrap_or_default();
        String::from_utf8(value).unwrap()
    });
    assert_eq!(values.collect::<Vec<_>>(), expected, "{claims:?}");
}

const HTTP: &str = "http";
const HOST: &str = "a.example:8080";

#[test]
fn client_is_named_as_told_and_quoted_where_it_is_no_token() {
    let end = ";host=\"a.example:8080\";proto=http";
    let by = |client, from, x: &str, node: &str| {
        check(
            client,
            from,
            "",
            &[x, HTTP, HOST, &format!("for={node}{end}")],
        );
    };
    use ClientName::{Address, AddressAndPort, Obfuscated, Unknown};
    by(Address, "192.0.2.1:5", "192.0.2.1", "192.0.2.1");
    by(
        Address,
        "[2001:db8::1]:5",
        "2001:db8::1",
        "\"[2001:db8::1]\"",
    );
    by(Address, "[::ffff:192.0.2.1]:5", "192.0.2.1", "192.0.2.1");
    by(
        AddressAndPort,
        "192.0.2.1:5",
        "192.0.2.1",
        "\"192.0.2.1:5\"",
    );
    by(
        AddressAndPort,
        "[2001:db8::1]:5",
        "2001:db8::1",
        "\"[2001:db8::1]:5\"",
    );
    by(Obfuscated, "192.0.2.1:5", "unknown", "_0f");
    by(Unknown, "192.0.2.1:5", "unknown", "unknown");
    let without = ClientHop {
        client: None,
        ..hop("192.0.2.1:5")
    };
    let rules = rules(Address);
    assert_eq!(
        rules.value(ForwardedField::XForwardedFor, &[], &without),
        None
    );
    let expected = format!("for=unknown{end}").into_bytes();
    assert_eq!(
        rules.value(ForwardedField::Forwarded, &[], &without),
        Some(expected)
    );
}

#[test]
fn claims_are_extended_and_the_last_protocol_and_host_are_kept() {
    let own = "for=10.0.0.1;host=\"a.example:8080\";proto=http";
    let extended = |claims, expected: [&str; 4]| {
        let forwarded = match expected[3] {
            "" => own.into(),
            before => format!("{before}, {own}"),
        };
        let expected = [expected[0], expected[1], expected[2], &forwarded];
        check(ClientName::Address, "10.0.0.1:5", claims, &expected);
    };
    extended(
        "X-Forwarded-For: 192.0.2.7,, 192.0.2.8 \nx-forwarded-for: 192.0.2.9\nX-Forwarded-Proto: https\nX-Forwarded-Host: b.example\nForwarded: for=192.0.2.7;proto=https, for=\"a,b\"\nFORWARDED: for=c",
        [
            "192.0.2.7, 192.0.2.8, 192.0.2.9, 10.0.0.1",
            "https",
            "b.example",
            "for=192.0.2.7;proto=https, for=\"a,b\", for=c",
        ],
    );
    extended(
        "X-Forwarded-Proto: https, http\nX-Forwarded-Host: b.example\nX-Forwarded-Host: c.example:1",
        ["10.0.0.1", "http", "c.example:1", ""],
    );
    // no value that is none: what the proxy knows itself is sent
    extended(
        "X-Forwarded-Proto: https://\nX-Forwarded-Host: b.example/c",
        ["10.0.0.1", HTTP, HOST, ""],
    );
}

/// Behind an open quote or in the middle of a member, what is added would be part of it.
#[test]
fn members_before_one_that_is_not_valid_are_left_out() {
    let own = "for=10.0.0.1;host=\"a.example:8080\";proto=http";
    for claims in [
        "Forwarded: for=\"192.0.2.7",
        "Forwarded: for=192.0.2.7, for=\"x",
        "Forwarded: for=192.0.2.7, x",
        "Forwarded: for=192.0.2.7\nForwarded: for=x\"",
        "X-Forwarded-For: 192.0.2.7, a b",
        "X-Forwarded-For: 192.0.2.7, \u{e9}",
    ] {
        check(
            ClientName::Address,
            "10.0.0.1:5",
            claims,
            &["10.0.0.1", HTTP, HOST, own],
        );
    }
    let claims = "Forwarded: for=\"x, for=192.0.2.8\nX-Forwarded-For: a b, c";
    let kept = format!("for=192.0.2.8, {own}");
    check(
        ClientName::Address,
        "10.0.0.1:5",
        claims,
        &["c, 10.0.0.1", HTTP, HOST, &kept],
    );
}

#[test]
fn long_chain_is_cut_at_its_far_end() {
    let rules = rules(ClientName::Address);
    let hop = hop("10.0.0.1:5");
    let sent = |members: &[String]| {
        let value = members.join(", ").into_bytes();
        let lines = [FieldLine::new("X-Forwarded-For", &value)];
        let value = rules.value(ForwardedField::XForwardedFor, &lines, &hop);
        String::from_utf8(value.unwrap()).unwrap()
    };
    let numbered = |count| {
        (0..count)
            .map(|number| format!("c{number}"))
            .collect::<Vec<_>>()
    };
    assert!(sent(&numbered(31)).starts_with("c0, "));
    assert!(sent(&numbered(32)).starts_with("c1, "));
    assert_eq!(sent(&numbered(9000)).split(", ").count(), CHAIN_LENGTH_MAX);
    let long = |bytes: usize| ["a".repeat(bytes), "b".into()];
    assert!(sent(&long(CHAIN_BYTES_MAX - 5)).starts_with('a'));
    assert_eq!(sent(&long(CHAIN_BYTES_MAX - 4)), "b, 10.0.0.1");
}

#[test]
fn claims_of_strangers_are_refused_and_other_spellings_of_all() {
    let rules = rules(ClientName::Address);
    let check = |client: &str, name: &str, expected: bool| {
        let client = client.parse().unwrap();
        assert_eq!(rules.refuses(client, name), expected, "{client} {name}");
    };
    for name in CLAIMS {
        check("192.0.2.1", name, true);
        check("192.0.2.1", &name.to_ascii_lowercase(), true);
        for trusted in ["10.9.9.9", "::ffff:10.9.9.9", "fd00::1"] {
            check(trusted, name, false);
            check(trusted, &name.replace('-', "_"), name.contains('-'));
        }
        check("::ffff:192.0.2.1", name, true);
    }
    check("192.0.2.1", "x-forwarded_for", true);
    check("192.0.2.1", "X-Forwarded-Anything", true);
    for name in [
        "X-Forward",
        "Forwarded-For",
        "X-Real-IPs",
        "Via",
        "",
        "x",
        "\u{e9}",
    ] {
        check("192.0.2.1", name, false);
    }
}

#[track_caller]
fn check_variant(claims: &'static str, expected: Option<&str>) {
    let rules = rules(ClientName::Address);
    let variant = rules.variant(&lines(claims), b"a.example");
    let variant = variant.map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(variant.as_deref(), expected, "{claims}");
}

#[test]
fn what_is_said_beside_the_address_selects_a_variant() {
    for plain in [
        "",
        "X-Forwarded-For: 192.0.2.1\nX-Real-IP: 192.0.2.1",
        "X-Forwarded-Proto: http\nX-Forwarded-Host: A.example",
        "Forwarded: for=192.0.2.1;by=x;proto=HTTP, for=y;host=\"a.example\"",
        "X-Forwarded-Port: 443\nConnection: x-forwarded-port",
    ] {
        check_variant(plain, None);
    }
    check_variant(
        "X-Forwarded-Proto: https",
        Some("x-forwarded-proto:https\n"),
    );
    check_variant("X-Forwarded-Port: 80", Some("x-forwarded-port:80\n"));
    check_variant(
        "X-Forwarded-Proto: http\nX-Forwarded-Host: b.example",
        Some("x-forwarded-host:b.example\n"),
    );
    // with or without what this proxy adds; which member says it is a difference
    let https = Some("proto:https\n,\n");
    check_variant("Forwarded: for=x;Proto=https", https);
    check_variant("Forwarded: for=x;proto=https, for=y", https);
    check_variant(
        "Forwarded: for=x;proto=https, for=y;host=a.example;proto=http",
        https,
    );
    check_variant(
        "Forwarded: for=y;proto=http, for=x;proto=https",
        Some("proto:http\n,\nproto:https\n,\n"),
    );
    check_variant("Forwarded: for=x;host=b", Some("host:b\n,\n"));
    check_variant("Forwarded: for=x;secret=s", Some("secret:s\n,\n"));
    // what `Connection` cannot remove
    check_variant(
        "X-Forwarded-Proto: https\nConnection: x-forwarded-proto",
        Some("x-forwarded-proto:https\n"),
    );
}

proptest! {
    /// What a client sends is at most more members before the proxy's own.
    #[test]
    fn own_member_is_the_last_whatever_the_claims_are(
        values in prop::collection::vec("[ -~\t]{0,40}|(for=[a-z\",;\\\\ ]{0,9},?){0,4}", 0..4),
    ) {
        let rules = rules(ClientName::Address);
        let hop = hop("10.0.0.1:5");
        let lines: Vec<_> = values
            .iter()
            .flat_map(|value| ["Forwarded", "X-Forwarded-For"].map(|name| FieldLine::new(name, value.as_bytes())))
            .collect();
        let forwarded = rules.value(ForwardedField::Forwarded, &lines, &hop).unwrap();
        let members: Vec<&[u8]> = list_elements(&forwarded).collect();
        prop_assert!(members.iter().all(|member| element(member).is_some()));
        let last = *members.last().unwrap();
        prop_assert_eq!(last, &b"for=10.0.0.1;host=\"a.example:8080\";proto=http"[..]);
        let x = rules.value(ForwardedField::XForwardedFor, &lines, &hop).unwrap();
        prop_assert!(x == b"10.0.0.1" || x.ends_with(b", 10.0.0.1"));
        let _ = rules.variant(&lines, b"a");
    }
}
