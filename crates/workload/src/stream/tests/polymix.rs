use std::collections::{BTreeMap, BTreeSet};

use super::infinite::{Counts, Infinite};
use super::{expect_share, mini, open, squared};
use crate::stream::Due;
use crate::{Method, RequestType, Scenario, Site};

/// A run of a scenario, by the names of its phases.
struct Run {
    scenario: Scenario,
    site: Site,
    names: Vec<String>,
    ends_us: Vec<u64>,
    all: Vec<Due>,
}

impl Run {
    fn of(scenario: Scenario, seed: u64) -> Self {
        let plan = scenario.phases(seed);
        Self {
            site: Site::new(&scenario, seed),
            names: plan.iter().map(|phase| phase.name.clone()).collect(),
            ends_us: plan.iter().filter_map(|phase| phase.ends_at_us).collect(),
            all: open(&scenario, seed),
            scenario,
        }
    }

    fn phase(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| known == name)
            .expect("a phase of that name")
    }

    fn dues(&self, phase: &str) -> Vec<&Due> {
        let phase = self.phase(phase);
        self.all
            .iter()
            .filter(|due| usize::from(due.request.phase) == phase)
            .collect()
    }

    fn seconds(&self, phase: &str) -> f64 {
        let phase = self.phase(phase);
        let begin = phase
            .checked_sub(1)
            .map_or(0, |before| self.ends_us[before]);
        (self.ends_us[phase] - begin) as f64 / 1e6
    }

    /// Requests, with the embedded ones.
    fn requests(&self, phase: &str) -> usize {
        let dues = self.dues(phase);
        dues.iter().map(|due| 1 + self.embedded(due)).sum()
    }

    fn embedded(&self, due: &Due) -> usize {
        if due.request.with_embedded {
            self.site.embedded(due.request.target).count()
        } else {
            0
        }
    }

    /// Of those in the phase, how many were requested before, by any client.
    fn repeats(&self, phase: &str) -> usize {
        let phase = self.phase(phase);
        let mut seen = BTreeSet::new();
        let mut repeats = 0;
        for due in &self.all {
            let is_new = seen.insert(due.request.target);
            repeats += usize::from(!is_new && usize::from(due.request.phase) == phase);
        }
        repeats
    }

    fn infinite(&self, seed: u64) -> BTreeMap<&str, Counts> {
        let mut cache = Infinite::new(&self.scenario, seed);
        for due in &self.all {
            cache.handle(due);
        }
        let names = self.names.iter().map(String::as_str);
        names.zip(cache.phases).collect()
    }
}

#[test]
fn phase_offers_its_share_of_the_peak_load() {
    for (name, phases) in [
        (
            "polymix3",
            &[
                ("warm", 0.1),
                ("framp", 0.3),
                ("fill", 0.5),
                ("inc1", 0.55),
                ("top1", 1.0),
                ("idle", 0.1),
                ("top2", 1.0),
                ("dec2", 0.55),
            ][..],
        ),
        (
            "polymix4",
            &[
                ("fill", 0.5),
                ("fexit", 0.25),
                ("inc1", 0.5),
                ("top1", 1.0),
                ("idle", 0.1),
                ("top2", 1.0),
                ("dec2", 0.5),
            ][..],
        ),
    ] {
        let run = Run::of(mini(name), 1);
        for (phase, load) in phases {
            let meant = load * PEAK_PER_S * run.seconds(phase);
            let found = run.requests(phase) as f64;
            // a robot that asked for a page late in one phase pays for its embedded targets in the
            // next
            let carried = 1.5 * ROBOTS;
            assert!(
                (found - meant).abs() < 5.0 * meant.sqrt() + carried,
                "{name} {phase}: {found} requests, {meant} meant"
            );
        }
    }
}

#[test]
fn robots_share_the_load_evenly_and_resting_ones_send_nothing() {
    let slower = Run::of(mini("polymix3"), 2);
    let fewer = Run::of(mini("polymix4"), 2);
    for (run, resting) in [(&slower, 0), (&fewer, 112)] {
        let idle: BTreeSet<u32> = run.dues("idle").iter().map(|due| due.agent).collect();
        assert!(
            idle.len() as f64 <= ROBOTS - f64::from(resting),
            "{}",
            idle.len()
        );
        assert!(
            idle.iter()
                .all(|agent| f64::from(*agent) < ROBOTS - f64::from(resting))
        );
        let mut counts = vec![0; 125];
        let top2 = run.dues("top2");
        for due in &top2 {
            counts[due.agent as usize] += 1 + run.embedded(due);
        }
        let meant = run.requests("top2") / 125;
        for count in counts {
            let slack = 6.0 * (meant as f64).sqrt() + 13.0;
            assert!(
                (count as f64 - meant as f64).abs() < slack,
                "{count}, {meant} meant"
            );
        }
    }
}

