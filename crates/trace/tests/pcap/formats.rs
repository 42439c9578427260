//! Files, link types and addresses.

use etherparse::{IpFragOffset, IpHeaders, IpNumber, Ipv6FragmentHeader, PacketBuilder};
use weir_trace::Row;
use weir_trace::import::pcap::Capture;
use weir_trace::import::{Damage, Place, Settings};

use crate::conversation::{Conversation, START_US};
use crate::files::{Clock, ETHERNET, FRAMINGS, Packet, RAW, Writer, cut, packets};
use crate::invariants::OPEN;
use crate::{CONTENT, GET, OK, import};

fn conversation() -> Conversation {
    let mut conversation = Conversation::open();
    conversation.ask(GET).answer(&format!("{OK}{CONTENT}"));
    conversation
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    conversation
}

/// The rows of `conversation`, which all files of it must give.
fn expected(conversation: &Conversation) -> Vec<Row> {
    let (rows, _) = import(&Writer { is_big: false }.classic(
        101,
        false,
        &packets(&conversation.segments, RAW),
    ));
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].arrival_us, START_US);
    assert_eq!(rows[1].received_bytes, Some(10));
    rows
}

/// Reads a damaged file: its rows, and each fault with its packet.
fn damaged(file: &[u8]) -> (Vec<Row>, Vec<(u64, String)>) {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for next in Capture::new(file, &Settings::new(&OPEN)) {
        match next {
            Ok(row) => rows.push(row),
            Err(damaged) => faults.push((packet(&damaged), damaged.what)),
        }
    }
    (rows, faults)
}

fn packet(damaged: &Damage) -> u64 {
    assert!(damaged.goes_on && damaged.hint().contains("--on-damage skip"));
    match damaged.place {
        Place::Packet(number) => number,
        other => panic!("{other}"),
    }
}

#[test]
fn byte_order_and_time_resolution_do_not_change_the_rows() {
    let conversation = conversation();
    let expected = expected(&conversation);
    let packets = packets(&conversation.segments, ETHERNET);
    for is_big in [false, true] {
        for is_nano in [false, true] {
            let file = Writer { is_big }.classic(1, is_nano, &packets);
            assert_eq!(
                import(&file).0,
                expected,
                "big {is_big}, nanoseconds {is_nano}"
            );
        }
    }
}

#[test]
fn clock_resolution_and_offset_of_an_interface_are_applied() {
    let conversation = conversation();
    let expected = expected(&conversation);
    let packets = packets(&conversation.segments, ETHERNET);
    let clocks = [
        (None, 1_000_000, 0),
        (Some(6), 1_000_000, 900_000_000),
        (Some(9), 1_000_000_000, 0),
        (Some(3), 1000, -5),
        // 2^-20 s is a little less than a microsecond: all times here are whole milliseconds, and
        // 2^-25 keeps them to the microsecond
        (Some(0x80 | 25), 1 << 25, 999_999_999),
    ];
    for is_big in [false, true] {
        for (resolution, ticks_a_second, offset_s) in clocks {
            let clock = Clock {
                resolution,
                ticks_a_second,
                offset_s,
            };
            let file = Writer { is_big }.blocks(1, clock, &packets);
            let rows = import(&file).0;
            if resolution == Some(0x80 | 25) {
                // a tick is rounded down when it is written and again when it is read
                for (row, expected) in rows.iter().zip(&expected) {
                    assert!((row.arrival_us - expected.arrival_us).abs() <= 2);
                    assert_eq!(row.target, expected.target);
                }
                continue;
            }
            assert_eq!(rows, expected, "big {is_big}, {clock:?}");
        }
    }
}

