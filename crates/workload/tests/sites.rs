//! Sites: spelling, life cycles, and the shares and means of what they answer.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_semantics::{
    DeltaSeconds, FieldLine, Heuristic, Lifetime, Method, RequestFacts, ResponseDirectives,
    ResponseFacts, freshness_lifetime, storable, write_http_date,
};
use weir_workload::{
    HEURISTIC_LIFETIME_MIN_S, Representation, Scenario, Site, Target, UnixSeconds, Workload,
    number, number_parts,
};

/// 1 June 2026, 12:00 UTC.
const NOW: UnixSeconds = UnixSeconds(1_780_315_200);

/// Read once.
static SCENARIOS: LazyLock<BTreeMap<&str, Scenario>> = LazyLock::new(|| {
    let read = |name| (name, Scenario::built_in(name).expect(name));
    Scenario::names().map(read).collect()
});

fn site(name: &str, seed: u64) -> Site {
    Site::new(&SCENARIOS[name], seed)
}

fn path(site: &Site, target: Target) -> Vec<u8> {
    let mut out = Vec::new();
    site.write_path(target, &mut out);
    out
}

/// A target that the site has.
fn target(site: &Site, name: &str, server: u32, bits: u64) -> Target {
    let server = server % site.servers();
    let number = if name.starts_with("polymix") {
        let parts = number_parts(bits);
        number(parts.kind % 4, parts.owner, parts.index)
    } else {
        bits
    };
    Target { server, number }
}

fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(Scenario::names().collect::<Vec<_>>())
}