#[test]
fn repeated_requests_have_the_share_of_the_recurrence() {
    for (name, recurrence) in [("polymix3", 0.55 / (0.8 * 0.95)), ("polymix4", 0.55 / 0.8)] {
        let run = Run::of(mini(name), 3);
        for (phase, factor) in [("fill", 5.0 / 55.0), ("top1", 1.0), ("top2", 1.0)] {
            let all = run.dues(phase).len();
            expect_share(
                &format!("{name} {phase}"),
                run.repeats(phase),
                all,
                recurrence * factor,
            );
        }
    }
}

#[test]
fn special_requests_have_their_share_of_gets() {
    for name in ["polymix3", "polymix4"] {
        let run = Run::of(mini(name), 4);
        for (phase, factor) in [("fill", 0.1), ("top2", 1.0)] {
            let dues = run.dues(phase);
            let get = |due: &&&Due| due.request.method == Method::Get;
            let gets = dues.iter().filter(get).count();
            let count = |kind| dues.iter().filter(|due| due.request.kind == kind).count();
            for (what, kind, share) in [
                (
                    "Ims200",
                    RequestType::IfModifiedSince { newer: false },
                    0.05,
                ),
                ("Ims304", RequestType::IfModifiedSince { newer: true }, 0.1),
                ("Reload", RequestType::Reload, 0.05),
            ] {
                expect_share(
                    &format!("{name} {phase} {what}"),
                    count(kind),
                    gets,
                    share * factor,
                );
            }
        }
    }
}

#[test]
fn methods_and_aborts_follow_the_polymix_version() {
    let three = Run::of(mini("polymix3"), 5);
    assert!(
        three
            .all
            .iter()
            .all(|due| due.request.method == Method::Get && due.request.abort_at.is_none())
    );
    let four = Run::of(mini("polymix4"), 5);
    let top2 = four.dues("top2");
    let posts: Vec<_> = top2
        .iter()
        .filter(|due| matches!(due.request.method, Method::Post { .. }))
        .collect();
    expect_share("POST", posts.len(), top2.len(), 0.015);
    assert!(
        posts
            .iter()
            .all(|due| due.request.kind == RequestType::Plain && !due.request.with_embedded)
    );
    let heads = four
        .all
        .iter()
        .filter(|due| due.request.method == Method::Head)
        .count();
    assert!(heads > 0 && heads < top2.len() / 200, "{heads}");
    let aborts: Vec<f32> = four
        .all
        .iter()
        .filter_map(|due| due.request.abort_at)
        .collect();
    expect_share("aborts", aborts.len(), four.all.len(), 0.001);
    assert!(aborts.iter().all(|at| (0.0..1.0).contains(at)));
}

#[test]
fn post_content_follows_its_size_law() {
    let four = Run::of(mini("polymix4"), 6);
    let bytes: Vec<u32> = four
        .all
        .iter()
        .filter_map(|due| match due.request.method {
            Method::Post { content_bytes } => Some(content_bytes),
            _ => None,
        })
        .collect();
    assert!(bytes.iter().all(|bytes| *bytes < 8192));
    let mean = bytes.iter().sum::<u32>() as f64 / bytes.len() as f64;
    let slack = 5.0 * 8192.0 / (12.0 * bytes.len() as f64).sqrt();
    assert!(
        (mean - 4096.0).abs() < slack,
        "mean {mean} of {}",
        bytes.len()
    );
}

#[test]
fn requested_content_kinds_have_the_shares_of_polygraph() {
    let run = Run::of(mini("polymix3"), 7);
    let direct = run.all.len();
    let kind = |due: &&Due| due.request.target.number >> 61;
    let count = |wanted| run.all.iter().filter(|due| kind(due) == wanted).count();
    for (name, wanted, share) in [
        ("image", 0, 0.0),
        ("HTML", 1, 15.0),
        ("download", 2, 0.5),
        ("other", 3, 19.5),
    ] {
        expect_share(name, count(wanted), direct, share / 35.0);
    }
    // zipf(13) has a mean of 4.45, and a page in seven is asked for in a way that brings no content
    let pages: Vec<&Due> = run
        .all
        .iter()
        .filter(|due| due.request.with_embedded)
        .collect();
    let embedded: usize = pages.iter().map(|due| run.embedded(due)).sum();
    let mean = embedded as f64 / pages.len() as f64;
    assert!((mean - 4.45).abs() < 0.1, "{mean} embedded targets a page");
}

