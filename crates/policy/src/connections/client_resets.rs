//! How many streams of HTTP/2 a client may have reset on all of its connections.
//!
//! [`super::FrameBudget`] ends a connection with too many resets. A client that opens the next one
//! then begins with a full budget: Rapid Reset (CVE-2023-44487) and MadeYouReset (CVE-2025-8671)
//! are carried out so. These budgets outlive connections.
//!
//! A budget is a time: when it is full again (the theoretical arrival time of the generic cell rate
//! algorithm, ITU-T I.371). A reset moves it on. A full budget need not be remembered, as that of a
//! client which is not known is full, too. If too many are known, the one is forgotten that will be
//! full soonest.

use super::frame_budget::{RESETS, Rate};
use crate::destination::ClientNetwork;
use crate::now::Tick;
use alloc::collections::{BTreeMap, BTreeSet};

/// Connections whose budgets one client has together: many users may be behind one address (RFC
/// 6888), each of whom resets some dozens of streams when leaving a page.
const CONNECTIONS: u32 = 10;

/// Streams of one client that may be reset at once, and each second after that.
const CLIENT_RESETS: Rate = RESETS.times(CONNECTIONS);

/// Clients whose budgets are known, about 100 bytes each. If more are not full at once, some may
/// reset more than they should.
pub const RESET_CLIENTS_MAX: usize = 4096;

/// Streams that may be reset on a connection beyond what its client has left, before it ends with
/// an error: a browser that leaves a page, after others behind its address have used that up. It is
/// to take no further requests from the first of these on.
pub const UNPAID_RESETS_MAX: u32 = 50;

/// What a reset moves the time on by, nanoseconds.
const RESET_NS: u64 = 1_000_000_000 / CLIENT_RESETS.each_s as u64;

/// How far ahead the time may be, nanoseconds.
const AHEAD_NS_MAX: u64 = RESET_NS * CLIENT_RESETS.at_once as u64;

/// The budgets of resets, by client.
#[derive(Clone, Debug, Default)]
pub struct ClientResets {
    /// When the budget of a client is full again, nanoseconds.
    full_ns: BTreeMap<ClientNetwork, u64>,
    /// The same, the one that is full first in front.
    by_time: BTreeSet<(u64, ClientNetwork)>,
}

impl ClientResets {
    /// Notes that a stream of `client` was reset, as frames of the client had it; whether its
    /// budget permits that. One that it does not permit takes nothing of it: the client may have
    /// streams reset again as soon as if there had been none.
    pub fn note(&mut self, now: Tick, client: ClientNetwork) -> bool {
        let now_ns = nanoseconds(now);
        let known = self.full_ns.get(&client).copied();
        let full_ns = known.unwrap_or_default().max(now_ns) + RESET_NS;
        if full_ns - now_ns > AHEAD_NS_MAX {
            return false;
        }
        match known {
            Some(known) => drop(self.by_time.remove(&(known, client))),
            None if self.full_ns.len() >= RESET_CLIENTS_MAX => {
                if let Some((_, first)) = self.by_time.pop_first() {
                    self.full_ns.remove(&first);
                }
            }
            None => {}
        }
        self.full_ns.insert(client, full_ns);
        self.by_time.insert((full_ns, client));
        true
    }

    /// Whether no stream of `client` may be reset now.
    #[must_use]
    pub fn is_exhausted(&self, now: Tick, client: ClientNetwork) -> bool {
        let full_ns = self.full_ns.get(&client).copied().unwrap_or_default();
        full_ns.saturating_sub(nanoseconds(now)) + RESET_NS > AHEAD_NS_MAX
    }
}

const fn nanoseconds(now: Tick) -> u64 {
    // 200 years
    let most = u64::MAX / 2;
    let now_ns = now.0.saturating_mul(1_000_000);
    if now_ns < most { now_ns } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};

    fn client(number: u32) -> ClientNetwork {
        ClientNetwork::of(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    fn times(resets: &mut ClientResets, now: Tick, client: ClientNetwork) -> usize {
        let all = 0..100_000;
        all.take_while(|_| resets.note(now, client)).count()
    }

    #[test]
    fn client_may_reset_2000_streams_at_once_and_300_a_second() {
        let mut resets = ClientResets::default();
        assert!(!resets.is_exhausted(Tick(5), client(1)));
        assert_eq!(times(&mut resets, Tick(5), client(1)), 2000);
        assert!(resets.is_exhausted(Tick(5), client(1)));
        assert_eq!(times(&mut resets, Tick(1005), client(1)), 300);
        assert!(resets.is_exhausted(Tick(1008), client(1)));
        assert!(!resets.is_exhausted(Tick(1009), client(1)));
        assert_eq!(times(&mut resets, Tick(3_600_000), client(1)), 2000);
    }

    #[test]
    fn clients_have_budgets_of_their_own_and_addresses_of_one_ipv6_network_share_one() {
        let mut resets = ClientResets::default();
        let of = |text: &str| ClientNetwork::of(text.parse().unwrap());
        assert_eq!(times(&mut resets, Tick(0), of("2001:db8::1")), 2000);
        assert_eq!(times(&mut resets, Tick(0), of("2001:db8::2")), 0);
        assert_eq!(times(&mut resets, Tick(0), of("2001:db8:0:1::1")), 2000);
        assert_eq!(times(&mut resets, Tick(0), client(1)), 2000);
    }

    #[test]
    fn clock_that_steps_back_refills_nothing() {
        let mut resets = ClientResets::default();
        assert_eq!(times(&mut resets, Tick(1000), client(1)), 2000);
        assert_eq!(times(&mut resets, Tick(0), client(1)), 0);
        assert_eq!(times(&mut resets, Tick(1000), client(1)), 0);
        assert!(resets.note(Tick(u64::MAX), client(1)));
    }

    #[test]
    fn budget_that_is_full_first_is_forgotten_for_a_further_client() {
        let mut resets = ClientResets::default();
        assert_eq!(times(&mut resets, Tick(0), client(0)), 2000);
        let others = 1..u32::try_from(RESET_CLIENTS_MAX).unwrap();
        for number in others.clone() {
            assert!(resets.note(Tick(0), client(number)));
        }
        for number in others {
            assert!(resets.note(Tick(0), client(100_000 + number)));
            assert_eq!(resets.full_ns.len(), RESET_CLIENTS_MAX);
            assert_eq!(resets.by_time.len(), RESET_CLIENTS_MAX);
        }
        assert!(resets.is_exhausted(Tick(0), client(0)));
    }

    #[test]
    fn budgets_are_those_of_a_table_without_a_bound_while_clients_are_few() {
        let mut resets = ClientResets::default();
        let mut model: BTreeMap<u32, u64> = BTreeMap::new();
        let mut seed = 7_u64;
        let mut now = 0;
        for _ in 0..50_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = u32::try_from(seed >> 62).unwrap();
            now += (seed >> 40) % 3;
            let left = model.entry(number).or_default();
            // what is used of the budget at `now`, in resets of RESET_NS
            *left = (*left).max(now * 1_000_000);
            let may = *left + RESET_NS - now * 1_000_000 <= AHEAD_NS_MAX;
            *left += u64::from(may) * RESET_NS;
            assert_eq!(resets.is_exhausted(Tick(now), client(number)), !may);
            assert_eq!(resets.note(Tick(now), client(number)), may);
        }
    }
}
