//! What holds for every source.

use super::*;
use std::io::{BufReader, Read, Write};

/// Hides nothing: a reader of the test sees what was hashed.
pub(super) struct Open;

impl Hide for Open {
    fn client(&self, address: &[u8]) -> u64 {
        self.value(address)
    }

    fn server(&self, origin: &[u8]) -> u64 {
        self.value(origin)
    }

    fn target(&self, uri: &[u8]) -> u64 {
        self.value(uri)
    }

    fn value(&self, value: &[u8]) -> u64 {
        twox_hash::XxHash3_64::oneshot(value)
    }

    fn variant(&self, said: &[(&str, Vec<u8>)]) -> u64 {
        self.value(format!("{said:?}").as_bytes())
    }

    fn keeps_names(&self) -> bool {
        true
    }
}

/// Gives one byte at a time.
struct Slowly<'a>(&'a [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let (Some((first, rest)), Some(place)) = (self.0.split_first(), out.first_mut()) else {
            return Ok(0);
        };
        *place = *first;
        self.0 = rest;
        Ok(1)
    }
}

pub(super) type Item = Result<Row, Damage>;

/// Everything that is in `input`.
pub(super) fn all(input: &[u8], format: Option<Format>) -> Vec<Item> {
    let opened = open(input, format, Settings::new(&Open)).unwrap();
    opened.rows.collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The same, with the format found by itself, read at once, byte by byte, and compressed: they must
/// agree.
pub(super) fn everyway(input: &[u8]) -> Vec<Item> {
    let whole = all(input, None);
    let slowly = open(Slowly(input), None, Settings::new(&Open)).unwrap();
    assert_eq!(slowly.rows.collect::<Vec<_>>(), whole, "byte by byte");
    let format = Some(slowly.format);
    let again: Vec<_> = match slowly.format {
        // no larger pieces than a byte behind the first look either
        Format::Har => {
            let archive = BufReader::with_capacity(1, input);
            items::Items::new(har::Har::new(archive, Settings::new(&Open))).collect()
        }
        _ => all(input, format),
    };
    assert_eq!(again, whole, "in small pieces");
    assert_eq!(all(&gzip(input), None), whole, "gzip");
    assert_eq!(all(&zstd(input), None), whole, "zstd");
    whole
}

fn check(input: &[u8], expected: Option<Format>) {
    let found = Format::detect(input, true);
    assert_eq!(found, expected, "{}", input.escape_ascii());
}

#[test]
fn format_is_detected_from_the_first_bytes() {
    let squid =
        b"1286536308.779 180 192.168.0.224 TCP_MISS/200 411 GET http://a/ - DIRECT/1.2.3.4\n";
    let common = b"a - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 12\n";
    check(squid, Some(Format::Squid));
    check(common, Some(Format::Common));
    check(
        b"\n#comment\n109 26 1\n139 3 2\n",
        Some(Format::Webcachesim),
    );
    check(b"\xef\xbb\xbf \n{\"log\":", Some(Format::Har));
    check(b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00", Some(Format::Pcap));
    check(b"\x0a\x0d\x0d\x0a", Some(Format::Pcapng));
    check(b"hello\nworld\n", None);
    check(b"", None);
    check(b"\0\0\0\0", None);
}

#[test]
fn every_format_name_parses_to_its_format() {
    for &format in Format::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    assert_eq!("combined".parse(), Ok(Format::Common));
    let refused = "apache".parse::<Format>().unwrap_err();
    assert!(
        refused.contains("`apache` is none of squid, common"),
        "{refused}"
    );
}

#[test]
fn line_truncated_by_the_detection_buffer_is_not_used() {
    let cut = b"1286536308.779 180 19";
    assert_eq!(Format::detect(cut, false), None);
    let cut = b"noise\n109 26 1";
    assert_eq!(Format::detect(cut, false), None);
    assert_eq!(Format::detect(cut, true), Some(Format::Webcachesim));
}

#[test]
fn unsupported_input_is_refused_with_a_hint() {
    for (input, says, advises) in [
        (&b"BZh91AY"[..], "bzip2", "bzcat"),
        (b"\xfd7zXZ\0\0", "xz", "xzcat"),
        (b"PK\x03\x04..", "zip", "unzip"),
        (b"PAR1....", "trace already", "weir trace stats"),
        (b"hello\x1b[2J\n", r"hello\x1b[2J", "--format"),
    ] {
        let refused = open(input, None, Settings::new(&Open)).unwrap_err();
        assert!(refused.to_string().contains(says), "{refused}");
        assert!(refused.hint().unwrap().contains(advises), "{refused}");
    }
    let empty = open(&b""[..], None, Settings::new(&Open)).unwrap_err();
    assert_eq!(empty.to_string(), "it is empty");
}

#[test]
fn rows_before_the_end_of_a_truncated_gzip_are_read_then_an_error() {
    let line = b"109 26 1\n".repeat(10_000);
    let whole = gzip(&line);
    let found = all(&whole[..whole.len() / 2], Some(Format::Webcachesim));
    let last = found.last().unwrap().as_ref().unwrap_err();
    assert_eq!(last.reason, reason::CUT_OFF);
    assert!(!last.goes_on);
    assert!(found.len() > 100, "what came before it is lost");
}