/// Numbers of all lengths.
fn any_number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(bits, shift)| bits >> shift)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn path_parses_back_to_its_target(name in any_name(), seed: u64, server: u32, bits in any_number()) {
        let site = site(name, seed);
        let target = target(&site, name, server, bits);
        let path = path(&site, target);
        prop_assert!(path.starts_with(b"/"), "{:?}", path);
        prop_assert!(path.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._".contains(byte)));
        prop_assert_eq!(site.parse_path(target.server, &path), Some(target));
    }

    #[test]
    fn long_path_parses_back_to_its_target(seed: u64, bits in any_number(), bytes in prop_oneof![0_u32..40, 0_u32..9000]) {
        let mut scenario = SCENARIOS["wpb"].clone();
        let Workload::Wpb(wpb) = &mut scenario.workload else { panic!() };
        wpb.path_bytes = Some(format!("uniform(0, {}B)", bytes + 1).parse().unwrap());
        let site = Site::new(&scenario, seed);
        let target = Target { server: 0, number: bits };
        let path = path(&site, target);
        prop_assert!(path.len() <= 4096 && path.starts_with(b"/") && !path.windows(2).any(|pair| pair == b"//"));
        prop_assert_eq!(site.parse_path(0, &path), Some(target));
    }

    #[test]
    fn path_that_parses_is_the_path_of_its_target(name in any_name(), server: u32, path in prop_oneof![
        "\\PC{0,20}", "/(dummy|t[0-9]/_|hit)?[0-9a-fA-F]{0,20}\\.(html|gif|zip|cgi|bin|js|css)",
    ]) {
        let site = site(name, 1);
        if let Some(target) = site.parse_path(server, path.as_bytes()) {
            prop_assert!(target.server == server && server < site.servers());
            let again = self::path(&site, target);
            prop_assert_eq!(again, path.as_bytes());
        }
    }

    #[test]
    fn description_is_independent_of_earlier_requests(name in any_name(), seed: u64, server: u32, bits in any_number(), second in 0_i64..1 << 33) {
        let (one, other) = (site(name, seed), site(name, seed));
        let target = target(&one, name, server, bits);
        let at = UnixSeconds(second);
        let later = UnixSeconds(second + 86_400);
        let _another = other.describe(target, later);
        let described = one.describe(target, at);
        prop_assert_eq!(described, other.describe(target, at));
        prop_assert_eq!(described.length, one.length(target));
        prop_assert_eq!(described.length, one.describe(target, later).length);
        prop_assert_eq!(described.storable, one.is_storable(target));
        prop_assert!(described.version <= one.describe(target, later).version);
    }

    #[test]
    fn last_modification_is_past_and_the_next_change_is_in_the_future(
        name in prop::sample::select(vec!["polymix3", "polymix4", "polymix3-mini", "web-2026"]),
        seed: u64, bits in any_number(), second in 0_i64..1 << 33,
    ) {
        let site = site(name, seed);
        let target = target(&site, name, 0, bits);
        let at = UnixSeconds(second);
        let described = site.describe(target, at);
        let changes_at = described.changes_at.unwrap();
        prop_assert!(at < changes_at);
        if let Some(modified) = described.modified {
            prop_assert!(modified <= at);
            // a version begins and ends where it says, to the second
            let before = UnixSeconds(modified.0 - 1);
            prop_assert_eq!(site.describe(target, modified).version, described.version);
            prop_assert!(modified.0 < 1 || site.describe(target, before).version + 1 == described.version);
        }
        let last = UnixSeconds(changes_at.0 - 1);
        prop_assert_eq!(site.describe(target, last).version, described.version);
        prop_assert_eq!(site.describe(target, changes_at).version, described.version + 1);
    }

    #[test]
    fn version_was_current_exactly_if_described_within_the_interval(seed: u64, bits in any_number(), length in 1_u32..40, variance in 0_u32..100, from in 0_i64..200, seconds in 0_i64..60) {
        let mut scenario = SCENARIOS["web-2026"].clone();
        let Workload::Web(web) = &mut scenario.workload else { panic!() };
        web.life_cycle.length = format!("uniform(1s, {}s)", length + 1).parse().unwrap();
        web.life_cycle.variance = f64::from(variance.min(99)) / 100.0;
        let site = Site::new(&scenario, seed);
        let target = Target { server: 0, number: bits };
        let (from, until) = (NOW.0 + from, NOW.0 + from + seconds);
        let versions: Vec<u64> = (from..=until).map(|second| site.describe(target, UnixSeconds(second)).version).collect();
        prop_assert!(versions.is_sorted());
        for version in versions[0] - 2..=versions[versions.len() - 1] + 2 {
            let expected = versions.contains(&version);
            let found = site.was_current(target, version, UnixSeconds(from), UnixSeconds(until));
            prop_assert_eq!(found, expected, "{} of {:?}", version, &versions);
        }
        prop_assert!(!site.was_current(target, versions[0], UnixSeconds(until), UnixSeconds(from - 1)));
    }

    #[test]
    fn entity_tag_parses_to_its_version_for_its_own_target_only(name in any_name(), seed: u64, bits in any_number(), version: u64) {
        let site = site(name, seed);
        let one = target(&site, name, 0, bits);
        let other = target(&site, name, 0, bits ^ 1);
        let mut tag = Vec::new();
        site.write_entity_tag(one, version, &mut tag);
        prop_assert_eq!(site.parse_entity_tag(one, &tag), Some(version));
        prop_assert_eq!(site.parse_entity_tag(one, &[b"W/", tag.as_slice()].concat()), Some(version));
        prop_assert_eq!(site.parse_entity_tag(other, &tag), None);
        let changed = [&tag[..tag.len() - 1], b"-5a7f\""].concat();
        let weak = [b"W/", changed.as_slice()].concat();
        prop_assert_eq!(site.parse_entity_tag(one, &weak), Some(version));
        prop_assert_eq!(site.parse_entity_tag(one, &changed), None);
        prop_assert_eq!(site.parse_entity_tag(other, &weak), None);
        prop_assert_eq!(site.parse_entity_tag(one, &tag[1..]), None);
        prop_assert_eq!(site.parse_entity_tag(one, b"\"-\""), None);
    }

    #[test]
    fn target_number_parses_back_to_its_parts(kind in 0_u8..8, owner in prop::option::of(0_u32..1 << 24), index in 0_u64..1 << 36) {
        let parts = number_parts(number(kind, owner, index));
        prop_assert_eq!((parts.kind, parts.owner, parts.index), (kind, owner, index));
    }

    #[test]
    fn page_embeds_1_to_13_images_of_its_own(seed: u64, server: u32, owner in prop::option::of(0_u32..1 << 24), index in 0_u64..1 << 32) {
        let site = site("polymix4", seed);
        let server = server % site.servers();
        let page = Target { server, number: number(1, owner, index) };
        let embedded: Vec<Target> = site.embedded(page).collect();
        prop_assert_eq!(embedded.len(), site.embedded_count(page) as usize);
        prop_assert!((1..=13).contains(&embedded.len()));
        for image in &embedded {
            let parts = number_parts(image.number);
            prop_assert_eq!((image.server, parts.kind, parts.owner, parts.index / 16), (server, 0, owner, index));
            prop_assert_eq!(site.embedded(*image).count(), 0);
            prop_assert_eq!(site.describe(*image, NOW).content_type, "image/gif");
        }
    }
}

