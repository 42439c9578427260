//! Connections whose packets a front end leads to the machine that has them.

use crate::machines::{Machine, Network, SERVICE, own_address, v4};
use crate::mover::{Failure, Mover, wait};
use crate::pattern::{self, WAIT_MAX, wait_until};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::pin::Pin;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;
use weir_net::flow::unacknowledged_bytes;
use weir_net::hand_off::steering::Steering;
use weir_policy::connections::hand_off::{MoveEnd, Stay};
use xtask::command::output;
use xtask::namespace::is_permitted;
use xtask::need;

const RESPONSE_BYTES: usize = 5_000_000;

type Change = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// A client's connection that its front end has accepted, and the front end's steering.
struct Accepted {
    network: Network,
    steering: Steering,
    client: TcpStream,
    server: TcpStream,
    flow: SocketAddrV4,
}

impl Accepted {
    fn new(machines: u8) -> Self {
        let network = Network::with_front_end(machines);
        let (client, server) = network.connect();
        let service = v4(server.local_addr().expect("connected"));
        let install = || Steering::install("e0", service).expect("a table");
        let steering = network.machines[0].run(install);
        Self {
            flow: v4(client.local_addr().expect("connected")),
            network,
            steering,
            client,
            server,
        }
    }
}

/// Hands a connection over from wherever it is to machine `to`.
fn move_to(
    network: &Network,
    steering: &Steering,
    (flow, stream): (SocketAddrV4, TcpStream),
    to: usize,
) -> TcpStream {
    Mover { network, steering }.hand_over(flow, stream, b"", to)
}

/// Bytes that a machine's interface has sent.
fn sent_bytes(machine: &Machine) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev").expect("counters");
    let table = machine.run(read);
    let line = table
        .lines()
        .find_map(|line| line.trim().strip_prefix("e0:"));
    let numbers = line.expect("the interface").split_whitespace();
    let sent = numbers
        .skip(8)
        .map(|number| number.parse().expect("a number"));
    { sent }.next().expect("a counter")
}

#[test]
fn held_packets_cause_no_reset() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        client,
        server,
        flow,
    } = Accepted::new(2);
    wait(steering.hold(flow)).expect("a held flow");
    // the request is sent into the hold, and again when the connection is elsewhere
    pattern::write(&client, 0..1000);
    let server = move_to(&network, &steering, (flow, server), 1);
    pattern::expect(&server, 0, 1000);
    pattern::write(&server, 0..1000);
    pattern::expect(&client, 0, 1000);
}

#[test]
fn packets_that_are_neither_held_nor_steered_are_answered_by_this_machine() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        mut client,
        server,
        flow,
    } = Accepted::new(2);
    let server = move_to(&network, &steering, (flow, server), 1);
    wait(steering.unsteer(vec![flow])).expect("a flow");
    // the front end has no such connection any more
    client.write_all(b"x").expect("open");
    client.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    let error = client.read(&mut [0]).expect_err("a reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    drop(server);
}

#[test]
fn silent_client_of_a_connection_whose_node_does_not_answer_is_told_at_once() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        mut client,
        server,
        flow,
    } = Accepted::new(2);
    let mover = Mover {
        network: &network,
        steering: &steering,
    };
    let (server, end) = mover.attempt(flow, server, b"", (1, Failure::BeforeGo));
    assert_eq!(end, MoveEnd::Lost);
    assert!(server.is_none());
    client.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    let error = client.read(&mut [0]).expect_err("a reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn node_that_goes_on_and_does_not_say_so_does_not_have_its_client_wait() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        mut client,
        server,
        flow,
    } = Accepted::new(2);
    let mover = Mover {
        network: &network,
        steering: &steering,
    };
    let (server, end) = mover.attempt(flow, server, b"", (1, Failure::AfterGo));
    assert_eq!(end, MoveEnd::Lost);
    // what the client acknowledges reaches a machine that has no such connection
    let mut server = server.expect("it goes on");
    let _ = server.write_all(b"x");
    client.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    let error = loop {
        match client.read(&mut [0]) {
            Ok(1) => {}
            Ok(_) => panic!("an end"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn connection_that_its_node_has_dropped_goes_on_where_it_was() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        client,
        mut server,
        flow,
    } = Accepted::new(2);
    let mover = Mover {
        network: &network,
        steering: &steering,
    };
    pattern::write(&client, 0..100);
    pattern::expect(&server, 0, 50);
    let again = pattern::bytes(0..50);
    // a packet may be under way
    let end = loop {
        let (given_back, end) = mover.attempt(flow, server, &again, (1, Failure::Forgets));
        server = given_back.expect("it stays");
        if end != MoveEnd::Stays(Stay::State) {
            break end;
        }
    };
    assert_eq!(end, MoveEnd::Stays(Stay::Node));
    pattern::expect(&server, 50, 50);
    pattern::write(&server, 0..100_000);
    pattern::expect(&client, 0, 100_000);
    // and elsewhere, next time
    let server = mover.hand_over(flow, server, b"", 1);
    pattern::write(&client, 100..200);
    pattern::expect(&server, 100, 100);
}

#[test]
fn connection_from_the_port_of_a_steered_one_is_accepted_by_this_machine() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        client,
        server,
        flow,
    } = Accepted::new(2);
    let service = server.local_addr().expect("connected");
    let server = move_to(&network, &steering, (flow, server), 1);
    forget(&network, client);
    let listen = || TcpListener::bind(service).expect("the port again");
    let listener = network.machines[0].run(listen);
    let client = begin_from(&network, flow, v4(service));
    let (here, from) = listener.accept().expect("a client");
    assert_eq!(from, flow.into());
    let client = TcpStream::from(client);
    pattern::write(&client, 0..100);
    pattern::expect(&here, 0, 100);
    drop(server);
}