#[test]
fn packet_is_found_behind_every_supported_link_header() {
    let mut six = Conversation::between("[2001:db8::7]:50000", "[2001:db8::1]:80", 7, 9);
    six.ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    for conversation in [conversation(), six] {
        let expected = expected(&conversation);
        for (number, framing) in FRAMINGS.into_iter().enumerate() {
            let file = Writer { is_big: false }.classic(
                framing.0,
                false,
                &packets(&conversation.segments, framing),
            );
            let (rows, counts) = import(&file);
            assert_eq!(
                rows, expected,
                "framing {number}, link type {}: {counts:?}",
                framing.0
            );
        }
    }
}

#[test]
fn each_interface_and_section_has_its_own_clock_and_link_type() {
    let conversation = conversation();
    let expected = expected(&conversation);
    let ethernet = packets(&conversation.segments, ETHERNET);
    let raw = packets(&conversation.segments, RAW);
    let nanos = Clock {
        resolution: Some(9),
        ticks_a_second: 1_000_000_000,
        offset_s: 0,
    };
    let (little, big) = (Writer { is_big: false }, Writer { is_big: true });
    let mut file = little.section();
    file.extend(little.interface(1, Clock::USUAL));
    file.extend(little.interface(101, nanos));
    let middle = ethernet.len() / 2;
    for (number, (ethernet, raw)) in ethernet.iter().zip(&raw).enumerate() {
        if number == middle {
            // a section of another machine: its interfaces count from 0 again
            file.extend(big.section());
            file.extend(big.interface(101, nanos));
        }
        if number >= middle {
            file.extend(big.enhanced(0, nanos, raw));
        } else if number % 2 == 0 {
            file.extend(little.enhanced(0, Clock::USUAL, ethernet));
        } else {
            file.extend(little.enhanced(1, nanos, raw));
        }
    }
    assert_eq!(import(&file).0, expected);
}

#[test]
fn packet_that_is_no_tcp_segment_is_skipped_and_counted() {
    let mut conversation = conversation();
    let expected = expected(&conversation);
    let mut packets = packets(&conversation.segments, ETHERNET);
    let mut frame = |bytes: Vec<u8>| {
        packets.insert(
            1,
            Packet {
                time_us: START_US,
                wire_bytes: bytes.len(),
                bytes,
            },
        );
    };
    // ARP
    frame([&[0; 12][..], &[0x08, 0x06], &[0; 28]].concat());
    // UDP
    let mut udp = Vec::new();
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 9).udp(53, 53);
    builder.write(&mut udp, b"x").unwrap();
    frame((ETHERNET.1)(&udp));
    // a fragment
    let segment = &conversation.segments[3];
    let mut fragment = segment.packet();
    fragment[6] |= 0x20;
    frame((ETHERNET.1)(&fragment));
    // one that ends within its headers
    frame((ETHERNET.1)(&segment.packet())[..40].to_vec());
    // one whose IP header is impossible
    let mut malformed = segment.packet();
    malformed[0] = 0x41;
    frame((ETHERNET.1)(&malformed));
    let (rows, counts) = import(&Writer { is_big: false }.classic(1, false, &packets));
    assert_eq!(rows, expected);
    let counted: Vec<_> = counts
        .iter()
        .filter(|(name, count)| name.starts_with("packet-") && *count > 0)
        .collect();
    let once = [
        "packet-not-ip",
        "packet-fragment",
        "packet-not-tcp",
        "packet-truncated-in-headers",
        "packet-malformed",
    ];
    assert_eq!(counted, once.map(|name| (name, 1)));
    assert_eq!(counts.packets, packets.len() as u64);
    // every packet compressed by PPP, or of a link type that is not known
    conversation.segments.truncate(4);
    let vj = |packet: &[u8]| [&[0x00, 0x2d][..], packet].concat();
    let (_, counts) = import(&Writer { is_big: false }.classic(
        9,
        false,
        &crate::files::packets(&conversation.segments, (9, vj)),
    ));
    assert!(
        counts
            .iter()
            .any(|count| count == ("packet-compressed-header", 4))
    );
    let (_, counts) = import(&Writer { is_big: false }.classic(
        147,
        false,
        &crate::files::packets(&conversation.segments, RAW),
    ));
    assert!(counts.iter().any(|count| count == ("packet-link-type", 4)));
}

