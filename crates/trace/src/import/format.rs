//! What a source is: by its content, unless the caller knows better.

use super::compressed::{Compression, MAGIC_BYTES};
use super::items::Items;
use super::logs::log::{LineReader, Log};
use super::logs::{clf, squid, webcachesim};
use super::settings::Settings;
use super::{Import, har, oracle_general, pcap};
use crate::import::logs::number::{shown, unix_us, unsigned};
use crate::row::words::words;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::str::FromStr;

words! {
    /// A format that is read, by its name on the command line.
    Format {
        /// Squid's own access log.
        Squid = "squid",
        /// The Common log of Apache, nginx and many others, and the Combined one, line by line.
        Common = "common",
        /// The HTTP Archive of browsers, 1.1 and 1.2.
        Har = "har",
        /// libCacheSim's records of 24 bytes.
        OracleGeneral = "oracle-general",
        /// webcachesim's lines: time, id, size.
        Webcachesim = "webcachesim",
        /// A packet capture of libpcap.
        Pcap = "pcap",
        /// A packet capture in the newer form.
        Pcapng = "pcapng",
    }
}

impl Format {
    /// Whether it is a capture, which has addresses.
    #[must_use]
    pub const fn is_capture(self) -> bool {
        matches!(self, Self::Pcap | Self::Pcapng)
    }

    fn names() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|format| format.as_str()).collect();
        names.join(", ")
    }

    /// By its beginning: the first 64 KiB of it, `is_all` if that is the whole source.
    #[must_use]
    pub fn detect(head: &[u8], is_all: bool) -> Option<Self> {
        match head {
            [0xd4, 0xc3, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0xc3, 0xd4, ..] => return Some(Self::Pcap),
            [0x4d, 0x3c, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0x3c, 0x4d, ..] => return Some(Self::Pcap),
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => return Some(Self::Pcapng),
            _ => {}
        }
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        if text.trim_ascii_start().first() == Some(&b'{') {
            return Some(Self::Har);
        }
        by_lines(text, is_all)
            .or_else(|| oracle_general::looks_like(head, is_all).then_some(Self::OracleGeneral))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // both are read line by line
        if text == "combined" {
            return Ok(Self::Common);
        }
        Self::from_word(text).ok_or_else(|| format!("`{text}` is none of {}", Self::names()))
    }
}

/// The first line that looks like one of a log decides; a few that do not may stand before it.
fn by_lines(text: &[u8], is_all: bool) -> Option<Format> {
    let mut lines = text.split(|&byte| byte == b'\n').peekable();
    for _ in 0..SNIFF_LINES_MAX {
        let line = lines.next()?;
        // what is cut off in the middle says nothing
        if lines.peek().is_none() && !is_all {
            return None;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut fields = line
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let starts_with_time = fields.next().is_some_and(|field| unix_us(field).is_some());
        if starts_with_time {
            let second = fields.next().is_some_and(|field| unsigned(field).is_some());
            let third = fields.next();
            if fields.next().is_some_and(|tag| tag.contains(&b'/')) {
                return Some(Format::Squid);
            }
            if second && third.is_some_and(|size| unsigned(size).is_some()) {
                return Some(Format::Webcachesim);
            }
        }
        if clf::looks_like(line) {
            return Some(Format::Common);
        }
    }
    None
}

/// Bytes by which a format is recognised.
const SNIFF_BYTES: usize = 64 * 1024;

/// Lines that are looked at.
const SNIFF_LINES_MAX: usize = 20;

/// A source that was opened.
pub struct OpenSource<'a> {
    /// How it was compressed.
    pub compression: Compression,
    /// What it is.
    pub format: Format,
    /// Its rows.
    pub rows: Box<dyn Import + 'a>,
}

impl fmt::Debug for OpenSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenSource")
            .field("compression", &self.compression)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Begins to read: decompresses, and recognises the format unless it is given.
