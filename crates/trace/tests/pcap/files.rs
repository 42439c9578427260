//! Capture files in all their forms.

use crate::conversation::Segment;

/// A packet in a file: when, what was captured, and how long it was.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) time_us: i64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) wire_bytes: usize,
}

/// What is put in front of an IP packet, and the number that says so.
pub(crate) type Framing = (u16, fn(&[u8]) -> Vec<u8>);

pub(crate) const RAW: Framing = (101, |packet| packet.to_vec());
pub(crate) const ETHERNET: Framing = (1, |packet| ethernet(&[], packet));

/// Every framing that is read.
pub(crate) const FRAMINGS: [Framing; 17] = [
    RAW,
    ETHERNET,
    (1, |packet| ethernet(&[0x81, 0x00, 0x00, 0x07], packet)),
    (1, |packet| {
        ethernet(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08], packet)
    }),
    // IEEE 802.2 and SNAP
    (1, |packet| {
        [
            &[0; 12],
            &[0, 100][..],
            &[0xaa, 0xaa, 3, 0, 0, 0],
            &ether_type(packet),
            packet,
        ]
        .concat()
    }),
    // PPPoE in Ethernet
    (1, |packet| {
        [
            &[0; 12][..],
            &[0x88, 0x64, 0x11, 0, 0, 1, 0, 99],
            &ppp_protocol(packet),
            packet,
        ]
        .concat()
    }),
    (9, |packet| {
        [&[0xff, 0x03][..], &ppp_protocol(packet), packet].concat()
    }),
    (9, |packet| [&ppp_protocol(packet)[..], packet].concat()),
    // the first byte of the protocol left out
    (50, |packet| [&ppp_protocol(packet)[1..], packet].concat()),
    (51, |packet| {
        [&[0x11, 0, 0, 1, 0, 99][..], &ppp_protocol(packet), packet].concat()
    }),
    (104, |packet| {
        [&[0x0f, 0][..], &ether_type(packet), packet].concat()
    }),
    (113, |packet| {
        [&[0; 14][..], &ether_type(packet), packet].concat()
    }),
    (204, |packet| {
        [&[1, 0xff, 0x03][..], &ppp_protocol(packet), packet].concat()
    }),
    (276, |packet| {
        [&ether_type(packet)[..], &[0; 18], packet].concat()
    }),
    (0, |packet| [&[2, 0, 0, 0][..], packet].concat()),
    (108, |packet| [&[0, 0, 0, 2][..], packet].concat()),
    (12, |packet| packet.to_vec()),
];

fn ethernet(tags: &[u8], packet: &[u8]) -> Vec<u8> {
    let padded = [0; 46];
    let padding = &padded[packet.len().min(46)..];
    [&[0; 12], tags, &ether_type(packet)[..], packet, padding].concat()
}

fn ether_type(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 {
        [0x08, 0x00]
    } else {
        [0x86, 0xdd]
    }
}

fn ppp_protocol(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 {
        [0x00, 0x21]
    } else {
        [0x00, 0x57]
    }
}

/// The segments as packets, whole.
pub(crate) fn packets(segments: &[Segment], framing: Framing) -> Vec<Packet> {
    let packet = |segment: &Segment| {
        let bytes = (framing.1)(&segment.packet());
        Packet {
            time_us: segment.time_us,
            wire_bytes: bytes.len(),
            bytes,
        }
    };
    segments.iter().map(packet).collect()
}

/// Only the first bytes of each packet.
pub(crate) fn cut(mut packets: Vec<Packet>, captured_bytes_max: usize) -> Vec<Packet> {
    for packet in &mut packets {
        packet.bytes.truncate(captured_bytes_max);
    }
    packets
}

/// Writes numbers in one of the two byte orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub(crate) is_big: bool,
}

