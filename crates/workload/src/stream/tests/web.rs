use std::collections::BTreeMap;

use super::{expect_share, open, scenario};
use crate::stream::Due;
use crate::{Method, RequestType, Scenario, Target, Workload};

fn web(scenario: &Scenario) -> &crate::Web {
    let Workload::Web(web) = &scenario.workload else {
        panic!("{} is of another kind", scenario.name);
    };
    web
}

fn short() -> Scenario {
    Scenario::built_in("web-2026")
        .expect("a scenario")
        .scaled(0.1)
}

#[test]
fn arrivals_are_a_poisson_process_of_the_configured_rate() {
    let scenario = short();
    let web = web(&scenario);
    let all = open(&scenario, 1);
    let seconds = web.warm_up_s + web.measured_s;
    let meant = web.rate_per_s * seconds;
    assert!(
        (all.len() as f64 - meant).abs() < 5.0 * meant.sqrt(),
        "{}",
        all.len()
    );
    let gaps: Vec<f64> = all
        .windows(2)
        .map(|pair| (pair[1].at_us - pair[0].at_us) as f64 / 1e6)
        .collect();
    for multiple in [0.5, 1.0, 2.0, 4.0] {
        let longer = gaps
            .iter()
            .filter(|gap| **gap > multiple / web.rate_per_s)
            .count();
        let share = longer as f64 / gaps.len() as f64;
        assert!(
            (share - libm::exp(-multiple)).abs() < 0.01,
            "beyond {multiple} means: {share}"
        );
    }
}

#[test]
fn request_belongs_to_the_phase_of_its_time() {
    let scenario = short();
    let plan = scenario.phases(2);
    let warm_up_us = plan[0].ends_at_us.expect("an end");
    let end_us = plan[1].ends_at_us.expect("an end");
    for due in open(&scenario, 2) {
        assert_eq!(
            u64::from(due.request.phase),
            u64::from(due.at_us >= warm_up_us),
            "{due:?}"
        );
        assert!(due.at_us <= end_us);
    }
    assert_eq!((plan[0].is_measured, plan[1].is_measured), (false, true));
}

fn counts(all: &[Due]) -> BTreeMap<Target, usize> {
    let mut counts = BTreeMap::new();
    for due in all {
        *counts.entry(due.request.target).or_default() += 1;
    }
    counts
}

/// Content delivery traces of the web class: 66 to 72 % of the targets are requested once, and a
/// target ten to twelve times in the mean.
#[test]
fn popularity_has_the_one_hit_share_and_mean_of_real_traces() {
    let scenario = Scenario::built_in("web-2026").expect("a scenario");
    let all = open(&scenario, 3);
    let counts = counts(&all);
    let once = counts.values().filter(|count| **count == 1).count();
    let share = once as f64 / counts.len() as f64;
    let mean = all.len() as f64 / counts.len() as f64;
    assert!((0.62..0.77).contains(&share), "{share}");
    assert!((8.0..14.0).contains(&mean), "{mean}");
}

#[test]
fn requests_of_each_kind_have_the_share_in_the_scenario() {
    let scenario = short();
    let web = web(&scenario);
    let all = open(&scenario, 4);
    let count = |is: fn(&Due) -> bool| all.iter().filter(|due| is(due)).count();
    let whole = all.len();
    expect_share(
        "conditional",
        count(|due| matches!(due.request.kind, RequestType::IfModifiedSince { .. })),
        whole,
        web.if_modified_share,
    );
    expect_share(
        "reload",
        count(|due| due.request.kind == RequestType::Reload),
        whole,
        web.reload_share,
    );
    expect_share(
        "HEAD",
        count(|due| due.request.method == Method::Head),
        whole,
        web.head_share,
    );
    expect_share(
        "cookie",
        count(|due| due.request.cookie),
        whole,
        web.cookie_share,
    );
    let fresh = all
        .iter()
        .filter(|due| due.request.target.number >= web.targets)
        .count();
    expect_share("once", fresh, whole, web.one_hit_share);
}

#[test]
fn ranks_are_requested_by_the_zipf_law() {
    let scenario = scenario(
        "web-2026",
        &["workload.targets=1000", "workload.one_hit_share=0"],
    )
    .scaled(1.0);
    let web = web(&scenario);
    let all = open(&scenario, 5);
    let weight = |rank: u64| libm::pow(rank as f64, -web.zipf_exponent);
    let whole: f64 = (1..=1000).map(weight).sum();
    for rank in [1, 2, 3, 10, 100, 1000] {
        let found = all
            .iter()
            .filter(|due| due.request.target.number + 1 == rank)
            .count();
        expect_share(
            &format!("rank {rank}"),
            found,
            all.len(),
            weight(rank) / whole,
        );
    }
}

#[test]
fn target_belongs_to_one_server() {
    let scenario = short();
    let mut servers = BTreeMap::new();
    for due in open(&scenario, 6) {
        let server = due.request.target.server;
        assert_eq!(
            *servers.entry(due.request.target.number).or_insert(server),
            server
        );
        assert!(server < web(&scenario).servers);
    }
}
