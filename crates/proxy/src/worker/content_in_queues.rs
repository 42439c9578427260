//! Content in a file in memory that was sent, and that sockets may have in their queues.
//!
//! A socket is sent such content without a copy, and has its pages until the client has
//! acknowledged them. As long as it has, the content is held: so it is in the account of the store,
//! and its memory is not believed to be free. When the connection is closed before that, its socket
//! is kept beside the content (for a number of connections, [`CLOSED_SOCKETS_MAX`]), so that its
//! queue can still be asked: a client that takes nothing for as long as one of an open connection
//! may is reset. Of further connections the kernel gives up such a client (`TCP_USER_TIMEOUT`);
//! what one that goes on takes longer for is the kernel's from then on, as what is copied there
//! would be.

use socket2::SockRef;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use weir_net::flow::{SendQueue, tcp_info, unacknowledged_bytes};
use weir_net::hand_off::repair::is_under_repair;
use weir_store::HeldContent;

/// So much content is held for the connections of a worker; then content is copied.
const HELD_MAX: usize = 1024;

/// Sockets of closed connections that a worker keeps beside their content: clients that stop
/// reading must not take the descriptors of others. Content of further ones is held for the time in
/// which a client may take nothing.
pub(crate) const CLOSED_SOCKETS_MAX: usize = 64;

/// So much is held for one connection.
const HELD_PER_CONNECTION_MAX: usize = 4;

/// The content of a worker's connections.
#[derive(Debug)]
pub(crate) struct ContentInQueues<C = HeldContent>(RefCell<Vec<InQueue<C>>>);

#[derive(Debug)]
struct InQueue<C> {
    /// The number of the connection.
    connection: u64,
    queue: Queue,
    _content: C,
}

/// Where a socket has it.
#[derive(Debug)]
enum Queue {
    Open(SendQueue),
    Closed(ClosedQueue),
}

/// That of a closed connection.
#[derive(Debug)]
struct ClosedQueue {
    /// `None`: no more descriptors may be kept, or there are none.
    socket: Option<Rc<OwnedFd>>,
    /// What the client had not acknowledged when that was asked last, bytes.
    bytes: u32,
    /// The client may take nothing for so long, seconds.
    silence_s: u32,
    /// What is left of that.
    left_s: u32,
}

impl ClosedQueue {
    /// Whether the content is to be held on. Called each second.
    fn holds(&mut self) -> bool {
        self.left_s = self.left_s.saturating_sub(1);
        let Some(socket) = &self.socket else {
            return self.left_s > 0;
        };
        if !has_content(socket) {
            return false;
        }
        let bytes = unacknowledged_bytes(socket).unwrap_or(self.bytes);
        if bytes < self.bytes {
            (self.bytes, self.left_s) = (bytes, self.silence_s);
        }
        if self.left_s == 0 {
            // closed with the last of its content: it has to be reset, or it would be the kernel's
            let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
        self.left_s > 0
    }
}

impl Queue {
    const fn keeps_socket(&self) -> bool {
        matches!(self, Self::Closed(queue) if queue.socket.is_some())
    }
}

impl<C> Default for ContentInQueues<C> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<C> ContentInQueues<C> {
    /// Whether content may be added for a connection with this queue. What it has sent by now is
    /// forgotten.
    pub(crate) fn have_room(&self, connection: u64, queue: SendQueue) -> bool {
        let mut all = self.0.borrow_mut();
        let of_connection = all.iter().filter(|it| it.connection == connection);
        let mut held = of_connection.count();
        if held > 0 && queue.is_empty() {
            all.retain(|it| it.connection != connection);
            held = 0;
        }
        held < HELD_PER_CONNECTION_MAX && all.len() < HELD_MAX
    }

    /// The kernel has taken `content` for `queue`, which is that of an open connection. If others
    /// have taken the room since it was looked at, the content is not held.
    pub(crate) fn add(&self, connection: u64, queue: SendQueue, content: C) {
        if self.0.borrow().len() >= HELD_MAX {
            return;
        }
        let held = InQueue {
            connection,
            queue: Queue::Open(queue),
            _content: content,
        };
        self.0.borrow_mut().push(held);
    }

    /// Forgets what was sent. Called each second.
    pub(crate) fn forget_sent(&self) {
        let mut all = self.0.borrow_mut();
        all.retain_mut(|it| match &mut it.queue {
            Queue::Open(queue) => !queue.is_empty(),
            Queue::Closed(queue) => queue.holds(),
        });
        all.shrink_to(HELD_MAX / 16);
    }