#[test]
fn packets_that_were_not_held_without_a_break_are_led_nowhere_else() {
    const HELD: &str = "list set netdev weir_10_77_0_100_80 held";
    if !is_permitted() {
        return;
    }
    let network = Network::with_front_end(1);
    let front_end = &network.machines[0];
    let service = SocketAddrV4::new(SERVICE, 80);
    let install = || Steering::install("e0", service).expect("a table");
    let steering = front_end.run(install);
    let flow = SocketAddrV4::new([192, 0, 2, 1].into(), 5000);
    let is_refused = |changed: io::Result<()>| {
        let error = changed.expect_err("it is not held");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    };
    let node = own_address;
    // never held; held for as long as the kernel does that
    is_refused(wait(steering.steer_held(flow, node(1))));
    wait(steering.hold(flow)).expect("a held flow");
    wait_until("the hold ends", || {
        !list(front_end, HELD).contains("192.0.2.1")
    });
    is_refused(wait(steering.steer_held(flow, node(1))));
    assert!(!list(front_end, MAP).contains("192.0.2.1"));
    // held, and not steered
    wait(steering.hold(flow)).expect("a held flow");
    is_refused(wait(steering.steer_on(flow, node(1))));
    assert!(list(front_end, HELD).contains("192.0.2.1"), "as it was");
    wait(steering.steer_held(flow, node(1))).expect("a steered flow");
    // steered, and not held any more
    is_refused(wait(steering.steer_on(flow, node(2))));
    assert!(list(front_end, MAP).contains(": 10.77.0.3"), "as it was");
    wait(steering.hold(flow)).expect("a held flow");
    wait(steering.steer_on(flow, node(2))).expect("a steered flow");
    assert!(list(front_end, MAP).contains(": 10.77.0.4"));
    assert!(!list(front_end, HELD).contains("192.0.2.1"));
}

/// A client that has forgotten the connection of a flow, and says so to no machine.
fn forget(network: &Network, client: TcpStream) {
    let link = |state: &str| {
        let words = format!("link set e0 {state}");
        network.client.space.ip(&words).expect("a link");
    };
    link("down");
    SockRef::from(&client)
        .set_linger(Some(Duration::ZERO))
        .expect("a socket");
    drop(client);
    link("up");
}

/// Begins a connection from the port of `flow`.
fn begin_from(network: &Network, flow: SocketAddrV4, service: SocketAddrV4) -> Socket {
    network.client.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("a socket");
        // a process that is being started has the descriptors of this one for a moment
        wait_until("the port is free", || socket.bind(&flow.into()).is_ok());
        socket.set_nonblocking(true).expect("a socket");
        let error = socket.connect(&service.into()).expect_err("it takes time");
        assert_eq!(error.raw_os_error(), Some(115), "{error}");
        socket
    })
}

#[test]
fn connection_from_the_port_of_one_that_is_to_be_moved_is_not_led_along() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        client,
        server,
        flow,
    } = Accepted::new(3);
    let service = v4(server.local_addr().expect("connected"));
    let server = move_to(&network, &steering, (flow, server), 1);
    forget(&network, client);
    let listener = network.machines[0].run(|| TcpListener::bind(service).expect("the port"));
    // it begins before the old one is held: the kernel knows that before any process does
    let client = begin_from(&network, flow, service);
    let (here, from) = listener.accept().expect("a client");
    assert_eq!(from, flow.into());
    wait(steering.hold(flow)).expect("a held flow");
    let moved = wait(steering.steer_on(flow, own_address(2)));
    let kind = moved.expect_err("another connection").kind();
    assert_eq!(kind, io::ErrorKind::NotFound);
    wait(steering.release(flow)).expect("a flow");
    let client = TcpStream::from(client);
    pattern::write(&client, 0..100);
    pattern::expect(&here, 0, 100);
    drop(server);
}

