//! A front end that hands connections over, as `policy` says.

use crate::machines::{Network, own_address};
use crate::pattern::WAIT_MAX;
use std::net::{SocketAddrV4, TcpStream};
use std::time::Instant;
use weir_net::hand_off::repair::{ConnectionState, FrozenConnection};
use weir_net::hand_off::steering::Steering;
use weir_policy::connections::hand_off::{Move, MoveCommand, MoveEvent, Stay};

pub(crate) fn wait<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(what)
}

/// What has connections handed over, wherever they are.
pub(crate) struct Mover<'n> {
    pub(crate) network: &'n Network,
    pub(crate) steering: &'n Steering,
}

/// A connection that is being handed over.
struct Moving {
    stream: Option<TcpStream>,
    frozen: Option<FrozenConnection>,
    adopted: Option<FrozenConnection>,
    stay: Option<Stay>,
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
            match self.attempt(flow, stream, read, (to, false)) {
                (stream, None) => return stream,
                // a packet was under way: the last ones have arrived next time
                (given_back, Some(Stay::State)) => stream = given_back,
                (_, Some(stay)) => panic!("{stay:?}"),
            }
            assert!(began.elapsed() < WAIT_MAX);
        }
    }

    /// Tries it once; with why it stays, if it does. With `dies` the machine ends when it has
    /// adopted the connection, and before it says so.
    pub(crate) fn attempt(
        &self,
        flow: SocketAddrV4,
        stream: TcpStream,
        read: &[u8],
        (to, dies): (usize, bool),
    ) -> (TcpStream, Option<Stay>) {
        let (mut step, mut commands) = Move::begin();
        let mut moving = Moving {
            stream: Some(stream),
            frozen: None,
            adopted: None,
            stay: None,
        };
        loop {
            let mut event = None;
            for command in commands {
                event = self.carry_out(*command, &mut moving, (flow, read, to, dies));
            }
            match event {
                Some(event) => commands = step.handle(event),
                None => {
                    assert!(step.is_over());
                    return (moving.stream.expect("one of them"), moving.stay);
                }
            }
        }
    }

    fn carry_out(
        &self,
        command: MoveCommand,
        moving: &mut Moving,
        (flow, read, to, dies): (SocketAddrV4, &[u8], usize, bool),
    ) -> Option<MoveEvent> {
        let either = |is_so, event, other| Some(if is_so { event } else { other });
        match command {
            MoveCommand::Hold => {
                let held = wait(self.steering.hold(flow)).is_ok();
                either(held, MoveEvent::Held, MoveEvent::NotHeld)
            }
            MoveCommand::Freeze => {
                let stream = moving.stream.take().expect("a connection");
                match FrozenConnection::freeze(stream, read) {
                    Ok(frozen) => {
                        moving.frozen = Some(frozen);
                        Some(MoveEvent::Frozen)
                    }
                    Err((stream, _)) => {
                        moving.stream = Some(stream);
                        Some(MoveEvent::NotFrozen)
                    }
                }
            }
            MoveCommand::Send => {
                let mut message = Vec::new();
                let frozen = moving.frozen.as_ref().expect("a frozen one");
                frozen.state().encode(&mut message);
                let state = ConnectionState::decode(&message).expect("a state");
                let adopt = || FrozenConnection::adopt(state).ok();
                moving.adopted = self.network.machines[to].run(adopt).filter(|_| !dies);
                let is_there = moving.adopted.is_some();
                either(is_there, MoveEvent::Adopted, MoveEvent::NotAdopted)
            }
            MoveCommand::Look => {
                let frozen = moving.frozen.as_ref().expect("a frozen one");
                let is_so = frozen.is_unchanged().expect("under repair");
                either(is_so, MoveEvent::Unchanged, MoveEvent::Changed)
            }
            MoveCommand::Steer => {
                let steered = wait(self.steering.steer(flow, own_address(to))).is_ok();
                either(steered, MoveEvent::Steered, MoveEvent::NotSteered)
            }
            MoveCommand::Drop => {
                moving.frozen = None;
                None
            }
            MoveCommand::Go => {
                let adopted = moving.adopted.take().expect("an adopted one");
                moving.stream = Some(adopted.thaw().expect("a connection"));
                None
            }
            MoveCommand::Thaw => {
                let frozen = moving.frozen.take().expect("a frozen one");
                moving.stream = Some(frozen.thaw().expect("a connection"));
                None
            }
            MoveCommand::Release => {
                wait(self.steering.release(flow)).expect("a released flow");
                None
            }
            MoveCommand::Forward(stay) => {
                moving.stay = Some(stay);
                None
            }
        }
    }
}
