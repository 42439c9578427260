//! Whether a request is for a target that was requested before.

use std::collections::BTreeSet;

use super::{closed, mini, open, scenario};
use crate::stream::Share;
use crate::{Method, RequestType, Scenario, Site, Target};

fn web() -> Scenario {
    let times = ["workload.warm_up=5s", "workload.measured=10s"];
    scenario("web-2026", &times)
}

#[test]
fn request_is_marked_as_repeat_exactly_when_its_target_was_requested() {
    for scenario in [
        mini("polymix3").scaled(0.1),
        mini("polymix4").scaled(0.1),
        web(),
    ] {
        let mut asked = BTreeSet::<Target>::new();
        let mut again = 0;
        for due in open(&scenario, 11) {
            let is_new = asked.insert(due.request.target);
            assert_eq!(due.request.is_repeat, !is_new, "{due:?}");
            again += usize::from(!is_new);
        }
        assert!(again > 100, "{}: {again}", scenario.name);
    }
    let few = scenario("wpb", &["workload.requests_per_client=40"]);
    for (_, asks) in closed(&few, 11, Share::WHOLE) {
        let mut asked = BTreeSet::<Target>::new();
        for ask in asks {
            assert_eq!(ask.is_repeat, !asked.insert(ask.target), "{ask:?}");
        }
    }
}

#[test]
fn request_could_hit_only_as_a_repeated_plain_get_of_a_storable_target() {
    let scenario = mini("polymix3");
    let site = Site::new(&scenario, 12);
    let (mut all, mut could) = (0, 0);
    for due in open(&scenario, 12) {
        let ask = due.request;
        let expected = ask.is_repeat
            && ask.method == Method::Get
            && ask.kind != RequestType::Reload
            && site.is_storable(ask.target);
        assert_eq!(ask.could_hit(&site), expected, "{ask:?}");
        all += 1;
        could += usize::from(expected);
    }
    assert!(could > all / 10 && could < all, "{could} of {all}");
}
