//! How fast clients are sent content: so many bytes a second to each, over all its responses.
//!
//! Each client has its place in time: when all that it was granted is paid for at its rate (the
//! theoretical arrival time of the generic cell rate algorithm, ITU-T I.371). A grant moves it on,
//! and says when it may be used. So the responses of one client take turns, each wakes once for a
//! grant, and nothing is queued here.

use crate::digest::Digest;
use crate::now::Tick;
use alloc::boxed::Box;
use alloc::vec;

/// Clients whose place in time is known, 32 bytes each. A further one takes the place of the client
/// that has been paid for longest: if more than these are held back at once, some are sent more
/// than their rate.
pub const CLIENT_RATES_MAX: usize = 4096;

/// Places that one client may have: of these the one is found without a search of all.
const WAYS: usize = 8;

/// What a client that was sent nothing for a while may be sent at once, milliseconds of its rate.
pub const BURST_MS: u64 = 250;

/// Milliseconds of the rate that one grant is for: a turn of one of its responses.
const GRANT_MS: u64 = 20;

/// Least bytes of a grant: a full segment of Ethernet.
const GRANT_BYTES_MIN: u64 = 1460;

/// Most bytes of a grant.
const GRANT_BYTES_MAX: u64 = 64 * 1024;

/// Bytes a second, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRate(u64);

impl ByteRate {
    /// So many bytes a second; `None` for none at all.
    #[must_use]
    pub const fn new(bytes_s: u64) -> Option<Self> {
        if bytes_s == 0 {
            return None;
        }
        Some(Self(bytes_s))
    }

    /// Bytes a second.
    #[must_use]
    pub const fn bytes_s(self) -> u64 {
        self.0
    }

    /// How long `bytes` take, microseconds.
    const fn cost_us(self, bytes: u64) -> u64 {
        (bytes * 1_000_000).div_ceil(self.0)
    }
}

/// The places of clients in time.
#[derive(Clone, Debug)]
pub struct ClientRates {
    places: Box<[[Place; WAYS]]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The client, under the rule that limits it.
    client: Digest,
    /// When all that it was granted is paid for, microseconds.
    paid_us: u64,
}

/// What one response may send, and from when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateGrant {
    /// Bytes of content.
    pub bytes: u64,
    /// When they may leave.
    pub at: Tick,
}

impl Default for ClientRates {
    fn default() -> Self {
        Self {
            places: vec![[Place::default(); WAYS]; CLIENT_RATES_MAX / WAYS].into(),
        }
    }
}

impl ClientRates {
    /// Grants up to `wanted` bytes to a client that may be sent so many a second.
    pub fn grant(&mut self, now: Tick, client: Digest, rate: ByteRate, wanted: u64) -> RateGrant {
        let now_us = now.0.saturating_mul(1000);
        let most = (rate.0 / (1000 / GRANT_MS)).clamp(GRANT_BYTES_MIN, GRANT_BYTES_MAX);
        let bytes = wanted.min(most);
        let place = self.place(client);
        let begin_us = place.paid_us.max(now_us.saturating_sub(BURST_MS * 1000));
        place.paid_us = begin_us.saturating_add(rate.cost_us(bytes));
        RateGrant {
            bytes,
            at: Tick(begin_us.div_ceil(1000)).max(now),
        }
    }

    /// Bytes of a grant that are not sent after all: the client is not held back for them. Of a
    /// client that is not known any more nothing is held back, and no other one is forgotten for
    /// it.
    pub fn give_back(&mut self, client: Digest, rate: ByteRate, bytes: u64) {
        let mut places = self.places_for(client).iter_mut();
        if let Some(place) = places.find(|place| place.client == client) {
            place.paid_us = place.paid_us.saturating_sub(rate.cost_us(bytes));
        }
    }

    /// Where a client is, if it is known.
    fn places_for(&mut self, client: Digest) -> &mut [Place; WAYS] {
        let sets = self.places.len() as u64;
        let set = usize::try_from(client.0 % sets).unwrap_or_default();
        &mut self.places[set]
    }

