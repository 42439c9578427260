//! What holds for every input. The fuzz targets and the random tests call the same functions.
//!
//! Each function panics if its invariant does not hold. Costs grow with the square of the input.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "test binaries and fuzz targets each include this module and use their part of it"
)]

use weir_semantics::{FieldLine, Method};
use weir_wire::{
    Arrival, BodyError, BodyEvent, BodyLength, BodyReader, BodyStep, FramingError, HeadError,
    HeadLimits, LineBuffer, Progress, Repairs, parse_fields, parse_request, parse_response,
    parse_response_leniently, response_body, write,
};

/// A head with nothing borrowed, whichever kind it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    start: [String; 3],
    fields: Vec<(String, Vec<u8>)>,
    consumed: usize,
}

type Outcome = Result<Option<Head>, HeadError>;

fn owned(fields: &[FieldLine<'_>]) -> Vec<(String, Vec<u8>)> {
    fields
        .iter()
        .map(|line| (line.name.to_owned(), line.value.to_vec()))
        .collect()
}

fn read_request(text: &[u8], limits: &HeadLimits) -> Outcome {
    let mut lines = LineBuffer::new();
    Ok(match parse_request(text, limits, &mut lines)? {
        Progress::Partial => None,
        Progress::Complete { head, consumed } => {
            let start = [
                head.method.to_owned(),
                head.target.to_owned(),
                head.version.as_str().to_owned(),
            ];
            Some(Head {
                start,
                fields: owned(head.fields),
                consumed,
            })
        }
    })
}

fn read_response(text: &[u8], limits: &HeadLimits) -> Outcome {
    let mut lines = LineBuffer::new();
    Ok(match parse_response(text, limits, &mut lines)? {
        Progress::Partial => None,
        Progress::Complete { head, consumed } => {
            let start = [
                head.version.as_str().to_owned(),
                head.status.to_string(),
                head.reason.to_owned(),
            ];
            Some(Head {
                start,
                fields: owned(head.fields),
                consumed,
            })
        }
    })
}

/// A request head read whole or byte by byte gives the same head or the same error, at the same
/// byte; a head that is read keeps its limits, holds no octet that could end a line elsewhere, and
/// means the same when it is written again.
pub fn request_head(text: &[u8], limits: &HeadLimits) {
    let outcome = pieces(text, limits, read_request);
    if let Ok(Some(head)) = outcome {
        let [method, target, version] = &head.start;
        assert!(
            target.bytes().all(|byte| byte.is_ascii_graphic()),
            "target {target:?}"
        );
        let line = format!("{method} {target} {version}");
        round_trip(&line, &head, text, limits, read_request);
    }
}

/// A response head read whole or byte by byte gives the same head or the same error, at the same
/// byte; a head that is read keeps its limits, holds no octet that could end a line elsewhere, and
/// means the same when it is written again.
pub fn response_head(text: &[u8], limits: &HeadLimits) {
    let outcome = pieces(text, limits, read_response);
    if let Ok(Some(head)) = outcome {
        let line = head.start.join(" ");
        assert_eq!(head.start[1].len(), 3, "status {:?}", head.start[1]);
        round_trip(&line, &head, text, limits, read_response);
    }
}

fn read_response_leniently(text: &[u8], limits: &HeadLimits) -> Outcome {
    Ok(repaired_response(text, limits)?.map(|(head, _)| head))
}

fn repaired_response(
    text: &[u8],
    limits: &HeadLimits,
) -> Result<Option<(Head, Repairs)>, HeadError> {
    let mut lines = LineBuffer::new();
    Ok(match parse_response_leniently(text, limits, &mut lines)? {
        Progress::Partial => None,
        Progress::Complete {
            head: (head, repairs),
            consumed,
        } => {
            let start = [
                head.version.as_str().to_owned(),
                head.status.to_string(),
                head.reason.to_owned(),
            ];
            let fields = owned(head.fields);
            let head = Head {
                start,
                fields,
                consumed,
            };
            Some((head, repairs))
        }
    })
}

/// A response head read leniently, whole or byte by byte, gives the same head or the same error, at
/// the same byte. What the strict reading reads the lenient one reads with the same lines, framing
/// fields aside. What it repairs is canonical: written again, it is read by the strict reading
/// alike, and nothing is left to repair.
pub fn lenient_response_head(text: &[u8], limits: &HeadLimits) {
    let outcome = pieces(text, limits, read_response_leniently);
    let strict = read_response(text, limits);
    match (&strict, &outcome) {
        (Ok(Some(strict)), Ok(Some(head))) => {
            assert_eq!(
                (&strict.start, strict.consumed),
                (&head.start, head.consumed)
            );
            let others = |fields: &[(String, Vec<u8>)]| -> Vec<_> {
                fields
                    .iter()
                    .filter(|(name, _)| !is_framing(name))
                    .cloned()
                    .collect()
            };
            assert_eq!(others(&strict.fields), others(&head.fields));
        }
        (Ok(None), outcome) => assert_eq!(outcome, &Ok(None), "{}", text.escape_ascii()),
        (Ok(Some(_)), outcome) => panic!("only strict: {} {outcome:?}", text.escape_ascii()),
        (Err(_), _) => {}
    }
    let Ok(Some((head, repairs))) = repaired_response(text, limits) else {
        return;
    };
    assert_eq!(repairs.lines, strict.is_err(), "{}", text.escape_ascii());
    assert!(repairs.lines || !repairs.mixed_line_ends);
    let written = canonical(&head);
    let limits = HeadLimits {
        bytes_max: written.len(),
        ..*limits
    };
    let expected = Head {
        consumed: written.len(),
        ..head
    };
    assert_eq!(read_response(&written, &limits), Ok(Some(expected.clone())));
    assert_eq!(
        repaired_response(&written, &limits),
        Ok(Some((expected, Repairs::default()))),
        "{}",
        text.escape_ascii()
    );
    if repairs.framing {
        framing_is_strict(&written, &limits);
    }
}

fn is_framing(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
}

/// The head as it is written.
fn canonical(head: &Head) -> Vec<u8> {
    let mut written = head.start.join(" ").into_bytes();
    written.extend_from_slice(b"\r\n");
    for (name, value) in &head.fields {
        write::field(&mut written, name, value);
    }
    write::end_of_head(&mut written);
    written
}

/// Repaired framing fields leave no doubt, but for a look-alike beside them and a number that is
/// too great.
fn framing_is_strict(text: &[u8], limits: &HeadLimits) {
    let mut lines = LineBuffer::new();
    let Ok(Progress::Complete { head, .. }) = parse_response(text, limits, &mut lines) else {
        panic!("not read: {}", text.escape_ascii());
    };
    let framing = response_body(head.version, Method::Get, head.status, head.fields);
    assert!(
        matches!(
            framing,
            Ok(_) | Err(FramingError::Lookalike | FramingError::ContentLengthTooLarge)
        ),
        "{framing:?} {}",
        text.escape_ascii()
    );
}

/// Reads every beginning of `text`, and checks that they agree with the whole.
fn pieces(text: &[u8], limits: &HeadLimits, read: fn(&[u8], &HeadLimits) -> Outcome) -> Outcome {
    let whole = read(text, limits);
    let mut arrival = Arrival::new();
    let mut decided = false;
    for length in 0..=text.len() {
        let outcome = read(&text[..length], limits);
        let is_worth_reading = arrival.is_worth_reading(&text[..length], limits);
        if outcome != Ok(None) && !decided {
            decided = true;
            assert_eq!(
                outcome,
                whole,
                "decided at {length} of {}",
                text.escape_ascii()
            );
            if let Ok(Some(head)) = &outcome {
                assert_eq!(
                    head.consumed,
                    length,
                    "decided late: {}",
                    text.escape_ascii()
                );
                assert!(
                    is_worth_reading,
                    "end of head missed at {length} of {}",
                    text.escape_ascii()
                );
            }
            assert!(
                length <= limits.bytes_max,
                "decided beyond the limit: {}",
                text.escape_ascii()
            );
        } else if decided {
            assert_eq!(
                outcome,
                whole,
                "decided otherwise at {length} of {}",
                text.escape_ascii()
            );
        }
    }
    assert_eq!(
        decided,
        whole != Ok(None),
        "never decided: {}",
        text.escape_ascii()
    );
    whole
}

/// Checks a head against its own bytes, and writes and reads it again.
fn round_trip(
    line: &str,
    head: &Head,
    text: &[u8],
    limits: &HeadLimits,
    read: fn(&[u8], &HeadLimits) -> Outcome,
) {
    let bytes = &text[..head.consumed];
    assert!(head.consumed <= limits.bytes_max && head.fields.len() <= limits.fields_max);
    assert!(
        bytes.ends_with(b"\r\n\r\n"),
        "end of {}",
        text.escape_ascii()
    );
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => assert_eq!(
                bytes[at - 1],
                b'\r',
                "bare line feed in {}",
                text.escape_ascii()
            ),
            b'\r' => assert_eq!(
                bytes[at + 1],
                b'\n',
                "bare carriage return in {}",
                text.escape_ascii()
            ),
            b'\t' | b' '..=0x7e | 0x80.. => {}
            _ => panic!("control character in {}", text.escape_ascii()),
        }
    }
    let lines = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    let empty_before = bytes.chunks(2).take_while(|pair| pair == b"\r\n").count();
    assert_eq!(
        lines,
        empty_before + 1 + head.fields.len() + 1,
        "lines of {}",
        text.escape_ascii()
    );

    let mut section = Vec::new();
    for (name, value) in &head.fields {
        assert!(
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b':'),
            "name {name:?}"
        );
        assert_eq!(
            value.trim_ascii(),
            value,
            "space around {}",
            value.escape_ascii()
        );
        write::field(&mut section, name, value);
    }
    for end in ["", "\r\n"] {
        section.extend_from_slice(end.as_bytes());
        let mut lines = LineBuffer::new();
        let fields = parse_fields(&section, &mut lines).map(owned);
        assert_eq!(fields.as_ref(), Ok(&head.fields), "ended by {end:?}");
    }

    let mut again = line.as_bytes().to_vec();
    again.extend_from_slice(b"\r\n");
    again.extend_from_slice(&section);
    // colons followed by nothing are written with a space, so it may have become longer
    let limits = HeadLimits {
        bytes_max: again.len(),
        ..*limits
    };
    assert_eq!(
        read(&again, &limits),
        Ok(Some(Head {
            consumed: again.len(),
            ..head.clone()
        }))
    );
}

