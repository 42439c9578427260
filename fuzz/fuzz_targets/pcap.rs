//! Invariant: any bytes are read as a capture to their end without a panic, and the same rows,
//! faults and counts come whole or in pieces; every request becomes a row; rows come in order of
//! arrival, or are counted.
//!
//! The first byte chooses: a file as it stands, or packets of a link type in either format, so that
//! the fuzzer need not invent headers; or the payloads of one TCP connection, so that it comes to
//! the HTTP within.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/trace/tests/pcap/invariants.rs"]
mod invariants;

const LINKS: [u8; 8] = [0, 1, 9, 51, 101, 104, 113, 204];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    match choice {
        0..48 => invariants::capture(rest),
        48..64 => invariants::capture(&blocks(LINKS[usize::from(choice % 8)], rest)),
        64..128 => invariants::capture(&packets(LINKS[usize::from(choice % 8)], rest)),
        128.. => invariants::capture(&connection(rest)),
    }
});

/// A capture of packets, each as long as the byte before it says.
fn packets(link: u8, mut rest: &[u8]) -> Vec<u8> {
    let mut file = header(link);
    while let Some((&length, after)) = rest.split_first() {
        let (packet, later) = after.split_at(usize::from(length).min(after.len()));
        record(&mut file, packet);
        rest = later;
    }
    file
}

/// The same as blocks of pcapng: of one section and one interface.
fn blocks(link: u8, mut rest: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let section = [
        0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
    ];
    block(&mut file, 0x0a0d_0d0a, &section);
    block(&mut file, 1, &[link, 0, 0, 0, 0, 0, 0, 0]);
    while let Some((&length, after)) = rest.split_first() {
        let (packet, later) = after.split_at(usize::from(length).min(after.len()));
        let length = u32::try_from(packet.len()).expect("a packet has a few hundred bytes");
        let padding = packet.len().next_multiple_of(4) - packet.len();
        let (lengths, times) = ([length.to_le_bytes(); 2].concat(), [0; 12]);
        block(
            &mut file,
            6,
            &[&times[..], &lengths, packet, &[0; 3][..padding]].concat(),
        );
        rest = later;
    }
    file
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = u32::try_from(body.len() + 12)
        .expect("a block has a few hundred bytes")
        .to_le_bytes();
    file.extend([&kind.to_le_bytes()[..], &length, body, &length].concat());
}

/// A capture of one connection: before each payload stand flags, a shift of the sequence number,
/// and a length.
fn connection(mut rest: &[u8]) -> Vec<u8> {
    let mut file = header(101);
    let mut next = [0_u32; 2];
    while let [flags, shift, length, after @ ..] = rest {
        let (data, later) = after.split_at(usize::from(*length).min(after.len()));
        let side = usize::from(flags >> 7);
        let sequence = next[side].wrapping_add_signed(i32::from(shift.cast_signed()));
        let tcp_flags = (flags & 0x07) | 0x10;
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 9, 6, 0, 0];
        let total = u16::try_from(40 + data.len()).expect("a payload has at most 255 bytes");
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        let ends = [[192, 0, 2, 1], [192, 0, 2, 2]];
        packet.extend([ends[side], ends[1 - side]].concat());
        packet.extend(if side == 0 {
            [4, 0, 0, 80]
        } else {
            [0, 80, 4, 0]
        });
        packet.extend(sequence.to_be_bytes());
        packet.extend(next[1 - side].to_be_bytes());
        packet.extend([0x50, tcp_flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(data);
        record(&mut file, &packet);
        let sent = u32::from(tcp_flags & 0x03 != 0) + u32::from(total) - 40;
        next[side] = next[side].max(sequence.wrapping_add(sent));
        rest = later;
    }
    file
}

fn header(link: u8) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.extend([0; 12]);
    file.extend([link, 0, 0, 0]);
    file
}

fn record(file: &mut Vec<u8>, packet: &[u8]) {
    let length = u32::try_from(packet.len())
        .expect("a packet has a few hundred bytes")
        .to_le_bytes();
    file.extend([[0; 4], [0; 4], length, length].concat());
    file.extend(packet);
}
