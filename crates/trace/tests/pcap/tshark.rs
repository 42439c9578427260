//! Captures beside what `tshark` says of them; `tshark/README.md` has its version and the commands.
//!
//! Of each request: when it came, which response is its own, what that declares, when it began and
//! when it was complete. Of each connection: the round trip of its handshake. Of all of them: how
//! many segments came again.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use weir_trace::{AbortedBy, Row};

use crate::conversation::{Conversation, Segment, Side};
use crate::files::{ETHERNET, Writer, packets};
use crate::import;

/// Where the captures and what was said of them are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pcap/tshark")
}

fn unzipped(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|end| end != "gz") {
        return bytes;
    }
    let mut content = Vec::new();
    MultiGzDecoder::new(&bytes[..])
        .read_to_end(&mut content)
        .unwrap();
    content
}

/// A frame, as far as anything is compared.
#[derive(Clone, Debug, Default)]
struct Frame {
    number: u64,
    time_us: i64,
    stream: u64,
    is_syn: bool,
    is_ack: bool,
    is_again: bool,
    /// The frame in which the message begins that ends in this one.
    begins: u64,
    /// Of a request that ends here.
    method: String,
    uri: String,
    /// Of a response that ends here.
    status: Option<u16>,
    /// The frame in which its request ends.
    request: Option<u64>,
    declared: Option<u64>,
}

/// A table of `tshark -T fields`.
fn frames(name: &str) -> Vec<Frame> {
    let text = String::from_utf8(unzipped(&folder().join(name))).unwrap();
    text.lines().map(frame).collect()
}

fn frame(line: &str) -> Frame {
    let cells: Vec<&str> = line.split('\t').collect();
    let [
        number,
        time,
        stream,
        syn,
        ack,
        again,
        parts,
        method,
        uri,
        status,
        request,
        declared,
    ] = cells[..]
    else {
        panic!("{} cells in `{line}`", cells.len());
    };
    let (seconds, fraction) = time.split_once('.').unwrap();
    let fraction: i64 = fraction[..6].parse().unwrap();
    let number_of = |cell: &str| (!cell.is_empty()).then(|| cell.parse().unwrap());
    let number = number.parse().unwrap();
    Frame {
        number,
        time_us: seconds.parse::<i64>().unwrap() * 1_000_000 + fraction,
        stream: stream.parse().unwrap(),
        is_syn: syn == "1",
        is_ack: ack == "1",
        is_again: !again.is_empty(),
        begins: number_of(parts.split(',').next().unwrap()).unwrap_or(number),
        method: method.to_owned(),
        uri: uri.to_owned(),
        status: number_of(status).map(|status| u16::try_from(status).unwrap()),
        request: number_of(request),
        declared: number_of(declared),
    }
}

/// Compares the rows of a capture with the table that was made of it.
fn compare(capture: &[u8], table: &str) {
    let (mut rows, counts) = import(capture);
    let frames = frames(table);
    let times_us: BTreeMap<u64, i64> = frames
        .iter()
        .map(|frame| (frame.number, frame.time_us))
        .collect();
    let responses = responses(&frames);
    let mut requests: Vec<&Frame> = frames
        .iter()
        .filter(|frame| !frame.method.is_empty())
        .collect();
    requests.sort_by_key(|frame| frame.begins);
    rows.sort_by_key(|row| (requested_us(row), row.connection));
    assert_eq!(rows.len(), requests.len(), "requests");
    for (row, request) in rows.iter().zip(requests) {
        let response = responses.get(&request.number);
        let at = |offset: Option<u64>| offset.map(|us| row.arrival_us + us.cast_signed());
        let both = format!("{request:?} {response:?} {row:?}");
        assert_eq!(requested_us(row), times_us[&request.begins], "{both}");
        assert_eq!(row.method.unwrap().as_str(), request.method, "{both}");
        assert_eq!(row.target_text.as_ref(), Some(&request.uri), "{both}");
        let Some(response) = response else {
            assert_ne!(row.aborted_by, Some(AbortedBy::Neither), "{both}");
            continue;
        };
        assert_eq!(row.status, response.status, "{both}");
        assert_eq!(row.declared_bytes, response.declared, "{both}");
        assert_eq!(
            at(row.response_us),
            Some(times_us[&response.begins]),
            "{both}"
        );
        if row.declared_bytes.is_none() && row.received_bytes != Some(0) {
            // its content ends before the chunk that says so
            assert!(at(row.last_byte_us) < Some(response.time_us), "{both}");
        } else {
            assert_eq!(at(row.last_byte_us), Some(response.time_us), "{both}");
        }
    }
    let again = frames.iter().filter(|frame| frame.is_again).count();
    assert_eq!(counts.again, again as u64, "segments that came again");
    let syns = frames
        .iter()
        .filter(|frame| frame.is_syn && !frame.is_ack)
        .count();
    assert_eq!(counts.connections, syns as u64, "connections");
    let mut ours: Vec<u64> = rows.iter().filter_map(|row| row.setup_us).collect();
    let mut theirs = setups(&frames);
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs, "round trips of handshakes");
}

fn requested_us(row: &Row) -> i64 {
    row.arrival_us + row.request_us.unwrap().cast_signed()
}

