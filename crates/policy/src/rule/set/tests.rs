use super::*;
use crate::route::Scope;
use crate::rule::{
    Actions, DENY_BYTES_MAX, IgnoredDirective, Message, PATTERNS_MAX, RULES_MAX, STARS_MAX,
    StatusPattern, parse_fields,
};
use core::fmt;

/// Cases for the naive model.
const CASES: u32 = 100_000;

/// Sets of rules that are made for them.
const SETS: u32 = 500;

/// Steele et al. 2014: enough for cases that differ, and the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let place = usize::try_from(self.next() % from.len() as u64);
        from[place.expect("a place")].clone()
    }

    /// None three times in five, else one or two.
    fn some<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        let count = [0, 0, 0, 1, 2][usize::try_from(self.next() % 5).expect("a place")];
        (0..count).map(|_| self.pick(from)).collect()
    }
}

const HOSTS: [&str; 7] = [
    "a.example",
    "b.a.example",
    "c.b.a.example",
    "example",
    "other.test",
    "192.0.2.1",
    "[2001:db8::1]",
];
const HOST_PATTERNS: [&str; 7] = [
    "a.example",
    "*.a.example",
    "*.example",
    "B.a.Example.",
    "192.0.2.1",
    "2001:db8::1",
    "other.test",
];
const PATHS: [&str; 10] = [
    "/",
    "/a",
    "/a/b",
    "/a/b/c.deb",
    "/ab",
    "/b?a=/a",
    "/a?x",
    "*",
    "/x/pool/y.deb",
    "//a",
];
const PATH_PATTERNS: [&str; 9] = [
    "/",
    "/a",
    "/a/b",
    "/**.deb",
    "/a/*",
    "/*",
    "/**/pool/**",
    "/b",
    "//a",
];
const METHODS_USED: [Method; 4] = [Method::Get, Method::Head, Method::Post, Method::Connect];
const CLIENTS: [&str; 5] = [
    "10.0.0.1",
    "10.1.0.1",
    "::ffff:10.1.0.1",
    "2001:db8::5",
    "127.0.0.1",
];
const NETS: [&str; 5] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "2001:db8::/32",
    "0.0.0.0/0",
    "10.0.0.1/32",
];
const TYPES: [&str; 4] = ["text/html; charset=utf-8", "image/png", "IMAGE/gif", ""];
const TYPE_PATTERNS: [&str; 3] = ["text/html", "image/*", "image/png"];
const STATUSES: [u16; 4] = [200, 404, 500, 503];
const STATUS_PATTERNS: [&str; 4] = ["200", "404", "5xx", "4xx"];

fn parsed<T: core::str::FromStr>(texts: &[&str]) -> Vec<T>
where
    T::Err: fmt::Debug,
{
    let parse = |text: &&str| text.parse().expect("a pattern");
    texts.iter().map(parse).collect()
}

fn random_rule(random: &mut Random) -> RuleSpec {
    let listeners = [
        ListenerPattern::Mode(ListenerMode::Forward),
        ListenerPattern::Mode(ListenerMode::Gateway),
        ListenerPattern::Named("lan".into()),
    ];
    let mut rule = RuleSpec {
        matchers: Matchers {
            listener: random.some(&listeners),
            host: random.some(&parsed(&HOST_PATTERNS)),
            path: random.some(&parsed(&PATH_PATTERNS)),
            method: random.some(&METHODS_USED),
            client: random.some(&parsed(&NETS)),
            status: random.some(&parsed(&STATUS_PATTERNS)),
            content_type: random.some(&parsed(&TYPE_PATTERNS)),
        },
        ..RuleSpec::default()
    };
    let of_request = !rule.matchers.is_of_response();
    let number = random.next();
    if of_request && number & 1 != 0 {
        rule.actions.deny = Some(if number & 16 == 0 {
            Denial::Off
        } else {
            Denial::Text(format!("{number}").into())
        });
    }
    if of_request && number & 2 != 0 {
        rule.actions.bypass = Some(number & 32 == 0);
    }
    if of_request && number & 128 != 0 {
        let directives = [
            IgnoredDirective::RequestNoCache,
            IgnoredDirective::RequestMaxAge,
        ];
        rule.actions.ignore = Some(random.some(&directives).into_iter().collect());
    }
    if of_request && number & 4 != 0 && rule.matchers.of_client().is_none() {
        rule.actions.request = Some(fields(Message::Request, number));
    }
    let has_no_error = |it: &StatusPattern| !it.matches(500);
    if number & 64 != 0
        && rule.matchers.of_client().is_none()
        && rule.matchers.status.iter().all(has_no_error)
    {
        let seconds = u32::try_from(number % 1000).expect("a small number");
        rule.actions.lifetime = Some(match number & 256 {
            0 => RuleLifetime::Default(DeltaSeconds(seconds)),
            _ => RuleLifetime::Forced(DeltaSeconds(seconds)),
        });
    }
    if number & 8 != 0 || rule.actions.iter().next().is_none() {
        rule.actions.response = Some(fields(Message::Response, number));
    }
    rule
}