#[test]
fn embedded_requests_follow_only_a_complete_get_with_content() {
    let run = Run::of(mini("polymix4"), 8);
    for due in run.all.iter().filter(|due| due.request.with_embedded) {
        assert_eq!(due.request.method, Method::Get);
        assert_ne!(
            due.request.kind,
            RequestType::IfModifiedSince { newer: true }
        );
        assert_eq!(due.request.abort_at, None);
        assert!(run.embedded(due) > 0);
    }
}

#[test]
fn new_targets_are_spread_evenly_over_the_servers() {
    let run = Run::of(mini("polymix3"), 9);
    let servers = run.site.servers() as usize;
    let mut counts = vec![0; servers];
    let mut seen = BTreeSet::new();
    for due in &run.all {
        if seen.insert(due.request.target) {
            counts[due.request.target.server as usize] += 1;
        }
    }
    let mean = seen.len() as f64 / servers as f64;
    // the index of dispersion of a Poisson law is 1
    let dispersion = counts
        .iter()
        .map(|count| squared(f64::from(*count) - mean))
        .sum::<f64>()
        / mean
        / servers as f64;
    assert!(
        (dispersion - 1.0).abs() < 5.0 * (2.0 / servers as f64).sqrt(),
        "{dispersion}"
    );
}

#[test]
fn private_target_is_requested_by_its_own_robot_only() {
    let mut scenario = mini("polymix3");
    scenario
        .set("workload.public_interest=50%")
        .expect("a share");
    let run = Run::of(scenario, 10);
    let private = |due: &&&Due| due.request.target.number >> 60 & 1 == 1;
    let top2 = run.dues("top2");
    let own = top2.iter().filter(private).count();
    expect_share("private", own, top2.len(), 0.5);
    for due in run.all.iter().filter(|due| private(&due)) {
        assert_eq!(
            due.request.target.number >> 36 & 0xff_ffff,
            u64::from(due.agent)
        );
    }
    let all = top2.len();
    let repeats = run.repeats("top2") as f64 / all as f64;
    // a robot's own worlds begin empty: before the first download of its own there is none to
    // repeat
    assert!((0.68..0.73).contains(&repeats), "{repeats}");
}

/// 55 % is the design target, and PolyMix-3's mini run comes to it. Polygraph counts hits of basic
/// transactions only (plain `GET`s), among which reloads are not: there the most is the recurrence
/// times the storable share, 57.9 % for PolyMix-3 (57.8 % were observed at the cache-off) and 55 %
/// for PolyMix-4. An infinite cache stays below that by what was asked for first in a way that
/// leaves nothing behind (a tenth of the new targets come with Ims304, and the embedded ones of
/// such a page are not asked for), and by what has changed since.
#[test]
fn infinite_cache_has_the_design_hit_ratio_in_top2() {
    for (name, basic, all) in [("polymix3", 0.579, 0.55), ("polymix4", 0.55, 0.53)] {
        let run = Run::of(mini(name), 11);
        let phases = run.infinite(11);
        let (top2, fill) = (phases["top2"], phases["fill"]);
        expect_near(name, top2.basic_hit_ratio(), basic - 0.015, 0.02);
        expect_near(name, top2.hit_ratio(), all, 0.02);
        expect_near(name, fill.basic_hit_ratio(), 0.05, 0.015);
    }
}

/// Without a preference for small responses, bytes are hit as often as requests are; with it,
/// clearly less often.
#[test]
fn byte_hit_ratio_equals_hit_ratio_in_polymix_3_and_is_lower_in_4() {
    for (name, gap) in [("polymix3", 0.0), ("polymix4", 0.11)] {
        let top2 = Run::of(mini(name), 12).infinite(12)["top2"];
        let found = top2.basic_hit_ratio() - top2.basic_byte_hit_ratio();
        expect_near(name, found, gap, 0.04);
    }
}

fn expect_near(what: &str, found: f64, meant: f64, slack: f64) {
    let is_near = (found - meant).abs() <= slack;
    assert!(is_near, "{what}: {found:.4}, meant {meant:.4} +- {slack}");
}

const PEAK_PER_S: f64 = 50.0;
const ROBOTS: f64 = 125.0;
