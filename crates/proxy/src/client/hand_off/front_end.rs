//! The front end's side.

use super::node::{ADOPT_TARGET, GO_TARGET};
use super::{HandOffs, HeldBytes, Message, MoveCount};
use crate::cluster::Cluster;
use crate::exchange::next_hop::ChosenNode;
use crate::exchange::state::{Plan, RequestState};
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpStream;
use weir_measure::Metric;
use weir_net::flow::unacknowledged_bytes;
use weir_net::hand_off::repair::{FrozenConnection, UNACKNOWLEDGED_BYTES_MAX};
use weir_net::hand_off::steering::Steering;
use weir_policy::connections::hand_off::{
    HandOffKind, HandOffRequest, Move, MoveCommand, MoveEvent, Stay,
};
use weir_policy::route::Place;
use weir_semantics::Method;

/// Hands the connection over to the node that is chosen for its first request; `false` if it stays,
/// and nothing has happened to it. `read` is all that was read of it.
pub(crate) async fn hand_over(exchange: &RequestState, stream: &TcpStream, read: &[u8]) -> bool {
    let worker = &exchange.worker;
    let offs = &worker.shared.hand_offs;
    let Some(mut moving) = Moving::of(exchange, offs, stream, read) else {
        return false;
    };
    let stay = moving.run().await;
    worker.counters().inc(match stay {
        None => Metric::HandOffs,
        Some(_) => Metric::HandOffsRefused,
    });
    stay.is_none()
}

/// A connection that is being handed over.
struct Moving<'m> {
    worker: &'m Rc<Worker>,
    settings: &'m Arc<Settings>,
    offs: &'m HandOffs,
    steering: &'m Steering,
    cluster: Arc<Cluster>,
    place: Place,
    machine: Ipv4Addr,
    flow: SocketAddrV4,
    stream: &'m TcpStream,
    read: &'m [u8],
    frozen: Option<FrozenConnection>,
    /// What `frozen` and its message take.
    held: Option<HeldBytes>,
    ticket: String,
    _count: MoveCount<'m>,
}

impl<'m> Moving<'m> {
    /// `None` if the connection stays.
    fn of(
        exchange: &'m RequestState,
        offs: &'m HandOffs,
        stream: &'m TcpStream,
        read: &'m [u8],
    ) -> Option<Self> {
        let steering = offs.steering.get()?;
        let cluster = exchange.settings.cluster()?;
        if !matches!(exchange.plan, Plan::Forward { .. }) {
            return None;
        }
        let (peer, local) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
        let (SocketAddr::V4(flow), SocketAddr::V4(local)) = (peer, local) else {
            return None;
        };
        let request = &exchange.request;
        let is_bare =
            matches!(request.method, Method::Get | Method::Head) && !request.has_content();
        let judged = HandOffKind::Single.judge(&HandOffRequest {
            is_for_other: offs.service() == Some(local),
            is_tls: false,
            is_bare,
            is_later: exchange.client.facts().is_reused(),
            unacknowledged_bytes: unacknowledged_bytes(stream)? as usize,
            unacknowledged_bytes_max: UNACKNOWLEDGED_BYTES_MAX,
            moves: offs.moves.load(Ordering::Relaxed),
        });
        judged.ok()?;
        // last: a choice is counted, and may change the next one
        let chosen = ChosenNode::of(exchange);
        let place = chosen.place();
        // if the connection stays, the request is forwarded there
        exchange.chosen_node.set(Some(Box::new(chosen)));
        let place = place?;
        let machine = cluster.hop(place).host.parse().ok()?;
        Some(Self {
            worker: &exchange.worker,
            settings: &exchange.settings,
            offs,
            steering,
            cluster,
            place,
            machine,
            flow,
            stream,
            read,
            frozen: None,
            held: None,
            ticket: String::new(),
            _count: offs.begin_move(),
        })
    }

