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
        scheme: Scheme::Http,
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
fn lines_of_a_request_without_claims_are_the_values_that_are_made_of_none() {
    use ClientName::{Address, AddressAndPort, Obfuscated, Unknown};
    let clients = ["192.0.2.1:5", "[2001:db8::1]:5", "[::ffff:192.0.2.1]:5"].map(Some);
    for (name, client) in [Address, AddressAndPort, Obfuscated, Unknown]
        .into_iter()
        .flat_map(|name| clients.into_iter().chain([None]).map(move |it| (name, it)))
    {
        let rules = rules(name);
        let hop = ClientHop {
            client: client.map(|client| client.parse().unwrap()),
            ..hop("192.0.2.1:5")
        };
        let mut expected = String::new();
        for field in &rules.sent {
            if let Some(value) = rules.value(*field, &[], &hop) {
                let value = String::from_utf8(value).unwrap();
                expected += &format!("{}: {value}\r\n", field.as_str());
            }
        }
        let mut out = Vec::new();
        rules.write_own(&hop, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{client:?}");
    }
}

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
        [
            "10.0.0.1",
            "http",
            "c.example:1",
            "for=unknown;host=\"c.example:1\"",
        ],
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
    for name in [
        "Forwarded",
        "X-Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Port",
        "X-Forwarded-Anything",
        "X-Real-IP",
    ] {
        check("192.0.2.1", name, true);
        check("192.0.2.1", &name.to_ascii_lowercase(), true);
        for trusted in ["10.9.9.9", "::ffff:10.9.9.9", "fd00::1"] {
            check(trusted, name, false);
            check(trusted, &name.replace('-', "_"), name.contains('-'));
        }
        check("::ffff:192.0.2.1", name, true);
    }
    for name in [
        "x-forwarded_for",
        "X.Forwarded.For",
        "X!Real~IP",
        "Forwarded-For",
        "FORWARDED.HOST",
    ] {
        check("192.0.2.1", name, true);
    }
    check("10.9.9.9", "X.Forwarded.For", true);
    for name in [
        "X-Forward",
        "Forward",
        "Forwardedness",
        "X-Real-IPs",
        "Via",
        "",
        "x",
        "\u{e9}",
    ] {
        check("192.0.2.1", name, false);
    }
}