#[test]
fn wpb_file_has_the_configured_size_and_expiry() {
    let site = site("wpb", 7);
    let targets = || (0..100_000).map(|number| Target { server: 0, number });
    let large = targets()
        .filter(|target| site.length(*target) == 1 << 20)
        .count();
    assert!(
        (874..1126).contains(&large),
        "{large} of 100 000 are exactly 1 MB, not 1 %"
    );
    assert!(
        targets()
            .map(|target| site.length(target))
            .all(|length| length < 40_960 || length == 1 << 20)
    );
    let described = site.describe(
        Target {
            server: 3,
            number: 17,
        },
        NOW,
    );
    assert_eq!(
        path(
            &site,
            Target {
                server: 3,
                number: 17
            }
        ),
        b"/dummy17.html"
    );
    assert_eq!(described.expires, Some(UnixSeconds(NOW.0 + 3 * 86_400)));
    assert_eq!(
        (
            described.version,
            described.changes_at,
            described.freshness_lifetime_s
        ),
        (0, None, 259_200)
    );
    let later = site.describe(
        Target {
            server: 3,
            number: 17,
        },
        UnixSeconds(NOW.0 + 1_000_000),
    );
    assert_eq!(later.modified, described.modified);
    // the same number of another server is another file
    let lengths = |server| {
        (0..50)
            .map(|number| site.length(Target { server, number }))
            .collect::<Vec<_>>()
    };
    assert_ne!(lengths(0), lengths(1));
    assert!(site.was_current(
        Target {
            server: 0,
            number: 1
        },
        0,
        NOW,
        NOW
    ));
    assert!(!site.was_current(
        Target {
            server: 0,
            number: 1
        },
        1,
        NOW,
        NOW
    ));
}

#[test]
fn polymix_content_has_the_means_and_shares_of_the_workload() {
    let scenario = Scenario::built_in("polymix3").unwrap();
    let Workload::PolyMix(polymix) = &scenario.workload else {
        panic!()
    };
    let site = Site::new(&scenario, 3);
    let count = 40_000_u32;
    let mean = |kind: u8, of: &dyn Fn(Target) -> f64| {
        let targets = (0..u64::from(count)).map(|index| Target {
            server: 0,
            number: number(kind, None, index),
        });
        targets.map(of).sum::<f64>() / f64::from(count)
    };
    let kilobytes = |kind: u8| {
        mean(kind, &|target| {
            f64::from(u32::try_from(site.length(target)).unwrap()) / 1024.0
        })
    };
    let stored = |kind: u8| {
        mean(kind, &|target| {
            f64::from(u8::from(site.is_storable(target)))
        })
    };
    let means: Vec<f64> = (0..4).map(kilobytes).collect();
    for (found, expected) in means.iter().zip([4.5, 8.5, 300.0, 25.0]) {
        // four standard deviations: the widest law's is its mean
        assert!((found / expected - 1.0).abs() < 0.02, "{means:?}");
    }
    let whole: f64 = means
        .iter()
        .zip(&polymix.contents)
        .map(|(mean, content)| mean * content.share)
        .sum();
    assert!(
        (whole - 10.6).abs() < 0.15,
        "{whole} KB by shares, not 10.6"
    );
    let shares: Vec<f64> = (0..4).map(stored).collect();
    for (found, expected) in shares.iter().zip([0.80, 0.90, 0.95, 0.72]) {
        assert!((found - expected).abs() < 0.01, "{shares:?}");
    }
    let embedded = mean(1, &|page| f64::from(site.embedded_count(page)));
    assert!(
        (embedded - 4.45).abs() < 0.08,
        "{embedded} images a page, not 4.45"
    );
    assert_eq!(
        mean(2, &|target| f64::from(site.embedded_count(target))).to_bits(),
        0.0_f64.to_bits()
    );
}

