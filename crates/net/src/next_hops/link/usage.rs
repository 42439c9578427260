//! What one connection uses of a link.

use super::meter::{LinkMeter, SpentLink};
use crate::next_hops::socket::ReadEnd;
use std::future::Future as _;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use weir_policy::budget::{BackgroundRoom, Class, GRANT_BYTES_MAX, Permit, Transfer};
use weir_policy::{Digest, Tick};

/// The largest window of a connection on a link with a quota, bytes: what the kernel has taken and
/// nothing has read is of the quota, too, and is booked in advance. Towards the end of the quota it
/// is smaller, down to [`FIRST_WINDOW_BYTES`].
pub(crate) const WINDOW_BYTES_MAX: u32 = 1 << 20;

/// The window of a new one that the kernel would choose, bytes.
pub(crate) const FIRST_WINDOW_BYTES: u32 = 64 << 10;

/// The link of a connection, while it carries one exchange.
#[derive(Debug)]
pub(crate) struct ConnectionLink {
    reads: LinkUse,
    writes: LinkUse,
    window: Window,
}

impl ConnectionLink {
    /// The use of `meter` by a connection with this socket.
    pub(crate) fn new(meter: &Arc<LinkMeter>, socket: &impl AsFd) -> Self {
        let (counts_sent, has_quota) = meter.counts();
        let window = Window::new(has_quota.then_some(meter), socket);
        Self {
            reads: LinkUse::new(meter, true),
            writes: LinkUse::new(meter, counts_sent),
            window,
        }
    }

    /// What the link is called.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.reads.meter.name()
    }

    /// Its two directions, which are used at once.
    pub(crate) fn split(&mut self) -> (Option<LinkReads<'_>>, Option<&mut LinkUse>) {
        let reads = LinkReads {
            usage: &mut self.reads,
            window: &mut self.window,
        };
        (Some(reads), Some(&mut self.writes))
    }

    /// The connection is closed: counts what the kernel has taken of it.
    pub(crate) fn count_unread(&mut self, socket: &TcpStream) {
        if let Ok(unread) = rustix::io::ioctl_fionread(socket) {
            self.reads.add(unread, 0);
        }
    }

    /// Counts bytes that were received and sent on the wire beside those of an exchange: they wait
    /// for nothing.
    pub(crate) fn count_moved(&mut self, (received, sent): (usize, usize)) {
        if received > 0 {
            self.reads.add(received as u64, 0);
        }
        if sent > 0 {
            self.writes.sent(sent);
        }
    }

    /// No client waits for what it brings, or one does.
    pub(crate) fn set_background(&mut self, is_background: bool) {
        self.reads.set_background(is_background);
        self.writes.set_background(is_background);
    }

    /// Whether it has nothing for transfers that no client waits for.
    pub(crate) fn is_scarce(&self) -> bool {
        self.reads.meter.background() == BackgroundRoom::Scarce
    }

    /// What it brings is a range: of this target, for this client.
    pub(crate) fn set_range_of(&mut self, of: Digest) {
        self.reads.transfer.range_of = Some(of);
        self.writes.transfer.range_of = Some(of);
    }
}

/// Counts what setting up a connection has moved after it was accepted: received and sent.
pub(in crate::next_hops) fn count_set_up(meter: &Arc<LinkMeter>, (received, sent): (usize, usize)) {
    let (counts_sent, _) = meter.counts();
    LinkUse::new(meter, true).add(received as u64, 0);
    LinkUse::new(meter, counts_sent).sent(sent);
}

/// The direction from the next hop.
pub(crate) struct LinkReads<'a> {
    pub(crate) usage: &'a mut LinkUse,
    window: &'a mut Window,
}

