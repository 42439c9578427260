//! Many connections that are handed over while they are used.

use crate::machines::{Network, v4};
use crate::mover::{Failure, Mover};
use crate::pattern::{self, wait_until};
use std::io::{self, Read as _};
use std::net::{SocketAddrV4, TcpStream};
use weir_net::flow::unacknowledged_bytes;
use weir_net::hand_off::steering::Steering;
use weir_policy::connections::hand_off::{MoveEnd, Stay};
use xtask::namespace::is_permitted;

const CONNECTIONS: usize = 1000;
const MOVES: usize = 5;
const THREADS: usize = 8;

/// Requests that a client sends together; each has as many bytes.
const PIPELINED: usize = 3;
const REQUEST_BYTES: usize = 100;

/// Of the responses to those together: some are written before the move, some after it.
const EARLY_BYTES: usize = 20_000;
const LATE_BYTES: usize = 20_000;

/// Of so many moves the node of one fails before it says that it has adopted the connection.
const FAILURE_EACH: usize = 10;

struct Connection {
    client: TcpStream,
    server: Option<TcpStream>,
    flow: SocketAddrV4,
    /// Bytes of requests so far, and of responses.
    requests: usize,
    responses: usize,
}

impl Connection {
    /// A batch of pipelined requests and their responses, with a move between.
    fn round(&mut self, mover: &Mover<'_>, to: usize, fails: bool) {
        let (from, batch) = (self.requests, PIPELINED * REQUEST_BYTES);
        self.requests += batch;
        pattern::write(&self.client, from..self.requests);
        let server = self.server.take().expect("it is somewhere");
        // the first requests are there in part: what follows travels
        let read = read_some(&server, from);
        let written = self.responses + EARLY_BYTES;
        pattern::write(&server, self.responses..written);
        let again = pattern::bytes(from..from + read);
        let server = match fails {
            true => {
                let failure = Failure::BeforeAnswer;
                let (server, end) = mover.attempt(self.flow, server, &again, (to, failure));
                // the client may have sent something before its packets were held
                let stays = [Stay::Node, Stay::State].map(MoveEnd::Stays);
                assert!(stays.contains(&end), "{end:?}");
                mover.hand_over(self.flow, server.expect("it stays"), &again, to)
            }
            false => mover.hand_over(self.flow, server, &again, to),
        };
        pattern::expect(&server, from, batch);
        pattern::write(&server, written..written + LATE_BYTES);
        pattern::expect(&self.client, self.responses, EARLY_BYTES + LATE_BYTES);
        self.responses = written + LATE_BYTES;
        self.server = Some(server);
    }
}

/// Reads what there is of what the client has sent, at least a byte.
fn read_some(mut server: &TcpStream, place: usize) -> usize {
    server.set_nonblocking(true).expect("a socket");
    let (mut bytes, mut read) = ([0; REQUEST_BYTES / 2], 0);
    wait_until("a request", || {
        match server.read(&mut bytes) {
            Ok(count) => read = count,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        read > 0
    });
    pattern::compare(&bytes[..read], place);
    read
}

#[test]
fn thousand_pipelined_connections_survive_five_moves_each_with_every_byte() {
    if !is_permitted() {
        return;
    }
    let _ = weir_net::raise_descriptor_limit();
    let network = Network::with_front_end(4);
    let listener = network.machines[0].listen();
    let service = listener.local_addr().expect("bound");
    let install = || Steering::install("e0", v4(service)).expect("a table");
    let steering = network.machines[0].run(install);
    let connect = || {
        let client = network.connect_to(service);
        let flow = v4(client.local_addr().expect("connected"));
        let (server, from) = listener.accept().expect("a client");
        assert_eq!(from, flow.into());
        Connection {
            client,
            server: Some(server),
            flow,
            requests: 0,
            responses: 0,
        }
    };
    let mut connections: Vec<Connection> = (0..CONNECTIONS).map(|_| connect()).collect();
    let mover = Mover {
        network: &network,
        steering: &steering,
    };
    std::thread::scope(|scope| {
        for (share, connections) in connections.chunks_mut(CONNECTIONS / THREADS).enumerate() {
            let mover = &mover;
            scope.spawn(move || {
                for number in 0..MOVES {
                    for (place, connection) in connections.iter_mut().enumerate() {
                        // to each of the three nodes in turn, never to the one that has it
                        let to = (share + place + number) % 3 + 1;
                        connection.round(mover, to, (place + number) % FAILURE_EACH == 0);
                    }
                }
            });
        }
    });
    for connection in &connections {
        let server = connection.server.as_ref().expect("it is somewhere");
        wait_until("all is acknowledged", || {
            unacknowledged_bytes(server) == Some(0)
        });
    }
}