impl Writer {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.is_big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.is_big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u64(self, value: u64) -> [u8; 8] {
        if self.is_big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    /// The classic format.
    pub(crate) fn classic(self, link: u16, is_nano: bool, packets: &[Packet]) -> Vec<u8> {
        let magic = if is_nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = self.u32(magic).to_vec();
        file.extend([self.u16(2), self.u16(4)].concat());
        file.extend(
            [
                self.u32(0),
                self.u32(0),
                self.u32(262_144),
                self.u32(link.into()),
            ]
            .concat(),
        );
        for packet in packets {
            let fraction =
                low(packet.time_us.rem_euclid(1_000_000) * if is_nano { 1000 } else { 1 });
            file.extend(self.u32(low(packet.time_us.div_euclid(1_000_000))));
            file.extend(self.u32(fraction));
            file.extend(self.u32(low(packet.bytes.len() as i64)));
            file.extend(self.u32(low(packet.wire_bytes as i64)));
            file.extend(&packet.bytes);
        }
        file
    }

    /// The next generation: one section, and an interface with this clock; other blocks stand in
    /// between.
    pub(crate) fn blocks(self, link: u16, clock: Clock, packets: &[Packet]) -> Vec<u8> {
        let mut file = self.section();
        file.extend(self.interface(link, clock));
        for packet in packets {
            // name resolution, as a block that is passed over
            file.extend(self.block(4, &[0; 12]));
            file.extend(self.enhanced(0, clock, packet));
        }
        file
    }

    pub(crate) fn section(self) -> Vec<u8> {
        let content = [
            &self.u32(0x1a2b_3c4d)[..],
            &self.u16(1),
            &self.u16(0),
            &self.u64(u64::MAX),
            // a comment
            &self.u16(1),
            &self.u16(5),
            b"weir!\0\0\0",
            &self.u32(0),
        ]
        .concat();
        self.block(0x0a0d_0d0a, &content)
    }

    pub(crate) fn interface(self, link: u16, clock: Clock) -> Vec<u8> {
        let mut content = [&self.u16(link)[..], &self.u16(0), &self.u32(0)].concat();
        if let Some(resolution) = clock.resolution {
            content.extend([&self.u16(9)[..], &self.u16(1), &[resolution, 0, 0, 0]].concat());
        }
        if clock.offset_s != 0 {
            let offset = self.u64(clock.offset_s.cast_unsigned());
            content.extend([&self.u16(14)[..], &self.u16(8), &offset].concat());
        }
        content.extend(self.u32(0));
        self.block(1, &content)
    }

    pub(crate) fn enhanced(self, interface: u32, clock: Clock, packet: &Packet) -> Vec<u8> {
        let since_us = i128::from(packet.time_us) - i128::from(clock.offset_s) * 1_000_000;
        let ticks = u64::try_from(since_us * clock.ticks_a_second / 1_000_000).unwrap();
        let mut content = [
            &self.u32(interface)[..],
            &self.u32(low((ticks >> 32).cast_signed())),
            &self.u32(low((ticks & 0xffff_ffff).cast_signed())),
            &self.u32(low(packet.bytes.len() as i64)),
            &self.u32(low(packet.wire_bytes as i64)),
            &packet.bytes,
        ]
        .concat();
        content.resize(content.len().next_multiple_of(4), 0);
        self.block(6, &content)
    }

    pub(crate) fn block(self, kind: u32, content: &[u8]) -> Vec<u8> {
        let length = self.u32(low(content.len() as i64 + 12));
        [&self.u32(kind)[..], &length, content, &length].concat()
    }
}

/// An interface's clock: its `if_tsresol` and what that means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) resolution: Option<u8>,
    pub(crate) ticks_a_second: i128,
    pub(crate) offset_s: i64,
}

impl Clock {
    pub(crate) const USUAL: Self = Self {
        resolution: None,
        ticks_a_second: 1_000_000,
        offset_s: 0,
    };
}

fn low(value: i64) -> u32 {
    u32::try_from(value).unwrap()
}
