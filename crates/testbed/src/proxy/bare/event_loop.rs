//! The event loop: a listener, and sockets that are reported once for each change.
//!
//! Edge-triggered: a socket is added once, for reading and writing, and never changed. The kernel
//! does not look at it again in the next wait, which is what the level-triggered kind costs.

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

/// Lent to the socket that is ready: an idle connection owns no buffer. Content of 1 KiB and its
/// head fit many times.
const SCRATCH_BYTES: usize = 64 * 1024;

const EVENTS_MAX: usize = 256;

/// The key of the listener.
const LISTENER: u64 = u64::MAX;

/// What is done with sockets that are ready.
pub(super) trait Handler {
    /// A client has connected. The handler keeps the stream, and adds it to `poll` by a key.
    ///
    /// # Errors
    /// The program cannot go on.
    fn accept(&mut self, poll: &Poll, stream: TcpStream) -> io::Result<()>;

    /// The socket of this key may be read or written. What is left unread or unsent is not reported
    /// again before more arrives, or room is there again.
    fn ready(&mut self, poll: &Poll, key: u64, scratch: &mut [u8]);
}

/// The sockets that are waited for.
pub(super) struct Poll(OwnedFd);

impl Poll {
    /// Reports changes of a socket from now on, by this key, until it is closed. It is made
    /// non-blocking, and sends without waiting for more.
    pub(super) fn add(&self, stream: &TcpStream, key: u64) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        self.add_with(stream, key, flags)
    }

    fn add_with(&self, socket: impl AsFd, key: u64, flags: epoll::EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(
            &self.0,
            socket,
            data,
            flags | epoll::EventFlags::ET,
        )?)
    }
}

/// Serves until an error.
pub(super) fn serve(listener: &TcpListener, handler: &mut impl Handler) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let poll = Poll(epoll::create(epoll::CreateFlags::CLOEXEC)?);
    poll.add_with(listener, LISTENER, epoll::EventFlags::IN)?;
    let mut scratch = vec![0; SCRATCH_BYTES];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(&poll.0, spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                LISTENER => {
                    while let Ok((stream, _)) = listener.accept() {
                        handler.accept(&poll, stream)?;
                    }
                }
                key => handler.ready(&poll, key, &mut scratch),
            }
        }
    }
}

/// Reads what has arrived, at most so much: `None` if nothing has.
///
/// # Errors
/// The connection is over, in whatever way.
pub(super) fn read(mut stream: &TcpStream, scratch: &mut [u8]) -> io::Result<Option<usize>> {
    match stream.read(scratch) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a call has sent: `None` if there is no room now.
pub(super) fn sent(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
