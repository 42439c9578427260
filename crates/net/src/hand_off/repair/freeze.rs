//! Reading the state of a connection.

use super::connection::FrozenConnection;
use super::queue::{Queue, hold_back};
use super::state::{
    AgreedOptions, ConnectionState, SEGMENT_BYTES, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX,
    Windows,
};
use crate::flow::socket::{SocketOption, bytes_out, bytes_unsent, number, read_option, set_number};
use rustix::io::ioctl_fionread;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::{fmt, io};

/// Why a connection stays where it is.
#[derive(Debug)]
pub enum FreezeError {
    /// One of its ends has closed it, or reset it.
    NotEstablished,
    /// So many bytes were received and not used: more than [`UNREAD_BYTES_MAX`].
    Unread(usize),
    /// So many bytes are not acknowledged: more than [`UNACKNOWLEDGED_BYTES_MAX`].
    Unacknowledged(usize),
    /// A packet of the client arrived meanwhile.
    Changed,
    /// The kernel does not do it: without `CAP_NET_ADMIN`, say.
    System(io::Error),
}

impl fmt::Display for FreezeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEstablished => f.write_str("the connection is not open both ways"),
            Self::Unread(bytes) => write!(f, "{bytes} bytes are unread"),
            Self::Unacknowledged(bytes) => write!(f, "{bytes} bytes are not acknowledged"),
            Self::Changed => f.write_str("the client sent something meanwhile"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FreezeError {}

impl From<io::Error> for FreezeError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// `TCP_ESTABLISHED`, in `tcpi_state`.
const ESTABLISHED: u8 = 1;

// `TCPI_OPT_TIMESTAMPS`, `TCPI_OPT_SACK` and `TCPI_OPT_WSCALE`, in `tcpi_options`
const TIMESTAMPS: u8 = 1;
const SELECTIVE_ACKNOWLEDGEMENTS: u8 = 2;
const WINDOW_SCALES: u8 = 4;

impl FrozenConnection {
    /// Freezes a connection. `read` are the last bytes that were read from it and were not used:
    /// where it goes on, they are to be read again.
    ///
    /// # Errors
    /// It cannot be moved; it is given back and goes on as it was.
    pub fn freeze(stream: TcpStream, read: &[u8]) -> Result<Self, (TcpStream, FreezeError)> {
        match state_of(&stream, read) {
            Ok(state) => Ok(Self {
                socket: Some(stream),
                state,
                is_adopted: false,
            }),
            Err(error) => {
                // fails where it was not set
                let _ = set_number(stream.as_fd(), SocketOption::TCP_REPAIR, 0);
                Err((stream, error))
            }
        }
    }
}

fn state_of(stream: &TcpStream, read: &[u8]) -> Result<ConnectionState, FreezeError> {
    let socket = stream.as_fd();
    set_number(socket, SocketOption::TCP_REPAIR, 1)?;
    let agreed = agreed_options(socket)?;
    let received_to = Queue::Received.end(socket)?;
    let unread = unread(socket, read)?;
    let windows = windows(socket)?;
    if Queue::Received.end(socket)? != received_to {
        return Err(FreezeError::Changed);
    }
    hold_back(socket)?;
    let written_to = Queue::Written.end(socket)?;
    let (unacknowledged, unsent) = written(socket)?;
    Ok(ConnectionState {
        client: stream.peer_addr()?,
        service: stream.local_addr()?,
        received_to,
        written_to,
        agreed,
        windows,
        unread,
        unacknowledged,
        unsent,
    })
}

fn agreed_options(socket: BorrowedFd<'_>) -> Result<AgreedOptions, FreezeError> {
    // of `struct tcp_info`: state, five single bytes of which the last one has the options, and the
    // scales, four bits each
    let mut info = [0; 8];
    read_option(socket, SocketOption::TCP_INFO, &mut info)?;
    let [state, _, _, _, _, options, scales, _] = info;
    if state != ESTABLISHED {
        return Err(FreezeError::NotEstablished);
    }
    let has = |option: u8| options & option != 0;
    let scales = match cfg!(target_endian = "little") {
        true => [scales & 0xf, scales >> 4],
        false => [scales >> 4, scales & 0xf],
    };
    // under repair this is what the client announced, and not what is left beside options
    let segment_max = number(socket, SocketOption::TCP_MAXSEG)?;
    let segment_max = u16::try_from(segment_max).unwrap_or(u16::MAX);
    let timestamp = match has(TIMESTAMPS) {
        true => Some(number(socket, SocketOption::TCP_TIMESTAMP)?),
        false => None,
    };
    Ok(AgreedOptions {
        // the loopback's are larger than the kernel takes
        segment_max: segment_max.min(*SEGMENT_BYTES.end()),
        window_scales: if has(WINDOW_SCALES) { scales } else { [0, 0] },
        selective_acknowledgements: has(SELECTIVE_ACKNOWLEDGEMENTS),
        timestamp,
    })
}

/// What was read and not used, and what is in the queue.
fn unread(socket: BorrowedFd<'_>, read: &[u8]) -> Result<Vec<u8>, FreezeError> {
    let queued = ioctl_fionread(socket).map_err(io::Error::from)?;
    let queued = usize::try_from(queued).unwrap_or(usize::MAX);
    let bytes = read.len().saturating_add(queued);
    if bytes > UNREAD_BYTES_MAX {
        return Err(FreezeError::Unread(bytes));
    }
    let copy = Queue::Received.copy(socket, queued)?;
    if copy.len() != queued {
        return Err(FreezeError::Changed);
    }
    Ok([read, &copy].concat())
}

/// What was sent and not acknowledged, and what was not sent.
fn written(socket: BorrowedFd<'_>) -> Result<(Vec<u8>, Vec<u8>), FreezeError> {
    let bytes = bytes_out(socket)? as usize;
    if bytes > UNACKNOWLEDGED_BYTES_MAX {
        return Err(FreezeError::Unacknowledged(bytes));
    }
    // fewer, if some of it was acknowledged meanwhile
    let mut sent = Queue::Written.copy(socket, bytes)?;
    let unsent = bytes_unsent(socket)? as usize;
    let unsent = sent.split_off(sent.len().saturating_sub(unsent));
    Ok((sent, unsent))
}

/// `struct tcp_repair_window`.
fn windows(socket: BorrowedFd<'_>) -> Result<Windows, FreezeError> {
    let mut bytes = [0; 20];
    read_option(socket, SocketOption::TCP_REPAIR_WINDOW, &mut bytes)?;
    let mut numbers = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .copied()
        .map(u32::from_ne_bytes);
    let mut number = || numbers.next().unwrap_or_default();
    Ok(Windows {
        send_changed_at: number(),
        send: number(),
        send_max: number(),
        receive: number(),
        receive_from: number(),
    })
}