/// What came out of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The content, joined.
    pub data: Vec<u8>,
    /// How it ended.
    pub ending: Ending,
}

/// How content ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is whole.
    Whole {
        /// The bytes that belong to it.
        consumed: usize,
        /// The trailer fields kept.
        trailers: Vec<u8>,
    },
    /// There is more to come.
    Unfinished,
    /// Its framing is refused.
    Refused(BodyError),
}

/// Feeds `pieces` to the reader, as a driver does.
pub fn content(reader: &mut BodyReader, pieces: &[&[u8]]) -> Content {
    let mut data = Vec::new();
    let mut total = 0;
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let before = (reader.is_ended(), reader.remaining_exact());
            let BodyStep { consumed, event } = match reader.step(rest) {
                Ok(step) => step,
                Err(error) => {
                    return Content {
                        data,
                        ending: Ending::Refused(error),
                    };
                }
            };
            total += consumed;
            match event {
                BodyEvent::End => {
                    assert!(reader.is_ended() && reader.remaining_exact() == Some(0));
                    let trailers = reader.trailers().to_vec();
                    return Content {
                        data,
                        ending: Ending::Whole {
                            consumed: total,
                            trailers,
                        },
                    };
                }
                BodyEvent::NeedMore => {
                    assert_eq!(consumed, rest.len(), "input is left and more is wanted");
                    break;
                }
                BodyEvent::Data(bytes) => {
                    assert!(
                        !bytes.is_empty() && !before.0,
                        "empty content, or content after the end"
                    );
                    assert_eq!(
                        bytes,
                        &rest[consumed - bytes.len()..consumed],
                        "content is not the last of what it consumed"
                    );
                    if let Some(left) = before.1 {
                        assert_eq!(reader.remaining_exact(), Some(left - bytes.len() as u64));
                    }
                    data.extend_from_slice(bytes);
                }
            }
            rest = &rest[consumed..];
        }
    }
    Content {
        data,
        ending: Ending::Unfinished,
    }
}

