//! Scenario files: those that come with the program, what is refused and how, `--set`, and shorter
//! versions.

use proptest::prelude::*;
use weir_workload::{Addresses, Http, Link, Load, Scenario, Workload};

fn built_in(name: &str) -> Scenario {
    Scenario::built_in(name).unwrap_or_else(|error| panic!("{error}\n{:?}", error.hint))
}

fn polymix(scenario: &Scenario) -> &weir_workload::PolyMix {
    match &scenario.workload {
        Workload::PolyMix(polymix) => polymix,
        other => panic!("{other:?}"),
    }
}

#[test]
fn built_in_scenario_parses_and_round_trips() {
    assert_eq!(Scenario::names().count(), 9);
    for name in Scenario::names() {
        let scenario = built_in(name);
        assert_eq!(scenario.name, name);
        assert!(
            !scenario.about.trim().is_empty() && !scenario.sources.is_empty(),
            "{name}"
        );
        let text = scenario.to_toml();
        let again =
            Scenario::parse("again", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, scenario, "{name}");
        assert_eq!(again.to_toml(), text, "{name}");
    }
}

#[test]
fn built_in_scenarios_have_the_parameters_of_their_papers() {
    let Workload::Wpb(wpb) = built_in("wpb").workload else {
        panic!()
    };
    assert_eq!(
        (
            wpb.requests_per_client,
            wpb.inherent_hit_ratio,
            wpb.expires_after_s
        ),
        (200, 0.5, 259_200.0)
    );
    assert_eq!(
        wpb.sizes.to_string(),
        "mix(99%: uniform(0, 40KB), 1%: constant(1MB))"
    );
    assert_eq!(wpb.clients, 4 * wpb.servers);
    let three = built_in("polymix3");
    let three = polymix(&three);
    assert_eq!((three.robots(), three.servers()), (3625, 863));
    // 7.05 million at 1450 requests a second
    assert_eq!(three.working_set_targets(), 7_047_000);
    let timed: f64 = three.phases.iter().filter_map(|phase| phase.seconds).sum();
    assert_eq!(timed, 60.0 * (4.0 + 7.0 * 30.0 + 2.0 * 240.0));
    let four = built_in("polymix4");
    let timed: f64 = polymix(&four)
        .phases
        .iter()
        .filter_map(|phase| phase.seconds)
        .sum();
    // 10.33 hours
    assert_eq!(timed / 60.0, 620.0);
    assert_eq!(polymix(&four).phases[2].load, Load::Robots(1));
    let modem = built_in("wpb-modem").clients.link.unwrap();
    assert_eq!(
        (modem.down_bits_per_s, modem.up_bits_per_s),
        (Some(28_800), Some(28_800))
    );
}

#[test]
fn variants_of_wpb_differ_only_in_the_documented_keys() {
    let mut plain = built_in("wpb");
    let mut kept = built_in("wpb-keep-alive");
    assert!(kept.clients.keep_alive && kept.origin.keep_alive);
    for key in [
        "clients.http=1.1",
        "clients.keep_alive=true",
        "origin.http=1.1",
        "origin.keep_alive=true",
    ] {
        plain.set(key).unwrap();
    }
    (kept.name, kept.about) = (plain.name.clone(), plain.about.clone());
    assert_eq!(kept, plain);
    let mut modem = built_in("wpb-modem");
    for key in [
        "clients.link=none",
        "workload.clients=32",
        "workload.requests_per_client=200",
        "workload.servers=8",
    ] {
        modem.set(key).unwrap();
    }
    let plain = built_in("wpb");
    (modem.name, modem.about) = (plain.name.clone(), plain.about.clone());
    assert_eq!(modem, plain);
}