fn fields(message: Message, number: u64) -> FieldRules {
    parse_fields(message, [format!("set X: {number}")]).expect("a change")
}

/// What is looked at: a request, and a response to it.
struct Case {
    mode: ListenerMode,
    listener: &'static str,
    host: &'static str,
    path: &'static str,
    method: Method,
    client: IpAddr,
    status: u16,
    content_type: &'static str,
}

impl Case {
    fn random(random: &mut Random) -> Self {
        Self {
            mode: random.pick(&[ListenerMode::Forward, ListenerMode::Gateway]),
            listener: random.pick(&["lan", "wan"]),
            host: random.pick(&HOSTS),
            path: random.pick(&PATHS),
            method: random.pick(&METHODS_USED),
            client: random.pick(&CLIENTS).parse().expect("an address"),
            status: random.pick(&STATUSES),
            content_type: random.pick(&TYPES),
        }
    }

    /// Whether a rule is for the request, each matcher read by itself.
    fn fits(&self, rule: &Matchers) -> bool {
        let listener = |pattern: &ListenerPattern| match pattern {
            ListenerPattern::Mode(mode) => *mode == self.mode,
            ListenerPattern::Named(name) => **name == *self.listener,
        };
        let host = |pattern: &HostPattern| {
            let host = match pattern {
                HostPattern::Exact(host) if host.contains(':') => {
                    HostPattern::Exact(format!("[{host}]"))
                }
                other => other.clone(),
            };
            Scope::new(Some(host), "/").covers(self.host.as_bytes(), "/")
        };
        let path = self.path.split('?').next().unwrap_or_default();
        let client = self.client.to_canonical();
        (rule.listener.is_empty() || rule.listener.iter().any(listener))
            && (rule.host.is_empty() || rule.host.iter().any(host))
            && (rule.path.is_empty()
                || path.starts_with('/') && rule.path.iter().any(|it| it.matches(path)))
            && (rule.method.is_empty() || rule.method.contains(&self.method))
            && (rule.client.is_empty() || rule.client.iter().any(|net| net.contains(&client)))
    }

    fn fits_response(&self, rule: &Matchers) -> bool {
        let content_type = self.content_type.as_bytes();
        (rule.status.is_empty() || rule.status.iter().any(|it| it.matches(self.status)))
            && (rule.content_type.is_empty()
                || rule.content_type.iter().any(|it| it.matches(content_type)))
    }
}