/// Content read whole, byte by byte, or cut in two anywhere gives the same bytes and the same end
/// or error; chunked content agrees with a decoder that sees it whole; content that is whole means
/// the same when it is framed again.
pub fn body(text: &[u8], length: BodyLength, limits: HeadLimits) {
    let whole = body_with(text, length, limits, false);
    let leniently = body_with(text, length, limits, true);
    // a repair is needed only where the strict reading refuses; what it reads is read alike
    if !matches!(whole.ending, Ending::Refused(_)) {
        assert_eq!(leniently, whole, "{}", text.escape_ascii());
    }
}

/// The same for one of the two readings; what it came to.
fn body_with(text: &[u8], length: BodyLength, limits: HeadLimits, is_lenient: bool) -> Content {
    let reader = if is_lenient {
        BodyReader::lenient
    } else {
        BodyReader::new
    };
    let read = |pieces: &[&[u8]]| content(&mut reader(length, limits), pieces);
    let whole = read(&[text]);
    // the empty piece asks about the end of content that has no bytes
    let bytes: Vec<&[u8]> = text.chunks(1).chain([&b""[..]]).collect();
    assert_eq!(read(&bytes), whole, "byte by byte: {}", text.escape_ascii());
    for cut in 0..text.len().min(64) {
        let (first, second) = text.split_at(cut);
        assert_eq!(
            read(&[first, second]),
            whole,
            "cut at {cut}: {}",
            text.escape_ascii()
        );
    }
    match length {
        BodyLength::None => assert!(matches!(whole.ending, Ending::Whole { consumed: 0, .. })),
        BodyLength::Exact(bytes) => {
            let expected = usize::try_from(bytes).map_or(text.len(), |bytes| bytes.min(text.len()));
            assert_eq!(whole.data, &text[..expected]);
            assert_eq!(
                matches!(whole.ending, Ending::Whole { .. }),
                expected as u64 == bytes
            );
        }
        BodyLength::UntilClose => assert_eq!(
            (whole.data.as_slice(), &whole.ending),
            (text, &Ending::Unfinished)
        ),
        BodyLength::Chunked => chunked(text, &whole, limits, is_lenient),
    }
    whole
}