#[test]
fn polymix3_mini_has_the_shape_of_polymix3_scaled_to_a_60th() {
    let mini = built_in("polymix3-mini");
    let mut scaled = built_in("polymix3").scaled(1.0 / 60.0);
    assert_eq!(scaled.scale, 1.0 / 60.0);
    scaled
        .set("workload.peak_rate_per_s=100.0")
        .expect_err("the fill rate is more than the peak now");
    scaled
        .set_all([
            "workload.peak_rate_per_s=100",
            "workload.fill_rate_per_s=100",
            "workload.cache=64MB",
            "workload.servers_base=34",
        ])
        .unwrap();
    let (mini, scaled) = (polymix(&mini), polymix(&scaled));
    assert_eq!(mini.robots(), 250);
    assert_eq!(mini.servers(), 59);
    assert!((mini.working_set_s - scaled.working_set_s).abs() < 1e-9);
    for (one, other) in mini.phases.iter().zip(&scaled.phases) {
        let mut one = one.clone();
        let (Some(found), Some(expected)) = (one.seconds, other.seconds) else {
            assert_eq!(&one, other);
            continue;
        };
        assert!((found - expected).abs() < 1e-9, "{}", one.name);
        one.seconds = other.seconds;
        assert_eq!(&one, other);
    }
    for (one, other) in mini.contents.iter().zip(&scaled.contents) {
        let (found, expected) = (&one.life_cycle, &other.life_cycle);
        assert_eq!(found.variance, expected.variance);
        let (found, expected) = (
            found.length.mean().unwrap(),
            expected.length.mean().unwrap(),
        );
        assert!((found / expected - 1.0).abs() < 1e-9, "{}", one.name);
        let mut one = one.clone();
        one.life_cycle = other.life_cycle.clone();
        assert_eq!(&one, other);
    }
}

/// What is said about a text in which `old` of the hits scenario is replaced.
fn refusal(name: &str, old: &str, new: &str) -> (String, String) {
    let text = Scenario::built_in_text(name).expect(name);
    assert!(text.contains(old), "{old}");
    let changed = text.replacen(old, new, 1);
    let error = Scenario::parse("mine.toml", &changed).expect_err(new);
    (error.to_string(), error.hint.unwrap_or_default())
}

