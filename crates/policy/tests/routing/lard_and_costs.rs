//! LARD of ASPLOS'98 and the cost form of USENIX'99: where they choose alike.
//!
//! USENIX'99 §4.1 says that they are the same with `L_idle` = `T_low` and `MissCost` = `T_high` -
//! `T_low`. They are but for two things, which these tests hold: a cached request costs 1, so that
//! the cost form moves a target one request earlier, at a load of `T_high` and not above; and if no
//! node is idle, it moves it at `2 MissCost` more than the least loaded, LARD at `2 T_high`.

use super::random::{Random, nodes};
use proptest::prelude::*;
use weir_policy::Tick;
use weir_policy::route::policy::{CostRules, LoadLimits, PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{ClusterView, Load, Place, TargetKey};

fn rules(low: u32, high: u32) -> PolicyRules {
    PolicyRules {
        limits: LoadLimits { low, high },
        costs: CostRules {
            idle: low,
            miss_cost: high - low,
            // twice overloaded, as LARD has it
            overload: 2 * high - 1,
            ..CostRules::USENIX_1999
        },
        ..PolicyRules::default()
    }
}

/// Both map a target in an idle cluster, and choose for it again under these loads.
fn choose(rules: &PolicyRules, target: TargetKey, loads: &[u32]) -> [Place; 3] {
    let idle = nodes(loads.len());
    let mut loaded = idle.clone();
    for (node, load) in loaded.iter_mut().zip(loads) {
        node.load = Load::requests(*load);
    }
    let request = RoutedRequest::new(target, 0);
    let mut chosen = [PolicyKind::Lard, PolicyKind::ExtendedLard].map(|kind| {
        let mut policy = kind.build(rules, 1);
        let mut place = |nodes: &[_]| {
            let view = ClusterView::new(nodes);
            policy.choose(Tick(0), &view, &request).unwrap().place
        };
        (place(&idle), place(&loaded))
    });
    assert_eq!(chosen[0].0, chosen[1].0, "a new target");
    let mapped = chosen[0].0;
    let [lard, costs] = chosen.each_mut().map(|(_, second)| *second);
    [mapped, lard, costs]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn lard_and_its_cost_form_choose_alike(
        low in 2..40_u32,
        above in 1..60_u32,
        loads in prop::collection::vec(0..200_u32, 2..12),
        target in any::<u64>(),
    ) {
        let high = low + above;
        let [mapped, lard, costs] = choose(&rules(low, high), TargetKey(target), &loads);
        let load = loads[mapped.index()];
        let least = *loads.iter().min().unwrap();
        let is_edge = if least < low {
            load == high
        } else {
            load >= least + 2 * above && load < 2 * high
        };
        if is_edge {
            prop_assert_eq!(lard, mapped, "LARD waits");
            prop_assert_ne!(costs, mapped, "the cost form does not");
        } else {
            prop_assert_eq!(lard, costs, "{} of {:?}", load, loads);
        }
    }

    #[test]
    fn lard_and_its_cost_form_choose_alike_for_a_new_target(
        low in 2..40_u32,
        above in 1..60_u32,
        loads in prop::collection::vec(0..200_u32, 1..12),
        target in any::<u64>(),
    ) {
        let rules = rules(low, low + above);
        let mut nodes = nodes(loads.len());
        for (node, load) in nodes.iter_mut().zip(&loads) {
            node.load = Load::requests(*load);
        }
        let [lard, costs] = [PolicyKind::Lard, PolicyKind::ExtendedLard].map(|kind| {
            let request = RoutedRequest::new(TargetKey(target), 0);
            kind.build(&rules, 1).choose(Tick(0), &ClusterView::new(&nodes), &request).unwrap()
        });
        prop_assert_eq!((lard.place, lard.why), (costs.place, costs.why));
    }
}

/// With the constants of ASPLOS'98 and any loads up to 80.
#[test]
fn lard_and_its_cost_form_differ_for_less_than_two_in_a_hundred_loads() {
    let rules = rules(25, 65);
    let (mut differ, mut all) = (0, 0);
    let mut random = Random(1);
    for _ in 0..20_000 {
        let loads: Vec<u32> = (0..8).map(|_| random.load(80).parts() / 1024).collect();
        let [_, lard, costs] = choose(&rules, TargetKey(random.next()), &loads);
        all += 1;
        differ += u32::from(lard != costs);
    }
    assert!(differ * 50 < all && differ > 0, "{differ} of {all}");
}
