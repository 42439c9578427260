//! Threads that verify passwords, so that no worker waits for one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use weir_policy::destination::ClientNetwork;

/// Most logins that wait to be verified. With bcrypt of cost 12 they take eight seconds on two
/// threads; a client that waits longer would give up.
const QUEUE_MAX: usize = 64;
/// Most of them that are of one client, with those that are being verified: one that tries many
/// passwords leaves places for others. A browser shows one password on all of its connections,
/// which is one login.
const CLIENT_MAX: usize = 8;
/// Threads. Verifying is all that they do, and the workers need the cores.
const THREADS: usize = 2;

/// What a thread is to do.
type Job = Box<dyn FnOnce() + Send>;

/// The queue of the threads, which begin with the first login and end with the configuration that
/// they are of.
#[derive(Default)]
pub(super) struct Verifier {
    queue: OnceLock<Option<SyncSender<Job>>>,
    clients: Arc<Clients>,
}

impl Verifier {
    /// Puts `job`, a login of `client`, into the queue; `false` if it is full, or has as many of
    /// this client as it may have.
    pub(super) fn queue(&self, client: IpAddr, job: Job) -> bool {
        let Some(place) = Clients::place(&self.clients, client) else {
            return false;
        };
        let queue = self.queue.get_or_init(start);
        // the place is free again when the job is done, or dropped
        let job: Job = Box::new(move || {
            let _place = place;
            job();
        });
        queue
            .as_ref()
            .is_some_and(|queue| queue.try_send(job).is_ok())
    }
}

/// How many logins each client has that wait or are being verified: at most [`QUEUE_MAX`] and
/// [`THREADS`] in all.
#[derive(Default)]
struct Clients(Mutex<HashMap<ClientNetwork, usize>>);

impl Clients {
    /// A place for a login of `client`; `None` if it has [`CLIENT_MAX`].
    fn place(clients: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let client = ClientNetwork::of(client);
        let mut counts = clients.lock();
        let count = counts.entry(client).or_default();
        if *count >= CLIENT_MAX {
            return None;
        }
        *count += 1;
        drop(counts);
        let clients = Arc::clone(clients);
        Some(Place { clients, client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientNetwork, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a login.
struct Place {
    clients: Arc<Clients>,
    client: ClientNetwork,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.clients.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// `None` if no thread can be had.
fn start() -> Option<SyncSender<Job>> {
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let started = (0..THREADS).filter(|_| {
        let receiver = Arc::clone(&receiver);
        let thread = thread::Builder::new().name("logins".into());
        thread.spawn(move || work(&receiver)).is_ok()
    });
    (started.count() > 0).then_some(sender)
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn one_client_cannot_take_all_places_of_the_queue() {
        let verifier = Verifier::default();
        let (ends, end) = channel::<()>();
        let end = Arc::new(Mutex::new(end));
        let (done, dones) = channel();
        let job = || -> Job {
            let (end, done) = (Arc::clone(&end), done.clone());
            Box::new(move || {
                // until the sender is dropped
                let _ended = end.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let _received = done.send(());
            })
        };
        let neighbours = ["2001:db8::1", "2001:db8::2:0:0:3"].map(|it| it.parse().expect("one"));
        let queued = (0..2 * CLIENT_MAX).filter(|turn| verifier.queue(neighbours[turn % 2], job()));
        assert_eq!(queued.count(), CLIENT_MAX);
        let other: IpAddr = "192.0.2.1".parse().expect("an address");
        assert!(verifier.queue(other, job()));
        drop(ends);
        (0..=CLIENT_MAX).for_each(|_| dones.recv().expect("it was done"));
        // the last place is given back just behind that
        while !verifier.clients.lock().is_empty() {
            thread::yield_now();
        }
        assert!(verifier.queue(neighbours[0], Box::new(|| {})));
    }
}
