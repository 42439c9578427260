use super::health::Condition;
use super::policy::PolicyKind;
use super::*;
use crate::now::Tick;
use alloc::string::ToString;
use weir_semantics::Timestamp;

const A: HopId = HopId(1);
const B: HopId = HopId(2);
const C: HopId = HopId(3);

fn at(ms: u64) -> Now {
    Now {
        wall: Timestamp(0),
        tick: Tick(ms),
    }
}

/// A spec from `host/prefix`, the host empty for all.
fn spec(target: &str, hops: &[HopId]) -> RouteSpec {
    let (host, path) = target.split_at(target.find('/').unwrap());
    RouteSpec {
        host: (!host.is_empty()).then(|| host.parse().unwrap()),
        path_prefix: path.to_string(),
        hops: hops.iter().map(|hop| route_hop(*hop)).collect(),
        balancing: Balancing::default(),
        choice_for: ChoiceFor::Request,
    }
}

fn route_hop(hop: HopId) -> RouteHop {
    RouteHop {
        hop,
        key: NodeKey::of(&AGREED, &hop.0.to_string()),
        weight: Weight::ONE,
    }
}

fn condition(routes: &Routes, now: Now, hop: HopId) -> Condition {
    let index = routes.health.index_of(hop).unwrap();
    routes.health.at(index).condition(now)
}

fn routes(targets: &[&str]) -> Result<Routes, RouteError> {
    let specs = targets.iter().map(|target| spec(target, &[A])).collect();
    Routes::new(specs, EjectionRules::default(), 1)
}

#[test]
fn most_specific_route_matching_host_and_path_wins() {
    let targets = [
        "/",
        "*.org/",
        "*.example.org/",
        "*.example.org/deep/down",
        "www.example.org/a",
        "www.example.org/a/b",
        "www.example.org/slash/",
    ];
    let routes = routes(&targets).unwrap();
    let check = |host: &str, path: &str, expected: usize| {
        let found = routes.find(host, path).unwrap();
        assert_eq!(
            targets[found.0 as usize], targets[expected],
            "{host} {path}"
        );
    };
    check("elsewhere.net", "/a", 0);
    check("org", "/a", 0);
    check("other.org", "/a", 1);
    check("example.org", "/a", 1);
    check("x.example.org", "/a", 2);
    check("y.x.example.org", "/deep/down/here", 3);
    check("notexample.org", "/", 1);
    check("www.example.org", "/a", 4);
    check("www.example.org", "/a?b=/a/b", 4);
    check("www.example.org", "/a/", 4);
    check("www.example.org", "/a/bc", 4);
    check("www.example.org", "/a/b", 5);
    check("www.example.org", "/a/b/c?d", 5);
    check("www.example.org", "/slash/", 6);
    check("www.example.org", "/slash/below", 6);
    // No route of the exact host is for these paths: the next less specific host is used.
    check("www.example.org", "/ab", 2);
    check("www.example.org", "/slash", 2);
    check("www.example.org", "/deep/down", 3);
    check("www.example.org", "*", 2);
    check("WWW.Example.ORG", "/a", 4);
    check("www.example.org.", "/a", 4);
}

#[test]
fn target_without_route_is_refused_with_host_or_path_reason() {
    let routes = routes(&["www.example.org/a", "*.example.net/"]).unwrap();
    let check = |host: &str, path: &str, expected: NoRoute| {
        assert_eq!(routes.find(host, path), Err(expected), "{host} {path}");
    };
    check("example.org", "/a", NoRoute::Host);
    check("example.net", "/", NoRoute::Host);
    check("badexample.net", "/", NoRoute::Host);
    check("", "/", NoRoute::Host);
    check("www.example.org", "/", NoRoute::Path);
    check("www.example.org", "/A", NoRoute::Path);
    check("www.example.org", "/%61", NoRoute::Path);
    check("www.example.org", "*", NoRoute::Path);
}