impl LinkReads<'_> {
    /// The window to give the connection: bounded where there is a quota.
    pub(crate) fn offer(&mut self, window: Option<u32>) -> Option<u32> {
        let Some(meter) = &self.window.meter else {
            return window;
        };
        let widest = meter.widest_window().map_or(WINDOW_BYTES_MAX, |bytes| {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            bytes.clamp(FIRST_WINDOW_BYTES, WINDOW_BYTES_MAX)
        });
        let window = window.unwrap_or(WINDOW_BYTES_MAX).min(widest);
        self.window.grow(u64::from(window));
        Some(window)
    }

    /// Reads once, as much as the link permits.
    ///
    /// # Errors
    ///
    /// The connection is broken, or the quota is spent.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        end: &ReadEnd<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if end.is_readable() {
            return Poll::Ready(end.try_read(buffer));
        }
        loop {
            // nothing is granted to a next hop that sends nothing
            ready!(end.tcp().poll_read_ready(cx))?;
            let permitted = ready!(self.usage.poll_permit(cx, buffer.len()))?;
            let read = end.try_read(&mut buffer[..permitted]);
            // records of TLS may bring no content, and are of the link all the same
            match end.take_received(&read) {
                0 => self.usage.give_back(),
                bytes => self.usage.received(bytes),
            }
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }
}

/// What the kernel may take of a connection before it is read.
#[derive(Debug)]
struct Window {
    /// None without a quota.
    meter: Option<Arc<LinkMeter>>,
    receive_window_bytes: u64,
}

impl Window {
    fn new(meter: Option<&Arc<LinkMeter>>, socket: &impl AsFd) -> Self {
        let memory = socket2::SockRef::from(socket).recv_buffer_size();
        let receive_window_bytes = memory.unwrap_or(0) as u64;
        if let Some(meter) = meter {
            meter.opened(receive_window_bytes);
        }
        Self {
            meter: meter.cloned(),
            receive_window_bytes,
        }
    }

    fn grow(&mut self, bytes: u64) {
        if let Some(meter) = &self.meter
            && bytes > self.receive_window_bytes
        {
            meter.widened(bytes - self.receive_window_bytes);
            self.receive_window_bytes = bytes;
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            meter.closed(self.receive_window_bytes);
        }
    }
}

/// One direction of a connection over a link.
pub(crate) struct LinkUse {
    meter: Arc<LinkMeter>,
    transfer: Transfer,
    /// Bytes are counted, and wait for the link.
    is_counted: bool,
    /// A grant that is not used yet.
    grant: Option<(Class, u64)>,
    wait: Option<(Pin<Box<Sleep>>, Tick)>,
}

impl std::fmt::Debug for LinkUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkUse")
            .field("meter", &self.meter)
            .finish_non_exhaustive()
    }
}

impl LinkUse {
    fn new(meter: &Arc<LinkMeter>, is_counted: bool) -> Self {
        Self {
            meter: Arc::clone(meter),
            transfer: Transfer::default(),
            is_counted,
            grant: None,
            wait: None,
        }
    }

    /// Whether it waits for the link.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.wait.is_some()
    }

    /// No client waits for it, or one does. The wait for bytes begins anew: it was for the class
    /// that it had.
    fn set_background(&mut self, is_background: bool) {
        if self.transfer.is_background != is_background {
            self.transfer.is_background = is_background;
            self.end_wait();
        }
    }

    fn end_wait(&mut self) {
        if let Some((_, since)) = self.wait.take() {
            self.meter.waited(since);
        }
    }

    /// The link, if it has spent its quota.
    pub(crate) fn spent(&self) -> Option<SpentLink> {
        self.meter.spent()
    }

    /// Ready with how many bytes may be moved now, at most `wanted`: they are granted until
    /// [`Self::moved`] or [`Self::give_back`].
    ///
    /// # Errors
    ///
    /// The quota is spent.
    pub(crate) fn poll_permit(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.is_counted {
            return Poll::Ready(Ok(wanted));
        }
        loop {
            if let Some((wait, _)) = &mut self.wait {
                ready!(wait.as_mut().poll(cx));
                self.end_wait();
            }
            if let Some((_, granted)) = self.grant {
                return Poll::Ready(Ok(most(granted, wanted)));
            }
            let wanted_bytes = (wanted as u64).min(GRANT_BYTES_MAX);
            let (class, permit) = self.meter.permit(&self.transfer, wanted_bytes);
            match permit {
                Permit::UpTo(granted) => {
                    self.grant = Some((class, granted));
                    return Poll::Ready(Ok(most(granted, wanted)));
                }
                Permit::At(at) => {
                    let now = self.meter.now().tick;
                    let wait = Duration::from_millis(at.ms_since(now).max(1));
                    self.wait = Some((Box::pin(sleep(wait)), now));
                }
                Permit::Spent(_) => return Poll::Ready(Err(spent())),
            }
        }
    }

    /// So many bytes were read.
    pub(crate) fn received(&mut self, bytes: usize) {
        let granted = self.take_grant(bytes);
        self.add(bytes as u64, granted);
    }

    fn add(&mut self, bytes: u64, granted: u64) {
        self.meter.received(&mut self.transfer, bytes, granted);
    }

    /// So many bytes were written.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if !self.is_counted {
            return self.meter.sent_uncounted(bytes as u64);
        }
        let granted = self.take_grant(bytes);
        self.meter.sent(&mut self.transfer, bytes as u64, granted);
    }

    /// What of the grant is used by `bytes`; the rest is given back.
    fn take_grant(&mut self, bytes: usize) -> u64 {
        let Some((class, granted)) = self.grant.take() else {
            return 0;
        };
        let used = granted.min(bytes as u64);
        if granted > used {
            self.meter.give_back(class, granted - used);
        }
        used
    }

    /// Nothing can be moved now: gives back what is granted.
    pub(crate) fn give_back(&mut self) {
        self.take_grant(0);
    }
}

