//! The next generation: sections of blocks, with interfaces that each have a link type and a clock.

use std::io::Read;

use crate::import::pcap::order::Order;
use crate::import::pcap::packets::container::{
    CAPTURED_BYTES_MAX, Fault, PacketRecord, fill, fill_or_end,
};
use crate::import::pcap::packets::input::Input;
use crate::import::pcap::packets::link::Link;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// Obsolete since 2004, and still found.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// The most interfaces of a section; the largest routers have some hundred.
const INTERFACES_MAX: usize = 4096;
/// The most bytes of a packet's or interface's block: the packet, and options such as comments.
const BLOCK_BYTES_MAX: usize = CAPTURED_BYTES_MAX + 1024 * 1024;
/// A block's type, its length, and its length again.
const FRAME_BYTES: usize = 12;

/// Options of an interface.
const OPTION_END: u16 = 0;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;

/// Where in a file of blocks we are.
#[derive(Debug)]
pub(in crate::import::pcap) struct Blocks {
    order: Order,
    interfaces: Vec<Interface>,
    /// The first block's type was read already, to recognise the format.
    at_beginning: bool,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    /// The most bytes that are captured of a packet; 0: all.
    captured_bytes_max: u32,
    /// Ticks of its clock in a second.
    ticks_a_second: u64,
    /// Seconds to add.
    offset_s: i64,
}

impl Blocks {
    /// The first four bytes of a file, the same in both orders.
    pub(in crate::import::pcap) const MAGIC: [u8; 4] = SECTION.to_be_bytes();

    pub(in crate::import::pcap) const fn new() -> Self {
        Self {
            order: Order::Little,
            interfaces: Vec::new(),
            at_beginning: true,
        }
    }

    /// Reads blocks up to the next packet.
    pub(in crate::import::pcap) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<PacketRecord>, Fault> {
        loop {
            let mut kind = Self::MAGIC;
            if self.at_beginning {
                self.at_beginning = false;
            } else if !fill_or_end(input, &mut kind)? {
                return Ok(None);
            }
            if kind == Self::MAGIC {
                self.section(input)?;
                continue;
            }
            let kind = self.order.u32(&kind, 0);
            let mut length = [0; 4];
            fill(input, &mut length)?;
            let length = self.order.u32(&length, 0);
            let Some(content_min) = content_bytes_min(kind) else {
                skip(input, content_bytes(kind, length, false)?)?;
                self.end(input, length)?;
                continue;
            };
            let content = content_bytes(kind, length, true)?;
            scratch.resize(content, 0);
            fill(input, scratch)?;
            self.end(input, length)?;
            if content < content_min {
                return Err(wrong_length(kind, length));
            }
            let interface = match kind {
                INTERFACE => {
                    self.interface(scratch)?;
                    continue;
                }
                SIMPLE_PACKET => return self.simple(scratch).map(Some),
                ENHANCED_PACKET => self.order.u32(scratch, 0),
                _ => self.order.u16(scratch, 0).into(),
            };
            return self.packet(scratch, interface).map(Some);
        }
    }