/// What is sent for `claims` by a client of 10.0.0.1.
fn sent(rules: &ForwardedRules, claims: &[FieldLine<'_>]) -> Vec<(String, Vec<u8>)> {
    let hop = ClientHop {
        authority: b"a.example",
        scheme: Scheme::Http,
        ..hop("10.0.0.1:5")
    };
    let others = claims.iter().filter(|it| rules.field(it.name).is_none());
    let others = others.map(|it| (it.name.to_owned(), it.value.to_vec()));
    let made = rules.sent.iter().filter_map(|field| {
        let value = rules.value(*field, claims, &hop)?;
        Some((field.as_str().to_owned(), value))
    });
    others.chain(made).collect()
}

/// The variant of what is sent.
fn variant(sent: &[(String, Vec<u8>)]) -> Option<String> {
    let lines: Vec<_> = sent
        .iter()
        .map(|(name, value)| FieldLine::new(name, value))
        .collect();
    let variant = rules(ClientName::Address).variant(&lines, b"a.example", Scheme::Http);
    variant.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[track_caller]
fn check_variant(claims: &'static str, expected: Option<&str>) {
    let sent = sent(&rules(ClientName::Address), &lines(claims));
    assert_eq!(variant(&sent).as_deref(), expected, "{claims}");
}

const OWN: &str = "member\nparameter host:a.example\nparameter proto:http\n";

#[test]
fn what_is_said_beside_the_address_selects_a_variant() {
    for plain in [
        "",
        "X-Forwarded-For: 192.0.2.1\nX-Real-IP: 192.0.2.1",
        "X-Forwarded-Proto: http\nX-Forwarded-Host: A.example",
        "Forwarded: for=192.0.2.1;by=x;proto=HTTP, for=y;host=\"a.example\"",
    ] {
        check_variant(plain, None);
    }
    let https = format!("field x-forwarded-proto:https\nmember\nparameter proto:https\n{OWN}");
    check_variant("X-Forwarded-Proto: https", Some(&https));
    check_variant("X-Forwarded-Port: 80", Some("field x-forwarded-port:80\n"));
    check_variant(
        "X-Forwarded-Proto: http\nX-Forwarded-Host: b.example",
        Some(&format!(
            "field x-forwarded-host:b.example\nmember\nparameter host:b.example\n{OWN}"
        )),
    );
    let forwarded = |claims: &'static str, said: &str| {
        check_variant(claims, Some(&format!("{said}{OWN}")));
    };
    forwarded(
        "Forwarded: for=x;host=b",
        "field x-forwarded-host:b\nmember\nparameter host:b\n",
    );
    forwarded("Forwarded: for=x;secret=s", "member\nparameter secret:s\n");
    // which member says it is a difference, from both ends
    let https = "member\nparameter proto:https\n";
    let proto = "field x-forwarded-proto:https\n";
    forwarded("Forwarded: for=x;Proto=https", &format!("{proto}{https}"));
    forwarded(
        "Forwarded: for=x;proto=https, for=y",
        &format!("{https}member\n"),
    );
    forwarded(
        "Forwarded: for=y\nForwarded: for=x;proto=https",
        &format!("{proto}member\n{https}"),
    );
    // what `Connection` cannot remove
    check_variant(
        "X-Forwarded-Proto: https\nConnection: x-forwarded-proto",
        Some(&format!(
            "field x-forwarded-proto:https\nmember\nparameter proto:https\n{OWN}"
        )),
    );
}

/// A client behind a trusted proxy writes what stands before that proxy's own word.
#[test]
fn claims_that_are_not_sent_select_nothing() {
    check_variant("X-Forwarded-Proto: https\nX-Forwarded-Proto: http", None);
    check_variant("X-Forwarded-Host: b.example, a.example", None);
    check_variant(
        "X-Forwarded-Proto: http\nX-Forwarded-Proto: https",
        Some(&format!(
            "field x-forwarded-proto:https\nmember\nparameter proto:https\n{OWN}"
        )),
    );
    check_variant(
        "Forwarded: for=x;proto=https, !!!, for=9.9.9.9;proto=http",
        None,
    );
    check_variant("Forwarded: for=x;host=evil.example, !!!", None);
    let sent_for = |members: String| {
        let line = [FieldLine::new("Forwarded", members.as_bytes())];
        variant(&sent(&rules(ClientName::Address), &line))
    };
    let usual = ", for=9.9.9.9;proto=http".repeat(CHAIN_LENGTH_MAX);
    assert_eq!(sent_for(format!("for=x;proto=https{usual}")), None);
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
        let _ = rules.variant(&lines, b"a", Scheme::Http);
    }

    /// Members without addresses, so that what is sent is what may differ.
    #[test]
    fn requests_of_one_variant_are_sent_with_the_same_words(
        one in prop::collection::vec((0..CLAIMED.len(), 0..CLAIMED.len()), 0..4),
        other in prop::collection::vec((0..CLAIMED.len(), 0..CLAIMED.len()), 0..4),
    ) {
        let rules = rules(ClientName::Address);
        let sent = |claims: &[(usize, usize)]| {
            let values: Vec<_> = claims.iter().map(|(first, second)| {
                let (name, first) = CLAIMED[*first];
                (name, format!("{first}, {}", CLAIMED[*second].1))
            }).collect();
            let lines: Vec<_> = values.iter().map(|(name, value)| FieldLine::new(name, value.as_bytes())).collect();
            let sent = sent(&rules, &lines);
            (variant(&sent), sent)
        };
        let ((one, one_sent), (other, other_sent)) = (sent(&one), sent(&other));
        if one == other {
            // each may say as often as it likes what is so of any request
            let usual = ["http", "a.example", "proto=http", "10.0.0.1", "for=10.0.0.1;host=a.example;proto=http"];
            let unusual = |sent: Vec<(String, Vec<u8>)>| {
                let lines = sent.into_iter().map(|(name, value)| (name, String::from_utf8(value).unwrap()));
                let mut lines: Vec<_> = lines.collect();
                lines.retain(|(_, value)| !value.split(", ").all(|it| usual.contains(&it)));
                lines
            };
            prop_assert_eq!(unusual(one_sent), unusual(other_sent));
        }
    }
}

