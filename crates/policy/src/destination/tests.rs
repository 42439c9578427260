use super::*;

fn rules(allow: &[&str], deny: &[&str]) -> DestinationRules {
    let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    DestinationRules {
        allow: nets(allow),
        deny: nets(deny),
        deny_default: DenyDefault::Special,
    }
}

/// `expected` is empty for an open address.
fn check_by(rules: &DestinationRules, address: &str, expected: &str) {
    let denied = rules.check(address.parse().unwrap()).err();
    let why = denied.map_or("", |denied| denied.why.as_str());
    assert_eq!(why, expected, "{address}");
}

fn check(address: &str, expected: &str) {
    check_by(&DestinationRules::default(), address, expected);
}

/// The last open address before a block, its first, its last, the first open one after, and what it
/// is; `-`: the neighbour is closed too.
const IPV4_BLOCKS: &str = "
    -                0.0.0.0       0.255.255.255    1.0.0.0        unspecified
    9.255.255.255    10.0.0.0      10.255.255.255   11.0.0.0       private
    100.63.255.255   100.64.0.0    100.127.255.255  100.128.0.0    shared-address-space
    126.255.255.255  127.0.0.0     127.255.255.255  128.0.0.0      loopback
    169.253.255.255  169.254.0.0   169.254.255.255  169.255.0.0    link-local
    172.15.255.255   172.16.0.0    172.31.255.255   172.32.0.0     private
    191.255.255.255  192.0.0.0     192.0.0.255      192.0.1.0      protocol-assignment
    192.0.1.255      192.0.2.0     192.0.2.255      192.0.3.0      documentation
    192.88.98.255    192.88.99.0   192.88.99.255    192.88.100.0   protocol-assignment
    192.167.255.255  192.168.0.0   192.168.255.255  192.169.0.0    private
    198.17.255.255   198.18.0.0    198.19.255.255   198.20.0.0     benchmarking
    198.51.99.255    198.51.100.0  198.51.100.255   198.51.101.0   documentation
    203.0.112.255    203.0.113.0   203.0.113.255    203.0.114.0    documentation
    223.255.255.255  224.0.0.0     239.255.255.255  -              multicast
    -                240.0.0.0     255.255.255.254  -              reserved
    -                255.255.255.255  255.255.255.255  -           broadcast";

#[test]
fn special_ipv4_blocks_are_denied_up_to_their_exact_bounds() {
    for line in IPV4_BLOCKS.lines().filter(|line| !line.is_empty()) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [before, first, last, after, why] = columns[..] else {
            panic!("{line}");
        };
        check(first, why);
        check(last, why);
        for neighbour in [before, after].iter().filter(|address| **address != "-") {
            check(neighbour, "");
        }
    }
}

#[test]
fn cloud_metadata_addresses_are_denied() {
    for address in [
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
    ] {
        check(address, "metadata");
        check(&format!("::ffff:{address}"), "metadata");
    }
    check("fd00:ec2::254", "metadata");
    check("fd20:ce::254", "metadata");
    check("168.63.129.15", "");
    check("168.63.129.17", "");
}

#[test]
fn special_ipv6_blocks_are_denied_up_to_their_bounds() {
    for (address, why) in [
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fc00::", "unique-local"),
        ("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique-local"),
        ("fe80::1", "link-local"),
        ("febf:ffff::", "link-local"),
        ("fec0::", "site-local"),
        ("feff::", "site-local"),
        ("fe00::", "reserved"),
        ("ff00::", "multicast"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"),
        ("100::1", "reserved"),
        ("64:ff9b:1::1", "reserved"),
        ("5f00::1", "reserved"),
        ("1fff:ffff::", "reserved"),
        ("4000::", "reserved"),
        ("2001:2::1", "benchmarking"),
        ("2001:20::1", "protocol-assignment"),
        ("2001:1ff:ffff::", "protocol-assignment"),
        ("2001:db7:ffff::", ""),
        ("2001:db8::", "documentation"),
        ("2001:db8:ffff::", "documentation"),
        ("2001:db9::", ""),
        ("3fff::", "documentation"),
        ("3fff:fff:ffff::", "documentation"),
        ("3fff:1000::", ""),
        ("2001:200::", ""),
        ("2000::", ""),
        ("2606:4700::1111", ""),
        ("2a00:1450::1", ""),
    ] {
        check(address, why);
    }
}

#[test]
fn ipv4_address_embedded_in_ipv6_is_checked() {
    // 7f00:1 is 127.0.0.1, 0808:0808 is 8.8.8.8; Teredo stores the client's inverted.
    for (loopback, public) in [
        ("::ffff:127.0.0.1", "::ffff:8.8.8.8"),
        ("::127.0.0.1", "::8.8.8.8"),
        ("::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"),
        ("64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8"),
        ("2002:7f00:1::1", "2002:808:808::1"),
        ("2001:0:7f00:1::f7f7:f7f7", "2001:0:808:808::f7f7:f7f7"),
        (
            "2001:0:808:808::80ff:fffe",
            "2001:0:808:808:ffff:ffff:f7f7:f7f7",
        ),
    ] {
        check(loopback, "loopback");
        check(public, "");
    }
    check("::ffff:10.0.0.1", "private");
    check("64:ff9b::a00:1", "private");
    check("::2", "unspecified");
    let denied = DestinationRules::default().check("2002:a00:1::".parse().unwrap());
    let address = "10.0.0.1".parse().unwrap();
    let why = DenialReason::Private;
    assert_eq!(denied, Err(Denial { address, why }));
}

#[test]
fn deny_rule_overrides_allow_rule_and_allow_rule_overrides_default() {
    let rules = rules(
        &["10.0.0.0/8", "::1/128"],
        &["10.1.0.0/16", "8.8.8.8/32", "2002::/16"],
    );
    check_by(&rules, "10.0.255.255", "");
    check_by(&rules, "10.1.0.0", "denied-by-rule");
    check_by(&rules, "10.1.255.255", "denied-by-rule");
    check_by(&rules, "10.2.0.0", "");
    check_by(&rules, "8.8.8.8", "denied-by-rule");
    check_by(&rules, "8.8.8.9", "");
    check_by(&rules, "::1", "");
    check_by(&rules, "127.0.0.1", "loopback");
    // Rules find an address inside another, and the other by its own form.
    check_by(&rules, "::ffff:10.0.0.1", "");
    check_by(&rules, "::ffff:10.1.0.1", "denied-by-rule");
    check_by(&rules, "64:ff9b::8.8.8.8", "denied-by-rule");
    check_by(&rules, "2002:a00:1::", "denied-by-rule");
}

#[test]
fn allowing_all_ipv6_does_not_allow_embedded_special_ipv4() {
    let rules = rules(&["::/0"], &[]);
    check_by(&rules, "fd00::1", "");
    for address in [
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
        "::ffff:169.254.169.254",
    ] {
        let denied = rules.check(address.parse().unwrap());
        assert!(denied.is_err(), "{address}");
    }
}

#[test]
fn deny_all_default_denies_every_address_without_allow_rule() {
    let rules = DestinationRules {
        deny_default: DenyDefault::All,
        ..rules(&["9.9.9.9/32"], &[])
    };
    check_by(&rules, "9.9.9.9", "");
    check_by(&rules, "::ffff:9.9.9.9", "");
    check_by(&rules, "9.9.9.8", "not-allowed");
    check_by(&rules, "2606:4700::1111", "not-allowed");
    check_by(&rules, "127.0.0.1", "not-allowed");
}
