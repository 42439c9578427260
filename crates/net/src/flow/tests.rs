//! Against the kernel itself: what it takes, what it holds, when it wakes.

use super::*;
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use weir_policy::fetch::ReadAhead;

const KIB: u32 = 1024;
const BASE: u32 = 16 * KIB;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A next hop that sends as much as the window permits, and our end of its connection.
struct NextHop {
    sends: TcpStream,
    ours: TcpStream,
    flow: NextHopFlow,
    sent: u64,
    read: u64,
}

impl NextHop {
    fn new(first_window: Option<u32>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        if let Some(window) = first_window {
            before_connect(&socket, window).unwrap();
        }
        socket
            .connect(&listener.local_addr().unwrap().into())
            .unwrap();
        if first_window.is_some() {
            after_connect(&socket).unwrap();
        }
        let ours = TcpStream::from(socket);
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let (sends, _) = listener.accept().unwrap();
        sends.set_nonblocking(true).unwrap();
        let flow = NextHopFlow::of(&ours, BASE);
        Self {
            sends,
            ours,
            flow,
            sent: 0,
            read: 0,
        }
    }

    /// Sends at most `bytes`, until no more is taken; how many were.
    fn send(&mut self, mut bytes: usize) -> usize {
        let zeros = vec![0; 256 * 1024];
        let mut sent = 0;
        while bytes > 0 {
            match self.sends.write(&zeros[..bytes.min(zeros.len())]) {
                Ok(count) => {
                    sent += count;
                    bytes -= count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.sent += sent as u64;
        sent
    }

    fn read_some(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        self.read += self.ours.read(&mut buffer).unwrap() as u64;
    }

    /// Bytes the kernel has taken on our side that were not read.
    fn unread(&self) -> u64 {
        tcp_info(&self.ours).unwrap().bytes_received - self.read
    }

    /// Sends without end, and reads so many bytes, setting the window before each read. How much
    /// was unread at most.
    fn stream(&mut self, bytes: u64, window: u32) -> u64 {
        let until = self.read + bytes;
        let mut most = 0;
        while self.read < until {
            self.send(4 << 20);
            most = most.max(self.unread());
            self.flow.set_window(&self.ours, Some(window), None);
            self.read_some();
        }
        most
    }

    /// Sends without end and reads nothing, until all that was sent is acknowledged and no segment
    /// more is wanted.
    fn stall(&mut self) -> u64 {
        let until = Instant::now() + PATIENCE;
        loop {
            self.send(64 << 20);
            let ours = tcp_info(&self.ours).unwrap();
            let is_full = ours.receive_window.unwrap() <= ours.segment_max;
            let is_over = is_full && tcp_info(&self.sends).unwrap().unacked == 0;
            // where the kernel lacks memory, it may take minutes until all is acknowledged
            if is_over || Instant::now() > until {
                return self.unread();
            }
            std::thread::yield_now();
        }
    }
}

fn check_between(found: u64, least: u32, most: u32) {
    assert!(
        (u64::from(least)..=u64::from(most)).contains(&found),
        "{found} is not between {least} and {most}"
    );
}

#[test]
fn unread_bytes_stay_within_the_first_receive_window() {
    for window in [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB] {
        let mut hop = NextHop::new(Some(window));
        check_between(hop.stall(), window / 2, window);
        assert!(hop.flow.window().is_some_and(|bytes| bytes <= window));
    }
}

#[test]
fn receive_window_grows_past_its_first_size_up_to_the_set_limit() {
    let mut hop = NextHop::new(Some(BASE));
    for window in [64 * KIB, 512 * KIB, 2048 * KIB] {
        hop.stream(8 << 20, window);
        check_between(hop.stall(), 1, window + window / 4);
        // the kernel follows, unless it lacks memory for all its sockets
        assert!(hop.flow.window().is_some_and(|set| set > window / 2));
    }
}

#[test]
fn receive_window_shrinks_under_traffic_and_grows_again() {
    let mut hop = NextHop::new(Some(BASE));
    hop.stream(8 << 20, 1024 * KIB);
    hop.stream(8 << 20, BASE);
    check_between(hop.stall(), 1, 2 * BASE);
    // it grows again; loopback now sends pieces so small that the memory may hold less, but never
    // more
    check_between(hop.stream(32 << 20, 256 * KIB), BASE, 320 * KIB);
    check_between(hop.stall(), 1, 320 * KIB);
}

#[test]
fn receive_window_shrinks_after_a_stalled_reader_resumes() {
    let mut hop = NextHop::new(Some(BASE));
    hop.stream(8 << 20, 1024 * KIB);
    check_between(hop.stall(), 1, 1280 * KIB);
    hop.stream(2 << 20, BASE);
    check_between(hop.stall(), 1, 2 * BASE);
}

#[test]
fn receive_window_is_small_again_after_a_response_of_known_length() {
    let mut hop = NextHop::new(Some(BASE));
    hop.stream(8 << 20, 1024 * KIB);
    // what is on its way belongs to the response; so much of it is still to be sent
    let mut to_send = 8_usize << 20;
    let end = hop.sent + to_send as u64;
    while hop.read < end {
        to_send -= hop.send(to_send);
        let remaining = end - hop.read;
        hop.flow
            .set_window(&hop.ours, Some(1024 * KIB), Some(remaining));
        hop.read_some();
    }
    let offered = hop.flow.settle(&hop.ours);
    check_between(u64::from(offered), BASE / 2, 128 * KIB);
    check_between(hop.stall(), 1, offered + offered / 4);
}

#[test]
fn receive_window_shrinks_near_the_end_of_a_response_too() {
    let mut hop = NextHop::new(Some(BASE));
    hop.stream(8 << 20, 1024 * KIB);
    while hop.read < hop.sent {
        hop.read_some();
    }
    // less than two windows: it closes from the first look on, but so far all of it may come
    let end = hop.sent + u64::from(1900 * KIB);
    while end - hop.read > u64::from(800 * KIB) {
        hop.send(64 * 1024);
        let remaining = end - hop.read;
        hop.flow.set_window(&hop.ours, Some(BASE), Some(remaining));
        hop.read_some();
    }
    check_between(hop.stall(), 1, 256 * KIB);
}

#[test]
fn receive_window_released_to_the_kernel_can_be_limited_again() {
    let mut hop = NextHop::new(Some(BASE));
    hop.stream(1 << 20, BASE);
    hop.flow.set_window(&hop.ours, None, None);
    assert_eq!(hop.flow.window(), None);
    assert_eq!(NextHopFlow::of(&hop.ours, BASE).window(), None);
    // loopback's round trip is too short for the kernel to use more
    check_between(hop.stall(), BASE, 8 * BASE);
    hop.stream(64 << 20, BASE);
    check_between(hop.stall(), 1, 2 * BASE);
}

#[test]
fn connection_opened_with_kernel_defaults_can_be_limited_later() {
    let mut hop = NextHop::new(None);
    assert_eq!(hop.flow.window(), None);
    // its segments are as long as loopback's: two of them are the least that flows
    hop.stream(8 << 20, BASE);
    check_between(hop.stall(), 1, 160 * KIB);
}

#[test]
fn window_above_the_settable_maximum_stays_large_and_can_shrink() {
    const LARGE: u32 = 32 << 20;
    let mut hop = NextHop::new(Some(BASE));
    hop.stream(8 << 20, LARGE);
    // set by a process with the right to, left to the kernel by others
    assert!(
        hop.flow.window().is_none_or(|bytes| bytes > LARGE / 2),
        "{:?}",
        hop.flow
    );
    hop.stream(64 << 20, BASE);
    check_between(hop.stall(), 1, 2 * BASE);
}

/// A client of ours, and our end of its connection in the reactor.
async fn client(receive_buffer: usize) -> (TcpStream, tokio::net::TcpStream) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(receive_buffer).unwrap();
    socket
        .connect(&listener.local_addr().unwrap().into())
        .unwrap();
    let (ours, _) = listener.accept().await.unwrap();
    (TcpStream::from(socket), ours)
}

/// Writes as the flow permits, until it has to wait or `max` bytes are written.
async fn write(flow: &mut ClientFlow, ours: &tokio::net::TcpStream, max: usize) -> usize {
    let zeros = vec![0; 64 * 1024];
    let mut written = 0;
    std::future::poll_fn(|cx| {
        while written < max {
            let Poll::Ready(room) = flow.poll_room(ours, cx) else {
                break;
            };
            let share = room.unwrap().min(zeros.len()).min(max - written);
            match ours.try_write(&zeros[..share]) {
                Ok(count) => {
                    flow.wrote(count);
                    written += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        Poll::Ready(())
    })
    .await;
    written
}

#[tokio::test]
async fn unsent_bytes_for_a_stalled_client_stay_within_twice_its_share() {
    let share = 16 * KIB;
    let (_client, ours) = client(32 * 1024).await;
    let mut flow = ClientFlow::new(0);
    flow.set_unsent(&ours, Some(share));
    let mut quiet = 0;
    while quiet < 100 {
        let written = write(&mut flow, &ours, usize::MAX).await;
        quiet = if written == 0 { quiet + 1 } else { 0 };
        tokio::task::yield_now().await;
    }
    let unsent = tcp_info(&ours).unwrap().notsent_bytes;
    assert!(unsent > 0 && unsent <= 2 * share, "{unsent}");
}

#[tokio::test]
async fn writer_waiting_for_its_share_is_woken_as_the_client_reads() {
    // a window of 32 KiB on loopback may wait for the persist timer each time it closes: a fifth of
    // a second
    const TOTAL: usize = 2 << 20;
    let (mut client, ours) = client(32 * 1024).await;
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        let mut read = 0;
        while read < TOTAL {
            read += client.read(&mut buffer).unwrap();
        }
        client
    });
    let mut flow = ClientFlow::new(0);
    let mut left = TOTAL;
    while left > 0 {
        flow.set_unsent(
            &ours,
            Some(if left.is_multiple_of(3) {
                4 * KIB
            } else {
                32 * KIB
            }),
        );
        let room = std::future::poll_fn(|cx| flow.poll_room(&ours, cx));
        timeout(PATIENCE, room).await.expect("woken").unwrap();
        let written = write(&mut flow, &ours, left).await;
        left -= written;
        if written == 0 {
            // there is room by the mark, but tokio has not seen the socket writable yet: its driver
            // must run
            tokio::task::yield_now().await;
        }
    }
    flow.release(&ours);
    let mark = socket2::SockRef::from(&ours).tcp_notsent_lowat().unwrap();
    assert!(mark == 0 || mark > 1 << 30, "{mark}");
    drop(reader.join().unwrap());
}

#[tokio::test]
async fn small_response_leaves_the_socket_option_unchanged() {
    let (_client, ours) = client(256 * 1024).await;
    let before = socket2::SockRef::from(&ours).tcp_notsent_lowat().unwrap();
    let mut flow = ClientFlow::new(0);
    flow.set_unsent(&ours, Some(16 * KIB));
    assert_eq!(write(&mut flow, &ours, 32 * 1024).await, 32 * 1024);
    let after = socket2::SockRef::from(&ours).tcp_notsent_lowat().unwrap();
    assert_eq!(before, after);
}

#[test]
fn response_longer_than_the_first_window_is_governed_from_its_first_byte() {
    let free = |read_ahead, length| crate::http::Governor::free_bytes(read_ahead, length);
    let share = 16 * 1024;
    assert_eq!(free(ReadAhead::DEFAULT, Some(share)), 2 * share);
    assert_eq!(free(ReadAhead::DEFAULT, Some(share + 1)), 0);
    assert_eq!(free(ReadAhead::DEFAULT, None), share / 2);
    assert_eq!(free(ReadAhead::Unbounded, Some(share)), 2 * share);
    assert_eq!(free(ReadAhead::Unbounded, Some(share + 1)), 0);
}
