//! What kind of address an address is, and which addresses it carries inside.
//!
//! The tables follow the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890). The
//! registries list some blocks as globally reachable (AS112, AMT); those are left open in IPv4
//! where servers answer, and closed in the IPv6 protocol block, where none do.

use super::DenialReason;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::{Ipv4Net, Ipv6Net};

/// Why the default denies `address`, which carries no other; `None` if it is a public unicast
/// address.
pub(super) fn kind(address: IpAddr) -> Option<DenialReason> {
    match address {
        IpAddr::V4(address) => {
            let row = IPV4.iter().find(|(net, _)| net.contains(&address));
            row.map(|(_, why)| *why)
        }
        IpAddr::V6(address) => {
            let row = IPV6.iter().find(|(net, _)| net.contains(&address));
            let named = row.map(|(_, why)| *why);
            // All global unicast is allocated from 2000::/3 (RFC 4291 §2.4, IANA): the rest is
            // closed unnamed.
            named.or((!GLOBAL_UNICAST.contains(&address)).then_some(DenialReason::Reserved))
        }
    }
}

/// The addresses by which `address` is judged: those inside it, or itself.
///
/// Teredo carries two, its server's and its client's; both must be open.
pub(super) fn inside(address: IpAddr) -> [Option<IpAddr>; 2] {
    let IpAddr::V6(v6) = address else {
        return [Some(address), None];
    };
    let parts = v6.segments();
    let v4 = |place: usize| Some(IpAddr::V4(ipv4(parts[place], parts[place + 1])));
    match parts {
        // ::/128 and ::1/128 are themselves (RFC 4291 §2.5.2, §2.5.3); the rest of ::/96 is
        // IPv4-compatible.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [Some(address), None],
        // IPv4-compatible (§2.5.5.1), IPv4-mapped (§2.5.5.2), IPv4-translated (RFC 7915 §2.2 calls
        // it so no more, but stateless translators still do), NAT64 (RFC 6052 §2.1).
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => [v4(6), None],
        // 6to4 (RFC 3056 §2).
        [0x2002, ..] => [v4(1), None],
        // Teredo (RFC 4380 §4): the client's address is stored with every bit inverted.
        [0x2001, 0, ..] => [v4(2), Some(IpAddr::V4(ipv4(!parts[6], !parts[7])))],
        _ => [Some(address), None],
    }
}

fn ipv4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(parts: [u16; 8], prefix: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = parts;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The first row that holds decides: a block's exceptions come before the block.
const IPV4: [(Ipv4Net, DenialReason); 20] = [
    (v4(0, 0, 0, 0, 8), DenialReason::Unspecified),
    (v4(127, 0, 0, 0, 8), DenialReason::Loopback),
    // Most clouds; Alibaba; Oracle; Azure's host service, which has a public address.
    (v4(169, 254, 169, 254, 32), DenialReason::Metadata),
    (v4(100, 100, 100, 200, 32), DenialReason::Metadata),
    (v4(192, 0, 0, 192, 32), DenialReason::Metadata),
    (v4(168, 63, 129, 16, 32), DenialReason::Metadata),
    (v4(169, 254, 0, 0, 16), DenialReason::LinkLocal),
    (v4(10, 0, 0, 0, 8), DenialReason::Private),
    (v4(172, 16, 0, 0, 12), DenialReason::Private),
    (v4(192, 168, 0, 0, 16), DenialReason::Private),
    (v4(100, 64, 0, 0, 10), DenialReason::Shared),
    (v4(198, 18, 0, 0, 15), DenialReason::Benchmarking),
    (v4(192, 0, 2, 0, 24), DenialReason::Documentation),
    (v4(198, 51, 100, 0, 24), DenialReason::Documentation),
    (v4(203, 0, 113, 0, 24), DenialReason::Documentation),
    (v4(192, 0, 0, 0, 24), DenialReason::Protocol),
    (v4(192, 88, 99, 0, 24), DenialReason::Protocol),
    (v4(224, 0, 0, 0, 4), DenialReason::Multicast),
    (v4(255, 255, 255, 255, 32), DenialReason::Broadcast),
    (v4(240, 0, 0, 0, 4), DenialReason::Reserved),
];

/// As above; what is outside [`GLOBAL_UNICAST`] is named only for a better reason than "reserved".
const IPV6: [(Ipv6Net, DenialReason); 12] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), DenialReason::Unspecified),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), DenialReason::Loopback),
    // AWS; Google.
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128),
        DenialReason::Metadata,
    ),
    (
        v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
        DenialReason::Metadata,
    ),
    (
        v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
        DenialReason::LinkLocal,
    ),
    (
        v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
        DenialReason::SiteLocal,
    ),
    (
        v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        DenialReason::UniqueLocal,
    ),
    (
        v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48),
        DenialReason::Benchmarking,
    ),
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        DenialReason::Documentation,
    ),
    (
        v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        DenialReason::Documentation,
    ),
    (
        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        DenialReason::Protocol,
    ),
    (
        v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
        DenialReason::Multicast,
    ),
];
