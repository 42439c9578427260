//! Content in a file in memory that was sent, and that sockets may have in their queues.
//!
//! A socket is sent such content without a copy, and has its pages until the client has
//! acknowledged them. As long as it has, the content is held: so it is in the account of the store,
//! and its memory is not believed to be free. What a connection still has in its queue when it is
//! closed is the kernel's, as what was copied there would be.

use std::cell::RefCell;
use weir_net::flow::SendQueue;
use weir_store::HeldContent;

/// So much content is held for the connections of a worker; then content is copied.
const HELD_MAX: usize = 1024;

/// So much is held for one connection.
const HELD_PER_CONNECTION_MAX: usize = 4;

/// The content of a worker's connections.
#[derive(Debug)]
pub(crate) struct ContentInQueues<C = HeldContent>(RefCell<Vec<InQueue<C>>>);

#[derive(Debug)]
struct InQueue<C> {
    /// The number of the connection.
    connection: u64,
    queue: SendQueue,
    _content: C,
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

    /// The kernel has taken `content` for `queue`, which is that of an open connection.
    pub(crate) fn add(&self, connection: u64, queue: SendQueue, content: C) {
        let held = InQueue {
            connection,
            queue,
            _content: content,
        };
        self.0.borrow_mut().push(held);
    }

    /// Forgets what was sent. Called each second.
    pub(crate) fn forget_sent(&self) {
        let mut all = self.0.borrow_mut();
        all.retain(|it| !it.queue.is_empty());
        all.shrink_to(HELD_MAX / 16);
    }

    /// A connection is about to be closed: its queue cannot be asked any more.
    pub(crate) fn forget(&self, connection: u64) {
        let mut all = self.0.borrow_mut();
        if !all.is_empty() {
            all.retain(|it| it.connection != connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::rc::Rc;

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
        all.forget(3);
        assert!(all.have_room(HELD_MAX as u64, queue));
    }
}
