//! Hands over one connection, in the steps that [`weir_policy`] decides.

use super::repair::{ConnectionState, FrozenConnection};
use super::steering::Steering;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use weir_policy::connections::hand_off::{Move, MoveCommand, MoveEnd, MoveEvent};

/// The node that is to go on with a connection, as the machine reaches it that has the connection.
pub trait Receiver {
    /// Whether there is memory for messages with this state.
    fn reserve(&mut self, state: &ConnectionState) -> bool;

    /// Sends the node the state; whether it has adopted the connection.
    fn adopt(&mut self, state: &ConnectionState) -> impl Future<Output = bool>;

    /// The packets of the connection are steered to the node: tells the node to go on with it.
    fn go(&mut self) -> impl Future<Output = GoAnswer>;
}

/// What the node says that is told to go on with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoAnswer {
    /// It goes on.
    GoesOn,
    /// It does not have the connection any more, and has sent nothing.
    HasNone,
    /// Nothing in time, or that the connection is broken.
    None,
}

/// A connection to be handed over.
#[derive(Clone, Copy, Debug)]
pub struct HandedConnection<'c> {
    /// The address of its client.
    pub flow: SocketAddrV4,
    /// Its socket. If the connection stays, it goes on with that.
    pub socket: BorrowedFd<'c>,
    /// The last bytes that were read from it and not used: the node reads them again.
    pub read: &'c [u8],
}

/// What became of a connection that was to be handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveOutcome {
    /// Where it goes on.
    pub end: MoveEnd,
    /// How long its packets were dropped, from the request to the kernel on; `None` if they were
    /// not.
    pub held: Option<Duration>,
}

/// Hands a connection over to the node at `machine`, which `receiver` is.
pub async fn hand_over(
    steering: &Steering,
    connection: HandedConnection<'_>,
    machine: Ipv4Addr,
    receiver: &mut impl Receiver,
) -> MoveOutcome {
    let mut moving = Moving {
        steering,
        connection,
        machine,
        receiver,
        frozen: None,
        held: Hold::No,
    };
    let (mut step, mut commands) = Move::begin();
    loop {
        let mut event = None;
        for command in commands {
            event = moving.carry_out(*command).await;
        }
        let held = moving.held.duration();
        if let Some(end) = step.end() {
            return MoveOutcome { end, held };
        }
        // each step before the end has a command with an outcome
        let Some(event) = event else {
            let end = MoveEnd::Lost;
            return MoveOutcome { end, held };
        };
        commands = step.handle(event);
    }
}

struct Moving<'m, R> {
    steering: &'m Steering,
    connection: HandedConnection<'m>,
    machine: Ipv4Addr,
    receiver: &'m mut R,
    frozen: Option<FrozenConnection>,
    held: Hold,
}

/// Whether and how long packets are dropped.
#[derive(Clone, Copy, Debug)]
enum Hold {
    No,
    Since(Instant),
    For(Duration),
}

impl Hold {
    /// They are dropped no longer.
    fn end(&mut self) {
        if let Self::Since(begun) = *self {
            *self = Self::For(begun.elapsed());
        }
    }

    const fn duration(self) -> Option<Duration> {
        match self {
            Self::For(duration) => Some(duration),
            Self::No | Self::Since(_) => None,
        }
    }
}

impl<R: Receiver> Moving<'_, R> {
    async fn carry_out(&mut self, command: MoveCommand) -> Option<MoveEvent> {
        let either = |is_so: bool, event, other| Some(if is_so { event } else { other });
        let flow = self.connection.flow;
        match command {
            MoveCommand::Hold => {
                let begun = Instant::now();
                let held = self.steering.hold(flow).await.is_ok();
                if held {
                    self.held = Hold::Since(begun);
                }
                either(held, MoveEvent::Held, MoveEvent::NotHeld)
            }
            MoveCommand::Freeze => Some(self.freeze()),
            MoveCommand::Send => {
                let state = self.frozen.as_ref()?.state();
                let adopted = self.receiver.adopt(state).await;
                either(adopted, MoveEvent::Adopted, MoveEvent::NotAdopted)
            }
            MoveCommand::Look => {
                let is_unchanged = self.frozen.as_ref()?.is_unchanged().unwrap_or(false);
                either(is_unchanged, MoveEvent::Unchanged, MoveEvent::Changed)
            }
            MoveCommand::Steer => {
                let steered = self.steering.steer_held(flow, self.machine).await.is_ok();
                if steered {
                    self.held.end();
                }
                either(steered, MoveEvent::Steered, MoveEvent::NotSteered)
            }
            MoveCommand::Drop => {
                self.frozen = None;
                None
            }
            MoveCommand::Go => Some(match self.receiver.go().await {
                GoAnswer::GoesOn => MoveEvent::WentOn,
                GoAnswer::HasNone => MoveEvent::NotWentOn,
                GoAnswer::None => MoveEvent::NotAnswered,
            }),
            MoveCommand::Thaw => {
                let _ = self.frozen.take().map(FrozenConnection::thaw);
                None
            }
            MoveCommand::Release => {
                let _ = self.steering.release(flow).await;
                self.held.end();
                None
            }
            MoveCommand::Return | MoveCommand::Unsteer => {
                let _ = self.steering.unsteer(vec![flow]).await;
                None
            }
            MoveCommand::Reset => {
                let _ = self.frozen.take().map(FrozenConnection::reset);
                None
            }
        }
    }

    /// By a second descriptor: the connection goes on with the first one, if it stays.
    fn freeze(&mut self) -> MoveEvent {
        let HandedConnection { socket, read, .. } = self.connection;
        let Ok(descriptor) = socket.try_clone_to_owned() else {
            return MoveEvent::NotFrozen;
        };
        let Ok(frozen) = FrozenConnection::freeze(descriptor.into(), read) else {
            return MoveEvent::NotFrozen;
        };
        let has_room = self.receiver.reserve(frozen.state());
        self.frozen = Some(frozen);
        match has_room {
            true => MoveEvent::Frozen,
            false => MoveEvent::NoRoom,
        }
    }
}