    /// A connection is about to be closed, and so is its socket. What it has is sent and
    /// acknowledged in time, unless its client takes nothing for as long as `silence`.
    pub(crate) fn close(&self, connection: u64, socket: &impl AsFd, silence: Duration) {
        let mut all = self.0.borrow_mut();
        if all.is_empty() || all.iter().all(|it| it.connection != connection) {
            return;
        }
        let option = SockRef::from(socket);
        // one that is reset has nothing any more; what one had that another node has now is copied
        // there
        let is_given_up =
            matches!(option.linger(), Ok(Some(Duration::ZERO))) || is_under_repair(socket);
        if is_given_up || !has_content(socket) {
            all.retain(|it| it.connection != connection);
            return;
        }
        let kept = (closed_sockets(&all) < CLOSED_SOCKETS_MAX)
            .then(|| socket.as_fd().try_clone_to_owned().ok().map(Rc::new))
            .flatten();
        if kept.is_none() {
            // if it cannot be set, the kernel gives up later
            let _ = option.set_tcp_user_timeout(Some(silence));
        }
        let bytes = unacknowledged_bytes(socket).unwrap_or(u32::MAX);
        let silence_s = u32::try_from(silence.as_secs()).unwrap_or(u32::MAX).max(1);
        // as if the socket were closed: the end is sent behind the content, and a client that sends
        // more is reset (RFC 9293 §3.10.7.4; `tcp_rcv_state_process` of Linux)
        let _ = option.shutdown(Shutdown::Both);
        let of_connection = all.iter_mut().filter(|it| it.connection == connection);
        of_connection.for_each(|it| {
            it.queue = Queue::Closed(ClosedQueue {
                socket: kept.clone(),
                bytes,
                silence_s,
                left_s: silence_s,
            });
        });
    }
}

/// Sockets of closed connections that are kept; each may have several pieces of content.
fn closed_sockets<C>(all: &[InQueue<C>]) -> usize {
    let kept = all.iter().filter(|it| it.queue.keeps_socket());
    kept.map(|it| it.connection).collect::<BTreeSet<_>>().len()
}

/// Whether a socket has anything that its client has not acknowledged. What was reset has nothing,
/// whatever its queue says.
fn has_content(socket: &impl AsFd) -> bool {
    !SendQueue::of(socket).is_empty() && tcp_info(socket).is_some_and(|info| !info.is_closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::{self, WouldBlock};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    const SILENCE: Duration = Duration::from_secs(30);

    /// A client and the socket that it is sent by.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    /// Writes until the kernel takes no more, so that some of it is in the queue; how much.
    fn fill(socket: &mut TcpStream) -> usize {
        socket.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(count) = socket.write(&[7; 64 * 1024]) {
            written += count;
        }
        written
    }

    #[test]
    fn content_is_held_until_the_client_has_acknowledged_it() {
        let (mut client, mut socket) = connection();
        let (all, content) = (ContentInQueues::default(), Rc::new(()));
        let written = fill(&mut socket);
        all.add(1, SendQueue::of(&socket), Rc::clone(&content));
        all.forget_sent();
        assert_eq!(Rc::strong_count(&content), 2);
        client.read_exact(&mut vec![0; written]).unwrap();
        // the kernel acknowledges what was read in a moment
        while Rc::strong_count(&content) > 1 {
            std::thread::yield_now();
            all.forget_sent();
        }
    }

    #[test]
    fn connection_has_room_again_once_its_queue_is_empty() {
        let (mut client, mut socket) = connection();
        let (all, queue) = (ContentInQueues::default(), SendQueue::of(&socket));
        let written = fill(&mut socket);
        for _ in 0..HELD_PER_CONNECTION_MAX {
            assert!(all.have_room(1, queue));
            all.add(1, queue, ());
        }
        assert!(!all.have_room(1, queue));
        assert!(all.have_room(2, queue));
        client.read_exact(&mut vec![0; written]).unwrap();
        while !all.have_room(1, queue) {
            std::thread::yield_now();
        }
        assert!(all.0.borrow().is_empty());
    }

    #[test]
    fn worker_holds_no_more_than_its_limit() {
        let (_client, mut socket) = connection();
        let (all, queue) = (ContentInQueues::default(), SendQueue::of(&socket));
        fill(&mut socket);
        for connection in 0..HELD_MAX as u64 {
            assert!(all.have_room(connection, queue));
            all.add(connection, queue, ());
        }
        assert!(!all.have_room(HELD_MAX as u64, queue));
        SockRef::from(&socket)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        all.close(3, &socket, SILENCE);
        assert!(all.have_room(HELD_MAX as u64, queue));
    }

    #[test]
    fn client_that_takes_nothing_of_a_closed_connection_is_reset() {
        let (mut client, mut socket) = connection();
        let (all, content) = (ContentInQueues::default(), Rc::new(()));
        fill(&mut socket);
        all.add(1, SendQueue::of(&socket), Rc::clone(&content));
        all.close(1, &socket, SILENCE);
        drop(socket);
        for _ in 1..SILENCE.as_secs() {
            all.forget_sent();
        }
        assert_eq!(Rc::strong_count(&content), 2);
        all.forget_sent();
        assert_eq!(Rc::strong_count(&content), 1);
        // what it has not read by then is lost with the connection
        let read = client.read_to_end(&mut Vec::new());
        assert_eq!(
            read.expect_err("a reset").kind(),
            ErrorKind::ConnectionReset
        );
    }

    #[test]
    fn client_that_takes_some_of_a_closed_connection_in_time_has_all_of_it() {
        let (mut client, mut socket) = connection();
        let (all, content) = (ContentInQueues::default(), Rc::new(()));
        let mut left = fill(&mut socket);
        all.add(1, SendQueue::of(&socket), Rc::clone(&content));
        all.close(1, &socket, SILENCE);
        while left > 0 {
            let before = unacknowledged_bytes(&socket).unwrap();
            let mut piece = vec![0; left.min(512 * 1024)];
            client.read_exact(&mut piece).unwrap();
            left -= piece.len();
            while before > 1 && unacknowledged_bytes(&socket).unwrap() >= before {
                std::thread::yield_now();
            }
            for it in all.0.borrow_mut().iter_mut() {
                if let Queue::Closed(queue) = &mut it.queue {
                    queue.left_s = 1;
                }
            }
            all.forget_sent();
        }
        assert_eq!(client.read(&mut [0]).expect("no reset"), 0);
        while Rc::strong_count(&content) > 1 {
            std::thread::yield_now();
            all.forget_sent();
        }
    }

    #[test]
    fn kernel_gives_up_clients_whose_sockets_are_not_kept() {
        let all = ContentInQueues::default();
        let (_client, mut socket) = connection();
        fill(&mut socket);
        for number in 0..=CLOSED_SOCKETS_MAX as u64 {
            let option = SockRef::from(&socket).tcp_user_timeout().unwrap();
            assert_eq!(option, None, "{number}");
            all.add(number, SendQueue::of(&socket), ());
            all.close(number, &socket, SILENCE);
        }
        let option = SockRef::from(&socket).tcp_user_timeout().unwrap();
        assert_eq!(option, Some(SILENCE));
    }

    #[test]
    fn sockets_of_no_more_closed_connections_are_kept_than_the_limit_says() {
        let (_client, mut socket) = connection();
        let all = ContentInQueues::default();
        fill(&mut socket);
        for number in 0..CLOSED_SOCKETS_MAX as u64 + 3 {
            for _ in 0..HELD_PER_CONNECTION_MAX {
                all.add(number, SendQueue::of(&socket), ());
            }
            all.close(number, &socket, SILENCE);
        }
        let all = all.0.borrow();
        let held = (CLOSED_SOCKETS_MAX + 3) * HELD_PER_CONNECTION_MAX;
        assert_eq!(
            (all.len(), closed_sockets(&all)),
            (held, CLOSED_SOCKETS_MAX)
        );
    }

    #[test]
    fn closed_connection_takes_nothing_more_of_its_client() {
        let (mut client, mut socket) = connection();
        let all = ContentInQueues::default();
        fill(&mut socket);
        all.add(1, SendQueue::of(&socket), ());
        all.close(1, &socket, SILENCE);
        drop(socket);
        client.set_nonblocking(true).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        // it is reset, as by a socket that is closed
        while !matches!(client.write(&[1; 4096]), Err(error) if error.kind() != WouldBlock) {
            assert!(Instant::now() < until, "what is sent is taken");
            std::thread::yield_now();
        }
    }

    #[test]
    fn content_of_a_closed_connection_is_given_back_once_its_client_has_all_or_has_left() {
        for leaves in [false, true] {
            let (mut client, mut socket) = connection();
            let (all, content) = (ContentInQueues::default(), Rc::new(()));
            let written = fill(&mut socket);
            all.add(1, SendQueue::of(&socket), Rc::clone(&content));
            all.close(1, &socket, SILENCE);
            drop(socket);
            assert_eq!(Rc::strong_count(&content), 2);
            if leaves {
                // not all was read: that resets the connection
                drop(client);
            } else {
                let mut received = Vec::new();
                client.read_to_end(&mut received).unwrap();
                assert_eq!(received.len(), written);
            }
            let until = Instant::now() + Duration::from_secs(20);
            while Rc::strong_count(&content) > 1 {
                assert!(Instant::now() < until, "leaves: {leaves}");
                std::thread::yield_now();
                for it in all.0.borrow_mut().iter_mut() {
                    // no time passes but that of the kernel
                    if let Queue::Closed(queue) = &mut it.queue {
                        queue.left_s = queue.silence_s;
                    }
                }
                all.forget_sent();
            }
        }
    }

    #[test]
    fn content_is_given_back_as_a_connection_is_closed_that_has_sent_it() {
        let (_client, socket) = connection();
        let (all, content) = (ContentInQueues::default(), Rc::new(()));
        all.add(1, SendQueue::of(&socket), Rc::clone(&content));
        all.close(2, &socket, SILENCE);
        assert_eq!(Rc::strong_count(&content), 2);
        all.close(1, &socket, SILENCE);
        assert_eq!(Rc::strong_count(&content), 1);
    }
}