fn check_case(set: &RuleSet, rules: &[RuleSpec], case: &Case, what: &str) {
    let place = Place {
        listener: Some(case.listener),
        mode: case.mode,
        method: case.method,
        client: Some(case.client),
    };
    let matched = set.matched(set.applicable(&place), case.host.as_bytes(), case.path);
    let fitting: Vec<usize> = (0..rules.len())
        .filter(|rule| case.fits(&rules[*rule].matchers))
        .collect();
    assert_eq!(matched.iter().collect::<Vec<_>>(), fitting, "{what}");
    let first = |has: &dyn Fn(&Actions) -> bool| {
        let mut fitting = fitting.iter().map(|rule| &rules[*rule].actions);
        fitting.find(|actions| has(actions))
    };
    let outcome = set.outcome(matched);
    let deny = first(&|it| it.deny.is_some()).and_then(|it| it.deny.clone());
    let expected = match deny {
        Some(Denial::Text(text)) => Some(text),
        Some(Denial::Off) | None => None,
    };
    assert_eq!(outcome.deny, expected.as_deref(), "{what}");
    let bypass = first(&|it| it.bypass.is_some()).and_then(|it| it.bypass);
    assert_eq!(outcome.bypass, bypass == Some(true), "{what}");
    let ignored = first(&|it| it.ignore.is_some()).and_then(|it| it.ignore);
    assert_eq!(outcome.ignored, ignored.unwrap_or_default(), "{what}");
    let request = first(&|it| it.request.is_some()).and_then(|it| it.request.as_ref());
    assert_eq!(outcome.request, request, "{what}");
    let mut with_response = fitting.iter().map(|rule| &rules[*rule]);
    let response = with_response
        .find(|rule| rule.actions.response.is_some() && case.fits_response(&rule.matchers));
    let response = response.and_then(|rule| rule.actions.response.as_ref());
    let content_type = case.content_type.as_bytes();
    assert_eq!(
        set.response(matched, case.status, content_type),
        response,
        "{what}"
    );
    let of_target = Case {
        // of no client
        client: IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
        ..*case
    };
    let mut giving = rules.iter().filter(|rule| {
        let matchers = &rule.matchers;
        rule.actions.lifetime.is_some()
            && of_target.fits(matchers)
            && of_target.fits_response(matchers)
            && (case.status < 400 || !matchers.status.is_empty())
    });
    let expected = giving.next().and_then(|rule| rule.actions.lifetime);
    let is_brief = case.status >= 400 && !matches!(case.status, 404 | 410);
    let expected = expected.map(|lifetime| match lifetime {
        RuleLifetime::Default(seconds) if is_brief => {
            RuleLifetime::Default(seconds.min(DeltaSeconds(60)))
        }
        lifetime => lifetime,
    });
    let target = (case.host.as_bytes(), case.path);
    let storing = set.storing(case.mode, target, case.status, content_type);
    let (default, forced) = (storing.default, storing.reuse.forced);
    let lifetime = default.map(RuleLifetime::Default);
    let lifetime = lifetime.or(forced.map(RuleLifetime::Forced));
    assert_eq!(lifetime, expected, "{what}");
    assert!(default.is_none() || forced.is_none(), "{what}");
    assert!(
        response.is_none() || set.may_change_response(matched),
        "{what}"
    );
}

#[test]
fn rules_are_found_as_a_naive_reading_of_the_list_finds_them() {
    let mut random = Random(20);
    for number in 0..SETS {
        let count = 1 + random.next() % 80;
        let rules: Vec<RuleSpec> = (0..count).map(|_| random_rule(&mut random)).collect();
        let set = RuleSet::new(rules.clone()).expect("rules");
        for case in 0..CASES / SETS {
            let what = format!("set {number}, case {case}");
            check_case(&set, &rules, &Case::random(&mut random), &what);
        }
    }
}

fn error_of(rule: RuleSpec) -> (&'static str, String) {
    let error = RuleSet::new([rule].into()).expect_err("a refusal");
    assert_eq!(error.rule, Some(0));
    (error.key, error.reason)
}

#[test]
fn rule_that_means_nothing_is_refused_at_its_key() {
    let (key, reason) = error_of(RuleSpec::default());
    assert_eq!((key, &*reason), ("", "the rule does nothing"));
    let with = |change: &dyn Fn(&mut RuleSpec)| {
        let mut rule = RuleSpec::default();
        change(&mut rule);
        error_of(rule)
    };
    let (key, reason) = with(&|it| {
        it.matchers.status = parsed(&["404"]);
        it.actions.bypass = Some(true);
    });
    assert_eq!(key, "bypass");
    assert!(reason.contains("cannot depend on `status`"), "{reason}");
    for text in ["", "a\nb", &"a".repeat(DENY_BYTES_MAX + 1)] {
        let (key, _) = with(&|it| it.actions.deny = Some(Denial::Text(text.into())));
        assert_eq!(key, "deny", "{text}");
    }
    let (key, _) = with(&|it| {
        it.matchers.method = [Method::Get; PATTERNS_MAX + 1].into();
        it.actions.bypass = Some(true);
    });
    assert_eq!(key, "method");
    let bypassing = || {
        let mut rule = RuleSpec::default();
        rule.actions.bypass = Some(true);
        rule
    };
    let error = RuleSet::new((0..=RULES_MAX).map(|_| bypassing()).collect());
    assert_eq!(error.expect_err("a refusal").rule, None);
    assert!(RuleSet::new((0..RULES_MAX).map(|_| bypassing()).collect()).is_ok());
}