#[test]
fn ipv6_atomic_fragment_is_read_and_a_real_fragment_is_skipped() {
    let mut conversation = Conversation::between("[2001:db8::7]:50000", "[2001:db8::1]:80", 7, 9);
    conversation
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let expected = expected(&conversation);
    let with_fragment_header = |packet: &[u8], offset: u16, more: bool| {
        let (ip, rest) = IpHeaders::from_slice(packet)
            .map(|(ip, rest)| (ip, rest.payload.to_vec()))
            .unwrap();
        let IpHeaders::Ipv6(mut header, mut extensions) = ip else {
            panic!("no IPv6");
        };
        extensions.fragment = Some(Ipv6FragmentHeader::new(
            IpNumber::TCP,
            IpFragOffset::try_new(offset).unwrap(),
            more,
            1,
        ));
        header.next_header = extensions.set_next_headers(IpNumber::TCP);
        header.payload_length += 8;
        let mut out = Vec::new();
        header.write(&mut out).unwrap();
        extensions.write(&mut out, header.next_header).unwrap();
        out.extend(rest);
        out
    };
    // one fragment that is the whole packet (RFC 6946) is none
    let mut packets = packets(&conversation.segments, RAW);
    for packet in &mut packets {
        packet.bytes = with_fragment_header(&packet.bytes, 0, false);
    }
    let file = Writer { is_big: false }.classic(101, false, &packets);
    assert_eq!(import(&file).0, expected);
    for packet in &mut packets {
        packet.bytes = with_fragment_header(&packet.bytes[..], 1, true);
    }
    let (rows, counts) = import(&Writer { is_big: false }.classic(101, false, &packets));
    assert_eq!(rows, []);
    assert!(
        counts
            .iter()
            .any(|count| count == ("packet-fragment", packets.len() as u64))
    );
}

#[test]
fn content_beyond_the_snap_length_is_counted_as_received() {
    let mut conversation = Conversation::open();
    let content = "x".repeat(1000);
    conversation.ask(GET).answer(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n{content}"
    ));
    conversation
        .answer(&content)
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let captured = cut(packets(&conversation.segments, ETHERNET), 130);
    let (rows, counts) = import(&Writer { is_big: false }.classic(1, false, &captured));
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].received_bytes, rows[0].declared_bytes),
        (Some(2000), Some(2000))
    );
    assert_eq!(
        (rows[1].received_bytes, rows[1].status),
        (Some(10), Some(200))
    );
    assert_eq!((counts.holes, counts.unanswered), (0, 0));
    assert!(counts.missing_bytes > 1800, "{counts:?}");
    // heads that are cut are lost, and nothing is made up for them
    let captured = cut(packets(&conversation.segments, ETHERNET), 80);
    let (rows, counts) = import(&Writer { is_big: false }.classic(1, false, &captured));
    assert_eq!(rows, []);
    // two of each
    assert_eq!((counts.unreadable, counts.requests), (4, 0), "{counts:?}");
}

#[test]
fn zero_ip_length_of_segmentation_offload_is_accepted() {
    let conversation = conversation();
    let expected = expected(&conversation);
    let mut packets = packets(&conversation.segments, RAW);
    for packet in &mut packets {
        packet.bytes[2..4].fill(0);
    }
    let (rows, _) = import(&Writer { is_big: false }.classic(101, false, &packets));
    assert_eq!(rows, expected);
}

