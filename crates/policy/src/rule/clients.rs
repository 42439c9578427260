//! The rules by the networks of clients: all addresses, cut where a network of a rule begins or
//! ends.

use super::bits::Bits;
use super::matchers::Matchers;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::IpNet;

/// Most networks of clients in all rules.
pub const CLIENT_NETS_MAX: usize = 1024;

/// The rules of each address.
#[derive(Debug)]
pub(super) struct ClientTable {
    /// Rules without networks.
    any: Bits,
    v4: Spans,
    v6: Spans,
}

/// Where a span of addresses begins, and the rules for all in it.
type Spans = Vec<(u128, Bits)>;

impl ClientTable {
    /// The table of rules with these matchers.
    pub(super) fn new<'m>(rules: impl Iterator<Item = &'m Matchers> + Clone) -> Self {
        let numbered = || rules.clone().enumerate();
        let any = numbered().filter(|(_, rule)| rule.client.is_empty());
        let spans = |is_v4: bool| -> Spans {
            let nets = rules.clone().flat_map(|rule| &rule.client);
            let nets = nets.filter(|net| matches!(net, IpNet::V4(_)) == is_v4);
            let mut cuts: Vec<u128> = nets.flat_map(ends_of).flatten().collect();
            cuts.push(0);
            cuts.sort_unstable();
            cuts.dedup();
            let span = |start: u128| {
                let address = address_at(start, is_v4)?;
                let here = numbered().filter(|(_, rule)| rule.has_client(address));
                Some((start, here.map(|(index, _)| index).collect()))
            };
            cuts.into_iter().filter_map(span).collect()
        };
        let has_nets = rules.clone().any(|rule| !rule.client.is_empty());
        Self {
            any: any.map(|(index, _)| index).collect(),
            v4: if has_nets { spans(true) } else { Vec::new() },
            v6: if has_nets { spans(false) } else { Vec::new() },
        }
    }

    /// The rules for requests without a client.
    pub(super) const fn any(&self) -> Bits {
        self.any
    }

    /// The rules for a client at `address`. An IPv4 client that a dual-stack socket shows as
    /// `::ffff:a.b.c.d` is one of IPv4.
    #[inline]
    pub(super) fn find(&self, address: IpAddr) -> Bits {
        if self.v4.is_empty() {
            return self.any;
        }
        let (spans, number) = match address.to_canonical() {
            IpAddr::V4(address) => (&self.v4, u128::from(address.to_bits())),
            IpAddr::V6(address) => (&self.v6, address.to_bits()),
        };
        let behind = spans.partition_point(|(start, _)| *start <= number);
        behind.checked_sub(1).map_or(self.any, |at| spans[at].1)
    }
}

/// The first address of a network, and the first behind it if there is one.
fn ends_of(net: &IpNet) -> [Option<u128>; 2] {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    [
        Some(number(net.network())),
        number(net.broadcast()).checked_add(1),
    ]
}

/// `None` behind the last address.
fn address_at(number: u128, is_v4: bool) -> Option<IpAddr> {
    if is_v4 {
        let number = u32::try_from(number).ok()?;
        Some(IpAddr::V4(Ipv4Addr::from_bits(number)))
    } else {
        Some(IpAddr::V6(Ipv6Addr::from_bits(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_is_found_in_each_network_that_has_it() {
        let rules = [
            &["10.0.0.0/8", "fd00::/8"][..],
            &["10.1.0.0/16"],
            &[],
            &[
                "255.255.255.255/32",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
            ],
            &["0.0.0.0/0"],
        ];
        let rules = rules.map(|nets| Matchers {
            client: nets.iter().map(|net| net.parse().expect(net)).collect(),
            ..Matchers::default()
        });
        let table = ClientTable::new(rules.iter());
        let check = |address: &str, expected: &[usize]| {
            let found = table.find(address.parse().expect(address));
            let found: Vec<usize> = found.iter().collect();
            assert_eq!(found, expected, "{address}");
        };
        check("9.255.255.255", &[2, 4]);
        check("10.0.0.0", &[0, 2, 4]);
        check("10.1.0.0", &[0, 1, 2, 4]);
        check("::ffff:10.1.255.255", &[0, 1, 2, 4]);
        check("10.2.0.0", &[0, 2, 4]);
        check("11.0.0.0", &[2, 4]);
        check("255.255.255.255", &[2, 3, 4]);
        check("fd00::1", &[0, 2]);
        check("fe00::", &[2]);
        check("::", &[2]);
        check("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[2, 3]);
    }

    #[test]
    fn rules_without_networks_are_for_every_client() {
        let table = ClientTable::new([Matchers::default()].iter());
        assert!(table.find(IpAddr::V4(Ipv4Addr::LOCALHOST)).iter().eq([0]));
        assert!(table.find(IpAddr::V6(Ipv6Addr::LOCALHOST)).iter().eq([0]));
    }
}
