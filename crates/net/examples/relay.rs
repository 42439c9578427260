//! A TCP relay: `relay 127.0.0.1:8000 www.example.com 80` accepts connections at the first address
//! and relays their bytes to the second. It prints where it listens; port 0 takes a free port.

use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use weir_net::next_hops::{ConnectionRules, Destination, HopKey};
use weir_net::tunnel;
use weir_net::workers::{Accepted, Network, NetworkSettings, OpenListener, Service};
use weir_net::workers::{Sockets, Worker, WorkerPool};

/// A relay is cut when no byte has moved for this long.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// The relay on one worker; its listeners know where their connections lead to.
pub(crate) struct Relay(Rc<Worker>);

impl Service for Relay {
    type Listener = HopKey;

    async fn serve(self: Rc<Self>, client: Accepted<HopKey>) {
        let (network, rules) = (self.0.network(), ConnectionRules::default());
        let destination = Destination::configured(HopKey::clone(&client.listener));
        let Ok(place) = tunnel::reserve(network, &rules, &destination) else {
            return;
        };
        let opened = tunnel::open(&self.0, &rules, &destination, place).await;
        if let Ok((next_hop, _counted)) = opened {
            let (from, to) = (&client.stream, next_hop.stream.tcp());
            tunnel::relay(from, to, &[], &[], IDLE_LIMIT, network.cut()).await;
        }
    }
}

/// Starts the workers of `network`, which listen at `address` and relay to `to`.
pub(crate) fn start(
    network: &Arc<Network>,
    address: SocketAddr,
    to: &HopKey,
) -> std::io::Result<(WorkerPool<Relay>, OpenListener)> {
    let workers = WorkerPool::start(network, |worker| Rc::new(Relay(worker)))?;
    let sockets = Sockets::bind(address, network.workers(), false)?;
    let listener = workers.serve(sockets, to)?;
    Ok((workers, listener))
}

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |at| std::env::args().nth(at).ok_or("too few arguments");
    let (host, port) = (argument(2)?, argument(3)?.parse()?);
    let network = Arc::new(Network::new(NetworkSettings::default())?);
    let (workers, listener) = start(&network, argument(1)?.parse()?, &HopKey::new(&host, port))?;
    println!("{}", listener.address());
    workers.join();
    Ok(())
}