/// Scenario | what is replaced | by what | what is said | the hint. A mistake is told on the line
/// that it is made in.
const MISTAKES: &str = r#"
hits | size = "constant | szie = "constant | unknown key `szie` | did you mean `size`?
hits | http = "1.1" | http = "2" | unknown value `2` | the values known here are 1.0, 1.1
hits | targets = 100 | targets = "100" | where an integer from 0 to 4294967295 is expected |
hits | targets = 100 | targets = 0 | `workload.targets` is 0 | from 1 to
hits | constant(1KB) | constant(1kb) | unknown unit `kb` | did you mean `KB`?
hits | constant(1KB) | constant(1s) | `workload.size` is `constant(1s)` | a size such as 40KB
hits | "30s" | 30 | `30` is not a time such as 3s |
hits | "30s" | "0" | `workload.duration` is zero | more than zero
hits | format = 1 | format = 2 | unknown format 2 | reads format 1
hits | kind = "hits" | kind = "hit" | unknown kind `hit` | did you mean `hits`?
hits | queue_max = 1 | queue_max 1 | |
wpb | "3d" | "3D" | unknown unit `D` | did you mean `d`?
wpb | 99%: uniform | 98%: uniform | add up to 99% |
wpb | hit_ratio = "50%" | hit_ratio = "150%" | not between 0 and 100% |
wpb | constant(3s) | normal(3s) | has 1 parameters | did you mean `normal(2.5s, 1s)`?
polymix3 | fill_rate_per_s = 725 | fill_rate_per_s = 7250 | is more than the peak | at most
polymix3 | "zipf(13)" | "zipf(17)" | contents[1].embeds` is `zipf(17)` | at most 16
polymix4 | load = "1 robot" | load = "some" | `some` is no load | did you mean `10%`, `fill`
web-2026 | "public, immutable" | "public\r\nX: y" | printable ASCII | one line
web-2026 | "public, immutable" | "public, max-age=1" | has a `max-age` of its own | leave it out
web-2026 | both = "42.8%" | both = "48%" | does not go together | at most
"#;

#[test]
fn mistake_is_refused_with_its_line_cause_and_hint() {
    for row in MISTAKES.lines().filter(|row| !row.is_empty()) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, old, new, what, hint] = cells[..] else {
            panic!("{row}")
        };
        let (found, found_hint) = refusal(name, old, new);
        let text = Scenario::built_in_text(name).unwrap();
        let line = text.lines().position(|line| line.contains(old)).unwrap() + 1;
        assert!(
            found.starts_with(&format!("mine.toml:{line}:")) && found.contains('^'),
            "{row}\n{found}"
        );
        assert!(found.contains(what), "{row}\n{found}");
        assert!(found_hint.contains(hint), "{row}\n{found_hint}");
    }
}

#[test]
fn shares_that_do_not_add_up_are_refused_at_their_table() {
    let (found, hint) = refusal("polymix3", "share = \"65%\"", "share = \"64%\"");
    let what = "`workload.contents` has shares that add up to 99.000 %";
    assert!(
        found.contains(what) && found.contains("| [[workload.contents]]"),
        "{found}"
    );
    assert_eq!(hint, "they add up to 100 %");
}

#[test]
fn missing_key_or_foreign_file_is_refused_with_a_hint() {
    let check = |text: &str, what: &str| {
        let error = Scenario::parse("mine.toml", text).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint.is_some(), "{error}");
    };
    check("", "no `format` of a scenario");
    check("format = 1", "missing table `workload`");
    check("format = 1\nworkload = 3", "`workload` is no table");
    check("format = 1\n[workload]\na = 1", "missing key `kind`");
    check("format = 1\n[workload]\nkind = \"hits\"", "missing key");
    assert!(Scenario::parse("mine.toml", &"#".repeat(2 << 20)).is_err());
    let error = Scenario::built_in("polymx3").unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `polymix3`?"));
}

#[test]
fn set_assigns_the_value_to_its_key() {
    let mut scenario = built_in("polymix3");
    for assignment in [
        "clients.keep_alive = false",
        "clients.http=1.1",
        "origin.latency=constant(0.1s)",
        "clients.link=mobile-2024",
        "clients.requests_per_connection=none",
        "workload.contents[0].size=exp(9KB)",
        "workload.phases.10.name=last",
        "origin.link.delay=10ms",
        "clients.addresses=one",
        "clients.aborted_share=0.001",
    ] {
        scenario
            .set(assignment)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    let clients = &scenario.clients;
    assert_eq!(
        (clients.keep_alive, clients.http, clients.addresses),
        (false, Http::Http11, Addresses::One)
    );
    assert_eq!(clients.link, Link::preset("mobile-2024"));
    assert_eq!(
        (&clients.requests_per_connection, clients.aborted_share),
        (&None, 0.001)
    );
    assert_eq!(scenario.origin.latency.to_string(), "constant(0.1s)");
    assert_eq!(scenario.origin.link.as_ref().unwrap().delay_ms, 10.0);
    assert_eq!(polymix(&scenario).contents[0].size.to_string(), "exp(9KB)");
    assert_eq!(polymix(&scenario).phases[10].name, "last");
    let fault = "origin.faults=[{ what = \"slow(1KB)\", share = \"1%\", targets = \"servers 0-3\", at = \"50%\", until = \"1min\" }]";
    scenario.set(fault).unwrap();
    assert_eq!(
        Scenario::parse("again", &scenario.to_toml()).unwrap(),
        scenario
    );
}

#[test]
fn refused_assignment_leaves_the_scenario_unchanged() {
    let before = built_in("polymix3");
    let check = |assignment: &str, what: &str, hint: &str| {
        let mut scenario = before.clone();
        let error = scenario.set(assignment).unwrap_err();
        assert_eq!(scenario, before, "{assignment}");
        assert!(
            error.to_string().starts_with("--set: ") && error.what.contains(what),
            "{error}"
        );
        assert!(
            error.hint.as_deref().unwrap_or("").contains(hint),
            "{error} / {:?}",
            error.hint
        );
    };
    check("clients.keep_alive", "has no `=`", "KEY=VALUE");
    check(
        "clients.keepalive=true",
        "unknown key `keepalive`",
        "did you mean `keep_alive`?",
    );
    check("workload.cliets=3", "unknown key `cliets`", "");
    check("workload.contents[9].size=1KB", "has 4 entries", "");
    check("workload.contents.html.size=1KB", "`html` is no number", "");
    check("clients.http.x=1", "`http` has no keys in it", "");
    check("clients..x=1", "is no path of keys", "");
    check("=1", "is no path of keys", "");
    check(
        "workload.peak_rate_per_s=fast",
        "where a number is expected",
        "",
    );
    check("workload.recurrence=120%", "not between 0 and 100%", "");
    check("workload.kind=wpb", "unknown key", "");
    check(
        "clients.link=modem",
        "unknown value `modem`",
        "did you mean `modem-1998`?",
    );
}

#[test]
fn scaled_scenario_changes_only_its_workload_and_remains_valid() {
    for name in Scenario::names() {
        let whole = built_in(name);
        for factor in [0.5, 1e-6, 3.0] {
            let scaled = whole.scaled(factor);
            assert_eq!(scaled.scale, factor, "{name}");
            assert_ne!(scaled.workload, whole.workload, "{name}");
            assert_eq!(
                (&scaled.origin, &scaled.clients),
                (&whole.origin, &whole.clients)
            );
            // and it is a scenario: nothing has become zero
            let again =
                Scenario::parse(name, &scaled.to_toml()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again, scaled, "{name}");
        }
        assert_eq!(whole.scaled(0.5).scaled(0.5).scale, 0.25);
    }
    let half = built_in("wpb").scaled(0.5);
    let Workload::Wpb(wpb) = half.workload else {
        panic!()
    };
    assert_eq!((wpb.requests_per_client, wpb.clients), (100, 32));
}

#[test]
fn link_preset_can_be_set_by_name_and_round_trips() {
    for (name, link) in &weir_workload::LINK_PRESETS {
        let mut scenario = built_in("wpb");
        scenario.set(&format!("clients.link={name}")).unwrap();
        assert_eq!(scenario.clients.link.as_ref(), Some(link));
        assert_eq!(
            Scenario::parse(name, &scenario.to_toml()).unwrap(),
            scenario
        );
    }
    assert_eq!(Link::preset("modem"), None);
}

fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(Scenario::names().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_parses_or_is_refused_without_a_panic(text in "\\PC*") {
        let _either = Scenario::parse("x", &text);
    }

    #[test]
    fn scenario_with_changed_bytes_is_refused_or_round_trips(
        name in any_name(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: Option<prop::sample::Index>,
    ) {
        let mut bytes = Scenario::built_in_text(name).unwrap().as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let text = String::from_utf8_lossy(&bytes);
        match Scenario::parse("x", &text) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(scenario) => prop_assert_eq!(Scenario::parse("x", &scenario.to_toml()).unwrap(), scenario),
        }
    }

    #[test]
    fn scenario_with_any_value_is_refused_or_round_trips(
        name in any_name(),
        line in any::<prop::sample::Index>(),
        value in prop_oneof![
            "[0-9]{1,25}", "-?[0-9.]{1,9}", "\"[0-9.]{1,6}(%|KB|s|d|kbit/s)\"", "\"[a-z]{3,9}\\([0-9., KBs%:max]{0,20}\\)\"",
            "\\[\\]", "\\{ ?\\}", "true", "nan", "-?inf", "\"\\PC{0,9}\"",
        ],
    ) {
        let text = Scenario::built_in_text(name).unwrap();
        let keys: Vec<usize> = text.lines().enumerate().filter(|(_, line)| line.contains(" = ")).map(|(at, _)| at).collect();
        let at = keys[line.index(keys.len())];
        let changed: Vec<String> = text.lines().enumerate().map(|(index, line)| match line.split_once(" = ") {
            Some((key, _)) if index == at => format!("{key} = {value}"),
            _ => line.to_owned(),
        }).collect();
        if let Ok(scenario) = Scenario::parse("x", &changed.join("\n")) {
            prop_assert_eq!(Scenario::parse("x", &scenario.to_toml()).unwrap(), scenario);
        }
    }

    #[test]
    fn any_assignment_is_applied_or_refused_without_a_panic(name in any_name(), assignment in "(workload|origin|clients)(\\.[a-z_0-9]{1,9}){1,3}(\\[[0-9]\\])?=\\PC{0,12}") {
        let mut scenario = Scenario::built_in(name).unwrap();
        let _either = scenario.set(&assignment);
    }
}
