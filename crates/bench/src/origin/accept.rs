//! A thread of the origin: its runtime, and the tasks that accept connections.

use std::io;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::{JoinSet, spawn_local};

use super::connection;
use super::counts::OriginCounts;
use super::listen::Listener;
use super::listen::addressing::Addressing;
use super::worker::{OriginState, Worker};

/// Pause after a failed accept: being out of descriptors does not pass at once.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is set; reports to `ready` whether it began.
pub(super) fn run(
    shared: Arc<OriginState>,
    counts: Arc<Mutex<OriginCounts>>,
    listening: Vec<Listener>,
    stop: watch::Receiver<bool>,
    ready: &SyncSender<io::Result<()>>,
) {
    // a local runtime belongs to the thread that builds it
    let built = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build_local(LocalOptions::default());
    let result = built.map(|runtime| {
        runtime.block_on(serve(Worker::new(shared, counts), listening, stop, ready));
    });
    // the thread that started this one waits for the first message only
    let _not_waiting = ready.try_send(result);
}

async fn serve(
    worker: Worker,
    listening: Vec<Listener>,
    mut stop: watch::Receiver<bool>,
    ready: &SyncSender<io::Result<()>>,
) {
    let worker = Rc::new(worker);
    let mut accepting = JoinSet::new();
    for Listener { socket, addressing } in listening {
        match TcpListener::from_std(socket) {
            Ok(socket) => {
                accepting.spawn_local(accept(socket, addressing, Rc::clone(&worker)));
            }
            Err(error) => {
                let _not_waiting = ready.try_send(Err(error));
                return;
            }
        }
    }
    let _not_waiting = ready.try_send(Ok(()));
    // connections end with the runtime
    let _gone_as_well = stop.wait_for(|stop| *stop).await;
}

async fn accept(socket: TcpListener, addressing: Addressing, worker: Rc<Worker>) {
    loop {
        let stream = match socket.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if is_exhausted(&error) {
                    worker.counts().accept_failures += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                // else the peer left before we looked
                continue;
            }
        };
        let Some(choice) = addressing.choice(|| stream.local_addr().ok()) else {
            worker.counts().stray_connections += 1;
            continue;
        };
        let Some(place) = place(&worker).await else {
            return;
        };
        spawn_local(connection::serve(stream, choice, Rc::clone(&worker), place));
    }
}

/// A place for a connection; nothing if there will be none any more.
async fn place(worker: &Worker) -> Option<OwnedSemaphorePermit> {
    let places = || Arc::clone(&worker.shared.places);
    if let Ok(place) = places().try_acquire_owned() {
        return Some(place);
    }
    worker.counts().waiting_connections += 1;
    places().acquire_owned().await.ok()
}

fn is_exhausted(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
