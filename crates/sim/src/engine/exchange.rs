//! One request on its way, from its client's connection to the last byte.

use super::collapse::Variant;
use crate::cache::{ContentId, StoredResponse, Which};
use crate::facts::Ask;
use crate::network::connections::ConnectionUse;
use crate::network::link::{Link, LinkTraffic};
use crate::network::tcp::{Alone, Sender};
use crate::world::Nanos;
use weir_policy::collapse::{FollowerId, GroupId, Passes};
use weir_policy::fetch::{ByteSpan, ReaderId};
use weir_policy::{Forwarding, Now, Transaction};

/// What is next for an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its request comes to the proxy.
    #[default]
    Choose,
    /// What is planned is sent.
    Serve,
    /// It is forwarded: for others too, by another's fetch, or alone.
    Forward,
    /// It is forwarded.
    Ask,
    /// For the response to another request, or for its own.
    Waiting,
    /// Something is being sent to its client.
    Sending,
    /// It is done; events that were made before may still come.
    Over,
}

/// A request, and its client's side.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The number of its row, from 0.
    pub(super) number: u64,
    pub(super) ask: Option<Ask>,
    pub(super) tx: Option<Transaction>,
    pub(super) stage: Stage,
    /// Events that were made and have not come.
    pub(super) pending: u32,
    /// There is no client: what comes is for the store.
    pub(super) is_background: bool,
    pub(super) began: Nanos,
    /// When its connection was there.
    pub(super) ready: Nanos,
    pub(super) connection: Option<ConnectionUse>,
    /// The client's link.
    pub(super) link: u32,
    pub(super) server_delay: ServerDelay,
    pub(super) loop_ns: Nanos,
    pub(super) after_ns: Nanos,

    /// The stored response that was chosen.
    pub(super) found: Option<Which>,
    /// Its content, if that is in use as long as this reads it.
    pub(super) uses: Option<ContentId>,
    /// A copy of it while it is validated or completed: it may leave meanwhile.
    pub(super) kept: Option<Box<StoredResponse>>,
    /// The form in which it is forwarded.
    pub(super) forwarding: Forwarding,
    /// The group it leads.
    pub(super) leads: Option<GroupId>,
    /// The group it follows in.
    pub(super) follows: Option<FollowerId>,
    /// Until when it waits for others, in all groups together.
    pub(super) waits_until: Option<Nanos>,
    /// Groups that had no response for it.
    pub(super) passes: Passes<Variant>,
    /// How often its target had been invalidated when it was forwarded.
    pub(super) epoch: u32,
    /// How often its target had been invalidated, and a stored response of it dropped, when the
    /// copy was taken.
    pub(super) chosen: (u32, u32),
    /// The request is sent again, as a kept connection failed.
    pub(super) is_retry: bool,

    pub(super) sender: Sender,
    pub(super) alone: Option<Alone>,
    /// How the rest of what is being sent will go, if no other response begins on its link.
    pub(super) ahead: Option<SendForecast>,
    /// Head and content of the response, as far as its length is known: bytes.
    pub(super) head_bytes: u64,
    /// Bytes there to be sent, with the head.
    pub(super) written: u64,
    /// No more is written.
    pub(super) is_all: bool,
    /// Its client disconnects with this byte of the response.
    pub(super) leaves_at: Option<u64>,
    /// Content that comes out of the store.
    pub(super) from_store: bool,
    pub(super) reading: Option<Reading>,
    /// It reads, but its head waits until all content is known to be of one representation.
    pub(super) confirming: Option<Confirming>,
    /// Content it was given that did not have to come from a server for it, bytes.
    pub(super) again_bytes: u64,
    /// The rest of its response cannot be fetched.
    pub(super) is_cut: bool,
    /// Its client has disconnected before the end.
    pub(super) has_left: bool,
    /// When the client has the last byte, or has disconnected: events at another time are ignored.
    pub(super) ends_at: Nanos,
    /// Its place was given away.
    pub(super) is_released: bool,
    /// An acknowledgement is waited for.
    pub(super) is_blocked_until: Nanos,
}

/// How long the server of a request takes to respond.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServerDelay {
    /// Set-up of a new connection to it.
    pub(super) setup: Nanos,
    /// Round trip: the shorter of set-up and response time.
    pub(super) rtt: Nanos,
    /// The rest of the response time.
    pub(super) think: Nanos,
}

impl ServerDelay {
    /// Until a request on this connection is sent.
    pub(super) const fn setup_of(self, connection: ConnectionUse) -> Nanos {
        if connection.is_new { self.setup } else { 0 }
    }

