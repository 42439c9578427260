//! Conversations as a monitor would have captured them: TCP segments with true sequence numbers,
//! acknowledgements and times.

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;

/// One segment, before it is written as a packet.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) time_us: i64,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: Option<u32>,
    pub(crate) is_syn: bool,
    pub(crate) is_fin: bool,
    pub(crate) is_rst: bool,
    pub(crate) data: Vec<u8>,
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A connection under way. Each segment takes a millisecond.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) segments: Vec<Segment>,
    pub(crate) now_us: i64,
    client: SocketAddr,
    server: SocketAddr,
    client_next: u32,
    server_next: u32,
}

/// When all conversations begin: 2001-09-09 01:46:40 UTC.
pub(crate) const START_US: i64 = 1_000_000_000_000_000;
/// Between segments.
pub(crate) const STEP_US: i64 = 1000;

pub(crate) const CLIENT: &str = "192.0.2.7:50000";
pub(crate) const SERVER: &str = "198.51.100.1:80";

impl Conversation {
    /// With its handshake.
    pub(crate) fn open() -> Self {
        Self::between(CLIENT, SERVER, 1000, 2_000_000)
    }

    /// With its handshake, and these first sequence numbers.
    pub(crate) fn between(
        client: &str,
        server: &str,
        client_first: u32,
        server_first: u32,
    ) -> Self {
        let mut conversation = Self::joined(client, server, client_first, server_first);
        conversation.push(Side::Client, b"", |segment| {
            segment.is_syn = true;
            segment.acknowledgement = None;
        });
        conversation.client_next = conversation.client_next.wrapping_add(1);
        conversation.push(Side::Server, b"", |segment| segment.is_syn = true);
        conversation.server_next = conversation.server_next.wrapping_add(1);
        conversation.push(Side::Client, b"", |_| {});
        conversation
    }

    /// Without a handshake.
    pub(crate) fn joined(client: &str, server: &str, client_first: u32, server_first: u32) -> Self {
        Self {
            segments: Vec::new(),
            now_us: START_US,
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
            client_next: client_first,
            server_next: server_first,
        }
    }

    /// One segment with data; the other side acknowledges it at once.
    pub(crate) fn say(&mut self, side: Side, data: &[u8]) -> &mut Self {
        self.push(side, data, |_| {});
        self.push(side.other(), b"", |_| {})
    }

    /// One segment with data.
    pub(crate) fn send(&mut self, side: Side, data: &[u8]) -> &mut Self {
        self.push(side, data, |_| {})
    }

    /// The client says.
    pub(crate) fn ask(&mut self, data: &str) -> &mut Self {
        self.say(Side::Client, data.as_bytes())
    }

    /// The server says.
    pub(crate) fn answer(&mut self, data: &str) -> &mut Self {
        self.say(Side::Server, data.as_bytes())
    }

    /// One side is done.
    pub(crate) fn fin(&mut self, side: Side) -> &mut Self {
        self.push(side, b"", |segment| segment.is_fin = true);
        match side {
            Side::Client => self.client_next = self.client_next.wrapping_add(1),
            Side::Server => self.server_next = self.server_next.wrapping_add(1),
        }
        self.push(side.other(), b"", |_| {})
    }

    /// One side gives up.
    pub(crate) fn rst(&mut self, side: Side) -> &mut Self {
        self.push(side, b"", |segment| segment.is_rst = true)
    }

    /// Both are done, the server first.
    pub(crate) fn close(&mut self) -> &mut Self {
        self.fin(Side::Server).fin(Side::Client)
    }

    /// Bytes were sent that the monitor did not see.
    pub(crate) fn lose(&mut self, side: Side, count: u32) -> &mut Self {
        match side {
            Side::Client => self.client_next = self.client_next.wrapping_add(count),
            Side::Server => self.server_next = self.server_next.wrapping_add(count),
        }
        self
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, time_us: i64) -> &mut Self {
        self.now_us += time_us;
        self
    }

    /// All of it was so much later.
    pub(crate) fn later(&mut self, time_us: i64) -> &mut Self {
        for segment in &mut self.segments {
            segment.time_us += time_us;
        }
        self.wait(time_us)
    }

    /// Any segment.
    pub(crate) fn push(
        &mut self,
        side: Side,
        data: &[u8],
        change: impl Fn(&mut Segment),
    ) -> &mut Self {
        let (from, to, sequence, acknowledgement) = match side {
            Side::Client => (self.client, self.server, self.client_next, self.server_next),
            Side::Server => (self.server, self.client, self.server_next, self.client_next),
        };
        let mut segment = Segment {
            time_us: self.now_us,
            from,
            to,
            sequence,
            acknowledgement: Some(acknowledgement),
            is_syn: false,
            is_fin: false,
            is_rst: false,
            data: data.to_vec(),
        };
        change(&mut segment);
        self.segments.push(segment);
        self.now_us += STEP_US;
        self.lose(side, u32::try_from(data.len()).unwrap())
    }
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl Segment {
    /// As an IP packet.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let ip = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                PacketBuilder::ipv4(from.octets(), to.octets(), 64)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                PacketBuilder::ipv6(from.octets(), to.octets(), 64)
            }
            _ => panic!("two kinds of addresses in one segment"),
        };
        let mut tcp = ip.tcp(self.from.port(), self.to.port(), self.sequence, 65_535);
        if let Some(acknowledgement) = self.acknowledgement {
            tcp = tcp.ack(acknowledgement);
        }
        if self.is_syn {
            tcp = tcp.syn();
        }
        if self.is_fin {
            tcp = tcp.fin();
        }
        if self.is_rst {
            tcp = tcp.rst();
        }
        let mut packet = Vec::new();
        tcp.write(&mut packet, &self.data).unwrap();
        packet
    }
}
