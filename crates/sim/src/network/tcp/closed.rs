//! A whole response in closed form, where no other packet is in its queue.
//!
//! Packets leave in rounds. In a round of `n` segments, each of which takes `t` on the link, the
//! first acknowledgement is back `t + loop` after the round began, and each releases two segments,
//! until the window is as large as it may be: the next round has `2n`. The link is idle between
//! rounds as long as `n x t < t + loop`; from the first round on for which that does not hold, the
//! link is never idle again, and the rest follows back to back.

use super::Tcp;
use crate::network::link::LinkRate;
use crate::world::Nanos;

/// A response that is alone on its link, all of which is there to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// The sender's numbers.
    pub tcp: Tcp,
    /// Segments that may be under way when it begins.
    pub window: u32,
    /// The link.
    pub rate: LinkRate,
    /// When the first packets come to the queue, nanoseconds.
    pub begins_ns: u64,
    /// From a packet's departure until those that its acknowledgement releases come to the queue,
    /// nanoseconds.
    pub loop_ns: u64,
    /// Bytes of the response, 1 at least.
    pub bytes: u64,
}

impl Alone {
    /// Packets of the response.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.tcp.segments(self.bytes)
    }

    /// Packets it takes to bring so many of its bytes.
    #[must_use]
    pub(crate) fn packets_for(&self, bytes: u64) -> u64 {
        self.tcp.segments(bytes.min(self.bytes)).max(1)
    }

    /// Packets that are sent altogether if the client disconnects with packet number `number` (from
    /// 1): neither that one nor those behind it are acknowledged, but what was released before is
    /// on its way.
    pub(crate) fn packets_until_left(&self, number: u64) -> u64 {
        let acknowledged = number - 1;
        let window = (u64::from(self.window) + acknowledged).min(u64::from(self.tcp.window_max()));
        let window = window.max(u64::from(self.window));
        (acknowledged + window).min(self.packets())
    }

    /// Bytes of the first so many packets.
    pub(crate) fn bytes_of(&self, packets: u64) -> u64 {
        (packets * u64::from(self.tcp.segment_bytes)).min(self.bytes)
    }

    /// The window when all is acknowledged.
    pub(crate) fn window_afterwards(&self) -> u32 {
        let more = u32::try_from(self.packets()).unwrap_or(u32::MAX);
        let grown = self.window.saturating_add(more);
        grown.min(self.tcp.window_max()).max(self.window)
    }

    /// When packet number `number` (from 1) is sent, nanoseconds.
    #[must_use]
    pub fn departure_ns(&self, number: u64) -> Nanos {
        let own_bytes = self.bytes_of(number) - self.bytes_of(number - 1);
        #[expect(clippy::cast_possible_truncation, reason = "at most a segment")]
        let own_bytes = own_bytes as u32;
        let packet_ns = |bytes| self.rate.packet_ns(bytes + self.tcp.header_bytes);
        let own_ns = packet_ns(own_bytes);
        if number == 1 {
            return self.begins_ns + own_ns;
        }
        // each of these is a division, and most responses are short
        let packet_ns = if own_bytes == self.tcp.segment_bytes {
            own_ns
        } else {
            packet_ns(self.tcp.segment_bytes)
        };
        let window_max = u64::from(self.tcp.window_max()).max(u64::from(self.window));
        let mut begins = self.begins_ns;
        let mut before = 0;
        let mut round = u64::from(self.window);
        loop {
            let is_saturated = round.saturating_mul(packet_ns) > packet_ns + self.loop_ns;
            if is_saturated || number <= before + round {
                return begins + (number - 1 - before) * packet_ns + own_ns;
            }
            if round == window_max {
                // all rounds to come are like this one
                let rounds = (number - 1 - before) / round;
                before += rounds * round;
                begins += rounds * (packet_ns + self.loop_ns);
            } else {
                before += round;
                begins += packet_ns + self.loop_ns;
                round = (2 * round).min(window_max);
            }
        }
    }
}