///
/// # Errors
/// It cannot be read, or its format cannot be recognised.
pub fn open<'a>(
    source: impl Read + 'a,
    format: Option<Format>,
    settings: Settings<'a>,
) -> Result<OpenSource<'a>, Unreadable> {
    let mut source = BufReader::with_capacity(SNIFF_BYTES, source);
    let magic = match ahead(&mut source, MAGIC_BYTES) {
        (magic, None) => magic,
        (_, Some(error)) => return Err(Unreadable::Source(error)),
    };
    if magic.is_empty() {
        return Err(Unreadable::Empty);
    }
    let compression = Compression::of(&magic);
    if let Compression::Unread(name) = compression {
        return Err(Unreadable::Compression(name));
    }
    if magic.starts_with(b"PAR1") {
        return Err(Unreadable::Trace);
    }
    let mut plain = compression.reader(Cursor::new(magic).chain(source));
    let (head, rest) = match ahead(&mut plain, SNIFF_BYTES) {
        (head, None) => (head, plain),
        (head, Some(error)) if head.is_empty() => return Err(Unreadable::Source(error)),
        // what came before it can be read
        (head, Some(error)) => (head, Box::new(BufReader::new(FailedSource(error))) as _),
    };
    let is_all = head.len() < SNIFF_BYTES;
    if matches!(format, None | Some(Format::Har)) && is_weir_log(&head) {
        return Err(Unreadable::WeirLog);
    }
    let format = match format {
        Some(format) => format,
        None => Format::detect(&head, is_all).ok_or_else(|| Unreadable::Unknown {
            begins: shown(head.split(|&byte| byte == b'\n').next().unwrap_or(&[])),
        })?,
    };
    let rest = Cursor::new(head).chain(rest);
    let rows: Box<dyn Import + 'a> = match format {
        Format::Squid => log(rest, squid::Squid, settings),
        Format::Common => log(rest, clf::Common::default(), settings),
        Format::Webcachesim => log(rest, webcachesim::Webcachesim, settings),
        Format::Har => Box::new(Items::new(har::Har::new(rest, settings))),
        Format::OracleGeneral => {
            let records = oracle_general::OracleGeneral::new(rest, settings);
            Box::new(Items::new(records))
        }
        Format::Pcap | Format::Pcapng => {
            let capture = pcap::Capture::new(rest, &settings);
            match settings.proxy {
                None => Box::new(capture),
                Some(_) => Box::new(pcap::ProxiedCapture::new(capture)),
            }
        }
    };
    Ok(OpenSource {
        compression,
        format,
        rows,
    })
}

fn log<'a>(
    source: impl BufRead + 'a,
    reader: impl LineReader + 'a,
    settings: Settings<'a>,
) -> Box<dyn Import + 'a> {
    Box::new(Items::new(Log::new(source, reader, settings)))
}

/// Lines of JSON that begin as those of `weir serve` do: not an HTTP archive, whose first member is
/// `log`.
fn is_weir_log(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let has = |key: &[u8]| line.windows(key.len()).any(|part| part == key);
    line.starts_with(b"{\"time\":\"") && has(b",\"client\":\"") && has(b",\"target\":")
}

/// The next bytes; fewer at the end, or where an error came before them all.
fn ahead(source: &mut impl BufRead, count: usize) -> (Vec<u8>, Option<io::Error>) {
    let mut bytes = Vec::new();
    let error = source.take(count as u64).read_to_end(&mut bytes).err();
    (bytes, error)
}

/// What follows the bytes that were looked at, where reading them failed.
struct FailedSource(io::Error);

impl Read for FailedSource {
    fn read(&mut self, _out: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(self.0.kind(), self.0.to_string()))
    }
}

/// Why a source cannot be begun.
#[derive(Debug)]
pub enum Unreadable {
    /// There is nothing in it.
    Empty,
    /// The device, or a compressed stream that is damaged at its beginning.
    Source(io::Error),
    /// A compression that is not read here.
    Compression(&'static str),
    /// It is a trace already.
    Trace,
    /// Weir's own access log in its JSON form, which lacks what a trace is made of.
    WeirLog,
    /// None of the formats.
    Unknown {
        /// Its first line, as far as it can be shown.
        begins: String,
    },
}

impl Unreadable {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Empty | Self::Source(_) => None,
            Self::Compression(name) => Some(format!(
                "uncompress it on the way in: `{} FILE | weir trace import - ...`",
                match *name {
                    "bzip2" => "bzcat",
                    "xz" => "xzcat",
                    "lz4" => "lz4cat",
                    _ => "unzip -p",
                }
            )),
            Self::WeirLog => Some(
                "record traces by `weir serve --record FILE`, or write a log that can be imported: `[log] format = \"squid\"`"
                    .to_owned(),
            ),
            Self::Trace => Some("`weir trace stats` and `weir sim` read it as it is".to_owned()),
            Self::Unknown { .. } => {
                Some(format!("say what it is by `--format`: {}", Format::names()))
            }
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Source(error) => error.fmt(f),
            Self::Compression(name) => {
                write!(f, "it is compressed by {name}, which is not read here")
            }
            Self::Trace => f.write_str("it is a trace already, not a source of one"),
            Self::WeirLog => f.write_str("it is Weir's access log in JSON, which is not read here"),
            Self::Unknown { begins } => write!(
                f,
                "it begins with `{begins}`, like none of the formats that are read"
            ),
        }
    }
}

impl std::error::Error for Unreadable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source(error) => Some(error),
            _ => None,
        }
    }
}
