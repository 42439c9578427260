//! Making a connection of the state that another machine has read.

use super::connection::FrozenConnection;
use super::queue::Queue;
use super::state::{ConnectionState, Windows};
use crate::flow::socket::{SocketOption, set_number, set_option};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

// the kinds of options in a segment with SYN, which `TCP_REPAIR_OPTIONS` takes
const OPTION_SEGMENT_MAX: u32 = 2;
const OPTION_WINDOW: u32 = 3;
const OPTION_SELECTIVE_ACKNOWLEDGEMENTS: u32 = 4;
const OPTION_TIMESTAMP: u32 = 8;

/// Room in a buffer beside the bytes of a queue: those of a connection that begins.
const BUFFER_BYTES: usize = 64 * 1024;

impl FrozenConnection {
    /// Makes the connection of another machine one of this one. It sends nothing until it is
    /// thawed; until then the other one may go on with it, if this one is dropped.
    ///
    /// # Errors
    /// The address of the service is none of this machine, there is no way to the client, the
    /// connection is here already, or the kernel does not do it.
    pub fn adopt(state: ConnectionState) -> io::Result<Self> {
        let domain = Domain::for_address(state.client);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        let under_repair = socket.as_fd();
        // from here on the address may be bound beside a listener's
        set_number(under_repair, SocketOption::TCP_REPAIR, 1)?;
        socket.bind(&state.service.into())?;
        begin(under_repair, &state)?;
        // without a packet
        socket.connect(&state.client.into())?;
        agree(under_repair, &state)?;
        fill(under_repair, &state)?;
        Ok(Self {
            socket: Some(socket.into()),
            state,
            is_adopted: true,
        })
    }
}

/// What is to be set before the kernel connects.
fn begin(socket: BorrowedFd<'_>, state: &ConnectionState) -> io::Result<()> {
    let bytes = |queue: &[u8]| u32::try_from(queue.len()).map_err(io::Error::other);
    let unread = bytes(&state.unread)?;
    let written = bytes(&state.unacknowledged)?.wrapping_add(bytes(&state.unsent)?);
    Queue::Received.begin_at(socket, state.received_to.wrapping_sub(unread))?;
    Queue::Written.begin_at(socket, state.written_to.wrapping_sub(written))?;
    // the size of segments is computed while it connects: set later, they had 536 bytes for good
    let segment_max = u32::from(state.agreed.segment_max);
    set_number(socket, SocketOption::TCP_MAXSEG, segment_max)
}

/// What the segments with SYN would have said.
fn agree(socket: BorrowedFd<'_>, state: &ConnectionState) -> io::Result<()> {
    let agreed = &state.agreed;
    let [send, receive] = agreed.window_scales.map(u32::from);
    // without scales, too: the kernel has chosen its own while it connected
    let mut options = vec![
        [OPTION_SEGMENT_MAX, u32::from(agreed.segment_max)],
        [OPTION_WINDOW, send | receive << 16],
    ];
    if agreed.selective_acknowledgements {
        options.push([OPTION_SELECTIVE_ACKNOWLEDGEMENTS, 0]);
    }
    if agreed.timestamp.is_some() {
        options.push([OPTION_TIMESTAMP, 0]);
    }
    let options = options.as_flattened().iter().copied();
    let options: Vec<u8> = options.flat_map(u32::to_ne_bytes).collect();
    set_option(socket, SocketOption::TCP_REPAIR_OPTIONS, &options)?;
    match agreed.timestamp {
        Some(timestamp) => set_number(socket, SocketOption::TCP_TIMESTAMP, timestamp),
        None => Ok(()),
    }
}

/// The queues but for what was not sent, and the windows, which are of the queues' ends.
fn fill(socket: BorrowedFd<'_>, state: &ConnectionState) -> io::Result<()> {
    let room = |bytes: usize| u32::try_from(bytes + BUFFER_BYTES).map_err(io::Error::other);
    let written = state.unacknowledged.len() + state.unsent.len();
    set_number(socket, SocketOption::SO_SNDBUFFORCE, room(written)?)?;
    let unread = room(state.unread.len())?;
    set_number(socket, SocketOption::SO_RCVBUFFORCE, unread)?;
    Queue::Received.fill(socket, &state.unread)?;
    Queue::Written.fill(socket, &state.unacknowledged)?;
    let Windows {
        send_changed_at,
        send,
        send_max,
        receive,
        receive_from,
    } = state.windows;
    let windows = [send_changed_at, send, send_max, receive, receive_from];
    let windows: Vec<u8> = windows.into_iter().flat_map(u32::to_ne_bytes).collect();
    set_option(socket, SocketOption::TCP_REPAIR_WINDOW, &windows)
}
