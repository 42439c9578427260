//! What stands in front of the network layer: link types of
//! <https://www.tcpdump.org/linktypes.html>.
//!
//! Read by hand, as headers that only say "what follows is ...": a few bytes each, nested (VLAN in
//! VLAN, PPP in PPPoE in Ethernet).

use crate::import::pcap::packets::decode::NotTcp;

/// The format of the first header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import::pcap) enum Link {
    /// Ethernet, with any number of VLAN tags (LINKTYPE 1).
    Ethernet,
    /// PPP, with or without the two bytes of HDLC-like framing (9, 50, 166).
    Ppp,
    /// PPP behind one byte that says the direction (204).
    PppWithDirection,
    /// PPPoE (51).
    Pppoe,
    /// Cisco's HDLC (104).
    CiscoHdlc,
    /// Linux cooked, version 1 (113).
    Cooked1,
    /// Linux cooked, version 2 (276).
    Cooked2,
    /// BSD loopback, four bytes of either order (0, 108).
    Loopback,
    /// IPv4 or IPv6 at once (12, 14, 101, 228, 229).
    Raw,
    /// Any other number.
    Unknown(u32),
}

/// What an IP packet is preceded by more often than twice is no network's configuration.
const TAGS_MAX: usize = 8;

/// EtherTypes (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const QINQ: u16 = 0x88a8;
const QINQ_OLD: u16 = 0x9100;
const PPPOE_SESSION: u16 = 0x8864;
/// The greatest value of an Ethernet header's last field that is a length and no EtherType.
const LENGTH_MAX: u16 = 1500;
/// PPP protocol numbers (RFC 1332, RFC 5072, RFC 1144).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_VJ_COMPRESSED: u16 = 0x002d;
const PPP_VJ_UNCOMPRESSED: u16 = 0x002f;

impl Link {
    /// From the number in a file.
    pub(in crate::import::pcap) const fn from_number(number: u32) -> Self {
        match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 | 166 => Self::Ppp,
            51 => Self::Pppoe,
            104 => Self::CiscoHdlc,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::Cooked1,
            204 => Self::PppWithDirection,
            276 => Self::Cooked2,
            other => Self::Unknown(other),
        }
    }

    /// The IP packet within, and whatever follows it.
    pub(in crate::import::pcap) fn network_layer(self, frame: &[u8]) -> Result<&[u8], NotTcp> {
        match self {
            Self::Ethernet => {
                let (header, rest) = split(frame, 14)?;
                by_ether_type(be16(header, 12), rest)
            }
            Self::Ppp => ppp(frame),
            Self::PppWithDirection => ppp(split(frame, 1)?.1),
            Self::Pppoe => ppp(split(frame, 6)?.1),
            Self::CiscoHdlc => {
                let (header, rest) = split(frame, 4)?;
                by_ether_type(be16(header, 2), rest)
            }
            Self::Cooked1 => {
                let (header, rest) = split(frame, 16)?;
                by_ether_type(be16(header, 14), rest)
            }
            Self::Cooked2 => {
                let (header, rest) = split(frame, 20)?;
                by_ether_type(be16(header, 0), rest)
            }
            // the family's number depends on the system that captured; the version of IP does not
            Self::Loopback => is_ip(split(frame, 4)?.1),
            Self::Raw => is_ip(frame),
            Self::Unknown(_) => Err(NotTcp::LinkType),
        }
    }
}

fn by_ether_type(ether_type: u16, rest: &[u8]) -> Result<&[u8], NotTcp> {
    let (mut ether_type, mut rest) = (ether_type, rest);
    for _ in 0..TAGS_MAX {
        match ether_type {
            IPV4 | IPV6 => return is_ip(rest),
            VLAN | QINQ | QINQ_OLD => {
                let (tag, after) = split(rest, 4)?;
                ether_type = be16(tag, 2);
                rest = after;
            }
            PPPOE_SESSION => return ppp(split(rest, 6)?.1),
            // IEEE 802.2 with SNAP: AA AA 03, an organisation, and an EtherType
            0..=LENGTH_MAX => {
                let (header, after) = split(rest, 8)?;
                if !header.starts_with(&[0xaa, 0xaa, 0x03]) {
                    return Err(NotTcp::NotIp);
                }
                ether_type = be16(header, 6);
                rest = after;
            }
            _ => return Err(NotTcp::NotIp),
        }
    }
    Err(NotTcp::NotIp)
}

/// PPP (RFC 1661), its address and control bytes (RFC 1662) and the first byte of the protocol
/// perhaps left out.
fn ppp(frame: &[u8]) -> Result<&[u8], NotTcp> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    let (protocol, rest) = match frame {
        [short, rest @ ..] if short & 1 == 1 => (u16::from(*short), rest),
        [high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
        _ => return Err(NotTcp::Truncated),
    };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => is_ip(rest),
        PPP_VJ_COMPRESSED | PPP_VJ_UNCOMPRESSED => Err(NotTcp::CompressedHeader),
        _ => Err(NotTcp::NotIp),
    }
}

fn is_ip(packet: &[u8]) -> Result<&[u8], NotTcp> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4 | 6) => Ok(packet),
        Some(_) => Err(NotTcp::NotIp),
        None => Err(NotTcp::Truncated),
    }
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), NotTcp> {
    bytes.split_at_checked(at).ok_or(NotTcp::Truncated)
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