#[test]
fn lifetime_is_for_statuses_that_speak_of_the_target_and_for_all_clients() {
    let rule = |change: &dyn Fn(&mut Matchers)| {
        let mut rule = RuleSpec::default();
        rule.actions.lifetime = Some(RuleLifetime::Default(DeltaSeconds(120)));
        change(&mut rule.matchers);
        RuleSet::new([rule].into())
    };
    let refused = |change: &dyn Fn(&mut Matchers)| rule(change).expect_err("a refusal").key;
    for status in ["206", "304", "401", "405", "416", "429"] {
        assert_eq!(
            refused(&|it| it.status = parsed(&[status])),
            "status",
            "{status}"
        );
    }
    assert_eq!(
        refused(&|it| it.client = parsed(&["10.0.0.0/8"])),
        "lifetime"
    );
    assert_eq!(refused(&|it| it.method = [Method::Get].into()), "lifetime");
    let lifetime = |set: &RuleSet, status: u16| {
        let target: (&[u8], &str) = (b"a.example", "/");
        let storing = set.storing(ListenerMode::Forward, target, status, b"");
        let is_given = storing.reuse.ignored == StoringIgnored::LIFETIME_GIVEN;
        (storing.default.map(|seconds| seconds.0), is_given)
    };
    let all = rule(&|_| {}).expect("a rule");
    for status in [200, 206, 301, 302] {
        assert_eq!(lifetime(&all, status), (Some(120), false), "{status}");
    }
    assert_eq!(lifetime(&all, 404), (None, false));
    let named = rule(&|it| it.status = parsed(&["3xx", "4xx", "503"])).expect("a rule");
    for (status, expected) in [
        (200, (None, false)),
        (206, (None, false)),
        (302, (Some(120), true)),
        (304, (Some(120), false)),
        (404, (Some(120), true)),
        (401, (Some(60), false)),
        (503, (Some(60), true)),
    ] {
        assert_eq!(lifetime(&named, status), expected, "{status}");
    }
}

#[test]
fn forced_lifetime_of_a_status_is_given_to_responses_that_have_none() {
    let rule = |statuses: &[&str], seconds: u32| {
        let mut rule = RuleSpec::default();
        rule.actions.lifetime = Some(RuleLifetime::Forced(DeltaSeconds(seconds)));
        rule.matchers.status = parsed(statuses);
        RuleSet::new([rule].into())
    };
    let gives = |statuses: &[&str], status: u16| {
        let set = rule(statuses, 120).expect("a rule");
        let target: (&[u8], &str) = (b"a.example", "/");
        let storing = set.storing(ListenerMode::Forward, target, status, b"");
        assert_eq!(storing.default, None, "{status}");
        let forced = storing.reuse.forced_for(status);
        let is_given = storing.reuse.ignored == StoringIgnored::LIFETIME_GIVEN;
        (forced.map(|seconds| seconds.0), is_given)
    };
    // without a word of the operator about the status, it is for what is stored anyway
    assert_eq!(gives(&[], 302), (Some(120), false));
    for (status, expected) in [
        (200, (None, false)),
        (302, (Some(120), true)),
        (404, (Some(120), true)),
        (503, (Some(60), true)),
    ] {
        assert_eq!(gives(&["3xx", "404", "503"], status), expected, "{status}");
    }
    for status in ["206", "304", "401", "429"] {
        let error = rule(&[status], 120).expect_err(status);
        assert_eq!(error.key, "status", "{status}");
        assert!(rule(&[status], 0).is_ok(), "{status}");
    }
}

