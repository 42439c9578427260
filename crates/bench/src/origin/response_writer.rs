//! Writes a response: its bytes are made as the socket takes them, so that a slow peer costs no
//! memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite as _;
use tokio::net::TcpStream;
use tokio::time::Instant;
use weir_workload::Content;

use super::counts::OriginCounts;
use super::pace::Pace;
use super::timer::Timer;
use super::transmission::ConnectionAction;
use super::worker::Worker;

/// A peer that takes no byte for so long counts as disconnected.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// The rest of a response.
#[derive(Debug)]
pub(super) struct ResponseWriter {
    /// The head, and behind it text of the origin's own, if that is the content.
    pub(super) head: Vec<u8>,
    /// The bytes of the head in `head`.
    pub(super) head_bytes: usize,
    /// Bytes of `head` that the kernel has.
    pub(super) head_sent: usize,
    pub(super) content: Content,
    /// What of the content is left, half-open.
    pub(super) at: u64,
    pub(super) to: u64,
    /// Not before.
    pub(super) begins: Option<Instant>,
    pub(super) pace: Option<Pace>,
    /// From this offset on, this many bytes a second.
    pub(super) slow: Option<(u64, u64)>,
    pub(super) then: ConnectionAction,
    pub(super) phase: u8,
    /// Its place in the account of fetches, if there is one.
    pub(super) fetch: Option<usize>,
    /// Since when no byte was taken.
    pub(super) waits_since: Option<Instant>,
}

impl ResponseWriter {
    /// Is the kernel to have no more?
    fn is_over(&self) -> bool {
        self.head_sent == self.head.len() && self.at == self.to
    }

    /// Sends what can be sent; ready when all was handed to the kernel.
    ///
    /// # Errors
    ///
    /// The peer has disconnected, or takes nothing.
    pub(super) fn poll(
        &mut self,
        stream: &mut TcpStream,
        worker: &Worker,
        timer: &mut Timer,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(begins) = self.begins {
            ready!(timer.poll_at(begins, cx));
            self.begins = None;
        }
        while !self.is_over() {
            let fetch_log = worker.shared.fetch_log.as_ref();
            let write_bytes_max =
                fetch_log.map_or(u64::MAX, |fetch_log| fetch_log.options.write_bytes_max);
            let allowed = ready!(self.poll_allowed(timer, cx)).min(write_bytes_max);
            let mut output = worker.output.borrow_mut();
            let made = self.compose(allowed, &mut output);
            let mut counts = worker.counts();
            match Pin::new(&mut *stream).poll_write(cx, &output[..made]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    let of_content = self.count(written, &mut counts);
                    if let (Some(fetch_log), Some(fetch)) = (fetch_log, self.fetch) {
                        fetch_log.with(|fetches| fetches.handed(fetch, of_content));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    drop(counts);
                    let since = *self.waits_since.get_or_insert_with(Instant::now);
                    ready!(timer.poll_at(since + SILENCE_MAX, cx));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Bytes of content that may be sent now: some, unless only the head is left.
    fn poll_allowed(&mut self, timer: &mut Timer, cx: &mut Context<'_>) -> Poll<u64> {
        let mut most = u64::MAX;
        if let Some((from, bytes_per_s)) = self.slow {
            if self.at < from {
                most = from - self.at;
            } else {
                self.pace = Some(Pace::new(bytes_per_s, Instant::now()));
                self.slow = None;
            }
        }
        let Some(pace) = &mut self.pace else {
            return Poll::Ready(most);
        };
        loop {
            let allowed = pace.allowed(Instant::now());
            if allowed > 0 || self.head_sent < self.head.len() {
                return Poll::Ready(allowed.min(most));
            }
            ready!(timer.poll_at(pace.next_turn(), cx));
        }
    }

    /// Writes what comes next, with at most `allowed` bytes of content; says how many bytes it is.
    fn compose(&self, allowed: u64, output: &mut [u8]) -> usize {
        let head = &self.head[self.head_sent..];
        let head = &head[..head.len().min(output.len())];
        let (start, rest) = output.split_at_mut(head.len());
        start.copy_from_slice(head);
        let content = (self.to - self.at).min(allowed);
        let length = usize::try_from(content).map_or(rest.len(), |content| content.min(rest.len()));
        self.content.fill(self.at, &mut rest[..length]);
        head.len() + length
    }

    /// The kernel has taken so many bytes of what was composed; says how many of them are content.
    fn count(&mut self, written: usize, counts: &mut OriginCounts) -> u64 {
        let of_head = written.min(self.head.len() - self.head_sent);
        let of_fields = of_head.min(self.head_bytes.saturating_sub(self.head_sent));
        self.head_sent += of_head;
        let of_content = (written - of_head) as u64;
        self.at += of_content;
        if let Some(pace) = &mut self.pace {
            pace.sent(of_content);
        }
        self.waits_since = None;
        let counts = counts.phase(self.phase);
        counts.head_bytes += of_fields as u64;
        counts.content_bytes += (written - of_fields) as u64;
        of_content
    }
}