/// Compares with the naive decoder, and frames the content again.
fn chunked(text: &[u8], got: &Content, limits: HeadLimits, is_lenient: bool) {
    let (data, end) = naive_chunks(text, is_lenient);
    assert!(
        data.starts_with(&got.data),
        "content of {}",
        text.escape_ascii()
    );
    match (&got.ending, end) {
        (Ending::Whole { consumed, trailers }, Some(end)) => {
            assert_eq!(
                (&got.data, *consumed),
                (&data, end),
                "{}",
                text.escape_ascii()
            );
            reframe(&got.data, trailers, limits);
        }
        (Ending::Whole { .. }, None) => panic!("whole only for us: {}", text.escape_ascii()),
        // the naive decoder knows no limits, and of the trailer section only where it ends
        (
            Ending::Refused(
                BodyError::Trailer(_) | BodyError::ExtensionsTooLarge | BodyError::ChunkPadding,
            ),
            _,
        ) => {}
        (Ending::Refused(_) | Ending::Unfinished, end) => {
            assert_eq!(end, None, "{}", text.escape_ascii())
        }
    }
}

/// A decoder of chunks that is easy to believe: lines are split, matched and cut. Returns the
/// content so far, and where the message ends if it does.
fn naive_chunks(text: &[u8], is_lenient: bool) -> (Vec<u8>, Option<usize>) {
    let mut data = Vec::new();
    let mut at = 0;
    loop {
        let Some(length) = text[at..].windows(2).position(|pair| pair == b"\r\n") else {
            // the last chunk may be cut before its line ends, but not its data
            return (data, None);
        };
        let line = &text[at..at + length];
        let digits = line
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let digits_max = if is_lenient { line.len() } else { 16 };
        if !(1..=digits_max).contains(&digits) || !is_extensions(&line[digits..], is_lenient) {
            return (data, None);
        }
        let size =
            core::str::from_utf8(&line[..digits]).map(|digits| u64::from_str_radix(digits, 16));
        let Ok(Ok(size)) = size else {
            return (data, None);
        };
        at += length + 2;
        if size == 0 {
            break;
        }
        let left = &text[at..];
        let taken = usize::try_from(size).map_or(left.len(), |size| size.min(left.len()));
        data.extend_from_slice(&left[..taken]);
        if left.get(taken..taken + 2) != Some(b"\r\n") {
            return (data, None);
        }
        at += taken + 2;
    }
    if text[at..].starts_with(b"\r\n") {
        return (data, Some(at + 2));
    }
    let end = text[at..].windows(4).position(|four| four == b"\r\n\r\n");
    (data, end.map(|end| at + end + 4))
}