    /// A section header, after its type: the byte order is within, behind the length that needs it.
    fn section<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), Fault> {
        // length, byte order, version, length of the section
        let mut header = [0; 20];
        fill(input, &mut header)?;
        let magic = Order::Little.u32(&header, 4);
        self.order = if magic == BYTE_ORDER {
            Order::Little
        } else if magic.swap_bytes() == BYTE_ORDER {
            Order::Big
        } else {
            return Err(Fault::ByteOrder(magic));
        };
        let (major, minor) = (self.order.u16(&header, 8), self.order.u16(&header, 10));
        // 1.2 is written by some and is the same as 1.0 (the draft says so)
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Fault::Version(major, minor));
        }
        let length = self.order.u32(&header, 0);
        let options = content_bytes(SECTION, length, false)?
            .checked_sub(16)
            .ok_or(wrong_length(SECTION, length))?;
        skip(input, options)?;
        self.end(input, length)?;
        self.interfaces.clear();
        Ok(())
    }

    /// The second length of a block.
    fn end<R: Read>(&self, input: &mut Input<R>, first: u32) -> Result<(), Fault> {
        let mut length = [0; 4];
        fill(input, &mut length)?;
        let second = self.order.u32(&length, 0);
        if first == second {
            Ok(())
        } else {
            Err(Fault::BlockEnds { first, second })
        }
    }

    fn interface(&mut self, content: &[u8]) -> Result<(), Fault> {
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(Fault::Interfaces);
        }
        let mut interface = Interface {
            link: Link::from_number(self.order.u16(content, 0).into()),
            captured_bytes_max: self.order.u32(content, 4),
            ticks_a_second: 1_000_000,
            offset_s: 0,
        };
        let mut options = &content[8..];
        while options.len() >= 4 {
            let (code, bytes) = (self.order.u16(options, 0), self.order.u16(options, 2));
            let bytes = usize::from(bytes);
            let Some(value) = options.get(4..4 + bytes) else {
                break;
            };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_RESOLUTION, &[resolution]) => {
                    interface.ticks_a_second = ticks_a_second(resolution);
                }
                (OPTION_OFFSET, _) => {
                    if let Ok(eight) = value.try_into() {
                        interface.offset_s = self.order.i64(eight);
                    }
                }
                _ => {}
            }
            options = options.get(4 + bytes.next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// A packet whose time and lengths stand after the interface's four bytes.
    fn packet(&self, content: &[u8], interface: u32) -> Result<PacketRecord, Fault> {
        let known = usize::try_from(interface).ok();
        let clock = known
            .and_then(|number| self.interfaces.get(number))
            .ok_or(Fault::Interface(interface))?;
        let ticks =
            (u64::from(self.order.u32(content, 4)) << 32) | u64::from(self.order.u32(content, 8));
        let captured = self.order.u32(content, 12);
        Ok(PacketRecord {
            time_us: clock.time_us(ticks),
            link: clock.link,
            wire_bytes: usize::try_from(self.order.u32(content, 16)).unwrap_or(usize::MAX),
            bytes: within(content, 20, captured)?,
        })
    }

    /// A packet of the first interface, without a time.
    fn simple(&self, content: &[u8]) -> Result<PacketRecord, Fault> {
        let interface = self.interfaces.first().ok_or(Fault::Interface(0))?;
        let wire = self.order.u32(content, 0);
        let captured = match interface.captured_bytes_max {
            0 => wire,
            most => wire.min(most),
        };
        Ok(PacketRecord {
            time_us: None,
            link: interface.link,
            wire_bytes: usize::try_from(wire).unwrap_or(usize::MAX),
            bytes: within(content, 4, captured)?,
        })
    }
}

impl Interface {
    /// What the ticks of its clock mean, microseconds since 1970; `None` beyond what the number can
    /// say.
    fn time_us(&self, ticks: u64) -> Option<i64> {
        let since_offset = u128::from(ticks) * 1_000_000 / u128::from(self.ticks_a_second);
        let offset_us = self.offset_s.checked_mul(1_000_000)?;
        i64::try_from(since_offset).ok()?.checked_add(offset_us)
    }
}

/// Ticks in a second, from `if_tsresol`: a power of ten, or of two if the highest bit is set. A
/// clock finer than 64 bits can count is taken for the finest of them.
fn ticks_a_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).unwrap_or(u64::MAX)
}

/// The fewest bytes of content of a block that is read; `None` for the others.
const fn content_bytes_min(kind: u32) -> Option<usize> {
    match kind {
        INTERFACE => Some(8),
        SIMPLE_PACKET => Some(4),
        PACKET | ENHANCED_PACKET => Some(20),
        _ => None,
    }
}

const fn wrong_length(kind: u32, bytes: u32) -> Fault {
    Fault::BlockLength { kind, bytes }
}

/// The bytes between a block's two lengths.
fn content_bytes(kind: u32, length: u32, is_read: bool) -> Result<usize, Fault> {
    let bytes = usize::try_from(length).unwrap_or(usize::MAX);
    let possible =
        bytes >= FRAME_BYTES && bytes.is_multiple_of(4) && !(is_read && bytes > BLOCK_BYTES_MAX);
    if possible {
        Ok(bytes - FRAME_BYTES)
    } else {
        Err(wrong_length(kind, length))
    }
}

/// Where the packet's bytes are in its block.
fn within(content: &[u8], from: usize, captured: u32) -> Result<std::ops::Range<usize>, Fault> {
    let bytes = usize::try_from(captured).unwrap_or(usize::MAX);
    if bytes > CAPTURED_BYTES_MAX || bytes > content.len() - from {
        return Err(Fault::TooLong(captured.into()));
    }
    Ok(from..from + bytes)
}

fn skip<R: Read>(input: &mut Input<R>, bytes: usize) -> Result<(), Fault> {
    let got = input.skip(bytes as u64).map_err(Fault::Io)?;
    if got == bytes as u64 {
        return Ok(());
    }
    Err(Fault::CutOff {
        wanted_bytes: bytes,
        got_bytes: usize::try_from(got).unwrap_or(bytes),
    })
}