/// What the origin answers to a changed request must not be given to clients whose requests are
/// not changed so.
#[test]
fn request_changed_for_some_clients_bypasses_the_cache() {
    let for_client = |bypass| {
        let mut rule = RuleSpec::default();
        rule.matchers.client = parsed(&["10.0.0.0/8"]);
        rule.actions.request = Some(fields(Message::Request, 1));
        rule.actions.bypass = bypass;
        rule
    };
    for bypass in [None, Some(false)] {
        let (key, reason) = error_of(for_client(bypass));
        assert_eq!(key, "request");
        assert!(reason.contains("depends on `client`"), "{reason}");
    }
    // what an earlier rule says of bypassing does not matter
    let mut earlier = RuleSpec::default();
    earlier.actions.bypass = Some(false);
    let set = RuleSet::new([earlier, for_client(Some(true))].into()).expect("rules");
    let outcome = |client: &str| {
        let place = Place {
            listener: None,
            mode: ListenerMode::Forward,
            method: Method::Get,
            client: Some(client.parse().expect("an address")),
        };
        set.outcome(set.matched(set.applicable(&place), b"a.example", "/"))
    };
    let changed = outcome("10.0.0.1");
    assert!(changed.bypass && changed.request.is_some());
    assert_eq!(outcome("11.0.0.1"), Outcome::default());
}

#[test]
fn empty_list_of_changes_is_an_exception_from_later_rules() {
    let mut exception = RuleSpec::default();
    exception.matchers.host = parsed(&["a.example"]);
    exception.actions.request = Some(FieldRules::default());
    exception.actions.response = Some(FieldRules::default());
    let mut all = RuleSpec::default();
    all.actions.request = Some(fields(Message::Request, 1));
    all.actions.response = Some(fields(Message::Response, 1));
    let set = RuleSet::new([exception, all].into()).expect("rules");
    let place = Place {
        listener: None,
        mode: ListenerMode::Gateway,
        method: Method::Get,
        client: None,
    };
    let matched = |host: &str| set.matched(set.applicable(&place), host.as_bytes(), "/");
    let (excepted, other) = (matched("a.example"), matched("b.example"));
    assert_eq!(set.outcome(excepted).request, None);
    assert_eq!(set.response(excepted, 200, b""), None);
    assert!(set.outcome(other).request.is_some());
    assert!(set.response(other, 200, b"").is_some());
}

#[test]
fn key_is_changed_of_get_and_head_alone() {
    let mut rule = RuleSpec::default();
    rule.actions.key = Some(KeyRule {
        sort_query: true,
        ..KeyRule::default()
    });
    let set = RuleSet::new([rule].into()).expect("rules");
    for (method, expected) in [
        (Method::Get, true),
        (Method::Head, true),
        (Method::Post, false),
        (Method::Delete, false),
        (Method::Connect, false),
    ] {
        let place = Place {
            listener: None,
            mode: ListenerMode::Gateway,
            method,
            client: None,
        };
        let outcome = set.outcome(set.matched(set.applicable(&place), b"a.example", "/?b&a"));
        assert_eq!(outcome.key(method).is_some(), expected, "{method:?}");
    }
}

#[test]
fn address_is_the_same_in_the_spelling_of_both_versions_of_ip() {
    let place = Place {
        listener: None,
        mode: ListenerMode::Forward,
        method: Method::Get,
        client: None,
    };
    for pattern in ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"] {
        let mut rule = RuleSpec::default();
        rule.matchers.host = parsed(&[pattern]);
        rule.actions.bypass = Some(true);
        let set = RuleSet::new([rule].into()).expect("rules");
        let is_for = |host: &str| {
            let matched = set.matched(set.applicable(&place), host.as_bytes(), "/");
            !matched.is_empty()
        };
        let same = ["192.0.2.1", "[::ffff:192.0.2.1]", "[::ffff:c000:201]"];
        assert!(same.iter().all(|host| is_for(host)), "{pattern}");
        let others = ["192.0.2.2", "[::ffff:192.0.2.2]", "[::c000:201]", "[::1]"];
        assert!(!others.iter().any(|host| is_for(host)), "{pattern}");
    }
}

#[test]
fn request_without_a_client_is_for_no_rule_with_networks() {
    let mut rule = RuleSpec::default();
    rule.matchers.client = parsed(&["0.0.0.0/0", "::/0"]);
    rule.actions.bypass = Some(true);
    let set = RuleSet::new([rule].into()).expect("rules");
    let place = Place {
        listener: None,
        mode: ListenerMode::Forward,
        method: Method::Get,
        client: None,
    };
    assert!(set.applicable(&place).is_empty());
}

