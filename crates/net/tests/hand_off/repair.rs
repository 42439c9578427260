//! Connections that are taken out of one kernel and given to another.

use crate::machines::Network;
use crate::pattern::{self, WAIT_MAX, wait_until};
use socket2::SockRef;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Instant;
use weir_net::flow::{tcp_info, unacknowledged_bytes};
use weir_net::hand_off::repair::{
    ConnectionState, FreezeError, FrozenConnection, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX,
};
use xtask::namespace::is_permitted;

/// Bytes of content in a full segment on Ethernet, with timestamps.
const SEGMENT_BYTES: u32 = 1448;

/// Freezes it when the last packets under way have arrived.
fn freeze(mut stream: TcpStream, read: &[u8]) -> FrozenConnection {
    let began = Instant::now();
    loop {
        match FrozenConnection::freeze(stream, read) {
            Ok(frozen) => return frozen,
            Err((given_back, FreezeError::Changed)) => stream = given_back,
            Err((_, error)) => panic!("{error}"),
        }
        assert!(began.elapsed() < WAIT_MAX);
    }
}

/// Moves a connection, whose packets are led nowhere, to machine `to`; `read` is to be read again
/// there.
fn move_to(network: &Network, mut stream: TcpStream, read: &[u8], to: usize) -> TcpStream {
    loop {
        let frozen = freeze(stream, read);
        let mut message = Vec::new();
        frozen.state().encode(&mut message);
        let state = ConnectionState::decode(&message).expect("a state");
        assert_eq!(&state, frozen.state());
        let adopt = || FrozenConnection::adopt(state).expect("an adopted connection");
        let adopted = network.machines[to].run(adopt);
        if frozen.is_unchanged().expect("under repair") {
            drop(frozen);
            network.lead_to(to);
            return adopted.thaw().expect("a connection");
        }
        stream = frozen.thaw().expect("a connection");
    }
}

/// What the service reads, byte by byte compared.
struct Received {
    place: usize,
}

impl Received {
    /// Takes what is there, at most so many bytes.
    fn take(&mut self, mut stream: &TcpStream, max: usize) -> usize {
        stream.set_nonblocking(true).expect("a socket");
        let mut bytes = vec![0; max];
        match stream.read(&mut bytes) {
            Ok(count) => {
                pattern::compare(&bytes[..count], self.place);
                self.place += count;
                count
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn connection_survives_five_moves_between_namespaces_with_every_byte() {
    const SENT_BYTES: usize = 300_000;
    const PART_BYTES: usize = 100_000;
    const MOVES: usize = 5;
    if !is_permitted() {
        return;
    }
    let (network, client, mut server) = Network::connected();
    let mut server = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sending = client.try_clone().expect("a socket");
            let bytes = pattern::bytes(0..SENT_BYTES);
            io::Write::write_all(&mut sending, &bytes).expect("all is sent");
        });
        scope.spawn(|| pattern::expect(&client, 0, (MOVES + 1) * PART_BYTES));
        let mut received = Received { place: 0 };
        for number in 1..=MOVES {
            let acknowledged = || unacknowledged_bytes(&server) < Some(100_000);
            wait_until("the client reads", acknowledged);
            pattern::write(&server, (number - 1) * PART_BYTES..number * PART_BYTES);
            wait_until("the client sends", || received.take(&server, 20_000) > 0);
            network.lead_nowhere();
            // the last bytes were read, and are to be read again
            let again = received.place - 100..received.place;
            received.place = again.start;
            server = move_to(&network, server, &pattern::bytes(again), number % 2);
        }
        pattern::write(&server, MOVES * PART_BYTES..(MOVES + 1) * PART_BYTES);
        pattern::expect(&server, received.place, SENT_BYTES - received.place);
        server
    });
    // and it ends as any connection does
    server.shutdown(Shutdown::Write).expect("open");
    assert_eq!((&client).read(&mut [0]).expect("an end"), 0);
    drop(client);
    server.set_nonblocking(false).expect("a socket");
    assert_eq!(server.read(&mut [0]).expect("an end"), 0);
}

#[test]
fn segment_size_does_not_shrink_over_moves() {
    if !is_permitted() {
        return;
    }
    let (network, client, mut server) = Network::connected();
    let segment = |stream: &TcpStream| SockRef::from(stream).tcp_mss().expect("a connection");
    assert_eq!(segment(&server), SEGMENT_BYTES);
    for number in 1..=5 {
        network.lead_nowhere();
        server = move_to(&network, server, &[], number % 2);
        assert_eq!(segment(&server), SEGMENT_BYTES, "after move {number}");
        pattern::write(&server, 0..50_000);
        pattern::expect(&client, 0, 50_000);
        assert_eq!(segment(&server), SEGMENT_BYTES, "after move {number}");
    }
}

