//! What a node knows of whether others answer, and what it shows of that.

use weir_policy::Tick;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{
    Balancing, Members, Node, NodeKey, NodeReport, NodeState, Place, STATE_REPORT_MS,
};

const OWN: Place = Place(0);
const OTHER: Place = Place(1);

fn members() -> Members {
    let nodes = [1, 2].map(|key| Node::new(NodeKey(key))).to_vec();
    let balancing = Balancing {
        policy: PolicyKind::Hash,
        ..Balancing::default()
    };
    Members::new(nodes, OWN, &balancing, 7)
}

fn report(state: NodeState) -> NodeReport {
    NodeReport {
        state,
        outstanding: 0,
        miss_pressure: 0,
    }
}

fn state(members: &Members, ms: u64) -> NodeState {
    members.known(Tick(ms), OTHER).state
}

#[test]
fn node_that_failed_is_to_be_probed_after_its_time_and_in_only_once_it_has_answered() {
    let mut members = members();
    assert!(members.failed(Tick(0), OTHER, None));
    assert!(
        !members.failed(Tick(1000), OTHER, None),
        "it is gone already"
    );
    let known = members.known(Tick(1000), OTHER);
    assert_eq!(
        (known.state, known.is_to_be_probed),
        (NodeState::Gone, false)
    );
    let known = members.known(Tick(11_000), OTHER);
    assert_eq!((known.ejected_for_ms, known.is_to_be_probed), (None, true));
    assert!(members.heard_of(Tick(11_001), OTHER, report(NodeState::In)));
    assert!(!members.answered(Tick(11_002), OTHER, 9, report(NodeState::In)));
    assert!(!members.known(Tick(11_002), OTHER).is_to_be_probed);
}

#[test]
fn answer_to_a_message_ends_an_ejection_and_says_nothing_of_the_response_time() {
    let mut members = members();
    members.failed(Tick(0), OTHER, None);
    members.heard_of(Tick(1), OTHER, report(NodeState::In));
    let known = members.known(Tick(1), OTHER);
    assert_eq!(known.state, NodeState::In);
    assert_eq!(known.response_time_us, None);
}

#[test]
fn response_time_is_shown_as_it_was_for_10_s() {
    let mut members = members();
    members.answered(Tick(0), OTHER, 8000, report(NodeState::In));
    let shown = |ms| members.known(Tick(ms), OTHER).response_time_us;
    assert_eq!(shown(10_000), Some(8000));
    assert_eq!(shown(10_001), None);
}

#[test]
fn state_that_a_node_tells_counts_for_30_s_and_until_it_has_failed() {
    let mut members = members();
    members.heard_of(Tick(0), OTHER, report(NodeState::Draining));
    assert_eq!(state(&members, STATE_REPORT_MS - 1), NodeState::Draining);
    assert_eq!(state(&members, STATE_REPORT_MS), NodeState::In);
    members.heard_of(Tick(40_000), OTHER, report(NodeState::Draining));
    members.failed(Tick(40_001), OTHER, None);
    assert_eq!(state(&members, 40_001), NodeState::Gone);
    assert_eq!(
        state(&members, 60_000),
        NodeState::In,
        "another process may be there"
    );
}

#[test]
fn message_in_the_name_of_a_node_has_it_asked_if_its_answer_said_otherwise_or_is_old() {
    let mut members = members();
    let is_news = |members: &Members, ms, state| members.is_news(Tick(ms), OTHER, state);
    assert!(is_news(&members, 0, NodeState::In), "it has said nothing");
    members.heard_of(Tick(0), OTHER, report(NodeState::In));
    assert!(is_news(&members, 1, NodeState::Draining));
    assert!(!is_news(&members, 1, NodeState::In));
    let before = STATE_REPORT_MS / 3;
    assert!(!is_news(&members, before - 1, NodeState::In));
    assert!(is_news(&members, before, NodeState::In));
    members.failed(Tick(before), OTHER, None);
    assert!(
        is_news(&members, before + 1, NodeState::In),
        "it has failed"
    );
}