#[test]
fn route_spec_that_can_never_serve_is_refused() {
    let check = |targets: &[&str], expected: RouteError| {
        assert_eq!(routes(targets).map(|_| ()), Err(expected), "{targets:?}");
    };
    check(&["/", "/a?b"], RouteError::PathPrefix(RouteId(1)));
    check(
        &["a.org/x", "/x", "A.org./x"],
        RouteError::Duplicate(RouteId(2)),
    );
    let relative = RouteSpec {
        path_prefix: "a".to_string(),
        ..spec("/", &[A])
    };
    let empty = spec("/", &[]);
    let twice = spec("/", &[A, B, A]);
    for (spec, expected) in [
        (relative, RouteError::PathPrefix(RouteId(0))),
        (empty, RouteError::NoHops(RouteId(0))),
        (twice, RouteError::HopTwice(RouteId(0))),
    ] {
        assert_eq!(
            Routes::new(vec![spec], EjectionRules::default(), 1).map(|_| ()),
            Err(expected)
        );
    }
    assert!(routes(&["a.org/", "*.a.org/", "b.org/", "/"]).is_ok());
}

/// One route over `hops`.
fn over(hops: &[HopId]) -> Routes {
    Routes::new(vec![spec("/", hops)], EjectionRules::default(), 1).unwrap()
}

fn choose(routes: &mut Routes, ms: u64) -> (HopId, Why) {
    let choice = routes.choose(at(ms), "example.org", "/").unwrap();
    (choice.hop, choice.why)
}

#[test]
fn next_hops_are_chosen_in_turn() {
    let mut routes = over(&[A, B, C]);
    let hops: Vec<HopId> = (0..7).map(|_| choose(&mut routes, 0).0).collect();
    assert_eq!(hops, [A, B, C, A, B, C, A]);
}

#[test]
fn ejected_hop_is_probed_by_one_request_once_its_ejection_ends() {
    let mut routes = over(&[A, B]);
    routes.report(at(0), A, Outcome::ConnectFailed);
    assert_eq!(choose(&mut routes, 0), (B, Why::OthersEjected));
    assert_eq!(choose(&mut routes, 9_999), (B, Why::OthersEjected));
    assert_eq!(choose(&mut routes, 10_000), (A, Why::Probe));
    // Its outcome is not known: no other request tries.
    assert_eq!(choose(&mut routes, 10_001), (B, Why::InTurn));
    assert_eq!(choose(&mut routes, 10_001), (B, Why::OthersEjected));
    routes.report(at(10_002), A, Outcome::Connected);
    assert_eq!(choose(&mut routes, 10_003), (A, Why::InTurn));
}

#[test]
fn probe_without_outcome_is_repeated_after_another_ejection() {
    let mut routes = over(&[A, B]);
    routes.report(at(0), A, Outcome::ConnectFailed);
    assert_eq!(choose(&mut routes, 10_000), (A, Why::Probe));
    assert_eq!(choose(&mut routes, 19_999), (B, Why::InTurn));
    assert_eq!(choose(&mut routes, 20_000), (A, Why::Probe));
}

#[test]
fn rest_doubles_up_to_its_maximum_and_resets_on_success() {
    let mut routes = over(&[A, B]);
    let mut now = 0;
    routes.report(at(now), A, Outcome::ConnectFailed);
    for ejection_ms in [10_000, 20_000, 40_000, 60_000, 60_000] {
        choose(&mut routes, now + ejection_ms - 1);
        let ejected = condition(&routes, at(now + ejection_ms - 1), A);
        assert_ne!(ejected, Condition::Probing, "{ejection_ms}");
        now += ejection_ms;
        assert_eq!(
            condition(&routes, at(now), A),
            Condition::Probing,
            "{ejection_ms}"
        );
        while choose(&mut routes, now) != (A, Why::Probe) {}
        routes.report(at(now), A, Outcome::ConnectFailed);
    }
    // A good connect forgets it all.
    routes.report(at(now), A, Outcome::Connected);
    routes.report(at(now), A, Outcome::ConnectFailed);
    assert_eq!(condition(&routes, at(now + 10_000), A), Condition::Probing);
}

#[test]
fn concurrent_failures_do_not_double_the_ejection() {
    let mut routes = over(&[A, B]);
    for ms in 0..100 {
        routes.report(at(ms), A, Outcome::ConnectFailed);
    }
    let until = |until| Condition::Ejected { until: Tick(until) };
    assert_eq!(condition(&routes, at(100), A), until(10_099));
}

