//! Waits for members of the cluster whose clients have gone: how many go on by themselves.
//!
//! A client that has gone frees its connection while its invalidation is told. Such waits are
//! bounded, in all and for one client: otherwise a client could have as many as it sends requests.
//! Beyond the bound the wait keeps the connection of its client, of which there are only so many.

use crate::cluster::purges::one_client;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of all of them: about 16 thousand without their URLs.
const ABANDONED_BYTES_MAX: usize = 16 << 20;

/// Bytes of those of one client: an eighth, so that one leaves room for others.
const CLIENT_BYTES_MAX: usize = ABANDONED_BYTES_MAX / 8;

/// Bytes of one without its URLs, and more: a future, and one answer of each member.
const WAIT_BYTES: usize = 1024;

/// The bytes of those that go on now.
#[derive(Debug, Default)]
pub(crate) struct AbandonedWaits(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    bytes: usize,
    by_client: HashMap<IpAddr, usize>,
}

impl AbandonedWaits {
    fn take(&self, client: IpAddr, bytes: usize) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = table.by_client.get(&client).copied().unwrap_or(0) + bytes;
        let of_all = table.bytes + bytes;
        if of_client > CLIENT_BYTES_MAX || of_all > ABANDONED_BYTES_MAX {
            return false;
        }
        table.bytes = of_all;
        table.by_client.insert(client, of_client);
        true
    }

    fn give_back(&self, client: IpAddr, bytes: usize) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.bytes -= bytes;
        let left = table.by_client.get(&client).map_or(0, |of| of - bytes);
        match left {
            0 => table.by_client.remove(&client),
            left => table.by_client.insert(client, left),
        };
    }
}

/// One of them; it counts until it is dropped.
pub(crate) struct AbandonedWait {
    waits: Arc<AbandonedWaits>,
    client: IpAddr,
    bytes: usize,
}

impl AbandonedWait {
    /// One of the client at `client`, with so many bytes of URLs; `None` if there are too many.
    pub(crate) fn begin(
        waits: &Arc<AbandonedWaits>,
        client: IpAddr,
        url_bytes: usize,
    ) -> Option<Self> {
        let (client, bytes) = (one_client(client), WAIT_BYTES + url_bytes);
        let has_room = waits.take(client, bytes);
        has_room.then(|| Self {
            waits: Arc::clone(waits),
            client,
            bytes,
        })
    }
}

impl Drop for AbandonedWait {
    fn drop(&mut self) {
        self.waits.give_back(self.client, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn client(number: u16) -> IpAddr {
        Ipv6Addr::new(1, number, 0, 0, 0, 0, 0, 0).into()
    }

    #[test]
    fn one_client_has_an_eighth_and_all_have_no_more_than_the_bound() {
        let waits = AbandonedWaits::default();
        for number in 0..8 {
            assert!(!waits.take(client(number), CLIENT_BYTES_MAX + 1));
            assert!(waits.take(client(number), CLIENT_BYTES_MAX - 1));
            assert!(waits.take(client(number), 1));
            assert!(!waits.take(client(number), 1), "it has its share");
        }
        assert!(!waits.take(client(9), 1), "there is no more");
        waits.give_back(client(0), 1);
        assert!(waits.take(client(9), 1));
        waits.give_back(client(9), 1);
        for number in 0..8 {
            let bytes = CLIENT_BYTES_MAX - usize::from(number == 0);
            waits.give_back(client(number), bytes);
        }
        let table = waits.0.lock().expect("no panic");
        assert_eq!((table.bytes, table.by_client.len()), (0, 0));
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let check = |one: &str, other: &str, is_same: bool| {
            let address = |text: &str| one_client(text.parse().expect("an address"));
            assert_eq!(address(one) == address(other), is_same, "{one} {other}");
        };
        check("2001:db8::1", "2001:db8::2:3", true);
        check("2001:db8:0:1::1", "2001:db8::1", false);
        check("::ffff:192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
    }
}
