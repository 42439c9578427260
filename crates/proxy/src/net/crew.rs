//! The worker threads, and how the control thread speaks to them.

use crate::config;
use crate::exchange::next_hop::keep_ready;
use crate::net::listener;
use crate::net::next_hops::pool;
use crate::worker::core::Worker;
use crate::worker::shared::{Shared, Stage};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How often idle next-hop connections are looked through.
const SWEEP: Duration = Duration::from_secs(1);

/// Memory is given back with each so many of those: it takes the allocator about as long as a hit
/// for each mebibyte in use.
const SWEEPS_PER_GIVE_BACK: u32 = 5;

/// Orders waiting for a worker; they come one at a time, on reload.
const ORDERS_MAX: usize = 64;

/// A listener for a worker to serve until `stop` turns true.
pub(crate) struct Order {
    pub(crate) socket: std::net::TcpListener,
    pub(crate) listener: config::Listener,
    pub(crate) stop: watch::Receiver<bool>,
}

/// The workers.
pub(crate) struct Crew {
    orders: Vec<mpsc::Sender<Order>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Crew {
    /// Starts one thread a block of counters but the last, which no worker owns.
    pub(crate) fn start(shared: &Arc<Shared>, give_back_memory: fn()) -> io::Result<Self> {
        let mut crew = Self {
            orders: Vec::new(),
            threads: Mutex::default(),
        };
        for index in 0..shared.pools.len() {
            let (orders, inbox) = mpsc::channel(ORDERS_MAX);
            let shared = Arc::clone(shared);
            let (ready, started) = std::sync::mpsc::sync_channel(1);
            let thread = thread::Builder::new()
                .name(format!("weir-{index}"))
                .spawn(move || {
                    // a local runtime belongs to the thread that builds it
                    let built = Builder::new_current_thread()
                        .enable_io()
                        .enable_time()
                        .build_local(LocalOptions::default());
                    match built {
                        Ok(runtime) => {
                            let _ = ready.send(Ok(()));
                            runtime.block_on(work(index, shared, inbox, give_back_memory));
                        }
                        Err(error) => {
                            let _ = ready.send(Err(error));
                        }
                    }
                })?;
            started
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")))?;
            crew.orders.push(orders);
            crew.lock().push(thread);
        }
        Ok(crew)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Workers.
    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    /// Gives a worker a listener; an error if the worker has gone.
    pub(crate) fn give(&self, index: usize, order: Order) -> io::Result<()> {
        self.orders[index]
            .blocking_send(order)
            .map_err(|_| io::Error::other("the worker thread has ended"))
    }

    /// Waits for the threads to end. They end when the drain is over.
    pub(crate) fn join(&self) {
        let threads = std::mem::take(&mut *self.lock());
        for thread in threads {
            // a worker that panicked outside of any request has nothing left to tell
            let _ = thread.join();
        }
    }
}

async fn work(
    index: usize,
    shared: Arc<Shared>,
    mut inbox: mpsc::Receiver<Order>,
    give_back_memory: fn(),
) {
    let worker = Worker::new(index, shared);
    let mut stage = worker.shared.stage.subscribe();
    let mut listeners = JoinSet::new();
    let mut sweep = tokio::time::interval(SWEEP);
    let mut sweeps = 0_u32;
    loop {
        tokio::select! {
            _ = stage.wait_for(|stage| *stage > Stage::Serving) => break,
            Some(order) = inbox.recv() => obey(order, &worker, &mut listeners),
            Some(_) = listeners.join_next() => {}
            _ = sweep.tick() => {
                pool::sweep(&worker);
                keep_ready(&worker);
                sweeps = sweeps.wrapping_add(1);
                if sweeps.is_multiple_of(SWEEPS_PER_GIVE_BACK) {
                    give_back_memory();
                }
            }
        }
    }
    // the listeners take what the kernel has accepted for them, then end: those as well that were
    // not begun
    while let Ok(order) = inbox.try_recv() {
        obey(order, &worker, &mut listeners);
    }
    while listeners.join_next().await.is_some() {}
    worker.shared.accepts_no_more();
    worker.wake_sleepers();
    finish(&worker).await;
}

fn obey(order: Order, worker: &Rc<Worker>, listeners: &mut JoinSet<io::Result<()>>) {
    let Order {
        socket,
        listener,
        stop,
    } = order;
    listeners.spawn_local(listener::run(Rc::clone(worker), socket, listener, stop));
}

/// Waits until all clients are served, those of other workers too, which may read what is fetched
/// here; or the time for it is over.
async fn finish(worker: &Worker) {
    let cut = worker.shared.cut();
    tokio::pin!(cut);
    loop {
        let closed = worker.shared.client_closed.notified();
        if worker.shared.is_deserted() {
            break;
        }
        tokio::select! {
            () = closed => {}
            () = &mut cut => break,
        }
    }
}
