//! A front end that hands connections over.

use crate::machines::{Machine, Network, own_address};
use crate::pattern::WAIT_MAX;
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Instant;
use weir_net::hand_off::moving::{
    self, GoAnswer, HandedConnection, MoveOutcome, OwnPackets, Receiver,
};
use weir_net::hand_off::repair::{ConnectionState, FrozenConnection};
use weir_net::hand_off::steering::Steering;
use weir_policy::connections::hand_off::{MoveEnd, Stay};

pub(crate) fn wait<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(what)
}

/// What has connections handed over, wherever they are.
pub(crate) struct Mover<'n> {
    pub(crate) network: &'n Network,
    pub(crate) steering: &'n Steering,
}

/// When the machine fails that is to go on with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Never,
    /// It has adopted the connection, and has not said so.
    BeforeAnswer,
    /// It has said so, and is not told to go on.
    BeforeGo,
    /// It goes on, and has not said so.
    AfterGo,
    /// It has dropped the connection when it is told to go on with it.
    Forgets,
}

struct Node<'n> {
    machine: &'n Machine,
    failure: Failure,
    adopted: Option<FrozenConnection>,
    /// When it goes on with it.
    stream: Option<TcpStream>,
}

impl Receiver for Node<'_> {
    fn reserve(&mut self, _: &ConnectionState) -> bool {
        true
    }

    async fn adopt(&mut self, state: &ConnectionState) -> bool {
        let mut message = Vec::new();
        state.encode(&mut message);
        let state = ConnectionState::decode(&message).expect("a state");
        let adopt = || FrozenConnection::adopt(state).ok();
        let adopted = self.machine.run(adopt);
        self.adopted = adopted.filter(|_| self.failure != Failure::BeforeAnswer);
        self.adopted.is_some()
    }

    async fn go(&mut self) -> GoAnswer {
        let adopted = self.adopted.take().expect("an adopted one");
        match self.failure {
            Failure::BeforeGo => return GoAnswer::None,
            Failure::Forgets => return GoAnswer::HasNone,
            _ => self.stream = Some(adopted.thaw().expect("a connection")),
        }
        match self.failure {
            Failure::AfterGo => GoAnswer::None,
            _ => GoAnswer::GoesOn,
        }
    }
}

impl Mover<'_> {
    /// Hands it over to machine `to`, where `read` is read again.
    pub(crate) fn hand_over(
        &self,
        flow: SocketAddrV4,
        mut stream: TcpStream,
        read: &[u8],
        to: usize,
    ) -> TcpStream {
        let began = Instant::now();
        loop {
            match self.attempt(flow, stream, read, (to, Failure::Never)) {
                (Some(stream), MoveEnd::HandedOver) => return stream,
                // a packet was under way: the last ones have arrived next time
                (Some(given_back), MoveEnd::Stays(Stay::State)) => stream = given_back,
                (_, end) => panic!("{end:?}"),
            }
            assert!(began.elapsed() < WAIT_MAX);
        }
    }

    /// Tries it once; where it goes on, if it does or may, and what became of it.
    pub(crate) fn attempt(
        &self,
        flow: SocketAddrV4,
        stream: TcpStream,
        read: &[u8],
        (to, failure): (usize, Failure),
    ) -> (Option<TcpStream>, MoveEnd) {
        let mut node = Node {
            machine: &self.network.machines[to],
            failure,
            adopted: None,
            stream: None,
        };
        let connection = HandedConnection {
            socket: stream.as_fd(),
            read,
        };
        let mut packets = OwnPackets {
            steering: self.steering,
            flow,
            machine: own_address(to),
        };
        let moved = moving::hand_over(&mut packets, connection, &mut node);
        let MoveOutcome { end, held } = wait(moved);
        assert!(held.is_some(), "{end:?}");
        match end {
            MoveEnd::HandedOver => (node.stream, end),
            MoveEnd::Stays(_) => (Some(stream), end),
            MoveEnd::Lost => (node.stream, end),
        }
    }
}
