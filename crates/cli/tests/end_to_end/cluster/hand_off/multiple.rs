//! Connections that nodes move on to each other while they are used.

mod live_cluster;

use super::{CLIENT, WAIT_MAX};
use live_cluster::{A, B, Client, Cluster, FRONT_END, TARGETS, Target};
use std::time::Instant;
use weir_net::raise_descriptor_limit;
use xtask::namespace::is_permitted;

/// Moves that each connection makes.
const MOVES: usize = 5;

/// A client that requests what the two nodes keep in turn, until its connection has moved often
/// enough.
struct Moving {
    client: Client,
    requests: usize,
    /// The node that was seen to have the connection.
    at: Option<usize>,
    moves: usize,
}

impl Moving {
    const TOGETHER: usize = 3;

    /// Sends requests together, each for another node than the one before, and receives their
    /// responses.
    fn round(&mut self, kept: &[Vec<Target>; 2]) {
        let numbers = self.requests..self.requests + Self::TOGETHER;
        self.requests += Self::TOGETHER;
        let target = |number: usize| &kept[number % 2][number / 2 % TARGETS];
        let targets: Vec<_> = numbers.clone().map(target).collect();
        self.client.send(&targets);
        for (number, target) in numbers.zip(targets) {
            let response = self.client.receive(target).expect("no reset");
            let node = number % 2;
            if response.is_hit && self.at.replace(node).is_some_and(|at| at != node) {
                self.moves += 1;
            }
        }
    }
}

#[test]
fn thousand_pipelined_connections_move_five_times_each_between_live_nodes_with_every_byte() {
    const CONNECTIONS: usize = 1000;
    const THREADS: usize = 8;
    if !is_permitted() {
        return;
    }
    // more than the usual one
    assert!(raise_descriptor_limit().is_none_or(|limit| limit > 2 * CONNECTIONS as u64));
    let cluster = Cluster::start();
    let connect = |_| Moving {
        client: cluster.connect(CLIENT),
        requests: 0,
        at: None,
        moves: 0,
    };
    let mut connections: Vec<Moving> = (0..CONNECTIONS).map(connect).collect();
    std::thread::scope(|scope| {
        for share in connections.chunks_mut(CONNECTIONS / THREADS) {
            let cluster = &cluster;
            scope.spawn(move || {
                let began = Instant::now();
                while share.iter().any(|connection| connection.moves < MOVES) {
                    for connection in share.iter_mut().filter(|it| it.moves < MOVES) {
                        connection.round(&cluster.kept);
                    }
                    assert!(began.elapsed() < 10 * WAIT_MAX, "moves of all connections");
                }
            });
        }
    });
    let moves: usize = connections.iter().map(|connection| connection.moves).sum();
    let moves = u64::try_from(moves).expect("few");
    assert!(cluster.moved() >= moves, "{} moves", cluster.moved());
    // a node counts one when the next node has said that it goes on, and that may be after its
    // response
    cluster.wait_until("all moves are counted", || {
        let by_nodes = [A, B].map(|node| cluster.count(node, "weir_hand_offs_total"));
        by_nodes.iter().sum::<u64>() == cluster.moved()
    });
    for member in [FRONT_END, A, B] {
        assert_eq!(cluster.count(member, "weir_hand_offs_lost_total"), 0);
    }
    // what ended is forgotten
    drop(connections);
    cluster.wait_until("no flow is steered", || {
        cluster.flows("map", "steered") == 0
    });
}

#[test]
fn client_that_stops_reading_gets_every_byte_once_it_reads_on() {
    const REQUESTS: usize = 40;
    if !is_permitted() {
        return;
    }
    let cluster = Cluster::start();
    let mut client = cluster.connect_at_a();
    // more than both ends have buffers for, of both nodes in turn
    let target = |number: usize| &cluster.kept[number % 2][number / 2 % TARGETS];
    let targets: Vec<_> = (0..REQUESTS).map(target).collect();
    client.send(&targets);
    cluster.wait_until("a node waits for the client", || {
        [A, B].into_iter().any(|node| cluster.is_probed(node))
    });
    for target in targets {
        client.receive(target).expect("no reset");
    }
    // it has moved with what the client had not acknowledged, or that was too much
    let reason = "weir_hand_offs_refused_total{reason=\"unacknowledged\"}";
    let stayed: u64 = [A, B].map(|node| cluster.count(node, reason)).iter().sum();
    assert!(cluster.moved() + stayed > 0);
}

