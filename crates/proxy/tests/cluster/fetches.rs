//! A fetch through two nodes, of the one that a client asks and of the one that keeps the target:
//! read-ahead, clients that leave, parts.

use crate::endpoints::{CLIENT_KERNEL_BYTES, Flow};
use crate::nodes::{Nodes, fresh};
use crate::support::{OriginConnection, RawClient, Representation, Running, ScriptedOrigin, span};
use weir_measure::{Aborted, Metric};
use weir_policy::fetch::AbortKind;
use weir_proxy::admin::{PurgeCall, PurgeReach};
use weir_proxy::config::Config;

const LENGTH: u64 = 500_000;

/// A cluster whose origin says what it is told to.
struct TwoNodes {
    cluster: Nodes,
    origin: ScriptedOrigin,
}

impl TwoNodes {
    /// Nodes with changes to their configurations, and a response that node c keeps.
    fn start(change: impl Fn(&mut Config)) -> (Self, Representation) {
        let cluster = Nodes::start(fresh);
        let path = cluster.path_of(2);
        let two_nodes = Self::before(cluster, change);
        let purged = two_nodes
            .owner()
            .purge_at(PurgeReach::ThisNode, PurgeCall::All);
        purged.expect("no disk");
        (two_nodes, Representation::new(&path, LENGTH))
    }

    fn before(cluster: Nodes, change: impl Fn(&mut Config)) -> Self {
        let origin = ScriptedOrigin::new();
        let url = format!("http://{}", origin.address());
        for node in &cluster.nodes {
            node.reload(|config| {
                config.routes[0].next_hops = vec![url.parse().expect("a URL")];
                // a client that is gone looks as if it had closed one side only
                config.fetch.half_closed = span("1ms");
                change(config);
            });
        }
        Self { cluster, origin }
    }

    /// The node that clients ask.
    fn asked(&self) -> &Running {
        &self.cluster.nodes[0]
    }

    /// The node that keeps the target.
    fn owner(&self) -> &Running {
        &self.cluster.nodes[2]
    }

    /// Until no node has anything to do.
    fn rest(&self) {
        for node in &self.cluster.nodes {
            node.wait_for(Metric::RequestsInFlight, 0);
            node.wait_for(Metric::FetchesUnderWay, 0);
        }
    }

    /// A client of node a has got the first bytes of a response, which is all that has come.
    fn half(&self, what: &Representation, bytes: usize) -> (RawClient, OriginConnection) {
        let mut client = self.asked().client();
        client.send(what.get(""));
        let mut hop = self.origin.accept();
        hop.read_head();
        let message = what.whole();
        let received = hop.send_while(&message[..what.head().len() + bytes], || {
            client.read_head();
            client.read_exactly(bytes)
        });
        what.check(0, &received);
        assert_eq!(self.asked().count(Metric::PeerRequests), 1);
        (client, hop)
    }
}

/// What a response of 60 MB is ahead of a client that reads nothing, and then of a slow one, bytes.
fn read_ahead(nodes: &[&Running], origin: &ScriptedOrigin) -> [usize; 2] {
    const LENGTH: usize = 60_000_000;
    let framing = format!("Content-Length: {LENGTH}\r\n");
    let mut flow = Flow::begin(nodes[0], origin, None, LENGTH, &framing);
    let stopped = flow.read_ahead();
    let slow = (0..5).map(|_| {
        // 50 KB/s
        for node in nodes {
            node.clock.advance_ms(100);
        }
        flow.read_exactly(5000);
        flow.read_ahead()
    });
    [stopped, slow.max().unwrap_or_default()]
}

#[test]
fn read_ahead_through_two_nodes_is_at_most_twice_that_of_one() {
    const READ_AHEAD_BYTES: usize = 64 * 1024;
    let origin = ScriptedOrigin::new();
    let node = Running::gateway(&origin);
    let alone = read_ahead(&[&node], &origin);

    let cluster = Nodes::start(fresh);
    // what the flow asks for is kept by one of them
    let is_lateral = |node: &&Running| {
        let response = node.client().ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        response
            .head
            .all("cache-status")
            .join(", ")
            .contains("on-peer")
    };
    let at = cluster.nodes.iter().position(|node| is_lateral(&node));
    let at = at.expect("one does not keep it");
    let two_nodes = TwoNodes::before(cluster, |_| {});
    for node in &two_nodes.cluster.nodes {
        let purged = node.purge_at(PurgeReach::ThisNode, PurgeCall::All);
        purged.expect("no disk");
    }
    let mut nodes: Vec<&Running> = two_nodes.cluster.nodes.iter().collect();
    nodes.swap(0, at);
    let before = nodes[0].count(Metric::PeerRequests);
    let through_two = read_ahead(&nodes, &two_nodes.origin);
    assert_eq!(nodes[0].count(Metric::PeerRequests), before + 1);
    for (through_two, alone) in through_two.into_iter().zip(alone) {
        assert!(alone >= READ_AHEAD_BYTES / 2, "{alone}");
        assert!(alone <= READ_AHEAD_BYTES + CLIENT_KERNEL_BYTES, "{alone}");
        assert!(through_two <= 2 * alone, "{through_two}, alone {alone}");
        assert!(through_two >= alone / 2, "{through_two}, alone {alone}");
    }
}