    /// Why it stays, if it does.
    async fn run(&mut self) -> Option<Stay> {
        let (mut step, mut commands) = Move::begin();
        let mut stay = None;
        loop {
            let mut event = None;
            for command in commands {
                if let MoveCommand::Forward(why) = command {
                    stay = Some(*why);
                }
                event = self.carry_out(*command).await;
            }
            match event {
                Some(event) => commands = step.handle(event),
                None => return stay,
            }
        }
    }

    async fn carry_out(&mut self, command: MoveCommand) -> Option<MoveEvent> {
        let either = |is_so: bool, event, other| Some(if is_so { event } else { other });
        match command {
            MoveCommand::Hold => {
                let held = self.steering.hold(self.flow).await.is_ok();
                either(held, MoveEvent::Held, MoveEvent::NotHeld)
            }
            MoveCommand::Freeze => {
                self.freeze();
                let is_frozen = self.frozen.is_some();
                either(is_frozen, MoveEvent::Frozen, MoveEvent::NotFrozen)
            }
            MoveCommand::Send => {
                let adopted = self.send().await.is_some();
                either(adopted, MoveEvent::Adopted, MoveEvent::NotAdopted)
            }
            MoveCommand::Look => {
                let frozen = self.frozen.as_ref();
                let is_unchanged = frozen.is_some_and(|it| it.is_unchanged().unwrap_or(false));
                either(is_unchanged, MoveEvent::Unchanged, MoveEvent::Changed)
            }
            MoveCommand::Steer => {
                let steered = self.steering.steer(self.flow, self.machine).await.is_ok();
                either(steered, MoveEvent::Steered, MoveEvent::NotSteered)
            }
            MoveCommand::Drop => {
                self.frozen = None;
                self.held = None;
                self.offs.note_steered(self.flow, &self.ticket);
                None
            }
            MoveCommand::Go => {
                let content = self.ticket.as_bytes();
                let proved = self
                    .cluster
                    .prove_hand_off(self.place, &self.ticket, content)?;
                self.post(GO_TARGET, proved).await;
                None
            }
            MoveCommand::Thaw => {
                let _ = self.frozen.take().map(FrozenConnection::thaw);
                None
            }
            MoveCommand::Release => {
                let _ = self.steering.release(self.flow).await;
                None
            }
            MoveCommand::Forward(_) => None,
        }
    }

    /// By a second descriptor: the connection goes on with the first one, if it stays.
    fn freeze(&mut self) -> Option<()> {
        let descriptor = self.stream.as_fd().try_clone_to_owned().ok()?;
        let frozen = FrozenConnection::freeze(descriptor.into(), self.read).ok()?;
        // the state, its encoding, and that with its proof
        self.held = self.offs.hold(3 * frozen.state().queued_bytes());
        if self.held.is_some() {
            self.frozen = Some(frozen);
        } else {
            let _ = frozen.thaw();
        }
        Some(())
    }

    async fn send(&mut self) -> Option<()> {
        let mut state = Vec::new();
        self.frozen.as_ref()?.state().encode(&mut state);
        let nonce = self.cluster.nonce();
        let content = self.cluster.prove_hand_off(self.place, &nonce, &state)?;
        let (status, ticket) = self.post_for(&nonce, ADOPT_TARGET, content).await?;
        if status == 200 {
            self.ticket = String::from_utf8(ticket).ok()?;
            return Some(());
        }
        None
    }

    async fn post(&self, target: &'static str, content: Vec<u8>) -> Option<(u16, Vec<u8>)> {
        let nonce = self.cluster.nonce();
        self.post_for(&nonce, target, content).await
    }

    async fn post_for(
        &self,
        nonce: &str,
        target: &'static str,
        content: Vec<u8>,
    ) -> Option<(u16, Vec<u8>)> {
        let message = Message {
            settings: Arc::clone(self.settings),
            cluster: Arc::clone(&self.cluster),
            place: self.place,
            target,
            nonce: nonce.to_owned(),
            content,
        };
        self.offs.send(self.worker, message).await
    }
}