#[test]
fn connection_stays_and_its_request_is_answered_when_the_next_node_fails_within_a_move() {
    if !is_permitted() {
        return;
    }
    let mut cluster = Cluster::start();
    let mut client = cluster.connect_at_a();
    let moved = cluster.moved();
    cluster.stop(B);
    let wanted = cluster.kept[1][0].clone();
    client.send(&[&wanted, &cluster.kept[0][1]]);
    cluster.wait_until("the state is sent", || cluster.has_message());
    // killed while the state is on its way
    cluster.kill(B);
    client.receive(&wanted).expect("no reset");
    client.receive(&cluster.kept[0][1]).expect("no reset");
    assert_eq!(cluster.moved(), moved);
    assert!(cluster.count(A, "weir_hand_offs_refused_total{reason=\"node\"}") > 0);
    cluster.wait_until("its packets are held no longer", || !cluster.holds());
    client.get(&cluster.kept[0][2]);
}

#[test]
fn front_end_that_does_not_answer_has_the_connection_stay() {
    if !is_permitted() {
        return;
    }
    let cluster = Cluster::start();
    let mut client = cluster.connect_at_a();
    // its kernel leads packets all the same
    cluster.stop(FRONT_END);
    client.get(&cluster.kept[1][0]);
    client.get(&cluster.kept[0][1]);
    let refused = "weir_hand_offs_refused_total{reason=\"front-end\"}";
    assert_eq!(cluster.count(A, refused), 1);
    cluster.go_on(FRONT_END);
    client.get(&cluster.kept[0][2]);
}

#[test]
fn front_end_that_fails_within_a_move_has_the_connection_stay_where_its_packets_go() {
    if !is_permitted() {
        return;
    }
    let cluster = Cluster::start();
    let mut client = cluster.connect_at_a();
    let refused = || cluster.count(A, "weir_hand_offs_refused_total{reason=\"front-end\"}");
    // not at once if the node answers too late, or a packet is under way
    cluster.wait_until("it fails within a move", || {
        cluster.stop(B);
        client.send(&[&cluster.kept[1][0], &cluster.kept[0][1]]);
        cluster.wait_until("the state is sent", || cluster.has_message());
        // it has held the packets, and is to steer them when the node has the connection
        cluster.stop(FRONT_END);
        cluster.go_on(B);
        for target in [&cluster.kept[1][0], &cluster.kept[0][1]] {
            client.receive(target).expect("no reset");
        }
        cluster.go_on(FRONT_END);
        refused() > 0
    });
    assert_eq!(cluster.count(A, "weir_hand_offs_lost_total"), 0);
    client.get(&cluster.kept[0][2]);
}

#[test]
fn node_that_fails_within_a_move_takes_its_own_connections_along_and_no_others() {
    if !is_permitted() {
        return;
    }
    let mut cluster = Cluster::start();
    // it moves to B, and stays there; not at once if a packet of it is under way
    let mut other = cluster.connect_at_a();
    cluster.wait_until("it is at B", || other.get(&cluster.kept[1][1]).is_hit);
    assert!(cluster.moved() > 0);
    let mut client = cluster.connect_at_a();
    cluster.stop(B);
    client.send(&[&cluster.kept[1][0]]);
    cluster.wait_until("the state is sent", || cluster.has_message());
    cluster.kill(A);
    cluster.go_on(B);
    // the client is told with its next packet
    client.send(&[&cluster.kept[0][1]]);
    let received = client.receive(&cluster.kept[1][0]);
    let _ = received.expect_err("its node is gone");
    other.get(&cluster.kept[1][2]);
    cluster.connect(CLIENT).get(&cluster.kept[1][3]);
}
