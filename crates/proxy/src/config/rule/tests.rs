use super::*;
use crate::config::Config;
use weir_policy::rule::Place;

fn config(rules: &str) -> Config {
    let rules: Vec<Rule> = serde_json::from_str(rules).expect("rules");
    let text = serde_json::to_string(&rules).expect("text");
    let again: Vec<Rule> = serde_json::from_str(&text).expect("rules");
    assert_eq!(again, rules);
    Config {
        rules,
        ..Config::default()
    }
}

fn check(rules: &str, expected: Option<&str>) {
    let found = config(rules).validate().err();
    let key = found.as_ref().map(|invalid| invalid.key_path.as_str());
    assert_eq!(key, expected, "{rules}: {found:?}");
}

fn check_warnings(rules: &str, expected: &[&str]) {
    let config = config(rules);
    assert_eq!(config.validate(), Ok(()), "{rules}");
    let found = config.warnings();
    let keys: Vec<&str> = found.iter().map(|it| it.key_path.as_str()).collect();
    assert_eq!(keys, expected, "{rules}: {found:?}");
}

#[test]
fn rule_that_means_nothing_is_refused_at_its_key() {
    check("[]", None);
    check(r#"[{"bypass": true}]"#, None);
    check("[{}]", Some("rule[0]"));
    check(r#"[{"bypass": true}, {"host": ["a"]}]"#, Some("rule[1]"));
    check(r#"[{"deny": ""}]"#, Some("rule[0].deny"));
    check(
        r#"[{"status": ["404"], "bypass": true}]"#,
        Some("rule[0].bypass"),
    );
    check(
        r#"[{"lifetime": {"default": "11000d"}}]"#,
        Some("rule[0].lifetime.default"),
    );
    let one = Some("rule[0].lifetime");
    check(r#"[{"lifetime": {}}]"#, one);
    check(r#"[{"lifetime": {"default": "1d", "forced": "1d"}}]"#, one);
    check(
        r#"[{"lifetime": {"forced": "1d"}, "stale_for": "1d"}]"#,
        None,
    );
    check(r#"[{"stale_for": "4000d"}]"#, Some("rule[0].stale_for"));
    check(
        r#"[{"client": ["10.0.0.0/8"], "stale_for": "1d"}]"#,
        Some("rule[0].stale_for"),
    );
    check(
        r#"[{"method": ["GET"], "lifetime": {"default": "1d"}}]"#,
        Some("rule[0].lifetime"),
    );
    check(
        r#"[{"status": ["302", "404", "5xx"], "lifetime": {"default": "1min"}}]"#,
        None,
    );
    for status in ["206", "304", "401", "407", "416", "429"] {
        check(
            &format!(r#"[{{"status": ["{status}"], "lifetime": {{"default": "1min"}}}}]"#),
            Some("rule[0].status"),
        );
    }
    check(
        r#"[{"status": ["404"], "listener": ["forward"], "lifetime": {"default": "1d"}}]"#,
        None,
    );
    check(
        r#"[{"request": ["set Range: x"]}]"#,
        Some("rule[0].request[0]"),
    );
    check(
        r#"[{"response": ["set A: b", "remove ETag"]}]"#,
        Some("rule[0].response[1]"),
    );
    check(
        r#"[{"client": ["10.0.0.0/8"], "request": ["set A: b"]}]"#,
        Some("rule[0].request"),
    );
    check(
        r#"[{"client": ["10.0.0.0/8"], "status": ["200"], "rate": "1KiB/s"}, {"rate": "off"}]"#,
        None,
    );
    check(r#"[{"rate": "1023B/s"}]"#, Some("rule[0].rate"));
    check(r#"[{"read_ahead": "unbounded", "abort": "finish"}]"#, None);
    check(r#"[{"read_ahead": "1KiB"}]"#, Some("rule[0].read_ahead"));
    check(
        r#"[{"status": ["200"], "read_ahead": "1MiB"}]"#,
        Some("rule[0].read_ahead"),
    );
    check(
        r#"[{"method": ["GET"], "abort": "stop"}]"#,
        Some("rule[0].abort"),
    );
    check(
        r#"[{"client": ["10.0.0.0/8"], "request": ["set A: b"], "bypass": true}]"#,
        None,
    );
}

#[test]
fn hint_names_what_can_be_done_about_an_action_that_cannot_depend_on_a_matcher() {
    for (rules, expected) in [
        (
            r#"[{"listener": ["127.0.0.1:3128"], "lifetime": {"default": "1d"}}]"#,
            "leave `listener` out, or name a mode: \"forward\" or \"gateway\"; no rule can do both",
        ),
        (
            r#"[{"client": ["10.0.0.0/8"], "lifetime": {"default": "1d"}}]"#,
            "leave `client` out; no rule can do both",
        ),
        (
            r#"[{"client": ["10.0.0.0/8"], "lifetime": {"default": "1d"}, "deny": "no"}]"#,
            "move `lifetime` to a rule without `client`",
        ),
        (
            r#"[{"status": ["404"], "bypass": true}]"#,
            "leave `status` out; no rule can do both",
        ),
        (
            r#"[{"status": ["404"], "bypass": true, "rate": "1KiB/s"}]"#,
            "move `bypass` to a rule without `status`",
        ),
        (
            r#"[{"status": ["401", "206"], "lifetime": {"default": "1d"}}]"#,
            "remove `lifetime`, or name other statuses",
        ),
        (
            r#"[{"status": ["401", "404", "206"], "lifetime": {"default": "1d"}}]"#,
            "leave \"401\", \"206\" out of `status`",
        ),
    ] {
        let found = config(rules).validate().expect_err(rules);
        assert_eq!(found.hint, expected, "{rules}");
    }
}

#[test]
fn name_of_a_rule_is_a_name_and_of_no_other_rule() {
    check(r#"[{"name": "a b", "bypass": true}]"#, Some("rule[0].name"));
    check(
        r#"[{"name": "rule-2", "bypass": true}, {"name": "rule-2", "bypass": true}]"#,
        Some("rule[1].name"),
    );
    // so messages and metrics call the second without a name
    check(
        r#"[{"bypass": true}, {"name": "rule[1]", "bypass": true}]"#,
        Some("rule[1].name"),
    );
    check(
        r#"[{"bypass": true}, {"name": "rule-1", "bypass": true}]"#,
        None,
    );
}

#[test]
fn rule_that_shares_or_keys_more_than_it_may_is_refused_at_its_key() {
    check(
        r#"[{"ignore": ["response private"]}]"#,
        Some("rule[0].ignore"),
    );
    check(
        r#"[{"ignore": ["request authorization"], "lifetime": {"forced": "1h"}}]"#,
        Some("rule[0].ignore"),
    );
    check(
        r#"[{"ignore": ["response private"], "share": "unsafe"}]"#,
        None,
    );
    check(
        r#"[{"ignore": ["response no-cache"], "share": "unsafe"}]"#,
        Some("rule[0].share"),
    );
    check(
        r#"[{"bypass": true, "share": "unsafe"}]"#,
        Some("rule[0].share"),
    );
    check(
        r#"[{"method": ["GET"], "ignore": ["response no-cache"]}]"#,
        Some("rule[0].ignore"),
    );
    check(r#"[{"method": ["GET"], "ignore": []}]"#, None);
    check(
        r#"[{"status": ["404"], "ignore": ["response no-cache"]}]"#,
        None,
    );
    check(
        r#"[{"status": ["404"], "ignore": ["request no-cache", "response no-cache"]}]"#,
        Some("rule[0].ignore"),
    );
    check(
        r#"[{"key": {"drop_query": ["a", "b*"], "languages": ["de"], "codings": ["gzip"]}}]"#,
        None,
    );
    check(
        r#"[{"client": ["10.0.0.0/8"], "key": {"sort_query": true}}]"#,
        Some("rule[0].key"),
    );
    check(
        r#"[{"status": ["404"], "key": {"sort_query": true}}]"#,
        Some("rule[0].key"),
    );
}

#[test]
fn value_that_no_matcher_has_is_refused_with_its_form() {
    let check = |rule: &str, expected: &str| {
        let error = serde_json::from_str::<Rule>(rule)
            .expect_err(rule)
            .to_string();
        assert!(error.contains(expected), "{rule}: {error}");
    };
    check(
        r#"{"path": ["a"]}"#,
        "`a` is no path of a rule: a path begins with `/`",
    );
    check(r#"{"path": ["/a?b"]}"#, "a path of a rule has no query");
    check(r#"{"listener": ["lan 1"]}"#, "`lan 1` is no listener");
    check(r#"{"method": ["get"]}"#, "expected one of `GET`");
    check(r#"{"status": ["6xx"]}"#, "a status is three digits");
    check(r#"{"content_type": ["*/*"]}"#, "a media type is written as");
    check(
        r#"{"request": ["drop A"]}"#,
        "`drop A` is no change of a head",
    );
    check(
        r#"{"response": ["set Via: x"]}"#,
        "the proxy writes this field itself",
    );
    check(r#"{"lifetime": {"most": "1h"}}"#, "unknown field `most`");
    check(
        r#"{"lifetime": "1h"}"#,
        r#"did you mean `{ default = "1h" }`?"#,
    );
    check(
        r#"{"ignore": ["request no-store"]}"#,
        "expected one of `request no-cache`",
    );
    check(r#"{"rate": "1MB/s"}"#, "did you mean `1MiB/s`?");
    check(
        r#"{"rate": "1MiB"}"#,
        "a size and `/s` are expected, such as `500KiB/s`, or `off`",
    );
    check(r#"{"rate": "/s"}"#, "`/s` is no rate");
}

#[test]
fn rule_that_decides_nothing_is_named_in_a_warning() {
    check_warnings(r#"[{"bypass": true}]"#, &[]);
    check_warnings(
        r#"[{"listener": ["gateway"], "bypass": true}]"#,
        &["rule[0].listener"],
    );
    check_warnings(r#"[{"listener": ["127.0.0.1:3128"], "bypass": true}]"#, &[]);
    check_warnings(
        r#"[{"client": ["10.0.0.0/8"], "deny": "no"}]"#,
        &["rule[0].client"],
    );
    check_warnings(
        r#"[{"host": ["*.example.com"], "bypass": true},
            {"host": ["www.example.com"], "bypass": false, "deny": "no"}]"#,
        &["rule[1].bypass"],
    );
}

#[test]
fn rule_for_a_listener_by_its_name_is_for_that_listener_alone() {
    let rules = |named: &str| {
        let rules = format!(r#"[{{"listener": ["{named}"], "deny": "no"}}]"#);
        let mut config = config(&rules);
        config.listeners = serde_json::from_str(
            r#"[{"address": "127.0.0.1:1", "name": "lan"}, {"address": "127.0.0.1:2"}]"#,
        )
        .expect("listeners");
        config
    };
    let denied = |named: &str, listener: &str| {
        let config = rules(named);
        assert_eq!(config.validate(), Ok(()), "{named}");
        assert_eq!(config.warnings(), Vec::new(), "{named}");
        let set = compile(&config.rules, &config.listeners).expect("rules");
        let place = Place {
            listener: Some(listener),
            mode: weir_policy::rule::ListenerMode::Forward,
            method: weir_semantics::Method::Get,
            client: None,
        };
        !set.applicable(&place).is_empty()
    };
    for (named, is_for) in [
        ("lan", [true, false]),
        ("127.0.0.1:1", [true, false]),
        ("127.0.0.1:2", [false, true]),
        ("forward", [true, true]),
    ] {
        let found = ["lan", "127.0.0.1:2"].map(|listener| denied(named, listener));
        assert_eq!(found, is_for, "{named}");
    }
    let unknown = rules("wan").validate().expect_err("no such listener");
    assert_eq!(unknown.key_path, "rule[0].listener[0]");
    assert!(unknown.hint.contains("lan"), "{unknown:?}");
}

#[test]
fn preset_stands_in_the_place_of_its_table() {
    // any site may have something for one user at a path of a package
    let all_sites = Some("rule[0].preset");
    check(r#"[{"preset": "packages"}]"#, all_sites);
    check(
        r#"[{"preset": "packages", "listener": ["forward"]}]"#,
        all_sites,
    );
    check(
        r#"[{"preset": "packages", "listener": ["gateway"]}]"#,
        all_sites,
    );
    check(
        r#"[{"preset": "packages", "listener": ["gateway"], "host": ["a"]}]"#,
        None,
    );
    check(
        r#"[{"preset": "packages", "listener": ["forward"], "host": ["*.example.com"], "name": "a"}]"#,
        None,
    );
    let alone = Some("rule[0].preset");
    check(
        r#"[{"preset": "packages", "host": ["a"], "bypass": true}]"#,
        alone,
    );
    check(
        r#"[{"preset": "packages", "host": ["a"], "path": ["/debian"]}]"#,
        alone,
    );
    check(
        r#"[{"preset": "packages", "host": ["a"], "listener": ["127.0.0.1:3128"]}]"#,
        alone,
    );
    // what is wrong behind a preset is named at its own place
    check(
        r#"[{"preset": "packages", "host": ["a"]}, {"deny": ""}]"#,
        Some("rule[1].deny"),
    );
    check_warnings(r#"[{"preset": "packages", "host": ["a"]}]"#, &[]);
    check_warnings(
        r#"[{"lifetime": {"default": "1d"}}, {"preset": "packages", "host": ["a"]}]"#,
        &["rule[1].preset"],
    );
    check_warnings(
        r#"[{"preset": "packages", "host": ["a"], "listener": ["gateway"]}]"#,
        &["rule[0].listener"],
    );
}
