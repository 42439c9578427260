//! The worker threads, and the service that each of them runs.

use super::clients::ClientPlace;
use super::listener::{self, Sockets};
use super::network::Network;
use super::shutdown::Stage;
use super::worker::Worker;
use crate::next_hops::pool;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How often idle next-hop connections are looked through, and [`Service::tick`] is called.
const TICK: Duration = Duration::from_secs(1);

/// Listeners that wait for a worker to open them; they come one at a time, on reload.
const ORDERS_MAX: usize = 64;

/// What runs on each worker: it serves the connections that the worker accepts.
///
/// It is made on the worker's thread, and need not be `Send`.
pub trait Service: 'static {
    /// What the service needs of a listener, such as how its connections are served.
    type Listener: Clone + Send + 'static;

    /// Serves one client connection until it ends; a task of its own on the worker's thread.
    ///
    /// A panic ends this task alone.
    fn serve(
        self: Rc<Self>,
        client: Accepted<Self::Listener>,
    ) -> impl Future<Output = ()> + 'static;

    /// Called about once a second until the shutdown begins.
    fn tick(&self) {}
}

/// A client connection that was accepted.
pub struct Accepted<L> {
    /// The connection; what is written is sent at once (`TCP_NODELAY`).
    pub stream: TcpStream,
    /// The client's address.
    pub peer: SocketAddr,
    /// The listener that accepted it.
    pub listener: Rc<L>,
    /// Its place among the client connections, held as long as it is open.
    pub place: ClientPlace,
}

/// A listener for a worker to serve until `stop` turns true.
struct Order<L> {
    socket: std::net::TcpListener,
    listener: L,
    stop: watch::Receiver<bool>,
}

/// A listener that is open on all workers. It is closed when this is dropped: connections that the
/// kernel has accepted by then are still served.
#[derive(Debug)]
pub struct OpenListener {
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl OpenListener {
    /// Where it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OpenListener {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// The worker threads, which all run a service of the same type.
pub struct WorkerPool<S: Service> {
    orders: Vec<mpsc::Sender<Order<S::Listener>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<S: Service> WorkerPool<S> {
    /// Starts the workers of `network`, one thread each, named `weir-0` and so on. `service` is
    /// called once on each thread.
    ///
    /// # Errors
    ///
    /// A thread or its runtime cannot be started.
    pub fn start<F>(network: &Arc<Network>, service: F) -> io::Result<Self>
    where
        F: Fn(Rc<Worker>) -> Rc<S> + Send + Sync + 'static,
    {
        let service = Arc::new(service);
        let mut pool = Self {
            orders: Vec::new(),
            threads: Mutex::default(),
        };
        for index in 0..network.workers() {
            let (orders, inbox) = mpsc::channel(ORDERS_MAX);
            let (network, service) = (Arc::clone(network), Arc::clone(&service));
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
                            runtime.block_on(async move {
                                let worker = Worker::new(index, network);
                                let service = service(Rc::clone(&worker));
                                work(worker, service, inbox).await;
                            });
                        }
                        Err(error) => {
                            let _ = ready.send(Err(error));
                        }
                    }
                })?;
            started
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")))?;
            pool.orders.push(orders);
            pool.lock().push(thread);
        }
        Ok(pool)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves `sockets` on the workers, one each; not to be called in an async task.
    ///
    /// # Errors
    ///
    /// A worker has ended.
    ///
    /// # Panics
    ///
    /// There are not as many sockets as workers.
    pub fn serve(&self, sockets: Sockets, listener: &S::Listener) -> io::Result<OpenListener> {
        assert_eq!(sockets.each.len(), self.orders.len(), "one socket a worker");
        let (stop, stopped) = watch::channel(false);
        for (orders, socket) in self.orders.iter().zip(sockets.each) {
            let order = Order {
                socket,
                listener: listener.clone(),
                stop: stopped.clone(),
            };
            orders
                .blocking_send(order)
                .map_err(|_| io::Error::other("the worker thread has ended"))?;
        }
        Ok(OpenListener {
            address: sockets.address,
            stop,
        })
    }

    /// Waits for the threads to end: that is when a shutdown has drained or cut what was under way.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.lock());
        for thread in threads {
            // a worker that panicked outside of any request has nothing to return
            let _ = thread.join();
        }
    }
}

async fn work<S: Service>(
    worker: Rc<Worker>,
    service: Rc<S>,
    mut inbox: mpsc::Receiver<Order<S::Listener>>,
) {
    let mut stage = worker.network().stage();
    let mut listeners = JoinSet::new();
    let mut tick = tokio::time::interval(TICK);
    let open = |order: Order<S::Listener>, listeners: &mut JoinSet<io::Result<()>>| {
        let (worker, service) = (Rc::clone(&worker), Rc::clone(&service));
        listeners.spawn_local(accept(worker, service, order));
    };
    loop {
        tokio::select! {
            _ = stage.wait_for(|stage| *stage > Stage::Serving) => break,
            Some(order) = inbox.recv() => open(order, &mut listeners),
            Some(_) = listeners.join_next() => {}
            _ = tick.tick() => {
                pool::sweep(&worker);
                worker.tick_sleepers();
                service.tick();
            }
        }
    }
    // the listeners take what the kernel has accepted for them, then end: those as well that were
    // not begun
    while let Ok(order) = inbox.try_recv() {
        open(order, &mut listeners);
    }
    while listeners.join_next().await.is_some() {}
    worker.network().accepts_no_more();
    worker.wake_sleepers();
    // clients of other workers too, which may read what is fetched here
    worker.network().drained().await;
}

/// Accepts connections on one listener and has the service serve them.
async fn accept<S: Service>(
    worker: Rc<Worker>,
    service: Rc<S>,
    order: Order<S::Listener>,
) -> io::Result<()> {
    let listener = Rc::new(order.listener);
    let admit = |(stream, peer): (TcpStream, SocketAddr)| {
        let client = Accepted {
            stream,
            peer,
            listener: Rc::clone(&listener),
            place: ClientPlace::take(&worker),
        };
        // a panic ends this task alone: the runtime catches it, and the place's drop counts it
        tokio::task::spawn_local(Rc::clone(&service).serve(client));
    };
    let ended = listener::run(&worker, order.socket, order.stop, admit).await;
    // its connections may be closed with it
    worker.wake_sleepers();
    ended
}
