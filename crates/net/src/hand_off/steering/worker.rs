//! The thread that changes flows: requests of many connections are one transaction.

use super::change::{Batch, Change};
use super::netlink::{Nftables, Refusal};
use super::table::{self, FLOWS_MAX};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Requests that wait for the kernel; further ones are refused.
pub const CHANGES_WAITING_MAX: usize = 4096;

/// Requests of one transaction, at most.
const TOGETHER_MAX: usize = 64;

/// Times that a transaction is tried. Each time all changes are corrected that were refused, and
/// each change can be corrected twice: an addition by a removal, which is of no use then.
const ROUNDS_MAX: usize = 5;

/// The flows of one service that are held and steered. When it is dropped, none is.
#[derive(Debug)]
pub struct Steering {
    /// `None` when it is dropped, which ends the thread.
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// Changes for one connection, and where their outcome is told.
struct Request {
    changes: Vec<Change>,
    outcome: oneshot::Sender<io::Result<()>>,
}

impl Steering {
    /// Makes the table for packets to `service` that arrive by `device`, in the network of the
    /// calling thread. The caller must be the one that listens there: a table that is there is
    /// taken for one that a killed process has left.
    ///
    /// # Errors
    /// There is no `nft`, no such device, or the kernel does not do it: without `CAP_NET_ADMIN`,
    /// say.
    pub fn install(device: &str, service: SocketAddrV4) -> io::Result<Self> {
        table::install(device, service)?;
        let nftables = Nftables::new(table::name(service))?;
        let (requests, inbox) = sync_channel(CHANGES_WAITING_MAX);
        let thread = std::thread::Builder::new().name("steering".to_owned());
        let thread = thread.spawn(move || run(&nftables, &inbox))?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Packets of `flow` are dropped, for two seconds at most, so that its client sends them again.
    ///
    /// # Errors
    /// Too many changes wait or too many flows are held, or the kernel does not do it.
    pub async fn hold(&self, flow: SocketAddrV4) -> io::Result<()> {
        self.change(vec![Change::Hold(flow)]).await
    }

    /// Packets of `flow` are forwarded to `machine`, wherever they went before, and not dropped.
    ///
    /// # Errors
    /// As [`Self::hold`]; nothing is changed then.
    pub async fn steer(&self, flow: SocketAddrV4, machine: Ipv4Addr) -> io::Result<()> {
        let changes = vec![Change::Steer(flow, machine), Change::Release(flow)];
        self.change(changes).await
    }

    /// Packets of a `flow` that was held without a break, and was not steered, are forwarded to
    /// `machine`, and not dropped.
    ///
    /// # Errors
    /// As [`Self::hold`], or it is held no longer; nothing is changed then.
    pub async fn steer_held(&self, flow: SocketAddrV4, machine: Ipv4Addr) -> io::Result<()> {
        let changes = vec![Change::Steer(flow, machine), Change::EndHold(flow)];
        self.change(changes).await
    }

    /// Packets of a steered `flow` that was held without a break are forwarded to `machine`, and
    /// not dropped.
    ///
    /// # Errors
    /// As [`Self::hold`]; or it is held or steered no longer: its client has begun another
    /// connection from the same port, say. Nothing is changed then.
    pub async fn steer_on(&self, flow: SocketAddrV4, machine: Ipv4Addr) -> io::Result<()> {
        let changes = vec![
            Change::EndSteering(flow),
            Change::SteerOn(flow, machine),
            Change::EndHold(flow),
        ];
        self.change(changes).await
    }

    /// Packets of a held `flow` are not dropped any longer.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn release(&self, flow: SocketAddrV4) -> io::Result<()> {
        self.change(vec![Change::Release(flow)]).await
    }

    /// Packets of steered `flows` are received by this machine, as those of any other one.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn unsteer(&self, flows: Vec<SocketAddrV4>) -> io::Result<()> {
        let changes = flows.into_iter().map(Change::Unsteer);
        self.change(changes.collect()).await
    }

    async fn change(&self, changes: Vec<Change>) -> io::Result<()> {
        let (outcome, told) = oneshot::channel();
        let ended = || io::Error::other("the thread that steers has ended");
        let requests = self.requests.as_ref().ok_or_else(ended)?;
        match requests.try_send(Request { changes, outcome }) {
            Ok(()) => told.await.map_err(|_| ended())?,
            Err(TrySendError::Full(_)) => Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "too many flows are being changed",
            )),
            Err(TrySendError::Disconnected(_)) => Err(ended()),
        }
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Carries out what is requested until no more can come, then removes the table.
fn run(nftables: &Nftables, inbox: &Receiver<Request>) {
    let mut steered = HashSet::new();
    while let Ok(first) = inbox.recv() {
        let mut requests = vec![first];
        requests.extend(inbox.try_iter().take(TOGETHER_MAX - 1));
        carry_out(nftables, requests, &mut steered);
        // some have ended by themselves: the kernel knows how many there are
        if steered.len() > FLOWS_MAX as usize {
            steered.clear();
        }
    }
    // there may be none any more: an operator can remove it
    let _ = nftables.remove_table();
}

fn carry_out(nftables: &Nftables, requests: Vec<Request>, steered: &mut HashSet<SocketAddrV4>) {
    let mut batch = Batch::default();
    let mut outcomes = Vec::new();
    for (number, request) in requests.into_iter().enumerate() {
        let changes = request.changes.into_iter();
        let changes = changes.flat_map(|change| with_removal(change, steered));
        batch.changes.extend(changes.map(|change| (number, change)));
        outcomes.push(Some(request.outcome));
    }
    let mut tell = |number: usize, error: Option<Errno>| {
        if let Some(place) = outcomes.get_mut(number).and_then(Option::take) {
            // the connection may have ended meanwhile
            let _ = place.send(error.map_or(Ok(()), |error| Err(error.into())));
        }
    };
    let failure = commit(nftables, &mut batch, |number, error| {
        tell(number, Some(error));
    });
    for number in 0..TOGETHER_MAX {
        tell(number, failure);
    }
}

/// A change, and before it the removal that it takes. `steered` has the flows that are in the map:
/// the kernel takes no second address for one.
fn with_removal(
    change: Change,
    steered: &mut HashSet<SocketAddrV4>,
) -> impl Iterator<Item = Change> + use<> {
    let flow = change.flow();
    let is_replaced = match change {
        Change::Steer(..) => !steered.insert(flow),
        Change::Unsteer(_) => {
            steered.remove(&flow);
            false
        }
        Change::EndSteering(_) => {
            steered.remove(&flow);
            false
        }
        Change::SteerOn(..) => {
            steered.insert(flow);
            false
        }
        Change::Hold(_) | Change::Release(_) | Change::EndHold(_) => false,
    };
    let removal = is_replaced.then_some(Change::Unsteer(flow));
    removal.into_iter().chain([change])
}

/// Commits what the kernel takes of a batch; why it takes nothing, if it does not. `refuse` is
/// called for each request that it refuses.
fn commit(
    nftables: &Nftables,
    batch: &mut Batch,
    mut refuse: impl FnMut(usize, Errno),
) -> Option<Errno> {
    for _ in 0..ROUNDS_MAX {
        let changes = batch.changes.iter().map(|(_, change)| *change);
        match nftables.commit(changes) {
            Ok(()) => return None,
            Err(Refusal::Whole(error)) => return Some(error),
            Err(Refusal::Changes(refused)) => {
                for (number, error) in batch.correct(&refused) {
                    refuse(number, error);
                }
            }
        }
    }
    Some(Errno::AGAIN)
}