const CLAIMED: [(&str, &str); 8] = [
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Proto", "http"),
    ("X-Forwarded-Host", "b.example"),
    ("X-Forwarded-Host", "a.example"),
    ("X-Forwarded-Port", "80"),
    ("Forwarded", "proto=https"),
    ("Forwarded", "proto=http"),
    ("Forwarded", "!!!"),
];

#[test]
fn family_that_a_trusted_proxy_does_not_send_says_the_same() {
    let own = "for=10.0.0.1;host=\"a.example:8080\";proto=http";
    let both = |claims, x_for: &str, proto: &str, host: &str, members: &str| {
        let forwarded = format!("{members}{own}");
        let expected = [x_for, proto, host, &forwarded];
        check(ClientName::Address, "10.0.0.1:5", claims, &expected);
    };
    let members = "for=192.0.2.1;host=b.example;proto=https, ";
    both(
        "X-Forwarded-For: 192.0.2.1\nX-Forwarded-Proto: https\nX-Forwarded-Host: b.example",
        "192.0.2.1, 10.0.0.1",
        "https",
        "b.example",
        members,
    );
    both(
        "Forwarded: for=192.0.2.1;host=b.example;proto=https",
        "192.0.2.1, 10.0.0.1",
        "https",
        "b.example",
        members,
    );
    // the nearest that is no trusted proxy's: what stands before it may be of that client
    both(
        "X-Forwarded-For: 203.0.113.9, [2001:db8::1]:80, 10.0.0.7\nX-Forwarded-Proto: https",
        "203.0.113.9, [2001:db8::1]:80, 10.0.0.7, 10.0.0.1",
        "https",
        HOST,
        "for=\"[2001:db8::1]\";proto=https, ",
    );
    both(
        "X-Forwarded-Proto: https",
        "10.0.0.1",
        "https",
        HOST,
        "for=unknown;proto=https, ",
    );
    both("X-Forwarded-Proto: http", "10.0.0.1", HTTP, HOST, "");
    // what a client of the trusted proxy says before it is not believed
    both(
        "Forwarded: for=evil;host=evil.example;proto=https, for=\"192.0.2.1:7\"",
        "unknown, 192.0.2.1, 10.0.0.1",
        HTTP,
        HOST,
        "for=evil;host=evil.example;proto=https, for=\"192.0.2.1:7\", ",
    );
    // both are taken as they are
    both(
        "X-Forwarded-Proto: https\nForwarded: for=192.0.2.1",
        "10.0.0.1",
        "https",
        HOST,
        "for=192.0.2.1, ",
    );
}

#[test]
fn request_of_a_trusted_proxy_counts_for_the_client_that_this_has_seen() {
    let counted = |client: &str, claims: &'static str, expected: &str| {
        let rules = rules(ClientName::Address);
        let counted = rules.counted_client(client.parse().unwrap(), &lines(claims));
        assert_eq!(counted.to_string(), expected, "{client} {claims}");
    };
    counted("10.0.0.1", "X-Forwarded-For: 192.0.2.1", "192.0.2.1");
    counted(
        "10.0.0.1",
        "Forwarded: for=\"[2001:db8::1]:5\"",
        "2001:db8::1",
    );
    // what that client has written stands before it
    counted(
        "10.0.0.1",
        "X-Forwarded-For: 203.0.113.9, 192.0.2.1, 10.0.0.7",
        "192.0.2.1",
    );
    counted(
        "10.0.0.1",
        "X-Forwarded-For: 192.0.2.1\nForwarded: for=192.0.2.2",
        "192.0.2.1",
    );
    for claims in [
        "",
        "X-Forwarded-For: 192.0.2.1, unknown",
        "X-Forwarded-For: 10.0.0.7",
    ] {
        counted("10.0.0.1", claims, "10.0.0.1");
    }
    // of others nothing is believed
    counted("192.0.2.7", "X-Forwarded-For: 192.0.2.1", "192.0.2.7");
}

