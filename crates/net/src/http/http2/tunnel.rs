//! A tunnel on a stream (RFC 9113 §8.5): its DATA frames are the bytes of a connection.

use super::content::Http2Content;
use super::response::Http2Response;
use crate::http::content_form::ContentForm;
use crate::http::received_content::ReceivedContent;
use crate::next_hops::{ConnectionLink, LinkUse};
use crate::tunnel::{Activity, End, NextHopEnd, Side, TunnelEnd, TunnelReport};
use h2::Reason;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

/// Bytes that are read at once from the next hop; an idle tunnel holds no memory for them.
const READ_BYTES_MAX: usize = 16 * 1024;

/// A side failed.
type Fault = (Side, io::ErrorKind);

/// Sends `head`, which is complete, then `surplus`, then relays bytes both ways until both sides
/// have finished, one fails, no byte moves for `idle_limit`, or `drain` is ready.
pub(in crate::http) async fn relay(
    (content, response): (&mut Http2Content, &mut Http2Response),
    next_hop: NextHopEnd<'_>,
    (head, surplus): (&[u8], &[u8]),
    idle_limit: Duration,
    drain: impl Future<Output = ()>,
) -> TunnelReport {
    let activity = Activity::new();
    let NextHopEnd { end: socket, link } = next_hop;
    let (reads, writes) = match link.map(ConnectionLink::split) {
        Some((reads, writes)) => (reads.map(|reads| reads.usage), writes),
        None => (None, None),
    };
    let sent_before = response.sent_bytes();
    content.become_tunnel();
    let head = response.become_tunnel(head);
    let lines = head.strip_suffix(b"\r\n").unwrap_or(&head);
    response.begin(lines.to_vec(), ContentForm::Unsized);
    let outbound = Outbound {
        socket,
        link: writes.map(RefCell::new),
        activity: &activity,
    };
    let inbound = Inbound {
        socket,
        link: reads.map(RefCell::new),
        activity: &activity,
    };
    let both = async { tokio::try_join!(outbound.run(content), inbound.run(response, surplus)) };
    let end = tokio::select! {
        biased;
        done = both => match done {
            Ok(_both_ended) => TunnelEnd::Closed,
            Err((side, kind)) => TunnelEnd::Error(side, kind),
        },
        () = drain => TunnelEnd::Drained,
        () = activity.idle_for(idle_limit) => TunnelEnd::IdleLimit,
    };
    if let TunnelEnd::Error(Side::Client, _) = end {
        // a socket that refuses is as closed as it can be
        let _reset = socket.tcp().set_zero_linger();
    }
    response.reset(Reason::CONNECT_ERROR);
    let sent = response.sent_bytes() - sent_before;
    response.set_sent_bytes(sent_before);
    TunnelReport {
        head_bytes: sent - activity.to_client_bytes.get(),
        to_client_bytes: activity.to_client_bytes.get(),
        to_next_hop_bytes: activity.to_next_hop_bytes.get(),
        end,
    }
}

/// The direction to the next hop.
struct Outbound<'a> {
    socket: End<'a>,
    link: Option<RefCell<&'a mut LinkUse>>,
    activity: &'a Activity,
}

impl Outbound<'_> {
    async fn run(&self, content: &mut Http2Content) -> Result<(), Fault> {
        loop {
            let mut bytes = Vec::new();
            let received = poll_fn(|cx| content.poll_receive(cx, &mut [], &mut bytes)).await;
            let received = received.map_err(|_| (Side::Client, io::ErrorKind::ConnectionReset))?;
            self.write(&bytes).await?;
            // the client may send more once the next hop has it
            content.consumed(bytes.len());
            if received == ReceivedContent::Whole {
                return match self.socket.close().await {
                    Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                        Err((Side::NextHop, error.kind()))
                    }
                    Ok(()) | Err(_) => Ok(()),
                };
            }
        }
    }

    async fn write(&self, mut rest: &[u8]) -> Result<(), Fault> {
        let fault = |error: io::Error| (Side::NextHop, error.kind());
        while !rest.is_empty() {
            self.socket.writable().await.map_err(fault)?;
            let most = permitted(self.link.as_ref(), self.activity).await?;
            let sent = self.socket.try_write(&rest[..rest.len().min(most)]);
            if let Some(link) = &self.link {
                let content = *sent.as_ref().unwrap_or(&0);
                let on_wire = self.socket.take_sent().unwrap_or(content);
                link.borrow_mut().sent(on_wire);
            }
            match sent {
                Ok(sent) => {
                    rest = &rest[sent..];
                    let moved = &self.activity.to_next_hop_bytes;
                    moved.set(moved.get() + sent as u64);
                    self.activity.touch();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(fault(error)),
            }
        }
        Ok(())
    }
}

/// The direction to the client.
struct Inbound<'a> {
    socket: End<'a>,
    link: Option<RefCell<&'a mut LinkUse>>,
    activity: &'a Activity,
}

impl Inbound<'_> {
    async fn run(&self, response: &mut Http2Response, surplus: &[u8]) -> Result<(), Fault> {
        self.send(response, surplus).await?;
        let gone = response.disconnect();
        loop {
            poll_fn(|cx| {
                if gone.poll(cx).is_ready() {
                    let fault = (Side::Client, io::ErrorKind::ConnectionReset);
                    return Poll::Ready(Err(fault));
                }
                if self.socket.is_readable() {
                    return Poll::Ready(Ok(()));
                }
                let ready = self.socket.tcp().poll_read_ready(cx);
                ready.map_err(|error| (Side::NextHop, error.kind()))
            })
            .await?;
            let most = permitted(self.link.as_ref(), self.activity).await?;
            let mut bytes = vec![0; READ_BYTES_MAX.min(most)];
            let read = self.socket.try_read(&mut bytes);
            if let Some(link) = &self.link {
                let content = *read.as_ref().unwrap_or(&0);
                let on_wire = self.socket.take_received().unwrap_or(content);
                link.borrow_mut().received(on_wire);
            }
            match read {
                Ok(0) => return self.end(response).await,
                Ok(count) => self.send(response, &bytes[..count]).await?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err((Side::NextHop, error.kind())),
            }
        }
    }

    /// Sends the head, if that is not sent, and these bytes.
    async fn send(&self, response: &mut Http2Response, mut rest: &[u8]) -> Result<(), Fault> {
        loop {
            let sent = poll_fn(|cx| response.poll_send(cx, &[rest], None)).await;
            let sent = sent.map_err(|error| (Side::Client, error.kind()))?;
            let moved = &self.activity.to_client_bytes;
            moved.set(moved.get() + sent as u64);
            self.activity.touch();
            rest = &rest[sent..];
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    async fn end(&self, response: &mut Http2Response) -> Result<(), Fault> {
        let ended = poll_fn(|cx| response.poll_send(cx, &[], Some(&[]))).await;
        ended.map_err(|error| (Side::Client, error.kind()))?;
        Ok(())
    }
}

/// How many bytes the link permits to move now; waits for that.
async fn permitted(
    link: Option<&RefCell<&mut LinkUse>>,
    activity: &Activity,
) -> Result<usize, Fault> {
    let Some(link) = link else {
        return Ok(usize::MAX);
    };
    let permit = poll_fn(|cx| link.borrow_mut().poll_permit(cx, usize::MAX));
    let permit = activity.held_back(permit).await;
    permit.map_err(|error| (Side::NextHop, error.kind()))
}
