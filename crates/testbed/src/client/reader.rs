//! One client, as fast or as slow as an experiment requires.

use super::get::connect_from;
use super::http2::ClientVersion;
use super::transfer::Transfer;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;

/// What the receive buffer option of most clients is set to; the kernel doubles it for its own
/// needs, and lets through about as much content as the option says.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 64 * 1024;

/// A client that has sent its request.
#[derive(Debug)]
pub(crate) struct Reader {
    transfer: Transfer,
    buffer: Vec<u8>,
}

impl Reader {
    /// Requests a whole response on a new connection.
    pub(crate) fn ask(
        to: SocketAddr,
        spec: &ResponseSpec,
        receive_buffer_bytes: Option<usize>,
    ) -> Result<Self, String> {
        Self::ask_by(ClientVersion::Http1, to, spec, receive_buffer_bytes)
    }

    /// The same by a version of HTTP.
    pub(crate) fn ask_by(
        version: ClientVersion,
        to: SocketAddr,
        spec: &ResponseSpec,
        receive_buffer_bytes: Option<usize>,
    ) -> Result<Self, String> {
        let opened = connect_from(Ipv4Addr::UNSPECIFIED, to, receive_buffer_bytes);
        let stream = opened.map_err(|error| format!("cannot connect: {error}"))?;
        let transfer = Transfer::ask_by(version, stream, spec);
        Ok(Self {
            transfer: transfer.map_err(|error| format!("cannot ask: {error}"))?,
            buffer: vec![0; 256 * 1024],
        })
    }

    /// Leaves the response; the connection that goes on is handed back.
    pub(crate) fn leave(self) -> Option<TcpStream> {
        self.transfer.leave()
    }

    /// Accepts the content without a length: a module may change it.
    pub(crate) fn accept_any_framing(&mut self) {
        self.transfer.accept_any_framing();
    }

    /// Content read by this program.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.transfer.read_bytes()
    }

    /// Bytes that its kernel has received and this program has not read.
    pub(crate) fn unread_bytes(&self) -> u64 {
        rustix::io::ioctl_fionread(self.transfer.stream()).unwrap_or_default()
    }

    /// Reads once, at most so much; waits no longer than until `deadline`.
    ///
    /// # Errors
    /// Says what is wrong with the response or the connection. Silence until the deadline is not
    /// wrong.
    pub(crate) fn read(&mut self, bytes_max: usize, deadline: Instant) -> Result<(), String> {
        let left = deadline.saturating_duration_since(Instant::now());
        // a timeout of nothing would be none at all
        let left = left.max(Duration::from_millis(1));
        let limited = self.transfer.stream().set_read_timeout(Some(left));
        limited.map_err(|error| error.to_string())?;
        let bytes_max = bytes_max.min(self.buffer.len());
        match self.transfer.read(&mut self.buffer[..bytes_max]) {
            Ok(_) => Ok(()),
            Err(what) => Err(format!("{what} after {} bytes", self.read_bytes())),
        }
    }

    /// Reads as fast as it comes until that much content was read, and says whether it was before
    /// `deadline`.
    ///
    /// # Errors
    /// Says what is wrong with the response or the connection.
    pub(crate) fn read_until(&mut self, bytes: u64, deadline: Instant) -> Result<bool, String> {
        while self.read_bytes() < bytes {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.read(self.buffer.len(), deadline)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::in_threads;

    #[test]
    fn reader_takes_at_most_the_requested_bytes_and_then_the_rest() {
        let (_origin, address) = in_threads();
        let spec = ResponseSpec::new("/a", 50_000);
        let mut reader = Reader::ask(address, &spec, None).expect("the origin");
        let deadline = Instant::now() + Duration::from_secs(10);
        while reader.read_bytes() == 0 {
            reader.read(1000, deadline).expect("content");
        }
        assert!(reader.read_bytes() <= 1000);
        assert_eq!(reader.read_until(50_000, deadline), Ok(true));
        assert_eq!(reader.unread_bytes(), 0);
    }

    #[test]
    fn read_deadline_that_passes_is_not_an_error() {
        let (_origin, address) = in_threads();
        let spec = ResponseSpec {
            rate_bytes_per_s: Some(1),
            ..ResponseSpec::new("/a", 50_000)
        };
        let mut reader = Reader::ask(address, &spec, None).expect("the origin");
        assert_eq!(reader.read_until(50_000, Instant::now()), Ok(false));
    }
}