proptest! {
    /// However many addresses a client writes before that which the trusted proxy has seen, one
    /// member is made, of that one; so they select no variant. It is read as the same.
    #[test]
    fn translation_is_of_the_address_that_the_trusted_proxy_has_seen(
        spoofed in prop::collection::vec("[a-zA-Z0-9.:_-]{1,20}", 0..8),
        octets in any::<[u8; 3]>(),
        proto in prop::sample::select(vec!["http", "https"]),
    ) {
        let (rules, hop) = (rules(ClientName::Address), hop("10.0.0.1:5"));
        let seen = IpAddr::from([192, octets[0], octets[1], octets[2]]).to_string();
        let chain = spoofed.into_iter().chain([seen.clone()]).collect::<Vec<_>>().join(", ");
        let claims = [
            FieldLine::new("X-Forwarded-For", chain.as_bytes()),
            FieldLine::new("X-Forwarded-Proto", proto.as_bytes()),
        ];
        let forwarded = rules.value(ForwardedField::Forwarded, &claims, &hop).unwrap();
        let members: Vec<&[u8]> = list_elements(&forwarded).collect();
        prop_assert_eq!(members.len(), 2);
        let claimed = [FieldLine::new("Forwarded", members[0])];
        let read = |field| String::from_utf8(rules.value(field, &claimed, &hop).unwrap()).unwrap();
        prop_assert_eq!(read(ForwardedField::XForwardedFor), format!("{seen}, 10.0.0.1"));
        prop_assert_eq!(read(ForwardedField::XForwardedProto), proto);
        let said = |lines: &[FieldLine<'_>]| variant(&sent(&rules, lines));
        let alone = [FieldLine::new("X-Forwarded-For", seen.as_bytes()), claims[1]];
        prop_assert_eq!(said(&claims), said(&alone));
    }

    #[test]
    fn translated_fields_are_valid_and_bounded_whatever_is_claimed(
        name in proptest::sample::select(ForwardedField::ALL.to_vec()),
        text in "[ -~]{0,3000}",
    ) {
        let (rules, hop) = (rules(ClientName::Address), hop("10.0.0.1:5"));
        let claims = [FieldLine::new(name.as_str(), text.as_bytes())];
        for field in ForwardedField::ALL {
            let value = rules.value(field, &claims, &hop).unwrap_or_default();
            prop_assert!(value.len() <= CHAIN_BYTES_MAX + 200 || field == name, "{}", value.len());
            prop_assert!(value.iter().all(|byte| (b' '..=b'~').contains(byte)));
        }
        let forwarded = rules.value(ForwardedField::Forwarded, &claims, &hop).unwrap();
        prop_assert!(list_elements(&forwarded).all(|member| element(member).is_some()));
    }
}

#[test]
fn client_that_speaks_https_is_told_so_and_selects_no_variant() {
    let rules = rules(ClientName::Address);
    let hop = ClientHop {
        scheme: Scheme::Https,
        authority: b"a.example",
        ..hop("192.0.2.1:5")
    };
    let sent: Vec<(&str, Vec<u8>)> = rules
        .sent
        .iter()
        .filter_map(|field| Some((field.as_str(), rules.value(*field, &[], &hop)?)))
        .collect();
    let lines: Vec<FieldLine<'_>> = sent
        .iter()
        .map(|(name, value)| FieldLine::new(name, value))
        .collect();
    let told = |name| lines_named(&lines, name).next();
    assert_eq!(told("x-forwarded-proto"), Some(&b"https"[..]));
    let forwarded = &b"for=192.0.2.1;host=a.example;proto=https"[..];
    assert_eq!(told("forwarded"), Some(forwarded));
    assert_eq!(rules.variant(&lines, b"a.example", Scheme::Https), None);
    assert!(rules.variant(&lines, b"a.example", Scheme::Http).is_some());
}