    /// Until the first packet of the response is at the queue.
    pub(super) const fn first_packet_of(self, connection: ConnectionUse) -> Nanos {
        self.setup_of(connection) + self.rtt + self.think
    }
}

/// The rest of a response, worked out.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendForecast {
    /// When it continues.
    pub(super) until: Nanos,
    /// Bytes and packets when all is sent, when the last of them reaches the client, and the window
    /// then.
    pub(super) sent: u64,
    pub(super) packets: u64,
    pub(super) last_at: Nanos,
    pub(super) window: u32,
    /// The link then.
    pub(super) link: Link,
    /// What will have gone over it from now on.
    pub(super) carried: LinkTraffic,
}

/// Where its content comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) in_flight: u32,
    pub(super) reader: ReaderId,
}

/// What is gone back to if a response on its way turns out not to be one for the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confirming {
    pub(super) before: Transaction,
    /// The group in which it was found.
    pub(super) group: GroupId,
}

/// As the client sent it.
pub(super) const AS_SENT: Forwarding = Forwarding {
    validate: false,
    complete: false,
};

impl Default for Exchange {
    fn default() -> Self {
        Self {
            number: 0,
            ask: None,
            tx: None,
            stage: Stage::Choose,
            pending: 0,
            is_background: false,
            began: 0,
            ready: 0,
            connection: None,
            link: 0,
            server_delay: ServerDelay::default(),
            loop_ns: 0,
            after_ns: 0,
            found: None,
            uses: None,
            kept: None,
            forwarding: AS_SENT,
            leads: None,
            follows: None,
            waits_until: None,
            passes: Passes::default(),
            epoch: 0,
            chosen: (0, 0),
            is_retry: false,
            sender: Sender::default(),
            alone: None,
            ahead: None,
            head_bytes: 0,
            written: 0,
            is_all: false,
            leaves_at: None,
            from_store: false,
            reading: None,
            confirming: None,
            again_bytes: 0,
            is_cut: false,
            has_left: false,
            ends_at: Nanos::MAX,
            is_released: false,
            is_blocked_until: Nanos::MAX,
        }
    }
}

impl Exchange {
    /// A request at `at`; what the place was used for before is forgotten, but not its memory.
    pub(super) fn begin(&mut self, ask: &Ask, now: Now, at: Nanos) {
        let sender = std::mem::take(&mut self.sender);
        *self = Self {
            tx: Some(Transaction::new(ask.request, now)),
            ask: Some(*ask),
            began: at,
            sender,
            ..Self::default()
        };
    }

    /// Its request. There is one from its beginning on.
    #[expect(
        clippy::expect_used,
        reason = "set by `begin`, before anything else can be asked"
    )]
    pub(super) fn ask(&self) -> &Ask {
        self.ask
            .as_ref()
            .expect("an exchange begins with a request")
    }

    /// The response has this head and so much content, unless its client disconnects before.
    pub(super) fn expect(&mut self, head_bytes: u32, content_bytes: u64) {
        self.head_bytes = u64::from(head_bytes);
        let enough = self
            .ask()
            .leaves_at
            .filter(|enough| *enough < content_bytes);
        self.leaves_at = enough.map(|enough| self.head_bytes + enough);
    }

    /// The bytes of its span in a representation of this length; open where the length is not
    /// known.
    pub(super) fn wants(&self, complete_length: Option<u64>) -> ByteSpan {
        let length = complete_length.unwrap_or(ByteSpan::OPEN);
        let (from, to) = match self.ask().range {
            Some((first, last)) => (first, last.map_or(length, |last| (last + 1).min(length))),
            None => (0, length),
        };
        ByteSpan {
            from,
            to: to.max(from),
        }
    }

    /// Whether its end is known, if no other response begins on its link.
    pub(super) const fn is_worked_out(&self) -> bool {
        self.alone.is_some() || self.ahead.is_some()
    }

    /// When its client disconnected, as far as that is known: half a round trip before it is
    /// noticed.
    pub(super) const fn left_at(&self) -> Nanos {
        self.ends_at - (self.loop_ns - self.after_ns)
    }

    /// Its transaction. There is one from its beginning on.
    #[expect(
        clippy::expect_used,
        reason = "set by `begin`, before anything else can be asked"
    )]
    pub(super) fn tx(&mut self) -> &mut Transaction {
        self.tx
            .as_mut()
            .expect("an exchange begins with a transaction")
    }
}