#[test]
fn if_all_hops_are_ejected_the_one_that_ends_first_is_tried() {
    let mut routes = over(&[A, B, C]);
    for (ms, hop) in [(5, A), (3, B), (4, C)] {
        routes.report(at(ms), hop, Outcome::ConnectFailed);
    }
    for (ms, hop) in [(10, B), (11, C), (12, A), (13, B)] {
        assert_eq!(choose(&mut routes, ms), (hop, Why::AllEjected));
        routes.report(at(ms), hop, Outcome::ConnectFailed);
    }
    // A single hop is tried even so.
    let mut routes = over(&[A]);
    routes.report(at(0), A, Outcome::ConnectFailed);
    assert_eq!(choose(&mut routes, 1), (A, Why::AllEjected));
}

#[test]
fn hop_that_was_tried_is_not_chosen_again() {
    let mut routes = over(&[A, B]);
    let mut choose = |ms: u64, tried: &[HopId]| {
        let choice = routes.choose_another(at(ms), "example.org", "/", tried);
        choice.unwrap().map(|choice| (choice.hop, choice.why))
    };
    assert_eq!(choose(0, &[B]), Some((A, Why::InTurn)));
    assert_eq!(choose(0, &[A]), Some((B, Why::InTurn)));
    assert_eq!(choose(0, &[A, B]), None);
    assert_eq!(choose(0, &[B, A]), None);
    routes.report(at(0), A, Outcome::ConnectFailed);
    // it is ejected, and the only one left
    let choice = routes.choose_another(at(1), "example.org", "/", &[B]);
    let choice = choice.unwrap().map(|choice| (choice.hop, choice.why));
    assert_eq!(choice, Some((A, Why::AllEjected)));
}

#[test]
fn ejected_hop_is_ejected_in_every_route() {
    let specs = vec![spec("a.org/", &[A, B]), spec("b.org/", &[A, C])];
    let mut routes = Routes::new(specs, EjectionRules::default(), 1).unwrap();
    routes.report(at(0), A, Outcome::ConnectFailed);
    assert_eq!(
        routes.choose(at(1), "a.org", "/").map(|choice| choice.hop),
        Ok(B)
    );
    assert_eq!(
        routes.choose(at(1), "b.org", "/").map(|choice| choice.hop),
        Ok(C)
    );
}

#[test]
fn failure_reports_of_unrouted_hops_do_not_affect_routed_hops() {
    let mut routes = over(&[A]);
    for hop in 10..1000 {
        routes.report(at(0), HopId(hop), Outcome::ConnectFailed);
    }
    assert_eq!(choose(&mut routes, 1), (A, Why::InTurn));
}

#[test]
fn rest_of_zero_never_excludes_a_hop() {
    let rules = EjectionRules {
        ejection_ms: 0,
        ejection_max_ms: 0,
    };
    let mut routes = Routes::new(vec![spec("/", &[A, B])], rules, 1).unwrap();
    routes.report(at(5), A, Outcome::ConnectFailed);
    assert_eq!(choose(&mut routes, 5).0, A);
    assert_eq!(choose(&mut routes, 5).0, B);
}

#[test]
fn ejected_hop_stays_ejected_when_routes_are_replaced() {
    let mut before = Routes::new(vec![spec("/", &[A, B])], EjectionRules::default(), 1).unwrap();
    before.report(at(0), A, Outcome::ConnectFailed);
    // the same next hops by other numbers, and one that is new
    let renumbered = |hop| match hop {
        C => Some(A),
        A => Some(B),
        _ => None,
    };
    let mut after = Routes::new(vec![spec("/", &[A, B, C])], EjectionRules::default(), 1).unwrap();
    after.keep_health(at(0), &before, renumbered);
    for _ in 0..6 {
        let choice = after.choose(at(1), "a", "/").unwrap();
        assert_ne!(choice.hop, C, "it rests");
    }
    // and no longer than it would have
    let ejection_ms = EjectionRules::default().ejection_ms;
    let chosen: Vec<HopId> = (0..3)
        .map(|_| after.choose(at(ejection_ms), "a", "/").unwrap().hop)
        .collect();
    assert!(chosen.contains(&C), "{chosen:?}");
}

