use proptest::prelude::*;

use super::{closed, open, scenario, schedule};
use crate::Scenario;
use crate::stream::{Due, Share};

fn short(name: &str) -> Scenario {
    match name {
        "wpb" => scenario("wpb", &["workload.requests_per_client=20"]),
        "web-2026" => scenario(name, &["workload.warm_up=5s", "workload.measured=10s"]),
        _ => Scenario::built_in(name).expect("a scenario").scaled(0.01),
    }
}

/// What each share has, in the order of the whole.
fn union(scenario: &Scenario, seed: u64, of: u32) -> Vec<Due> {
    let shares = (0..of).map(|index| Share { index, of });
    let mut all: Vec<Due> = Vec::new();
    for share in shares {
        let part: Vec<Due> = schedule(scenario, seed, share).collect();
        assert!(part.iter().all(|due| due.agent % of == share.index));
        assert!(part.is_sorted_by_key(|due| due.at_us));
        all.extend(part);
    }
    all.sort_by_key(|due| (due.at_us, due.agent));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn shares_of_an_open_loop_add_up_to_the_whole(seed: u64, of in 1_u32..7) {
        for name in ["polymix3", "polymix4", "web-2026"] {
            let scenario = mini(name);
            let mut whole = open(&scenario, seed);
            prop_assert!(whole.len() > 100);
            prop_assert!(whole.is_sorted_by_key(|due| due.at_us));
            whole.sort_by_key(|due| (due.at_us, due.agent));
            prop_assert_eq!(&union(&scenario, seed, of), &whole);
        }
    }

    #[test]
    fn shares_of_a_closed_loop_add_up_to_the_whole(seed: u64, of in 1_u32..7) {
        let scenario = short("wpb");
        let whole = closed(&scenario, seed, Share::WHOLE);
        let mut parts: Vec<_> = (0..of)
            .flat_map(|index| closed(&scenario, seed, Share { index, of }))
            .collect();
        parts.sort_by_key(|(agent, _)| *agent);
        prop_assert_eq!(parts, whole);
    }
}

fn mini(name: &str) -> Scenario {
    match name {
        "polymix4" => super::mini("polymix4").scaled(0.1),
        "polymix3" => super::mini("polymix3").scaled(0.1),
        name => short(name),
    }
}

#[test]
fn same_seed_gives_the_same_stream_and_another_seed_another() {
    for name in ["polymix3", "polymix4", "web-2026"] {
        let scenario = mini(name);
        assert_eq!(open(&scenario, 1), open(&scenario, 1));
        assert_ne!(open(&scenario, 1), open(&scenario, 2));
    }
    let scenario = short("wpb");
    assert_eq!(
        closed(&scenario, 1, Share::WHOLE),
        closed(&scenario, 1, Share::WHOLE)
    );
    assert_ne!(
        closed(&scenario, 1, Share::WHOLE),
        closed(&scenario, 2, Share::WHOLE)
    );
}
