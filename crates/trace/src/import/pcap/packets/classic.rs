//! The classic format: one header, then packets.

use std::io::Read;

use crate::import::pcap::order::Order;
use crate::import::pcap::packets::container::{
    CAPTURED_BYTES_MAX, Fault, PacketRecord, fill, fill_or_end,
};
use crate::import::pcap::packets::input::Input;
use crate::import::pcap::packets::link::Link;

/// The magic of files with microseconds, and with nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(in crate::import::pcap) struct Classic {
    order: Order,
    nanoseconds: bool,
    link: Link,
}

impl Classic {
    /// Reads the rest of the header.
    pub(in crate::import::pcap) fn begin<R: Read>(
        magic: [u8; 4],
        input: &mut Input<R>,
    ) -> Result<Self, Fault> {
        let (order, number) = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (number @ (MICROSECONDS | NANOSECONDS), _) => (Order::Little, number),
            (_, number @ (MICROSECONDS | NANOSECONDS)) => (Order::Big, number),
            _ => return Err(Fault::Magic(magic)),
        };
        let mut header = [0; 20];
        if input.fill(&mut header).map_err(Fault::Io)? < header.len() {
            return Err(Fault::NoHeader);
        }
        let (major, minor) = (order.u16(&header, 0), order.u16(&header, 2));
        if major != 2 {
            return Err(Fault::Version(major, minor));
        }
        // the upper bits say how long the frame check sequence is; it stands at the end, which is
        // not read
        let link = Link::from_number(order.u32(&header, 16) & 0x0fff_ffff);
        Ok(Self {
            order,
            nanoseconds: number == NANOSECONDS,
            link,
        })
    }

    /// Reads one packet into `scratch`.
    pub(in crate::import::pcap) fn next<R: Read>(
        &self,
        input: &mut Input<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<PacketRecord>, Fault> {
        let mut header = [0; 16];
        if !fill_or_end(input, &mut header)? {
            return Ok(None);
        }
        let seconds = i64::from(self.order.u32(&header, 0));
        let fraction = i64::from(self.order.u32(&header, 4));
        let captured = self.order.u32(&header, 8);
        let wire = self.order.u32(&header, 12);
        let bytes = match usize::try_from(captured) {
            Ok(bytes) if bytes <= CAPTURED_BYTES_MAX => bytes,
            _ => return Err(Fault::TooLong(captured.into())),
        };
        scratch.resize(bytes, 0);
        fill(input, scratch)?;
        let fraction_us = fraction / if self.nanoseconds { 1000 } else { 1 };
        Ok(Some(PacketRecord {
            time_us: Some(seconds * 1_000_000 + fraction_us),
            link: self.link,
            wire_bytes: usize::try_from(wire).unwrap_or(bytes),
            bytes: 0..bytes,
        }))
    }
}
