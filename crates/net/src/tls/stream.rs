//! A connection under TLS: content in and out of a socket.

use super::record_layer::{RecordLayer, Side};
use super::scratch::{Fragments, READ_BYTES_MAX, Scratch, with_scratch};
use crate::flow::read_once;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use rustls::server::UnbufferedServerConnection;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;

/// A connection under TLS, whose handshake is complete: toward a client, or with the other side
/// toward a next hop.
///
/// Bytes count as written when the kernel has accepted all records that they are in. Until then
/// nothing of them is, and the caller offers them again, as it does when it waits for a socket:
/// they are encrypted once, and what was encrypted is what is sent.
pub struct TlsStream<S = UnbufferedServerConnection> {
    socket: TcpStream,
    layer: RefCell<RecordLayer<S>>,
    /// Bytes of content in the records to send that the writer does not know to be written.
    encrypted: Cell<usize>,
    /// The end was announced.
    is_closed: Cell<bool>,
    /// Bytes of records that were received and sent since this was last asked for.
    on_wire: OnWire,
}

/// Bytes on the wire, which no link has counted.
#[derive(Debug, Default)]
struct OnWire {
    received: Cell<usize>,
    sent: Cell<usize>,
}

impl OnWire {
    fn add_received(&self, bytes: usize) {
        self.received.set(self.received.get().saturating_add(bytes));
    }

    fn add_sent(&self, bytes: usize) {
        self.sent.set(self.sent.get().saturating_add(bytes));
    }
}

#[expect(private_bounds, reason = "the sides are those that this crate has")]
impl<S: Side> TlsStream<S> {
    /// A connection whose handshake is to begin.
    pub(super) fn new(socket: TcpStream, side: S) -> Self {
        Self {
            socket,
            layer: RefCell::new(RecordLayer::new(side)),
            encrypted: Cell::new(0),
            is_closed: Cell::new(false),
            on_wire: OnWire::default(),
        }
    }

    /// Begins the handshake, of the side that has the first word.
    pub(super) fn start(&self) {
        // a failure is kept, and reported by the handshake
        let _ = self.layer.borrow_mut().receive(&mut [], &mut []);
    }

    /// Whether it is the protocol of this name that the two sides have chosen (RFC 7301).
    pub fn has_protocol(&self, name: &[u8]) -> bool {
        self.with_side(|side| side.protocol() == Some(name))
    }

    /// The same, whose socket is registered with the reactor of this thread.
    ///
    /// # Errors
    ///
    /// The reactor does not take it.
    pub(crate) fn moved_here(self) -> io::Result<Self> {
        Ok(Self {
            socket: TcpStream::from_std(self.socket.into_std()?)?,
            ..self
        })
    }

    /// Bytes that were received on the wire since this was last called.
    pub(crate) fn take_received(&self) -> usize {
        self.on_wire.received.take()
    }

    /// Bytes that were sent on the wire since this was last called.
    pub(crate) fn take_sent(&self) -> usize {
        self.on_wire.sent.take()
    }

    /// Whether the peer has announced that no more content follows: the end of the connection alone
    /// may be the deed of another (RFC 8446 §6.1).
    pub(crate) fn is_end_announced(&self) -> bool {
        self.layer.borrow().is_ended()
    }

    /// Whether nothing was received that is not read, nor waits to be sent.
    pub(crate) fn is_clean(&self) -> bool {
        let mut layer = self.layer.borrow_mut();
        !layer.has_content()
            && layer.partial().is_empty()
            && layer.records().is_empty()
            && !layer.is_ended()
            && layer.failure().is_none()
            && self.encrypted.get() == 0
    }

    /// Whether it is open and has nothing to read but records of the protocol itself, as session
    /// tickets are; these are used. By system calls, as the reactor may not have polled yet.
    pub(crate) fn is_quiet(&self) -> bool {
        for _ in 0..QUIET_READS_MAX {
            if !self.is_clean() {
                return false;
            }
            match with_scratch(|scratch| self.receive_at_once(scratch)) {
                Err(Errno::AGAIN) => return true,
                Err(_) | Ok(0) => return false,
                Ok(_) => {}
            }
        }
        false
    }

    /// Reads records without the reactor; how many bytes.
    fn receive_at_once(&self, scratch: &mut Scratch) -> Result<usize, Errno> {
        let room = &mut scratch.input[..READ_BYTES_MAX];
        let (_, count) = recv(&self.socket, &mut *room, RecvFlags::DONTWAIT)?;
        self.on_wire.add_received(count);
        let mut layer = self.layer.borrow_mut();
        // what is wrong with them, and what content they have, is seen by the state
        let _ = layer.receive(&mut room[..count], &mut []);
        if !layer.records().is_empty() {
            let _ = self.try_flush(&mut layer);
        }
        Ok(count)
    }

    /// The connection that records are sent on.
    pub const fn tcp(&self) -> &TcpStream {
        &self.socket
    }

    /// The connection alone, of a peer that does not speak TLS.
    pub(super) fn into_tcp(self) -> TcpStream {
        self.socket
    }

