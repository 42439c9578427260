//! The response to a request on an HTTP/1.1 connection.

use super::chunks::Framing;
use super::writer::{MessageWriter, Transport};
use crate::client::ClientSocket;
use crate::flow::{ClientFlow, SendQueue, tcp_info, unacknowledged_bytes};
use crate::http::content_form::ContentForm;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use weir_wire::write;

/// Sends the response to one request on an HTTP/1.1 connection.
pub(crate) struct Http1Response<'c> {
    client: ClientTransport<'c>,
    http11: bool,
    is_persistent: bool,
    is_bounded: bool,
    writer: MessageWriter,
}

/// The connection to a client, with the bound on what is unsent.
struct ClientTransport<'c> {
    socket: &'c ClientSocket,
    flow: ClientFlow,
}

impl Transport for ClientTransport<'_> {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.flow.poll_room(self.socket.tcp(), cx)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.socket.poll_write_vectored(cx, slices))?;
        self.flow.wrote(written);
        Poll::Ready(Ok(written))
    }
}

/// The same, where content from a file follows at once.
struct BeforeFile<'t, 'c>(&'t mut ClientTransport<'c>);

impl Transport for BeforeFile<'_, '_> {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.0.poll_room(cx)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.0.socket.poll_write_before_more(cx, slices))?;
        self.0.flow.wrote(written);
        Poll::Ready(Ok(written))
    }
}

impl<'c> Http1Response<'c> {
    pub(crate) fn new(socket: &'c ClientSocket, http11: bool, is_persistent: bool) -> Self {
        let flow = ClientFlow::new(0);
        Self {
            client: ClientTransport { socket, flow },
            http11,
            is_persistent,
            is_bounded: false,
            writer: MessageWriter::new(),
        }
    }

    pub(crate) fn socket(&self) -> &'c TcpStream {
        self.client.socket.tcp()
    }

    pub(crate) fn push_interim(&mut self, head: &[u8]) {
        if self.http11 {
            self.writer.push(head);
        }
    }

    pub(crate) fn begin(&mut self, head: Vec<u8>, content: ContentForm) -> &[u8] {
        let framing = match content {
            ContentForm::None | ContentForm::Sized => Framing::Length,
            ContentForm::Unsized if self.http11 => Framing::Chunked(0),
            ContentForm::Unsized => Framing::Close,
        };
        self.is_persistent &= framing != Framing::Close;
        let (is_persistent, http11) = (self.is_persistent, self.http11);
        self.writer.begin(head, framing, |head| {
            write_connection(is_persistent, http11, head);
            write::end_of_head(head);
        })
    }

    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        self.writer.poll_send(&mut self.client, cx, content, end)
    }

    pub(crate) fn can_send_file(&self) -> bool {
        self.writer.framing() == Framing::Length && !self.is_bounded && !self.client.socket.is_tls()
    }

    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: u64,
        length: u64,
    ) -> Poll<io::Result<usize>> {
        let mut before_file = BeforeFile(&mut self.client);
        ready!(self.writer.poll_flush(&mut before_file, cx))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let socket = self.socket();
        loop {
            ready!(socket.poll_write_ready(cx))?;
            let sent = socket.try_io(Interest::WRITABLE, || {
                let mut offset = offset;
                let sent = rustix::fs::sendfile(socket, file, Some(&mut offset), length)?;
                Ok(sent)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(sent) => {
                    self.writer.sent_by_file(sent);
                    return Poll::Ready(Ok(sent));
                }
            }
        }
    }

    pub(crate) fn set_unsent_limit(&mut self, bytes: Option<u32>) {
        if bytes.is_some() && !self.is_bounded {
            self.client.flow = ClientFlow::new(self.writer.sent_bytes());
        }
        self.is_bounded = bytes.is_some();
        let socket = self.socket();
        self.client.flow.set_unsent(socket, bytes);
    }

    pub(crate) fn round_trip_us(&self) -> Option<u32> {
        tcp_info(self.socket()).map(|info| info.rtt_us)
    }

    pub(crate) fn send_queue(&self) -> SendQueue {
        SendQueue::of(self.socket())
    }

    pub(crate) fn unacknowledged_bytes(&self) -> Option<u32> {
        unacknowledged_bytes(self.socket())
    }

    pub(crate) fn close_after(&mut self) {
        self.is_persistent = false;
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.writer.is_begun()
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.writer.has_queued()
    }

    /// What is encrypted cannot be taken back.
    pub(crate) fn retract(&mut self) -> bool {
        if self.client.socket.has_unsent() {
            return false;
        }
        self.writer.retract()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.writer.is_complete()
    }

    /// The end of the connection is the end of the response. Where it would also be the end of a
    /// whole one, it is a reset.
    pub(crate) fn abort(&mut self) {
        self.is_persistent = false;
        let is_open = self.writer.sent_bytes() > 0 && !self.writer.is_complete();
        if self.writer.framing() == Framing::Close && is_open {
            // if it cannot be set, the client has disconnected already
            let _ = socket2::SockRef::from(self.socket()).set_linger(Some(Duration::ZERO));
        }
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.writer.sent_bytes()
    }
}

impl Drop for Http1Response<'_> {
    /// The next response on the connection has bounds of its own. An incomplete response must not
    /// look complete, however it ends.
    fn drop(&mut self) {
        self.abort();
        let socket = self.socket();
        self.client.flow.release(socket);
    }
}

/// Appends `Connection` to a head where a client of this version needs it (RFC 9112 §9.3).
pub fn write_connection(is_persistent: bool, http11: bool, out: &mut Vec<u8>) {
    match (is_persistent, http11) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, false) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, true) => {}
    }
}