/// Final responses by the frame of their request.
fn responses(frames: &[Frame]) -> BTreeMap<u64, &Frame> {
    let finals = frames
        .iter()
        .filter(|frame| frame.status.is_some_and(|status| status >= 200));
    finals
        .filter_map(|frame| Some((frame.request?, frame)))
        .collect()
}

/// From SYN to SYN-ACK of each connection that carried a request.
fn setups(frames: &[Frame]) -> Vec<u64> {
    let of = |stream: u64, is_ack: bool| {
        let mut syns = frames
            .iter()
            .filter(|frame| frame.is_syn && frame.is_ack == is_ack);
        syns.find(|frame| frame.stream == stream)
            .map(|frame| frame.time_us)
    };
    let mut streams: Vec<u64> = frames
        .iter()
        .filter(|frame| !frame.method.is_empty())
        .map(|frame| frame.stream)
        .collect();
    streams.sort_unstable();
    streams.dedup();
    let pairs = streams
        .into_iter()
        .filter_map(|stream| of(stream, false).zip(of(stream, true)));
    pairs.map(|(syn, answer)| answer.abs_diff(syn)).collect()
}

/// A capture with what is hard in it: segments that come again or out of order, an interim
/// response, chunks, an abort, a connection that began before the capture.
fn mixed() -> Vec<u8> {
    let from = |port: u16| format!("192.0.2.7:{port}");
    let server = "198.51.100.1:80";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let with_length =
        |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let kilobyte = "0123456789abcdef".repeat(64);

    let mut plain = Conversation::between(&from(50_000), server, 1000, 2_000_000);
    plain.wait(40_000).ask(&get("/plain")).wait(60_000);
    plain
        .answer(&with_length(3072))
        .send(Side::Server, kilobyte.as_bytes());
    plain.answer(&kilobyte).wait(5000).answer(&kilobyte);
    plain
        .ask(&get("/second"))
        .answer("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n")
        .close();

    let mut turned = Conversation::between(&from(50_001), server, 1 << 31, u32::MAX - 500);
    turned
        .later(7_000)
        .ask(&get("/turned"))
        .answer(&with_length(3072));
    for _ in 0..3 {
        turned.send(Side::Server, kilobyte.as_bytes());
    }
    let last = turned.segments.len() - 1;
    swap(&mut turned.segments, last - 1, last);
    turned
        .ask(&get("/behind"))
        .answer(&with_length(5))
        .answer("hello")
        .close();

    let mut again = Conversation::between(&from(50_002), server, 77, 99);
    again
        .later(13_000)
        .ask(&get("/again"))
        .answer(&with_length(1024))
        .answer(&kilobyte);
    let copy = again.segments[again.segments.len() - 2].clone();
    again.wait(300_000);
    again.segments.push(Segment {
        time_us: again.now_us,
        ..copy
    });
    again
        .wait(2_000)
        .ask(&get("/afterwards"))
        .answer(&with_length(0))
        .close();

    let mut posted = Conversation::between(&from(50_003), server, 5, 6);
    posted.later(21_000);
    posted.ask("POST /posted HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    posted
        .answer("HTTP/1.1 100 Continue\r\n\r\n")
        .ask("hello")
        .wait(9000);
    posted.answer("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n");
    posted
        .answer("5\r\nthere\r\n")
        .wait(1000)
        .answer("0\r\n\r\n")
        .close();

    let mut left = Conversation::between(&from(50_004), server, 15, 16);
    left.later(33_000)
        .ask(&get("/left"))
        .answer(&with_length(9999))
        .answer(&kilobyte);
    left.rst(Side::Client);

    let mut joined = Conversation::joined(&from(50_005), server, 25, 26);
    joined
        .later(41_000)
        .ask(&get("/joined"))
        .answer(&with_length(4))
        .answer("four")
        .close();

    let all = [plain, turned, again, posted, left, joined].into_iter();
    let mut segments: Vec<Segment> = all.flat_map(|it| it.segments).collect();
    segments.sort_by_key(|segment| segment.time_us);
    Writer { is_big: false }.classic(1, false, &packets(&segments, ETHERNET))
}

/// Two segments change places; the monitor's clock goes on as before.
fn swap(segments: &mut [Segment], one: usize, other: usize) {
    let (first, second) = (segments[one].time_us, segments[other].time_us);
    segments.swap(one, other);
    (segments[one].time_us, segments[other].time_us) = (first, second);
}

#[test]
fn generated_capture_equals_the_file_read_by_tshark() {
    let path = folder().join("mixed.pcap");
    if std::env::var_os("WEIR_WRITE_CAPTURE").is_some() {
        std::fs::write(&path, mixed()).unwrap();
    }
    assert!(
        unzipped(&path) == mixed(),
        "run it with WEIR_WRITE_CAPTURE=1, and tshark after it"
    );
}

#[test]
fn mixed_capture_has_the_transactions_reported_by_tshark() {
    compare(&mixed(), "mixed.tsv");
}

#[test]
fn real_capture_has_the_transactions_reported_by_tshark() {
    let capture = unzipped(&folder().join("../../../../sim/tests/squid/data/devcap.pcap.gz"));
    compare(&capture, "squid.tsv.gz");
}