    pub(super) fn with_side<T>(&self, use_it: impl FnOnce(&S) -> T) -> T {
        use_it(self.layer.borrow().side())
    }

    /// Bytes that it owns memory for.
    #[cfg(test)]
    pub(super) fn buffered_bytes(&self) -> usize {
        self.layer.borrow().buffered_bytes()
    }

    /// Whether content was received that is not read.
    pub fn has_content(&self) -> bool {
        self.layer.borrow().has_content()
    }

    /// Whether a read needs no call of the kernel: content was received that is not read, or its
    /// end, or what is not as the protocol has it. The reactor does not say so again.
    pub fn is_readable(&self) -> bool {
        let layer = self.layer.borrow();
        layer.has_content() || layer.is_ended() || layer.failure().is_some()
    }

    /// Whether content was encrypted that the writer does not know to be written: it cannot be
    /// taken back.
    pub fn has_unsent(&self) -> bool {
        self.encrypted.get() > 0
    }

    /// Reads content; 0 at its end, which the peer has announced or not: what it has sent is
    /// framed.
    ///
    /// # Errors
    ///
    /// The connection is broken, or what the peer has sent is not as the protocol has it.
    pub fn poll_read(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Some(read) = self.read_kept(into) {
            return Poll::Ready(read);
        }
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            match self.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// Reads content that is there; 0 at its end.
    ///
    /// # Errors
    ///
    /// As [`Self::poll_read`]; `WouldBlock` if there is none.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(read) = self.read_kept(into) {
            return read;
        }
        let most = into.len().min(READ_BYTES_MAX);
        match with_scratch(|scratch| self.receive(scratch, most, into))? {
            None => Ok(0),
            // a record whose rest has not come, or one of the protocol
            Some(0) if !self.layer.borrow().is_ended() => Err(io::ErrorKind::WouldBlock.into()),
            Some(length) => Ok(length),
        }
    }

    /// Content that was received before, or its end, or a fault; `None` if more is to be received.
    fn read_kept(&self, into: &mut [u8]) -> Option<io::Result<usize>> {
        let mut layer = self.layer.borrow_mut();
        if layer.has_content() {
            let waiting = layer.content().waiting();
            let length = waiting.len().min(into.len());
            into[..length].copy_from_slice(&waiting[..length]);
            layer.content().advance(length);
            return Some(Ok(length));
        }
        if let Some(failure) = layer.failure() {
            return Some(Err(io::Error::other(failure.clone())));
        }
        (layer.is_ended() || into.is_empty()).then_some(Ok(0))
    }

    /// Reads records once, at most `most` bytes of them; how many bytes of content came to `into`;
    /// `None` at the end of the connection.
    fn receive(
        &self,
        scratch: &mut Scratch,
        most: usize,
        into: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut layer = self.layer.borrow_mut();
        let kept = layer.partial().len();
        let to = (kept + most).min(scratch.input.len());
        if kept == to {
            return Err(io::Error::other(
                "a record longer than the protocol permits",
            ));
        }
        let read = read_once(&self.socket, &mut scratch.input[kept..to]);
        let count = read.inspect_err(|error| {
            if error.kind() == io::ErrorKind::ConnectionReset {
                // the kernel takes nothing more, and the peer would not read it
                self.is_closed.set(true);
            }
        })?;
        if count == 0 {
            return Ok(None);
        }
        self.on_wire.add_received(count);
        scratch.input[..kept].copy_from_slice(layer.partial());
        let received = layer.receive(&mut scratch.input[..kept + count], into);
        let received = received.map_err(io::Error::other);
        if !layer.records().is_empty() {
            // alerts and changes of keys: if the kernel has no room now, they go before the next
            // content
            let _ = self.try_flush(&mut layer);
        }
        received.map(Some)
    }

    /// Writes content once: as [`Self::poll_write_vectored`].
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_write(&self, cx: &mut Context<'_>, content: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(content)])
    }

    /// Writes content once; how many bytes were accepted.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        content: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered: usize = content.iter().map(|slice| slice.len()).sum();
        loop {
            ready!(self.poll_flush(cx))?;
            if let Some(accepted) = self.accept(offered) {
                return Poll::Ready(Ok(accepted));
            }
            ready!(self.socket.poll_write_ready(cx))?;
            with_scratch(|scratch| self.send(scratch, content))?;
        }
    }

    /// Writes content once; how many bytes were accepted.
    ///
    /// # Errors
    ///
    /// As [`Self::poll_write_vectored`]; `WouldBlock` if the kernel has no room for all records.
    pub fn try_write(&self, content: &[u8]) -> io::Result<usize> {
        loop {
            self.try_flush(&mut self.layer.borrow_mut())?;
            if let Some(accepted) = self.accept(content.len()) {
                return Ok(accepted);
            }
            with_scratch(|scratch| self.send(scratch, &[IoSlice::new(content)]))?;
        }
    }

    /// Of what is offered, what was encrypted and is sent by now; `None` if that is to begin.
    fn accept(&self, offered: usize) -> Option<usize> {
        let encrypted = self.encrypted.get();
        if encrypted == 0 && offered > 0 {
            return None;
        }
        let accepted = encrypted.min(offered);
        self.encrypted.set(encrypted - accepted);
        Some(accepted)
    }

    /// Encrypts content and sends what the kernel takes.
    fn send(&self, scratch: &mut Scratch, content: &[IoSlice<'_>]) -> io::Result<()> {
        let mut layer = self.layer.borrow_mut();
        let Scratch { input, output } = scratch;
        let mut fragments = Fragments::of(content);
        let (mut encrypted, mut length) = (0, 0);
        loop {
            let fragment = fragments.next(input);
            if fragment.is_empty() {
                break;
            }
            length += layer.encrypt(fragment, &mut output[length..])?;
            encrypted += fragment.len();
        }
        self.encrypted.set(encrypted);
        let records = &output[..length];
        // records of the protocol, if there are any, go first
        let sent = match layer.records().is_empty() {
            true => match self.socket.try_write(records) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                sent => sent?,
            },
            false => 0,
        };
        self.on_wire.add_sent(sent);
        layer.records().push(&records[sent..]);
        Ok(())
    }

    /// Sends the records that wait.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut layer = self.layer.borrow_mut();
            if layer.records().is_empty() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.socket.poll_write_ready(cx))?;
            match self.try_flush(&mut layer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                flushed => flushed?,
            }
        }
    }

    fn try_flush(&self, layer: &mut RecordLayer<S>) -> io::Result<()> {
        while !layer.records().is_empty() {
            match self.socket.try_write(layer.records().waiting())? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => {
                    self.on_wire.add_sent(sent);
                    layer.records().advance(sent);
                }
            }
        }
        Ok(())
    }

    /// Says that no more content follows (RFC 8446 §6.1), and closes the sending side.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_closed.replace(true) {
            self.layer.borrow_mut().close()?;
        }
        ready!(self.poll_flush(cx))?;
        match shutdown(&self.socket, Shutdown::Write) {
            // the other side has closed it before
            Err(Errno::NOTCONN) => Poll::Ready(Ok(())),
            closed => Poll::Ready(closed.map_err(Into::into)),
        }
    }

    /// Says that no more content follows (RFC 8446 §6.1), if the kernel takes that at once: for a
    /// connection that is closed. Not to be called behind content that is not whole.
    pub fn announce_end(&self) {
        let mut layer = self.layer.borrow_mut();
        if !self.is_closed.replace(true) && layer.close().is_ok() {
            let _ = self.try_flush(&mut layer);
        }
    }

    /// Reads and processes records until the handshake is complete, at most `most` bytes of them
    /// in all; `read` counts these.
    pub(super) fn poll_handshake(
        &self,
        cx: &mut Context<'_>,
        (read, most): (&mut usize, usize),
    ) -> Poll<Result<(), HandshakeStop>> {
        loop {
            ready!(self.poll_flush(cx)).map_err(|_| HandshakeStop::Disconnected)?;
            {
                let layer = self.layer.borrow();
                if let Some(failure) = layer.failure() {
                    return Poll::Ready(Err(HandshakeStop::Failed(failure.clone())));
                }
                if !layer.is_handshaking() {
                    return Poll::Ready(Ok(()));
                }
            }
            ready!(self.socket.poll_read_ready(cx)).map_err(|_| HandshakeStop::Disconnected)?;
            let step = with_scratch(|scratch| self.receive_handshake(scratch, read, most));
            if let Err(stop) = step {
                return Poll::Ready(Err(stop));
            }
        }
    }

    fn receive_handshake(
        &self,
        scratch: &mut Scratch,
        read: &mut usize,
        most: usize,
    ) -> Result<(), HandshakeStop> {
        if *read >= most {
            return Err(HandshakeStop::TooLarge);
        }
        let mut layer = self.layer.borrow_mut();
        let kept = layer.partial().len();
        let to = (kept + most - *read).min(scratch.input.len());
        let count = match read_once(&self.socket, &mut scratch.input[kept..to]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) | Ok(0) => return Err(HandshakeStop::Disconnected),
            Ok(count) => count,
        };
        if *read == 0 && is_http(&scratch.input[..count]) {
            return Err(HandshakeStop::Http);
        }
        *read += count;
        self.on_wire.add_received(count);
        scratch.input[..kept].copy_from_slice(layer.partial());
        // a failure is reported once its alert is sent
        let _ = layer.receive(&mut scratch.input[..kept + count], &mut []);
        Ok(())
    }
}

/// Reads of a connection that no exchange uses: more than some tickets is no silence.
const QUIET_READS_MAX: usize = 4;

/// Why a handshake is not complete.
pub(super) enum HandshakeStop {
    /// The peer has closed or broken the connection.
    Disconnected,
    /// It has sent more than is read for a handshake.
    TooLarge,
    /// It has begun with a request of HTTP in clear.
    Http,
    /// What it has sent is not as the protocol has it, or the two have nothing in common.
    Failed(rustls::Error),
}

/// Whether a connection begins with a method in capitals: a record begins with its type, a small
/// number.
fn is_http(received: &[u8]) -> bool {
    received.first().is_some_and(u8::is_ascii_uppercase)
}