#[test]
fn scope_covers_the_targets_that_a_route_with_its_host_and_path_is_for() {
    let patterns = [
        "/",
        "/a",
        "/a/",
        "org/",
        "*.org/",
        "*.example.org/a",
        "www.example.org/",
        "WWW.Example.org/a/b",
    ];
    let hosts = [
        "org",
        "example.org",
        "www.example.org",
        "WWW.EXAMPLE.ORG.",
        "wwwexample.org",
        "www.example.org.evil.com",
        "[::1]",
    ];
    let paths = [
        "/", "/a", "/a/", "/a/b", "/a/b?q", "/ab", "/a?q", "*", "", "/%61",
    ];
    let mut covered = 0;
    for pattern in patterns {
        let RouteSpec {
            host, path_prefix, ..
        } = spec(pattern, &[A]);
        let scope = Scope::new(host, &path_prefix);
        let routes = routes(&[pattern]).unwrap();
        for host in hosts {
            for path in paths {
                let covers = scope.covers(host.as_bytes(), path);
                assert_eq!(
                    covers,
                    routes.find(host, path).is_ok(),
                    "{pattern}: {host}{path}"
                );
                covered += usize::from(covers);
            }
        }
    }
    assert!(covered > 100, "{covered}");
}

/// One route over three next hops.
fn balanced(policy: PolicyKind) -> Routes {
    let spec = RouteSpec {
        balancing: Balancing {
            policy,
            ..Balancing::default()
        },
        ..spec("/", &[A, B, C])
    };
    Routes::new(vec![spec], EjectionRules::default(), 1).unwrap()
}

#[test]
fn outstanding_requests_of_a_hop_count_until_they_end() {
    let mut routes = balanced(PolicyKind::Least);
    for hop in [A, A, B] {
        routes.begin(hop);
    }
    assert_eq!(choose(&mut routes, 0), (C, Why::LeastLoad));
    routes.begin(C);
    routes.end(B);
    assert_eq!(choose(&mut routes, 0), (B, Why::LeastLoad));
    // more ends than begins leave none
    for _ in 0..3 {
        routes.end(A);
    }
    routes.begin(B);
    assert_eq!(choose(&mut routes, 0), (A, Why::LeastLoad));
}

#[test]
fn target_returns_to_its_hop_by_a_probe_after_an_ejection() {
    let mut routes = balanced(PolicyKind::Hash);
    let (first, why) = choose(&mut routes, 0);
    assert_eq!(why, Why::FirstInOrder);
    routes.report(at(0), first, Outcome::ConnectFailed);
    let (next, why) = choose(&mut routes, 1);
    assert_eq!(why, Why::OthersEjected);
    assert_ne!(next, first);
    assert_eq!(choose(&mut routes, 10_000), (first, Why::Probe));
    assert_eq!(choose(&mut routes, 10_001), (next, Why::OthersEjected));
    routes.report(at(10_002), first, Outcome::Connected);
    assert_eq!(choose(&mut routes, 10_003), (first, Why::FirstInOrder));
}

#[test]
fn slow_hop_is_left_to_faster_ones() {
    let mut routes = balanced(PolicyKind::TwoChoices);
    for (hop, us) in [(A, 900_000), (B, 1000), (C, 1000)] {
        routes.responded(at(0), hop, us);
    }
    for ms in 0..100 {
        assert_ne!(choose(&mut routes, ms).0, A);
    }
}

#[test]
fn host_in_any_case_has_the_same_hop() {
    let mut routes = balanced(PolicyKind::Hash);
    for number in 0..50 {
        let path = std::format!("/{number}");
        let mut hop = |host: &str| routes.choose(at(0), host, &path).unwrap().hop;
        assert_eq!(hop("Example.ORG."), hop("example.org"));
    }
}

#[test]
fn targets_have_other_hops_under_a_secret_and_the_same_ones_under_the_same_secret() {
    let under = |secret: Option<u8>| {
        let mut routes = balanced(PolicyKind::Hash);
        if let Some(secret) = secret {
            routes.hash_targets_under(Secret([secret; 16]));
        }
        let paths = (0..100).map(|number| std::format!("/{number}"));
        let hops = paths.map(|path| routes.choose(at(0), "a", &path).unwrap().hop);
        hops.collect::<Vec<HopId>>()
    };
    assert_eq!(under(None), under(None));
    assert_eq!(under(Some(1)), under(Some(1)));
    let alike = |one: &[HopId], other: &[HopId]| {
        let pairs = one.iter().zip(other);
        pairs.filter(|(one, other)| one == other).count()
    };
    assert!(alike(&under(Some(1)), &under(Some(2))) < 60);
    assert!(alike(&under(Some(1)), &under(None)) < 60);
}