impl Drop for LinkUse {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn most(granted: u64, wanted: usize) -> usize {
    usize::try_from(granted).unwrap_or(usize::MAX).min(wanted)
}

fn spent() -> io::Error {
    io::Error::new(
        io::ErrorKind::QuotaExceeded,
        "the quota of the link is spent",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, ManualClock};
    use std::net::TcpListener;
    use weir_policy::budget::{
        CountedBytes, Every, Link, LinkRules, PeriodRules, Quota, WhenSpent, Zone,
    };
    use weir_semantics::{DeltaSeconds, Timestamp};

    const MIB: u64 = 1 << 20;

    /// A link of which fetches end once so many bytes are spent.
    fn link_with_quota(bytes: u64) -> Arc<LinkMeter> {
        let rules = LinkRules {
            rate: None,
            reserve_percent: 0,
            bulk_above: 0,
            quota: Some(Quota {
                bytes,
                period: PeriodRules {
                    every: Every::Day,
                    starts: 1,
                },
                then: WhenSpent::Refuse,
                slow_rate: 1,
                stale_for: DeltaSeconds(0),
            }),
            count: CountedBytes::Both,
            overhead_percent: 0,
            windows: Box::default(),
            zone: Zone::utc(),
        };
        let clock = Clock::Manual(Arc::new(ManualClock::new(Timestamp(0))));
        let link = Link::new(rules, None, clock.now());
        Arc::new(LinkMeter::new("a", link, clock, Arc::default()))
    }

    /// What is offered to a connection that wants so much.
    fn offer(connection: &mut ConnectionLink, wanted: Option<u32>) -> u64 {
        let (reads, _) = connection.split();
        let offered = reads.and_then(|mut reads| reads.offer(wanted));
        offered.expect("a quota bounds it").into()
    }

    #[test]
    fn windows_shrink_with_what_is_left_of_a_quota_within_their_bounds() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let meter = link_with_quota(32 * MIB);
        let mut one = ConnectionLink::new(&meter, &socket);
        assert_eq!(
            offer(&mut one, None),
            MIB,
            "the kernel is not left to choose"
        );
        assert_eq!(offer(&mut one, Some(100_000)), 100_000, "it wants no more");
        one.count_moved((28 << 20, 0));
        assert_eq!(offer(&mut one, None), MIB / 2, "an eighth of 4 MiB");
        let two = ConnectionLink::new(&meter, &socket);
        assert_eq!(offer(&mut one, None), MIB / 4, "of each of two");
        drop(two);
        assert_eq!(offer(&mut one, None), MIB / 2, "one is closed");
        one.count_moved((4 << 20, 0));
        assert_eq!(offer(&mut one, None), MIB / 16, "it is spent");
    }
}