#[test]
fn globs_of_all_rules_have_a_bounded_number_of_stars() {
    let rules = |count: usize| {
        let mut rule = RuleSpec::default();
        rule.matchers.path = parsed(&["/**/a/*b*c*d*e*f**", "/plain"]);
        rule.actions.bypass = Some(true);
        RuleSet::new(vec![rule; count])
    };
    let stars = 7;
    assert!(rules(STARS_MAX / stars).is_ok());
    let error = rules(STARS_MAX / stars + 1).expect_err("too many");
    assert_eq!(error.rule, None);
    assert!(
        error.reason.contains("have 518 stars, more than 512"),
        "{error}"
    );
}

/// Of fields before the head and behind the content it is not known which rule decides.
#[test]
fn fields_are_left_out_that_a_rule_may_replace_up_to_the_first_that_surely_decides() {
    let responding = |status: &[&str], changes: &[&str]| {
        let mut rule = RuleSpec::default();
        rule.matchers.status = parsed(status);
        rule.actions.response = Some(parse_fields(Message::Response, changes).expect("fields"));
        rule
    };
    let mut other = RuleSpec::default();
    other.actions.bypass = Some(true);
    let set = RuleSet::new(vec![
        responding(&["404"], &["remove A", "add B: 1"]),
        other,
        responding(&[], &["set C: 1"]),
        responding(&[], &["remove D"]),
    ]);
    let set = set.expect("rules");
    let left_out = set.left_out((0..4).collect());
    assert!(left_out.has("a") && left_out.has("C"));
    assert!(!left_out.has("B") && !left_out.has("D"));
    assert!(set.left_out([1].into_iter().collect()).is_empty());
    assert!(set.left_out(Bits::NONE).is_empty());
}

#[test]
fn rate_is_that_of_the_first_rule_that_has_one_for_the_response() {
    let limited = |status: &[&str], bytes_s: Option<u64>| {
        let mut rule = RuleSpec::default();
        rule.matchers.status = parsed(status);
        rule.actions.rate = Some(match bytes_s {
            Some(bytes_s) => RuleRate::Limited(ByteRate::new(bytes_s).expect("a rate")),
            None => RuleRate::Off,
        });
        rule
    };
    let mut other = RuleSpec::default();
    other.actions.bypass = Some(true);
    let set = RuleSet::new(vec![
        other,
        limited(&["404"], Some(1)),
        limited(&["5xx"], None),
        limited(&[], Some(2)),
    ]);
    let set = set.expect("rules");
    let all: Bits = (0..4).collect();
    let rate = |status: u16| {
        let rate = set.rate(all, status, b"");
        rate.map(|(rule, rate)| (rule, rate.bytes_s()))
    };
    assert_eq!(rate(404), Some((1, 1)));
    assert_eq!(rate(200), Some((3, 2)));
    assert_eq!(rate(503), None);
    assert!(set.may_limit_rate(all) && !set.may_limit_rate([0].into_iter().collect()));
    assert_eq!(ByteRate::new(0), None);
}

#[test]
fn fetch_is_ruled_by_its_target_alone() {
    let fetching = |path: &str, read_ahead: Option<u64>, abort: Option<AbortKind>| {
        let mut rule = RuleSpec::default();
        rule.matchers.path = parsed(&[path]);
        rule.actions.read_ahead = read_ahead.map(ReadAhead::Bytes);
        rule.actions.abort = abort;
        rule
    };
    let set = RuleSet::new(vec![
        fetching("/a/b", Some(1), None),
        fetching("/a", Some(2), Some(AbortKind::Finish)),
    ]);
    let set = set.expect("rules");
    let found = |path: &str| {
        let found = set.fetching(ListenerMode::Gateway, (b"a.example", path));
        (found.read_ahead, found.abort)
    };
    let bytes = |bytes: u64| Some(ReadAhead::Bytes(bytes));
    assert_eq!(found("/a/b?c"), (bytes(1), Some(AbortKind::Finish)));
    assert_eq!(found("/a"), (bytes(2), Some(AbortKind::Finish)));
    assert_eq!(found("/c"), (None, None));
    assert!(set.may_set_read_ahead());
    let mut for_client = fetching("/", None, Some(AbortKind::Stop));
    for_client.matchers.client = parsed(&["10.0.0.0/8"]);
    let (key, reason) = error_of(for_client);
    assert_eq!(key, "abort");
    assert!(reason.contains("how a response is fetched"), "{reason}");
}