/// Is this `*( ";" name [ "=" ( token / quoted-string ) ] )`, with whitespace around its parts if
/// that is allowed?
fn is_extensions(mut text: &[u8], with_spaces: bool) -> bool {
    let skip = |text: &mut &[u8]| {
        while with_spaces && let [b' ' | b'\t', rest @ ..] = *text {
            *text = rest;
        }
    };
    fn token(text: &[u8]) -> usize {
        text.iter()
            .take_while(|&&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
            .count()
    }
    skip(&mut text);
    while let [b';', rest @ ..] = text {
        text = rest;
        skip(&mut text);
        let name = token(text);
        text = &text[name..];
        if name == 0 {
            return false;
        }
        skip(&mut text);
        let [b'=', value @ ..] = text else { continue };
        let mut value = value;
        skip(&mut value);
        let length = if value.first() == Some(&b'"') {
            quoted(value)
        } else {
            token(value)
        };
        if length == 0 {
            return false;
        }
        text = &value[length..];
        skip(&mut text);
    }
    text.is_empty()
}

/// The length of the quoted-string at the beginning of `text`, quotes included, or zero if there is
/// none.
fn quoted(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if !(byte == b'\t' || (b' '..=0x7e).contains(&byte) || byte >= 0x80) => return 0,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    0
}

/// Writes the content in chunks and reads it back.
fn reframe(data: &[u8], trailers: &[u8], limits: HeadLimits) {
    let mut text = Vec::new();
    for chunk in data.chunks(7) {
        write::chunk_header(&mut text, chunk.len());
        text.extend_from_slice(chunk);
        write::chunk_end(&mut text);
    }
    write::last_chunk(&mut text, trailers);
    // what is kept is written with a space after each colon, so it may have become longer
    let limits = HeadLimits {
        bytes_max: limits.bytes_max.max(trailers.len() + 2),
        ..limits
    };
    let again = content(&mut BodyReader::new(BodyLength::Chunked, limits), &[&text]);
    let ending = Ending::Whole {
        consumed: text.len(),
        trailers: trailers.to_vec(),
    };
    assert_eq!(
        again,
        Content {
            data: data.to_vec(),
            ending
        }
    );
}