#[test]
fn storable_polymix_response_is_fresh_exactly_until_it_changes() {
    let site = site("polymix3", 5);
    for index in 0..2000 {
        let kind = u8::try_from(index % 4).unwrap();
        let described = site.describe(
            Target {
                server: 1,
                number: number(kind, Some(9), index),
            },
            NOW,
        );
        if described.storable {
            assert_eq!(described.expires, described.changes_at);
            let left = u64::try_from(described.changes_at.unwrap().0 - NOW.0).unwrap();
            assert_eq!(
                (described.freshness_lifetime_s, described.cache_control),
                (left, Some("public"))
            );
        } else {
            assert_eq!(
                (described.expires, described.freshness_lifetime_s),
                (None, 0)
            );
            assert_eq!(described.cache_control, Some("private, no-cache"));
        }
        assert!(described.modified.is_some());
    }
}

/// What the fields of a description say by RFC 9111, read by other eyes than those that made it.
fn directives(described: &Representation<'_>) -> ResponseDirectives {
    let mut said = ResponseDirectives::default();
    if let Some(text) = described.cache_control {
        said.add_line(text.as_bytes());
    }
    if let Some(seconds) = described.max_age_s {
        said.add_line(format!("max-age={seconds}").as_bytes());
    }
    said
}

#[test]
fn web_2026_fields_have_the_shares_of_their_sources() {
    let site = site("web-2026", 1);
    // a share of 20 000 in per cent: four standard deviations are at most 1.4
    let described: Vec<Representation<'_>> = (0..20_000)
        .map(|number| site.describe(Target { server: 0, number }, NOW))
        .collect();
    let check = |what: &str, expected: f64, is: &dyn Fn(&Representation<'_>) -> bool| {
        let count = described.iter().filter(|described| is(described)).count();
        let found = f64::from(u32::try_from(count).unwrap()) / 200.0;
        assert!(
            (found - expected).abs() < 1.4,
            "{what}: {found} %, not {expected} %"
        );
    };
    let says = |described: &Representation<'_>, word: &str| {
        let text = described.cache_control.unwrap_or("");
        text.split(", ")
            .any(|directive| directive.split('=').next() == Some(word))
    };
    check("Cache-Control", 74.4, &|d| {
        d.cache_control.is_some() || d.max_age_s.is_some()
    });
    check("max-age", 60.2, &|d| directives(d).max_age.is_some());
    check("public", 29.7, &|d| says(d, "public"));
    check("no-cache", 14.3, &|d| says(d, "no-cache"));
    check("must-revalidate", 12.1, &|d| says(d, "must-revalidate"));
    check("no-store", 9.2, &|d| says(d, "no-store"));
    check("private", 9.1, &|d| says(d, "private"));
    check("immutable", 3.5, &|d| says(d, "immutable"));
    check("stale-while-revalidate", 2.1, &|d| {
        says(d, "stale-while-revalidate")
    });
    check("s-maxage", 1.5, &|d| says(d, "s-maxage"));
    check("no-store and no-cache", 6.6, &|d| {
        says(d, "no-store") && says(d, "no-cache")
    });
    check("Expires", 55.6, &|d| d.expires.is_some());
    check("Last-Modified", 73.5, &|d| d.modified.is_some());
    check("ETag", 47.9, &|d| d.etag);
    check("both validators", 42.8, &|d| d.etag && d.modified.is_some());
    check("Vary", 43.4, &|d| d.vary.is_some());
    check("Vary: User-Agent", 43.4 * 0.107, &|d| {
        d.vary.is_some_and(|vary| vary.contains("User-Agent"))
    });
    check("Set-Cookie", 41.4, &|d| d.set_cookie);
    check("script", 33.8, &|d| d.content_type == "text/javascript");
}

fn http_date(at: UnixSeconds) -> String {
    let mut date = [0; 29];
    write_http_date(at, &mut date);
    String::from_utf8(date.to_vec()).expect("a date is ASCII")
}

/// The response as a shared cache reads it.
fn facts(described: &Representation<'_>) -> ResponseFacts {
    let mut fields = vec![("Date", http_date(NOW))];
    let max_age = described
        .max_age_s
        .map(|seconds| format!("max-age={seconds}"));
    let control: Vec<&str> = described
        .cache_control
        .into_iter()
        .chain(max_age.as_deref())
        .collect();
    if !control.is_empty() {
        fields.push(("Cache-Control", control.join(", ")));
    }
    fields.extend(
        described
            .expires
            .map(|expires| ("Expires", http_date(expires))),
    );
    fields.extend(
        described
            .modified
            .map(|modified| ("Last-Modified", http_date(modified))),
    );
    let lines: Vec<FieldLine<'_>> = fields
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect();
    ResponseFacts::gather(200, &lines, NOW)
}

