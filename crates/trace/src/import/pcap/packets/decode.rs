//! From a packet to a TCP segment.

use std::net::{IpAddr, SocketAddr};

use crate::row::words::words;
use etherparse::{IpNumber, LaxIpSlice, LenSource, TcpHeaderSlice};

use crate::import::pcap::packets::frame::Frame;

/// One TCP segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::import::pcap) struct Segment<'a> {
    /// When it was captured, microseconds since 1970.
    pub(in crate::import::pcap) time_us: i64,
    /// The source address.
    pub(in crate::import::pcap) from: SocketAddr,
    /// The destination address.
    pub(in crate::import::pcap) to: SocketAddr,
    /// Its sequence number: that of the SYN, or of the first byte of data.
    pub(in crate::import::pcap) sequence: u32,
    /// Its acknowledgement, if it has one.
    pub(in crate::import::pcap) acknowledgement: Option<u32>,
    /// The flags that matter.
    pub(in crate::import::pcap) is_syn: bool,
    /// The sender has no more to say.
    pub(in crate::import::pcap) is_fin: bool,
    /// The sender knows no such connection any more.
    pub(in crate::import::pcap) is_rst: bool,
    /// The bytes of data that were captured: the first ones.
    pub(in crate::import::pcap) data: &'a [u8],
    /// How many more bytes of data it had on the wire.
    pub(in crate::import::pcap) cut_bytes: u32,
}

words! {
    /// Why a packet brought no segment.
    NotTcp {
        /// The link type of its interface is none that is read here.
        LinkType = "packet-link-type",
        /// It has no IP in it (ARP, spanning tree, ...), or in a way that is not read here.
        NotIp = "packet-not-ip",
        /// PPP with compressed TCP headers (RFC 1144).
        CompressedHeader = "packet-compressed-header",
        /// A fragment: what it carries is not put together.
        Fragment = "packet-fragment",
        /// IP, but not TCP.
        NotTcp = "packet-not-tcp",
        /// It ends within its headers.
        Truncated = "packet-truncated-in-headers",
        /// A header contradicts itself.
        Malformed = "packet-malformed",
        /// The file does not say when it was captured.
        NoTime = "packet-without-time",
    }
}

/// The segment in `frame`.
pub(in crate::import::pcap) fn segment<'a>(frame: &Frame<'a>) -> Result<Segment<'a>, NotTcp> {
    let packet = frame.link.network_layer(frame.bytes)?;
    let time_us = frame.time_us.ok_or(NotTcp::NoTime)?;
    let (ip, fault) = LaxIpSlice::from_slice(packet).map_err(|_| NotTcp::Malformed)?;
    if ip.is_fragmenting_payload() {
        return Err(NotTcp::Fragment);
    }
    let payload = ip.payload();
    if fault.is_some() {
        // an extension header that is cut off or malformed: what follows it is not known to be TCP
        return Err(if payload.incomplete {
            NotTcp::Truncated
        } else {
            NotTcp::Malformed
        });
    }
    if payload.ip_number != IpNumber::TCP {
        return Err(NotTcp::NotTcp);
    }
    let tcp = TcpHeaderSlice::from_slice(payload.payload).map_err(|_| {
        if payload.incomplete || payload.payload.len() < 20 {
            NotTcp::Truncated
        } else {
            NotTcp::Malformed
        }
    })?;
    let data = &payload.payload[tcp.slice().len()..];
    let after_packet = frame.wire_bytes - frame.bytes.len();
    let cut = match payload.len_source {
        // the length in the header was zero, as it is when the network card would have written it:
        // the frame says it
        LenSource::Slice if !payload.incomplete => after_packet,
        LenSource::Slice => stated_bytes(&ip, packet).saturating_sub(packet.len()),
        _ => 0,
    };
    Ok(Segment {
        time_us,
        from: SocketAddr::new(canonical(ip.source_addr()), tcp.source_port()),
        to: SocketAddr::new(canonical(ip.destination_addr()), tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledgement: tcp.ack().then(|| tcp.acknowledgment_number()),
        is_syn: tcp.syn(),
        is_fin: tcp.fin(),
        is_rst: tcp.rst(),
        data,
        cut_bytes: u32::try_from(cut).unwrap_or(u32::MAX),
    })
}

/// How long the IP packet says that it is.
fn stated_bytes(ip: &LaxIpSlice<'_>, packet: &[u8]) -> usize {
    match ip {
        LaxIpSlice::Ipv4(ip) => usize::from(ip.header().total_len()),
        LaxIpSlice::Ipv6(ip) => {
            usize::from(ip.header().payload_length()) + packet.len().min(IPV6_HEADER_BYTES)
        }
    }
}

const IPV6_HEADER_BYTES: usize = 40;

/// An address that is the same for both spellings of IPv4.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