#[test]
fn connection_that_begins_while_its_port_is_held_begins_when_it_is_not() {
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        client,
        server,
        flow,
    } = Accepted::new(3);
    let service = v4(server.local_addr().expect("connected"));
    let server = move_to(&network, &steering, (flow, server), 1);
    forget(&network, client);
    let listener = network.machines[0].run(|| TcpListener::bind(service).expect("the port"));
    wait(steering.hold(flow)).expect("a held flow");
    let client = begin_from(&network, flow, service);
    // its first segment is dropped: the old one moves, and does not take it along
    wait(steering.steer_on(flow, own_address(2))).expect("a steered flow");
    let (here, from) = listener.accept().expect("a client");
    assert_eq!(from, flow.into());
    let map = format!("list map netdev {} steered", table_of(service));
    assert!(!list(&network.machines[0], &map).contains("10.77.0.1 ."));
    let client = TcpStream::from(client);
    pattern::write(&client, 0..100);
    pattern::expect(&here, 0, 100);
    drop(server);
}

fn table_of(service: SocketAddrV4) -> String {
    format!("weir_10_77_0_100_{}", service.port())
}

#[test]
fn responses_of_a_steered_connection_bypass_the_front_end() {
    const FRONT_END_BYTES_MAX: u64 = 400_000;
    if !is_permitted() {
        return;
    }
    let Accepted {
        network,
        steering,
        client,
        mut server,
        flow,
    } = Accepted::new(3);
    let front_end = &network.machines[0];
    // to one machine, and from there to the other one, as often as there are responses
    for to in [1, 2, 1] {
        server = move_to(&network, &steering, (flow, server), to);
        let before = sent_bytes(front_end);
        std::thread::scope(|scope| {
            scope.spawn(|| pattern::expect(&client, 0, RESPONSE_BYTES));
            pattern::write(&server, 0..RESPONSE_BYTES);
        });
        // acknowledgements of the client alone
        let forwarded = sent_bytes(front_end) - before;
        assert!(forwarded < FRONT_END_BYTES_MAX, "{forwarded} bytes");
        pattern::write(&client, 0..100);
        pattern::expect(&server, 0, 100);
        wait_until("all is acknowledged", || {
            unacknowledged_bytes(&server) == Some(0)
        });
    }
}

const MAP: &str = "list map netdev weir_10_77_0_100_80 steered";

/// What `nft` lists on a machine.
fn list(machine: &Machine, words: &str) -> String {
    let mut nft = Command::new(need::find("nft").expect("nftables"));
    nft.args(words.split_whitespace());
    machine.run(|| output(&mut nft).expect("a list"))
}

#[test]
fn flow_is_changed_whatever_state_it_is_in() {
    const FLOWS: u16 = 1000;
    if !is_permitted() {
        return;
    }
    let network = Network::with_front_end(1);
    let front_end = &network.machines[0];
    let service = SocketAddrV4::new(SERVICE, 80);
    let install = || Steering::install("e0", service).expect("a table");
    let steering = Rc::new(front_end.run(install));
    let flow = |port: u16| SocketAddrV4::new([192, 0, 2, 1].into(), port);
    let each = |change: fn(Rc<Steering>, SocketAddrV4) -> Change| {
        let tasks = LocalSet::new();
        let changes: Vec<_> = (1..=FLOWS)
            .map(|port| tasks.spawn_local(change(Rc::clone(&steering), flow(port))))
            .collect();
        wait(tasks);
        for change in changes {
            wait(change).expect("no panic").expect("a change");
        }
    };
    each(|steering, flow| Box::pin(async move { steering.hold(flow).await }));
    each(|steering, flow| Box::pin(async move { steering.steer(flow, own_address(1)).await }));
    // elsewhere, and what is there already
    each(|steering, flow| Box::pin(async move { steering.steer(flow, own_address(2)).await }));
    each(|steering, flow| Box::pin(async move { steering.steer(flow, own_address(2)).await }));
    let steered = list(front_end, MAP);
    assert_eq!(steered.matches(": 10.77.0.4").count(), usize::from(FLOWS));
    assert!(!steered.contains(": 10.77.0.3"));
    each(|steering, flow| Box::pin(async move { steering.unsteer(vec![flow]).await }));
    // what is gone already
    each(|steering, flow| Box::pin(async move { steering.unsteer(vec![flow]).await }));
    each(|steering, flow| Box::pin(async move { steering.release(flow).await }));
    assert!(!list(front_end, MAP).contains("192.0.2.1"));

    list(front_end, "delete table netdev weir_10_77_0_100_80");
    let error = wait(steering.hold(flow(1))).expect_err("no table");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn table_ends_with_its_steering_and_one_that_was_left_is_replaced() {
    if !is_permitted() {
        return;
    }
    let network = Network::with_front_end(1);
    let front_end = &network.machines[0];
    let service = SocketAddrV4::new(SERVICE, 80);
    let install = |device: &str| front_end.run(|| Steering::install(device, service));
    // as if its process were killed
    std::mem::forget(install("e0").expect("a table"));
    let again = install("e0").expect("a table");
    assert!(list(front_end, "list tables").contains("weir_10_77_0_100_80"));
    drop(again);
    assert_eq!(list(front_end, "list tables"), "");
    let error = install("e7").expect_err("no such device").to_string();
    assert!(error.starts_with("`nft` fails: "), "{error}");
    assert_eq!(list(front_end, "list tables"), "");
}
