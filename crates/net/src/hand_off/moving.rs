//! Hands over one connection, in the steps that [`weir_policy`] decides.

use super::repair::{ConnectionState, FrozenConnection};
use super::steering::{HELD_FOR, Steering};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};
use weir_policy::connections::hand_off::{Move, MoveCommand, MoveEnd, MoveEvent};

/// Probes of a client whose packets go to one of two machines: one may be lost.
const PROBES: usize = 2;

/// Looks for the answer to each: the client has 600 ms for it, and does not answer two of them in
/// less than 500 ms (`tcp_invalid_ratelimit` of Linux).
const LOOKS: usize = 30;

/// Between these.
const LOOK_EACH: Duration = Duration::from_millis(20);

/// What leads the packets of the connection: the steering of this machine, or a front end that is
/// sent messages.
pub trait Packets {
    /// Has them dropped from now on.
    fn hold(&mut self) -> impl Future<Output = Held>;

    /// Has them led to the node, and not dropped, if they were dropped without a break.
    fn steer(&mut self) -> impl Future<Output = Steered>;

    /// Has them come here again, and not dropped.
    fn release(&mut self) -> impl Future<Output = ()>;

    /// Has them led nowhere: they are answered with a reset.
    fn unsteer(&mut self) -> impl Future<Output = ()>;
}

/// Whether packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// They are.
    Yes,
    /// This machine cannot do it.
    No,
    /// The front end does not do it, or does not say that it does.
    NotPermitted,
}

/// Whether packets go to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// They do.
    Yes,
    /// They do not, and will not.
    No,
    /// That is not known.
    Perhaps,
}

/// The packets of a connection that this machine has accepted.
#[derive(Debug)]
pub struct OwnPackets<'s> {
    /// Where they are steered.
    pub steering: &'s Steering,
    /// The client's end.
    pub flow: SocketAddrV4,
    /// Where the node is.
    pub machine: Ipv4Addr,
}

impl Packets for OwnPackets<'_> {
    async fn hold(&mut self) -> Held {
        match self.steering.hold(self.flow).await {
            Ok(()) => Held::Yes,
            Err(_) => Held::No,
        }
    }

    async fn steer(&mut self) -> Steered {
        match self.steering.steer_held(self.flow, self.machine).await {
            Ok(()) => Steered::Yes,
            Err(_) => Steered::No,
        }
    }

    async fn release(&mut self) {
        let _ = self.steering.release(self.flow).await;
    }

    async fn unsteer(&mut self) {
        let _ = self.steering.unsteer(vec![self.flow]).await;
    }
}

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
    /// How long its packets were dropped, from the request for that on; `None` if they were not.
    pub held: Option<Duration>,
}

/// Hands a connection over to the node that `receiver` is.
pub async fn hand_over(
    packets: &mut impl Packets,
    connection: HandedConnection<'_>,
    receiver: &mut impl Receiver,
) -> MoveOutcome {
    let mut moving = Moving {
        packets,
        connection,
        receiver,
        frozen: None,
        held: Hold::No,
        hold_ends: Instant::now(),
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

struct Moving<'m, P, R> {
    packets: &'m mut P,
    connection: HandedConnection<'m>,
    receiver: &'m mut R,
    frozen: Option<FrozenConnection>,
    held: Hold,
    /// When packets that are not led elsewhere come here again by themselves.
    hold_ends: Instant,
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

impl<P: Packets, R: Receiver> Moving<'_, P, R> {
    async fn carry_out(&mut self, command: MoveCommand) -> Option<MoveEvent> {
        let either = |is_so: bool, event, other| Some(if is_so { event } else { other });
        match command {
            MoveCommand::Hold => {
                let begun = Instant::now();
                Some(match self.packets.hold().await {
                    Held::Yes => {
                        self.held = Hold::Since(begun);
                        self.hold_ends = Instant::now() + HELD_FOR;
                        MoveEvent::Held
                    }
                    Held::No => MoveEvent::NotHeld,
                    Held::NotPermitted => MoveEvent::NotPermitted,
                })
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
            MoveCommand::Steer => Some(match self.packets.steer().await {
                Steered::Yes => {
                    self.held.end();
                    MoveEvent::Steered
                }
                Steered::No => MoveEvent::NotSteered,
                Steered::Perhaps => MoveEvent::SteeredPerhaps,
            }),
            MoveCommand::Probe => {
                let reached = self.probe().await;
                self.held.end();
                either(reached, MoveEvent::Reached, MoveEvent::NotReached)
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
                self.packets.release().await;
                self.held.end();
                None
            }
            MoveCommand::Return | MoveCommand::Unsteer => {
                self.packets.unsteer().await;
                None
            }
            MoveCommand::Reset => {
                let _ = self.frozen.take().map(FrozenConnection::reset);
                None
            }
        }
    }

    /// Whether packets of the client come here when they are held no longer.
    async fn probe(&self) -> bool {
        let Some(frozen) = &self.frozen else {
            return false;
        };
        // the kernel that holds them counts in ticks of its own
        sleep_until((self.hold_ends + LOOK_EACH).into()).await;
        let reached = || {
            let is_changed = !frozen.is_unchanged().unwrap_or(true);
            let since = self.hold_ends.elapsed();
            is_changed || frozen.was_reached_within(since).unwrap_or(false)
        };
        for _ in 0..PROBES {
            if frozen.probe().is_err() {
                return false;
            }
            for _ in 0..LOOKS {
                if reached() {
                    return true;
                }
                sleep(LOOK_EACH).await;
            }
        }
        reached()
    }

    /// By a second descriptor: the connection goes on with the first one, if it stays.
    fn freeze(&mut self) -> MoveEvent {
        let HandedConnection { socket, read } = self.connection;
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
