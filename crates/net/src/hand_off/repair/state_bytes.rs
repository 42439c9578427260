//! The state of a connection in a message: numbers in network order, with its edition in front.

use super::state::{
    AgreedOptions, ConnectionState, SEGMENT_BYTES, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX,
    Windows,
};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first byte of a message. Another edition is refused: the nodes of a cluster are of one.
const EDITION: u8 = 1;

// the second byte: which of the following is there
const IS_IPV6: u8 = 1;
const HAS_SELECTIVE_ACKNOWLEDGEMENTS: u8 = 2;
const HAS_TIMESTAMP: u8 = 4;

/// RFC 7323 §2.3.
const WINDOW_SCALE_MAX: u8 = 14;

/// Why a message is not the state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateError {
    /// It is of another edition, or does not say of which.
    Edition,
    /// It ends too early, or goes on behind its end.
    Length,
    /// A queue has more bytes than may travel.
    TooLarge,
    /// A part has a value that no connection has: its name.
    Value(&'static str),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edition => write!(f, "the message is not of edition {EDITION}"),
            Self::Length => f.write_str("the message has another length than its parts"),
            Self::TooLarge => write!(
                f,
                "more than {UNREAD_BYTES_MAX} bytes are unread, or more than \
                 {UNACKNOWLEDGED_BYTES_MAX} unacknowledged"
            ),
            Self::Value(part) => write!(f, "no connection has such {part}"),
        }
    }
}

impl std::error::Error for StateError {}

impl ConnectionState {
    /// Appends it to a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let agreed = &self.agreed;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.client.is_ipv6(), IS_IPV6)
            | flag(
                agreed.selective_acknowledgements,
                HAS_SELECTIVE_ACKNOWLEDGEMENTS,
            )
            | flag(agreed.timestamp.is_some(), HAS_TIMESTAMP);
        out.extend([EDITION, flags]);
        for end in [self.client, self.service] {
            match end.ip() {
                IpAddr::V4(ip) => out.extend(ip.octets()),
                IpAddr::V6(ip) => out.extend(ip.octets()),
            }
            out.extend(end.port().to_be_bytes());
        }
        out.extend(agreed.segment_max.to_be_bytes());
        out.extend(agreed.window_scales);
        let windows = &self.windows;
        let numbers = [
            agreed.timestamp.unwrap_or(0),
            self.received_to,
            self.written_to,
            windows.send_changed_at,
            windows.send,
            windows.send_max,
            windows.receive,
            windows.receive_from,
        ];
        out.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        let queues = [&self.unread, &self.unacknowledged, &self.unsent];
        for queue in queues {
            let length = u32::try_from(queue.len()).unwrap_or(u32::MAX);
            out.extend(length.to_be_bytes());
        }
        queues.into_iter().for_each(|queue| out.extend(queue));
    }

    /// Reads the whole of a message. Nothing is allocated for lengths that are not there.
    ///
    /// # Errors
    /// It is not one of this edition, of bounded length and with values that a connection can have.
    pub fn decode(message: &[u8]) -> Result<Self, StateError> {
        let mut rest = Reader(message);
        let Ok([EDITION, flags]) = rest.array() else {
            return Err(StateError::Edition);
        };
        if flags & !(IS_IPV6 | HAS_SELECTIVE_ACKNOWLEDGEMENTS | HAS_TIMESTAMP) != 0 {
            return Err(StateError::Value("flags"));
        }
        let is_ipv6 = flags & IS_IPV6 != 0;
        let (client, service) = (rest.address(is_ipv6)?, rest.address(is_ipv6)?);
        let segment_max = u16::from_be_bytes(rest.array()?);
        let window_scales = rest.array()?;
        let [
            timestamp,
            received_to,
            written_to,
            send_changed_at,
            send,
            send_max,
            receive,
            receive_from,
        ] = rest.numbers()?;
        let lengths = rest.numbers()?.map(|length| length as usize);
        let [unread, unacknowledged, unsent] = lengths;
        let written = unacknowledged.saturating_add(unsent);
        if unread > UNREAD_BYTES_MAX || written > UNACKNOWLEDGED_BYTES_MAX {
            return Err(StateError::TooLarge);
        }
        let mut queue = |length| rest.bytes(length).map(<[u8]>::to_vec);
        let state = Self {
            client,
            service,
            received_to,
            written_to,
            agreed: AgreedOptions {
                segment_max,
                window_scales,
                selective_acknowledgements: flags & HAS_SELECTIVE_ACKNOWLEDGEMENTS != 0,
                timestamp: (flags & HAS_TIMESTAMP != 0).then_some(timestamp),
            },
            windows: Windows {
                send_changed_at,
                send,
                send_max,
                receive,
                receive_from,
            },
            unread: queue(unread)?,
            unacknowledged: queue(unacknowledged)?,
            unsent: queue(unsent)?,
        };
        if !rest.0.is_empty() {
            return Err(StateError::Length);
        }
        if timestamp != 0 && state.agreed.timestamp.is_none() {
            return Err(StateError::Value("timestamp"));
        }
        state.check().map_err(StateError::Value).map(|()| state)
    }

    /// Whether a connection can have these values.
    ///
    /// # Errors
    /// The name of the one that it cannot have.
    fn check(&self) -> Result<(), &'static str> {
        let agreed = &self.agreed;
        let has_scales = agreed
            .window_scales
            .iter()
            .all(|scale| *scale <= WINDOW_SCALE_MAX);
        let ends = [self.client, self.service];
        let rules = [
            (ends.iter().all(|end| end.port() != 0), "port"),
            (ends.iter().all(|end| is_of_one(end.ip())), "address"),
            (self.client != self.service, "two ends"),
            (SEGMENT_BYTES.contains(&agreed.segment_max), "segment size"),
            (has_scales, "window scale"),
            (self.windows.send <= self.windows.send_max, "window"),
        ];
        let broken = rules.iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, part)| Err(part))
    }
}