/// When the last byte of a response that is alone on its link is sent, nanoseconds.
#[must_use]
pub fn last_departure_ns(alone: &Alone) -> Nanos {
    alone.departure_ns(alone.packets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::link::{Link, LinkTraffic};
    use crate::network::tcp::sender::Terms;
    use crate::network::tcp::{SendResult, Sender};
    use proptest::prelude::*;

    /// The same, packet by packet: when the last one departs, when the client left and how many
    /// packets there were.
    fn by_packets(alone: &Alone, leaves_at: Option<u64>) -> (Nanos, Option<Nanos>, u64, u32) {
        let terms = Terms {
            tcp: alone.tcp,
            rate: alone.rate,
            loop_ns: alone.loop_ns,
            after_ns: 0,
            written: alone.bytes,
            is_all: true,
            leaves_at,
        };
        let (mut link, mut carried, mut sender) =
            (Link::default(), LinkTraffic::default(), Sender::default());
        sender.begin(alone.window);
        let mut at = alone.begins_ns;
        let mut left_at = None;
        loop {
            let SendResult {
                blocked_until,
                left_at: left,
            } = sender.send(&terms, &mut link, &mut carried, at);
            left_at = left_at.or(left);
            match blocked_until {
                Some(until) => at = until,
                None => break,
            }
        }
        let window = sender.window_afterwards(&alone.tcp);
        (link.free_at, left_at, sender.packets, window)
    }

    fn anything() -> impl Strategy<Value = Alone> {
        let tcp = (1_u32..20, 1_u32..2000, 0_u32..60, 1_u64..200_000);
        let path = (
            0_u64..20_000_000_000,
            0_u64..2_000_000_000,
            0_u64..100_000_000,
        );
        (tcp, path, 1_u64..300_000, 0_u32..50).prop_map(|(tcp, path, bytes, grown)| Alone {
            tcp: Tcp {
                initial_window: tcp.0,
                segment_bytes: tcp.1,
                header_bytes: tcp.2,
                receive_window_bytes: tcp.3 + u64::from(tcp.0 + grown) * u64::from(tcp.1),
            },
            window: tcp.0 + grown,
            rate: LinkRate::of(path.0),
            begins_ns: path.2,
            loop_ns: path.1,
            bytes,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn closed_form_end_of_transfer_equals_packet_by_packet_simulation(alone in anything()) {
            let (departs, _, packets, window) = by_packets(&alone, None);
            prop_assert_eq!(last_departure_ns(&alone), departs);
            prop_assert_eq!(alone.packets(), packets);
            prop_assert_eq!(alone.window_afterwards(), window);
        }

        #[test]
        fn closed_form_client_disconnect_equals_packet_by_packet_simulation(
            alone in anything(),
            share in 0.0_f64..1.0,
        ) {
            #[expect(clippy::cast_possible_truncation, reason = "below the bytes of a response")]
            let enough = (share * alone.bytes as f64) as u64 + 1;
            let (departs, left_at, packets, _) = by_packets(&alone, Some(enough));
            let number = alone.packets_for(enough);
            prop_assert_eq!(Some(alone.departure_ns(number)), left_at);
            let sent = alone.packets_until_left(number);
            prop_assert_eq!(sent, packets);
            prop_assert_eq!(alone.departure_ns(sent), departs);
        }
    }

    #[test]
    fn linux_initial_window_of_ten_doubles_every_round_trip() {
        // ten segments, then twenty, then the rest: at a rate that never is what is waited for
        let alone = |bytes| Alone {
            tcp: Tcp::LINUX,
            window: 10,
            rate: LinkRate::of(0),
            begins_ns: 0,
            loop_ns: 100,
            bytes,
        };
        let round = 10 * 1448;
        for (bytes, rounds) in [
            (1, 0),
            (round, 0),
            (round + 1, 1),
            (3 * round, 1),
            (3 * round + 1, 2),
        ] {
            assert_eq!(last_departure_ns(&alone(bytes)), rounds * 100, "{bytes}");
        }
    }

    #[test]
    fn modem_link_is_idle_only_in_the_first_round_trip() {
        // 1500 B at 21 kbit/s take 571 ms: longer than the loop, so only the first round leaves the
        // link idle
        let alone = Alone {
            tcp: Tcp::OF_1997,
            window: 1,
            rate: LinkRate::of(21_000),
            begins_ns: 0,
            loop_ns: 250_000_000,
            bytes: 10 * 1460,
        };
        let packet_ns = 571_428_572;
        assert_eq!(last_departure_ns(&alone), 10 * packet_ns + 250_000_000);
    }
}