    fn place(&mut self, client: Digest) -> &mut Place {
        let places = self.places_for(client);
        let known = places.iter().position(|place| place.client == client);
        let at = known.unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|at| places[*at].paid_us);
            let at = oldest.unwrap_or_default();
            places[at] = Place { client, paid_us: 0 };
            at
        });
        &mut places[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: ByteRate = ByteRate(1_000_000);

    /// A time at which a client that was never seen has its whole burst.
    const BEGIN: Tick = Tick(1_000_000);

    fn client(number: u64) -> Digest {
        Digest(number, number)
    }

    /// Bytes that `responses` of a client get until `ms` later, each asking again once it has sent.
    fn sent(rates: &mut ClientRates, responses: usize, ms: u64) -> Vec<u64> {
        let until = BEGIN.plus_ms(ms);
        let mut sent = vec![0; responses];
        let mut at = vec![BEGIN; responses];
        loop {
            let turn = (0..responses).min_by_key(|turn| at[*turn]).expect("one");
            if at[turn] >= until {
                return sent;
            }
            let grant = rates.grant(at[turn], client(7), RATE, u64::MAX);
            at[turn] = grant.at;
            if grant.at < until {
                sent[turn] += grant.bytes;
            }
        }
    }

    #[test]
    fn client_is_sent_its_rate_and_a_burst_however_many_responses_it_has() {
        for responses in [1, 3, 50] {
            let sent = sent(&mut ClientRates::default(), responses, 10_000);
            let all: u64 = sent.iter().sum();
            let expected = 1_000_000 * (10_000 + BURST_MS) / 1000;
            let grants = 20_000 * (responses as u64 + 1);
            assert!(all.abs_diff(expected) <= grants, "{responses}: {all}");
            let least = sent.iter().min().expect("one");
            let most = sent.iter().max().expect("one");
            // the first may have taken what may be sent at once
            let at_once = 1_000_000 * BURST_MS / 1000;
            assert!(most - least <= at_once + 2 * 20_000, "{sent:?}");
        }
    }

    #[test]
    fn grant_that_is_not_used_costs_nothing() {
        let mut rates = ClientRates::default();
        let first = rates.grant(BEGIN, client(1), RATE, 20_000);
        assert_eq!((first.bytes, first.at), (20_000, BEGIN));
        for _ in 0..100 {
            let grant = rates.grant(BEGIN, client(1), RATE, 20_000);
            rates.give_back(client(1), RATE, grant.bytes);
        }
        // the rest of the burst
        for _ in 0..11 {
            assert_eq!(rates.grant(BEGIN, client(1), RATE, 20_000).at, BEGIN);
        }
        let grants = [0, 10, 30].map(|ms| BEGIN.plus_ms(ms));
        assert_eq!(rates.grant(BEGIN, client(1), RATE, 20_000).at, grants[0]);
        assert_eq!(rates.grant(BEGIN, client(1), RATE, 20_000).at, grants[1]);
        assert_eq!(rates.grant(BEGIN, client(1), RATE, 20_000).at, grants[2]);
    }

    #[test]
    fn client_that_gives_back_when_it_is_forgotten_takes_no_place_of_one_that_is_held_back() {
        let mut rates = ClientRates::default();
        // of one set
        let clients: Vec<Digest> = (0..=WAYS as u64)
            .map(|number| client(number * rates.places.len() as u64))
            .collect();
        let (forgotten, held_back) = clients.split_first().expect("one");
        rates.grant(BEGIN, *forgotten, RATE, 1000);
        for client in held_back {
            while rates.grant(BEGIN, *client, RATE, 20_000).at == BEGIN {}
        }
        rates.give_back(*forgotten, RATE, 1000);
        for client in held_back {
            let grant = rates.grant(BEGIN, *client, RATE, 1000);
            assert!(grant.at > BEGIN, "{client:?} has a burst again");
        }
    }

    #[test]
    fn grant_is_a_fiftieth_of_a_second_and_at_least_a_segment() {
        let mut rates = ClientRates::default();
        for (rate, wanted, expected) in [
            (1000, u64::MAX, 1460),
            (1000, 10, 10),
            (1 << 20, u64::MAX, 20_971),
            (u64::MAX, u64::MAX, GRANT_BYTES_MAX),
        ] {
            let grant = rates.grant(BEGIN, client(rate ^ wanted), ByteRate(rate), wanted);
            assert_eq!((grant.bytes, grant.at), (expected, BEGIN), "{rate}");
        }
    }

    #[test]
    fn clients_do_not_hold_each_other_back_and_their_number_is_bounded() {
        let mut rates = ClientRates::default();
        for number in 0..100_000 {
            let grant = rates.grant(BEGIN, client(number), ByteRate(1000), 1460);
            assert_eq!(grant.at, BEGIN, "{number}");
        }
        // the last ones are known still, and held back
        let grant = rates.grant(BEGIN, client(99_999), ByteRate(1000), 1460);
        assert!(grant.at > BEGIN);
        assert_eq!(rates.places.len() * WAYS, CLIENT_RATES_MAX);
    }
}