/// Whether one machine can have it.
fn is_of_one(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(ip.is_unspecified() || ip.is_multicast() || is_broadcast)
}

/// What of a message is not read yet.
struct Reader<'m>(&'m [u8]);

impl<'m> Reader<'m> {
    fn bytes(&mut self, count: usize) -> Result<&'m [u8], StateError> {
        let (first, rest) = self.0.split_at_checked(count).ok_or(StateError::Length)?;
        self.0 = rest;
        Ok(first)
    }

    fn array<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], StateError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(StateError::Length)?;
        self.0 = rest;
        Ok(*first)
    }

    fn numbers<const COUNT: usize>(&mut self) -> Result<[u32; COUNT], StateError> {
        let mut numbers = [0; COUNT];
        for number in &mut numbers {
            *number = u32::from_be_bytes(self.array()?);
        }
        Ok(numbers)
    }

    fn address(&mut self, is_ipv6: bool) -> Result<SocketAddr, StateError> {
        let ip = match is_ipv6 {
            true => IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)),
            false => IpAddr::V4(Ipv4Addr::from(self.array::<4>()?)),
        };
        Ok(SocketAddr::new(ip, u16::from_be_bytes(self.array()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(client: &str, service: &str) -> ConnectionState {
        ConnectionState {
            client: client.parse().unwrap(),
            service: service.parse().unwrap(),
            received_to: 0xffff_fff0,
            written_to: 17,
            agreed: AgreedOptions {
                segment_max: 1460,
                window_scales: [7, 14],
                selective_acknowledgements: true,
                timestamp: Some(0x0102_0304),
            },
            windows: Windows {
                send_changed_at: 1,
                send: 2,
                send_max: 3,
                receive: 4,
                receive_from: 5,
            },
            unread: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            unacknowledged: vec![7; 3000],
            unsent: vec![8; 5],
        }
    }

    fn ipv4() -> ConnectionState {
        state("192.0.2.1:40000", "198.51.100.1:80")
    }

    fn bytes(state: &ConnectionState) -> Vec<u8> {
        let mut message = Vec::new();
        state.encode(&mut message);
        message
    }

    #[test]
    fn decoded_state_is_the_encoded_one() {
        let mut bare = ipv4();
        bare.agreed.timestamp = None;
        bare.agreed.selective_acknowledgements = false;
        for queue in [&mut bare.unread, &mut bare.unacknowledged, &mut bare.unsent] {
            queue.clear();
        }
        let ipv6 = state("[2001:db8::1]:40000", "[2001:db8::2]:80");
        for state in [ipv4(), ipv6, bare] {
            assert_eq!(ConnectionState::decode(&bytes(&state)), Ok(state));
        }
    }

    #[test]
    fn message_that_is_cut_or_goes_on_is_refused() {
        let mut message = bytes(&ipv4());
        for length in 0..message.len() {
            let error = ConnectionState::decode(&message[..length]).unwrap_err();
            let expected = if length < 2 {
                StateError::Edition
            } else {
                StateError::Length
            };
            assert_eq!(error, expected, "{length} bytes");
        }
        message.push(0);
        let error = ConnectionState::decode(&message).unwrap_err();
        assert_eq!(error, StateError::Length);
    }

    #[test]
    fn message_of_another_edition_is_refused() {
        let mut message = bytes(&ipv4());
        message[0] += 1;
        let error = ConnectionState::decode(&message).unwrap_err();
        assert_eq!(error, StateError::Edition);
    }

    #[test]
    fn queues_are_bounded_before_they_are_allocated() {
        let check = |unread: usize, sent: usize, unsent: usize, expected| {
            let mut state = ipv4();
            state.unread = vec![1; unread];
            state.unacknowledged = vec![2; sent];
            state.unsent = vec![3; unsent];
            let result = ConnectionState::decode(&bytes(&state)).map(drop);
            assert_eq!(result, expected, "{unread} {sent} {unsent}");
        };
        let (unread, written) = (UNREAD_BYTES_MAX, UNACKNOWLEDGED_BYTES_MAX);
        check(unread, written - 5, 5, Ok(()));
        check(unread + 1, 0, 0, Err(StateError::TooLarge));
        check(0, written, 1, Err(StateError::TooLarge));
        // lengths that no message has
        let mut message = bytes(&ipv4());
        let lengths = message.len() - 3000 - 5 - 18 - 12;
        message[lengths..lengths + 12].fill(0xff);
        let error = ConnectionState::decode(&message).unwrap_err();
        assert_eq!(error, StateError::TooLarge);
    }

    #[test]
    fn values_that_no_connection_has_are_refused() {
        let check = |change: fn(&mut ConnectionState), part: &'static str| {
            let mut state = ipv4();
            change(&mut state);
            let result = ConnectionState::decode(&bytes(&state));
            assert_eq!(result, Err(StateError::Value(part)));
        };
        check(|it| it.client.set_port(0), "port");
        check(|it| it.service.set_port(0), "port");
        check(|it| it.client.set_ip([0, 0, 0, 0].into()), "address");
        check(|it| it.client.set_ip([224, 0, 0, 1].into()), "address");
        check(|it| it.client.set_ip([255; 4].into()), "address");
        check(|it| it.client = it.service, "two ends");
        check(|it| it.agreed.segment_max = 87, "segment size");
        check(|it| it.agreed.segment_max = 32_768, "segment size");
        check(|it| it.agreed.window_scales[1] = 15, "window scale");
        check(|it| it.windows.send = 4, "window");
        let mut message = bytes(&ipv4());
        message[1] &= !HAS_TIMESTAMP;
        let error = ConnectionState::decode(&message).unwrap_err();
        assert_eq!(error, StateError::Value("timestamp"));
        message[1] |= 8;
        let error = ConnectionState::decode(&message).unwrap_err();
        assert_eq!(error, StateError::Value("flags"));
    }
}
