//! The example `relay`, with real sockets: its bytes, and how it ends.

#[expect(
    dead_code,
    reason = "the test starts the relay itself, in place of its `main`"
)]
#[path = "../examples/relay.rs"]
mod relay;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use weir_measure::{Metric, Snapshot};
use weir_net::next_hops::HopKey;
use weir_net::workers::{Network, NetworkSettings, OpenListener, Sockets, Stage, WorkerPool};
use weir_policy::destination::OwnAddresses;

/// More than all buffers on the way hold.
const BYTES: usize = 8 << 20;

/// A relay to `to` with two workers.
fn start(to: SocketAddr) -> (Arc<Network>, WorkerPool<relay::Relay>, OpenListener) {
    let settings = NetworkSettings {
        workers: 2,
        ..NetworkSettings::default()
    };
    let network = Arc::new(Network::new(settings).expect("a resolver"));
    let any = "127.0.0.1:0".parse().expect("an address");
    let (workers, listener) = relay::start(&network, any, &hop(to)).expect("a port");
    (network, workers, listener)
}

fn hop(address: SocketAddr) -> HopKey {
    HopKey::new(&address.ip().to_string(), address.port())
}

fn count(network: &Network, metric: Metric) -> u64 {
    Snapshot::sum(network.counters().iter().map(AsRef::as_ref)).get(metric)
}

/// An origin that sends back what it receives, for so many connections.
fn echo(connections: usize) -> (SocketAddr, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let thread = thread::spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept().expect("a client");
            let (mut from, mut to) = (&stream, &stream);
            std::io::copy(&mut from, &mut to).expect("an end");
            stream.shutdown(Shutdown::Write).expect("open");
        }
    });
    (address, thread)
}

#[test]
fn bytes_are_relayed_both_ways_until_both_sides_end() {
    let (origin, echoing) = echo(2);
    let (network, workers, listener) = start(origin);
    for _ in 0..2 {
        let mut client = TcpStream::connect(listener.address()).unwrap();
        let mut sending = client.try_clone().unwrap();
        let sent: Vec<u8> = (0..BYTES)
            .map(|at| u8::try_from(at % 251).unwrap())
            .collect();
        let expected = sent.clone();
        let sender = thread::spawn(move || {
            sending.write_all(&sent).unwrap();
            sending.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        sender.join().unwrap();
        assert!(received == expected, "{} bytes", received.len());
    }
    echoing.join().unwrap();
    network.advance(Stage::Draining);
    workers.join();
    assert_eq!(count(&network, Metric::ClientsAccepted), 2);
    assert_eq!(count(&network, Metric::ClientsOpen), 0);
    assert_eq!(network.open_connections().total(), 0);
}

#[test]
fn closed_listener_refuses_while_its_connections_go_on_until_the_cut() {
    let (origin, echoing) = echo(1);
    let (network, workers, listener) = start(origin);
    let address = listener.address();
    let mut client = TcpStream::connect(address).unwrap();
    let mut byte = [7];
    client.write_all(&byte).unwrap();
    client.read_exact(&mut byte).unwrap();
    drop(listener);
    // the workers close their sockets in their own time
    while TcpStream::connect(address).is_ok() {
        thread::yield_now();
    }
    client.write_all(&byte).unwrap();
    client.read_exact(&mut byte).unwrap();
    network.advance(Stage::Draining);
    client.write_all(&byte).unwrap();
    client.read_exact(&mut byte).unwrap();
    network.advance(Stage::Cut);
    workers.join();
    assert_eq!(client.read(&mut byte).unwrap_or(0), 0);
    echoing.join().unwrap();
}

#[test]
fn relay_to_its_own_address_closes_the_connection() {
    let (origin, _) = echo(0);
    let (network, workers, _listener) = start(origin);
    let any = "127.0.0.1:0".parse().unwrap();
    let sockets = Sockets::bind(any, network.workers(), false).unwrap();
    let own = sockets.address();
    network.set_own_addresses(Arc::new(OwnAddresses::new([own])));
    let to_itself = workers.serve(sockets, &hop(own)).unwrap();
    let mut client = TcpStream::connect(to_itself.address()).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    network.advance(Stage::Cut);
    workers.join();
    assert_eq!(count(&network, Metric::ClientsAccepted), 1);
}