#[test]
fn unread_and_unacknowledged_bytes_travel() {
    const REQUEST_BYTES: usize = 10_000;
    const RESPONSE_BYTES: usize = 50_000;
    if !is_permitted() {
        return;
    }
    let (network, client, server) = Network::connected();
    pattern::write(&client, 0..REQUEST_BYTES);
    let mut look = vec![0; REQUEST_BYTES];
    wait_until("the request is there", || {
        server.peek(&mut look).expect("open") == REQUEST_BYTES
    });
    network.lead_nowhere();
    pattern::write(&server, 0..RESPONSE_BYTES);
    let frozen = freeze(server, b"");
    let state = frozen.state();
    assert_eq!(state.unread.len(), REQUEST_BYTES);
    // the window of the beginning was sent, and no acknowledgement arrives
    assert!(state.unacknowledged.len() >= SEGMENT_BYTES as usize);
    assert!(!state.unsent.is_empty());
    let written = [&state.unacknowledged[..], &state.unsent].concat();
    assert_eq!(written, pattern::bytes(0..RESPONSE_BYTES));
    let server = frozen.thaw().expect("a connection");
    let server = move_to(&network, server, b"", 1);
    pattern::expect(&server, 0, REQUEST_BYTES);
    pattern::expect(&client, 0, RESPONSE_BYTES);
}

#[test]
fn bytes_that_were_not_sent_when_a_connection_was_frozen_are_not_sent_before_it_goes_on() {
    const RESPONSE_BYTES: usize = 50_000;
    if !is_permitted() {
        return;
    }
    let (network, client, socket, frozen) = loop {
        let (network, client, server) = Network::connected();
        network.lead_nowhere();
        // more than the window of the beginning
        pattern::write(&server, 0..RESPONSE_BYTES);
        let socket = server.try_clone().expect("a descriptor");
        let frozen = freeze(server, b"");
        // something may be sent in this very moment
        if frozen.is_unchanged().expect("under repair") {
            break (network, client, socket, frozen);
        }
    };
    let state = frozen.state().clone();
    assert!(!state.unsent.is_empty());
    // no acknowledgement arrives: the kernel sends what is next, to have one (RFC 8985 §7.2)
    let unsent = || tcp_info(&socket).expect("a connection").notsent_bytes as usize;
    wait_until("a probe of the loss", || unsent() < state.unsent.len());
    let mut received = vec![0; RESPONSE_BYTES];
    let received = client.peek(&mut received).expect("open");
    assert!(received <= state.unacknowledged.len(), "{received} bytes");
    drop(frozen);
    network.lead_to(1);
    let adopt = || FrozenConnection::adopt(state).expect("an adopted connection");
    let adopted = network.machines[1].run(adopt);
    let _server = adopted.thaw().expect("a connection");
    pattern::expect(&client, 0, RESPONSE_BYTES);
}

#[test]
fn dropped_connection_is_gone_while_another_process_has_its_descriptor() {
    if !is_permitted() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("a client");
    let (server, _) = listener.accept().expect("a client");
    // as a child has all descriptors until it begins its program
    let of_a_child = server.try_clone().expect("a descriptor");
    let frozen = freeze(server, b"");
    let state = frozen.state().clone();
    let taken = FrozenConnection::adopt(state.clone()).expect_err("it is here already");
    assert_eq!(taken.kind(), io::ErrorKind::AddrNotAvailable);
    drop(frozen);
    let adopted = FrozenConnection::adopt(state).expect("an adopted connection");
    let server = adopted.thaw().expect("a connection");
    pattern::write(&server, 0..1000);
    pattern::expect(&client, 0, 1000);
    pattern::write(&client, 0..1000);
    pattern::expect(&server, 0, 1000);
    drop(of_a_child);
}

#[test]
fn connection_that_cannot_move_goes_on_where_it_is() {
    if !is_permitted() {
        return;
    }
    let connect = |room_bytes: usize| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        SockRef::from(&listener)
            .set_recv_buffer_size(room_bytes)
            .expect("a buffer");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("a client");
        (client, listener.accept().expect("a client").0)
    };
    let refused = |stream: TcpStream, read: &[u8]| match FrozenConnection::freeze(stream, read) {
        Ok(frozen) => panic!("{frozen:?}"),
        Err(refused) => refused,
    };

    let (client, server) = connect(4096);
    let read = vec![0; UNREAD_BYTES_MAX + 1];
    let (server, error) = refused(server, &read);
    assert!(
        matches!(error, FreezeError::Unread(bytes) if bytes == UNREAD_BYTES_MAX + 1),
        "{error}"
    );
    pattern::write(&server, 0..1000);
    pattern::expect(&client, 0, 1000);

    // a client that does not read
    SockRef::from(&server)
        .set_send_buffer_size(4 * UNACKNOWLEDGED_BYTES_MAX)
        .expect("a buffer");
    let mut written = 0;
    while unacknowledged_bytes(&server)
        .is_some_and(|bytes| bytes as usize <= UNACKNOWLEDGED_BYTES_MAX)
    {
        pattern::write(&server, written..written + 10_000);
        written += 10_000;
    }
    let (server, error) = refused(server, b"");
    assert!(matches!(error, FreezeError::Unacknowledged(_)), "{error}");
    pattern::expect(&client, 0, written);

    client.shutdown(Shutdown::Write).expect("open");
    server.set_nonblocking(false).expect("a socket");
    assert_eq!((&server).read(&mut [0]).expect("an end"), 0);
    let (server, error) = refused(server, b"");
    assert!(matches!(error, FreezeError::NotEstablished), "{error}");
    pattern::write(&server, 0..1000);
    pattern::expect(&client, 0, 1000);
}
