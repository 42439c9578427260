//! Many users, one proxy, memory and disk: what is for one user reaches no other, and no disk
//! (R64-R68).
//!
//! The same by HTTP/2, with connections whose streams are of several users, some of which leave
//! before the end; with rules of the operator; with a cluster of three nodes, whose clients ask one
//! of them each; and with two forward proxies that have one parent, one of them with the other one
//! as sibling.
//!
//! A scripted origin (`isolation/origin.rs`) decides from a seed what it answers: private and
//! shared responses under the same URL, 304s with cookies, `Vary`, credentials, ranges, HEAD,
//! errors, slow and cut responses. Everything that is for one user has a token of that user in it,
//! in fields and content. A module changes half of the URLs' responses before they are stored, by a
//! tag that it takes from the request. Many clients ask at once (`isolation/client.rs`), as a
//! thousand users; meanwhile the clock goes on, URLs are purged, and the proxy is stopped and
//! started again. Held for every response: each token in it is its own user's, what the module made
//! of it is for the tag of its request, shared content is of the URL that was asked for, nothing in
//! it is older than the last purge or answered change before it, and the origin was told the name
//! of its host in one spelling. Held for the store's directory: there is no token in it.
//!
//! `WEIR_ISOLATION_REQUESTS` says how many requests, `WEIR_ISOLATION_SEED` what they are; which of
//! them meet at once is up to the machine.

mod support;

#[path = "isolation/client.rs"]
mod client;
#[path = "isolation/http2.rs"]
mod http2;
#[path = "isolation/origin.rs"]
mod origin;
#[path = "isolation/purge_log.rs"]
mod purge_log;
#[path = "isolation/random.rs"]
mod random;
#[path = "isolation/responses.rs"]
mod responses;
#[path = "isolation/soak.rs"]
mod soak;
#[path = "isolation/topology.rs"]
mod topology;

use soak::Soak;
use topology::Topology;

/// Requests without more being said.
const REQUESTS: usize = 20_000;

fn soak(topology: Topology, requests: usize) {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        value.parse::<u64>().ok()
    };
    let seed = number("WEIR_ISOLATION_SEED").unwrap_or(1);
    let asked = number("WEIR_ISOLATION_REQUESTS").map_or(requests, |count| {
        usize::try_from(count).expect("a number of requests")
    });
    let tally = Soak::new(seed, topology).run(asked);
    // a test in which something never happens has not tested it
    if asked >= requests {
        assert_eq!(tally.never_happened(), Vec::<&str>::new(), "{tally:?}");
    }
}

#[test]
fn data_of_one_user_reaches_no_other_user_and_no_disk() {
    soak(Topology::Gateway, REQUESTS);
}

#[test]
fn data_of_one_user_reaches_no_other_user_of_a_connection_of_a_balancer_by_http2() {
    // so many times, several requests at once
    soak(Topology::Balanced, REQUESTS / 3);
}

#[test]
fn data_of_one_user_reaches_no_other_user_by_a_rule_of_the_operator() {
    soak(Topology::Ruled, REQUESTS);
}

#[test]
fn data_of_one_user_reaches_no_other_user_of_any_node_of_a_cluster() {
    soak(Topology::Cluster, REQUESTS);
}

#[test]
fn data_of_one_user_reaches_no_other_user_through_parents_and_siblings() {
    soak(Topology::Hierarchy, REQUESTS);
}