#[test]
fn damaged_pcap_is_reported_and_rows_before_the_damage_are_read() {
    let conversation = conversation();
    let all = packets(&conversation.segments, ETHERNET);
    let writer = Writer { is_big: false };
    let whole = writer.classic(1, false, &all);
    // in the middle of the packet that brings the second request
    let at = all
        .iter()
        .position(|packet| packet.time_us == conversation.segments[7].time_us)
        .unwrap();
    let until = writer.classic(1, false, &all[..at]).len();
    let (rows, faults) = damaged(&whole[..until + 20]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].received_bytes, Some(10));
    let what = format!(
        "the file ends within it: 4 bytes of {} are there",
        all[at].bytes.len()
    );
    assert_eq!(faults, [(at as u64 + 1, what)]);
    // a length that no packet has
    let mut broken = whole.clone();
    broken[until + 11] = 0x7f;
    let (rows, faults) = damaged(&broken);
    assert_eq!((rows.len(), faults.len()), (1, 1));
    assert!(faults[0].1.starts_with("it claims 2130706"), "{faults:?}");
    for (bytes, expected) in [
        (&b""[..], "the file ends within its header"),
        (b"\xd4\xc3\xb2\xa1\x02", "the file ends within its header"),
        (
            b"GET / HTTP/1.1",
            "the file begins with the bytes [47, 45, 54, 20], which no pcap or pcapng file does",
        ),
    ] {
        assert_eq!(damaged(bytes), (vec![], vec![(1, expected.to_owned())]));
    }
}

#[test]
fn damaged_pcapng_is_reported_and_rows_before_the_damage_are_read() {
    let conversation = conversation();
    let all = packets(&conversation.segments, ETHERNET);
    let writer = Writer { is_big: true };
    let first = writer.blocks(1, Clock::USUAL, &all[..7]);
    let check = |more: &[u8], rows_expected: usize, expected: &str| {
        let mut file = first.clone();
        file.extend(more);
        let (rows, faults) = damaged(&file);
        assert_eq!(rows.len(), rows_expected, "{expected}: {faults:?}");
        assert_eq!(
            faults
                .first()
                .map(|(packet, what)| (*packet, what.as_str())),
            Some((8, expected))
        );
        assert_eq!(faults.len(), 1);
    };
    let mut uneven = writer.enhanced(0, Clock::USUAL, &all[7]);
    let last = uneven.len() - 1;
    let length = uneven.len();
    uneven[last] ^= 4;
    check(
        &uneven,
        1,
        &format!(
            "a block says {length} bytes at its beginning and {} at its end",
            length ^ 4
        ),
    );
    let rest = writer.block(6, &[0; 16]);
    check(&rest, 1, "a block of type 0x6 claims to be 28 bytes long");
    check(
        &[0, 0, 0, 6, 0, 0, 0, 7],
        1,
        "a block of type 0x6 claims to be 7 bytes long",
    );
    check(
        &[0, 0, 0, 6, 0x7f, 0, 0, 0],
        1,
        "a block of type 0x6 claims to be 2130706432 bytes long",
    );
    check(
        &writer.block(0x0a0d_0d0a, &[7; 16]),
        1,
        "a section header has 0x07070707 for its byte order",
    );
    // a packet of an interface that is not there is one packet lost, and the rest can be read
    let mut strange = writer.enhanced(9, Clock::USUAL, &all[7]);
    for packet in &all[7..] {
        strange.extend(writer.enhanced(0, Clock::USUAL, packet));
    }
    check(
        &strange,
        2,
        "it was captured at interface 9, which the file does not describe",
    );
}

#[test]
fn packet_without_a_timestamp_is_skipped_and_counted() {
    let conversation = conversation();
    let writer = Writer { is_big: false };
    let mut file = writer.section();
    file.extend(writer.interface(101, Clock::USUAL));
    for segment in &conversation.segments {
        let mut packet = segment.packet();
        let length = u32::try_from(packet.len()).unwrap().to_le_bytes();
        packet.resize(packet.len().next_multiple_of(4), 0);
        file.extend(writer.block(3, &[&length[..], &packet].concat()));
    }
    let (rows, counts) = import(&file);
    assert_eq!(rows, []);
    assert!(
        counts
            .iter()
            .any(|count| count == ("packet-without-time", conversation.segments.len() as u64))
    );
}