#[test]
fn candidates_of_a_target_have_their_costs_and_take_no_turn() {
    let mut routes = balanced(PolicyKind::BoundedHash);
    let (first, _) = choose(&mut routes, 0);
    routes.report(at(0), A, Outcome::ConnectFailed);
    let (_, candidates) = routes.candidates(at(1), "example.org", "/").unwrap();
    assert_eq!(candidates.len(), 3);
    assert_eq!(candidates[0].node.state, NodeState::Gone);
    assert_eq!(candidates[0].costs.total().units(), None);
    let least = candidates.iter().min_by_key(|it| it.costs.total()).unwrap();
    assert!(least.hop == first || first == A);
    let chosen = candidates.iter().filter(|it| it.chosen.is_some());
    let chosen: Vec<HopId> = chosen.map(|it| it.hop).collect();
    assert_eq!(chosen, [least.hop]);
    assert!(routes.candidates(at(1), "example.org", "*").is_ok());
    let mut in_turn = over(&[A, B]);
    for _ in 0..3 {
        let (_, candidates) = in_turn.candidates(at(0), "a", "/").unwrap();
        let chosen = candidates.iter().map(|it| it.chosen);
        assert!(chosen.eq([Some(Why::InTurn), None]));
    }
    assert_eq!(choose(&mut in_turn, 0).0, A);
}

#[test]
fn probes_eject_a_hop_after_several_failures_and_bring_it_back_after_several_passes() {
    let rules = ProbeRules {
        healthy_after: 2,
        unhealthy_after: 3,
        hold_ms: 5000,
    };
    let mut routes = over(&[A, B]);
    let mut probe = |ms: u64, has_passed: bool| {
        routes.probed(at(ms), A, has_passed, rules);
        // a connect is no proof of health to one whose probes fail
        routes.report(at(ms), A, Outcome::Connected);
        condition(&routes, at(ms), A) == Condition::Healthy
    };
    assert!(probe(0, false));
    assert!(probe(1000, false));
    assert!(probe(2000, true), "not in a row");
    assert!(probe(3000, false));
    assert!(probe(4000, false));
    assert!(!probe(5000, false));
    assert!(!probe(6000, true));
    assert!(!probe(7000, false), "it is to pass twice in a row");
    assert!(!probe(8000, true));
    assert!(probe(9000, true));
    // without probes the ejection ends by itself
    assert!((10..13).all(|s| probe(s * 1000, false) == (s < 12)));
    assert_eq!(
        condition(&routes, at(16_999), A),
        Condition::Ejected {
            until: Tick(17_000)
        }
    );
    assert_eq!(condition(&routes, at(17_000), A), Condition::Probing);
}

#[test]
fn hop_that_comes_back_gets_its_share_little_by_little() {
    let mut spec = spec("/", &[A, B]);
    spec.balancing.ramp = RampMs(30_000);
    let mut routes = Routes::new(vec![spec], EjectionRules::default(), 1).unwrap();
    let share_of_a = |routes: &mut Routes, ms: u64| {
        let chosen = (0..110).map(|_| routes.choose(at(ms), "a", "/").unwrap().hop);
        chosen.filter(|hop| *hop == A).count()
    };
    assert_eq!(
        share_of_a(&mut routes, 0),
        55,
        "there is no ramp at the start"
    );
    routes.report(at(0), A, Outcome::ConnectFailed);
    assert_eq!(share_of_a(&mut routes, 1), 0);
    routes.report(at(10_000), A, Outcome::Connected);
    assert_eq!(share_of_a(&mut routes, 10_000), 10);
    assert!((34..=38).contains(&share_of_a(&mut routes, 25_000)));
    assert_eq!(share_of_a(&mut routes, 40_000), 55);
}

#[test]
fn hop_that_a_reload_adds_ramps_up() {
    let ramped = |hops: &[HopId]| {
        let mut spec = spec("/", hops);
        spec.balancing.ramp = RampMs(30_000);
        Routes::new(vec![spec], EjectionRules::default(), 1).unwrap()
    };
    let before = ramped(&[A]);
    let mut after = ramped(&[A, B]);
    after.keep_health(at(0), &before, |hop| (hop == A).then_some(A));
    let chosen = (0..110).map(|_| after.choose(at(0), "a", "/").unwrap().hop);
    assert_eq!(chosen.filter(|hop| *hop == B).count(), 10);
}