#[test]
fn described_storability_and_lifetime_agree_with_rfc_9111() {
    let request = RequestFacts::gather(Method::Get, "/", &[]);
    for name in Scenario::names() {
        let site = site(name, 2);
        for number in 0..3000 {
            let described = site.describe(target(&site, name, 0, number << 50 | number), NOW);
            let facts = facts(&described);
            assert_eq!(
                described.storable,
                storable(&request, &facts).is_ok(),
                "{name}: {described:?}"
            );
            let stale = facts
                .directives
                .stale_while_revalidate
                .map_or(0, |delta| u64::from(delta.as_secs()));
            // without a guess: what the response states
            let none = Heuristic {
                fraction_percent: 0,
                max: DeltaSeconds::ZERO,
                assigned: None,
            };
            match freshness_lifetime(&facts, NOW, &none) {
                _ if !described.storable || facts.directives.needs_validation() => {
                    assert_eq!(described.freshness_lifetime_s, 0, "{name}: {described:?}");
                }
                Lifetime::Explicit(stated) => {
                    assert_eq!(
                        described.freshness_lifetime_s,
                        u64::from(stated.as_secs()) + stale,
                        "{name}: {described:?}"
                    );
                }
                Lifetime::Heuristic(_) | Lifetime::None => {
                    assert!(
                        described.freshness_lifetime_s >= HEURISTIC_LIFETIME_MIN_S,
                        "{name}: {described:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn web_2026_lifetimes_compare_to_ages_as_measured() {
    let site = site("web-2026", 4);
    let mut lefts = Vec::new();
    let mut lifetimes = Vec::new();
    for number in 0..60_000 {
        let described = site.describe(Target { server: 0, number }, NOW);
        if let (Some(max_age), Some(modified)) = (described.max_age_s, described.modified) {
            let lifetime = i64::try_from(max_age).unwrap();
            lifetimes.push(lifetime);
            lefts.push(lifetime - (NOW.0 - modified.0));
        }
    }
    lefts.sort_unstable();
    lifetimes.sort_unstable();
    assert_eq!(lifetimes[lifetimes.len() / 2], 14 * 86_400);
    let older = lefts.partition_point(|left| *left < 0) * 100 / lefts.len();
    assert!(
        (51..=58).contains(&older),
        "{older} % are older than their lifetime, not 54 %"
    );
    let median = lefts[lefts.len() / 2] / 86_400;
    assert!(
        (-9..=-4).contains(&median),
        "lifetime less age is {median} days in the median, not -6"
    );
}

#[test]
fn web_2026_sizes_are_within_the_measured_range() {
    let site = site("web-2026", 6);
    let mut lengths: Vec<u64> = (0..60_000)
        .map(|number| site.length(Target { server: 0, number }))
        .collect();
    lengths.sort_unstable();
    let at = |percent: usize| lengths[lengths.len() * percent / 100];
    let found = [at(10), at(50), at(90), at(99)];
    // between recorded pages and a content delivery network's web class
    assert!(
        at(10) < 500 && (2_900..10_240).contains(&at(50)),
        "{found:?}"
    );
    assert!(
        (37_000..100_000).contains(&at(90)) && (102_000..5_000_000).contains(&at(99)),
        "{found:?}"
    );
    let mut cookies: Vec<u64> = (0..20_000)
        .map(|number| site.cookie_bytes(Target { server: 0, number }))
        .collect();
    cookies.sort_unstable();
    assert!((34..=40).contains(&cookies[10_000]) && (330..=400).contains(&cookies[19_000]));
}

#[test]
fn target_of_the_hits_scenario_is_storable_and_fresh_for_a_year() {
    let site = site("hits", 1);
    let described = site.describe(
        Target {
            server: 0,
            number: 5,
        },
        NOW,
    );
    assert!(described.storable && described.etag && described.modified.unwrap() < NOW);
    assert_eq!(
        (described.length, described.freshness_lifetime_s),
        (1024, 365 * 86_400)
    );
}
