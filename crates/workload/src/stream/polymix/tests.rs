//! What only shows from inside: the worlds and the fill while a schedule runs.

use super::Robots;
use crate::stream::Due;
use crate::stream::tests::{expect_share, mini};
use crate::{Scenario, Workload};

fn robots(scenario: &Scenario, seed: u64) -> Robots {
    let Workload::PolyMix(polymix) = &scenario.workload else {
        panic!("{} is of another kind", scenario.name);
    };
    Robots::new(scenario, polymix, seed)
}

fn phase_of(robots: &Robots, name: &str) -> usize {
    let found = robots.phases.iter().position(|phase| phase.name == name);
    found.expect("a phase of that name")
}

/// The id within its world.
fn index(due: &Due) -> u64 {
    due.request.target.number & ((1 << 36) - 1)
}

fn kind(due: &Due) -> u8 {
    u8::try_from(due.request.target.number >> 61).expect("three bits")
}

#[test]
fn working_set_keeps_its_size_and_moves_after_the_fill() {
    for name in ["polymix3", "polymix4"] {
        let mut robots = robots(&mini(name), 1);
        let fill = phase_of(&robots, "fill");
        while robots
            .next()
            .is_some_and(|due| usize::from(due.request.phase) <= fill)
        {}
        let frozen = robots.worlds.working_set_ids();
        let kinds = KINDS;
        let before: Vec<u64> = (0..kinds)
            .map(|kind| robots.worlds.public_working_set(kind).end)
            .collect();
        assert!(frozen > 100);
        while robots.next().is_some() {
            assert_eq!(robots.worlds.working_set_ids(), frozen);
        }
        // new ids went on appearing, and the window went with them
        let after: Vec<u64> = (0..kinds)
            .map(|kind| robots.worlds.public_working_set(kind).end)
            .collect();
        assert!(
            before.iter().sum::<u64>() + frozen < after.iter().sum(),
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn repeats_come_from_the_working_set_with_the_hot_set_at_its_share() {
    let mut robots = robots(&mini("polymix3"), 2);
    let top2 = phase_of(&robots, "top2");
    let (mut repeats, mut hot) = (0, 0);
    loop {
        let before: Vec<_> = (0..KINDS)
            .map(|kind| {
                (
                    robots.worlds.public_working_set(kind),
                    robots.worlds.public_hot_set(kind),
                )
            })
            .collect();
        let Some(due) = robots.next() else {
            break;
        };
        let (working_set, hot_set) = &before[usize::from(kind(&due))];
        let is_new = index(&due) == working_set.end;
        assert!(is_new || working_set.contains(&index(&due)));
        if usize::from(due.request.phase) == top2 && !is_new {
            repeats += 1;
            hot += usize::from(hot_set.contains(&index(&due)));
        }
    }
    assert!(repeats > 5000, "{repeats}");
    expect_share("hot set", hot, repeats, 0.1 + 0.9 * 0.01);
}

#[test]
fn fill_phase_ends_exactly_when_its_goal_is_reached() {
    for name in ["polymix3", "polymix4"] {
        let mut robots = robots(&mini(name), 3);
        let plan = robots.clone().phases();
        let fill = phase_of(&robots, "fill");
        let mut last = None;
        while robots.phase <= fill {
            let before = robots.fill.clone();
            let Some(due) = robots.next() else {
                break;
            };
            if usize::from(due.request.phase) == fill {
                assert!(!before.is_done() || !before.is_working_set_whole());
                assert!(robots.fill.is_done() || plan[fill].ends_at_us >= Some(due.at_us));
                last = Some((due.at_us, robots.fill.is_done()));
            }
        }
        assert_eq!(
            last,
            Some((plan[fill].ends_at_us.expect("an end"), true)),
            "{name}"
        );
    }
}

#[test]
fn robot_has_at_most_13_embedded_requests_pending() {
    let mut robots = robots(&mini("polymix3"), 4);
    while robots.next().is_some() {
        assert!(robots.owed.iter().all(|owed| *owed <= 13));
    }
}

#[test]
fn plan_and_stream_end_each_phase_at_the_same_time() {
    for name in ["polymix3", "polymix4"] {
        let robots = robots(&mini(name), 5);
        let plan = robots.clone().phases();
        assert_eq!(plan.len(), robots.phases.len());
        let mut begins = 0;
        let mut ends = plan.iter().map(|phase| phase.ends_at_us.expect("an end"));
        let ends: Vec<u64> = ends.by_ref().collect();
        let mut run = robots;
        for due in run.by_ref() {
            let phase = usize::from(due.request.phase);
            let begins = phase.checked_sub(1).map_or(0, |before| ends[before]);
            assert!(
                (begins..=ends[phase]).contains(&due.at_us),
                "{name} {due:?}"
            );
        }
        for (end, phase) in ends.iter().zip(&plan) {
            assert!(*end > begins, "{} takes no time", phase.name);
            begins = *end;
        }
        assert_eq!(run.ended_us, ends);
    }
}

/// Image, HTML, download, other.
const KINDS: u8 = 4;