#[test]
fn fetch_of_the_owner_ends_when_the_client_of_another_node_leaves() {
    let (nodes, what) = TwoNodes::start(|config| config.fetch.abort = AbortKind::Stop);
    let (client, mut hop) = nodes.half(&what, 100_000);
    client.into_peer().reset();
    hop.expect_end();
    for node in [nodes.asked(), nodes.owner()] {
        node.wait_for(Metric::ClientAborts, 1);
    }
    nodes.rest();
    // the owner has kept the part, and asks for the rest alone
    let mut client = nodes.asked().client();
    client.send(what.get(""));
    let mut hop = nodes.origin.accept();
    let rest = format!("bytes=100000-{}", LENGTH - 1);
    assert_eq!(hop.read_head().field("range"), Some(rest.as_str()));
    let response = hop.send_while(&what.part(100_000, LENGTH), || client.read_response());
    what.check_whole(&response);
}

#[test]
fn fetch_of_the_owner_goes_on_without_a_client_where_it_is_to_finish() {
    let (nodes, what) = TwoNodes::start(|config| {
        config.fetch.abort = AbortKind::Finish;
        config.fetch.background_rate = "1GiB".parse().expect("a rate");
    });
    let (client, mut hop) = nodes.half(&what, 100_000);
    client.into_peer().reset();
    nodes.asked().wait_for(Metric::ClientAborts, 1);
    let goes_on = Metric::FetchesAbandoned(Aborted::GoOnAlways);
    nodes.owner().wait_for(goes_on, 1);
    hop.send(&what.whole()[what.head().len() + 100_000..]);
    nodes.rest();
    for node in &nodes.cluster.nodes {
        what.check_whole(&node.client().ask(what.get("")));
    }
    nodes.origin.expect_untouched();
}

#[test]
fn client_that_leaves_one_node_leaves_the_fetch_to_clients_of_others() {
    let (nodes, what) = TwoNodes::start(|config| config.fetch.abort = AbortKind::Stop);
    let (client, mut hop) = nodes.half(&what, 100_000);
    let mut others: Vec<RawClient> = (1..3)
        .map(|at| {
            let mut other = nodes.cluster.nodes[at].client();
            other.send(what.get(""));
            assert_eq!(other.read_head().status(), 200);
            other
        })
        .collect();
    client.into_peer().reset();
    nodes.asked().wait_for(Metric::ClientAborts, 1);
    let rest = &what.whole()[what.head().len() + 100_000..];
    hop.send_while(rest, || {
        for other in &mut others {
            let length = usize::try_from(LENGTH).expect("small");
            what.check(0, &other.read_exactly(length));
        }
    });
    nodes.rest();
    nodes.origin.expect_untouched();
}

#[test]
fn parts_are_kept_by_the_owner_and_only_what_is_missing_is_asked_of_the_origin() {
    let (nodes, what) = TwoNodes::start(|_| {});
    let ask = |at: usize, request: String, missing: &[(u64, u64)]| {
        let mut client = nodes.cluster.nodes[at].client();
        client.send(request);
        let response = std::thread::scope(|scope| {
            let reading = scope.spawn(|| client.read_response());
            for &(from, to) in missing {
                let mut hop = nodes.origin.accept();
                let range = format!("bytes={from}-{}", to - 1);
                assert_eq!(hop.read_head().field("range"), Some(range.as_str()));
                hop.send(what.part(from, to));
            }
            reading.join().expect("no panic")
        });
        nodes.rest();
        response
    };
    let first = ask(0, what.get_range("100000-199999"), &[(100_000, 200_000)]);
    what.check_part(&first, 100_000, 200_000);
    // a part of that, of each node
    for at in [0, 1, 2] {
        let inside = ask(at, what.get_range("150000-160000"), &[]);
        what.check_part(&inside, 150_000, 160_001);
    }
    // a range that begins within, and then all of it
    let further = ask(1, what.get_range("150000-299999"), &[(200_000, 300_000)]);
    what.check_part(&further, 150_000, 300_000);
    let missing = [(0, 100_000), (300_000, LENGTH)];
    what.check_whole(&ask(0, what.get(""), &missing));
    for at in [0, 1, 2] {
        what.check_whole(&ask(at, what.get(""), &[]));
    }
    nodes.origin.expect_untouched();
    for at in [0, 1] {
        assert_eq!(nodes.cluster.nodes[at].count(Metric::PartsStored), 0);
    }
}
