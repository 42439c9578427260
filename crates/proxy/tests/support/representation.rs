//! What an origin has under a URL: every byte tells where it is from.

use super::message::Response;
use super::pattern;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// A representation: a byte is a function of URL, version and offset, so that any loss, swap,
/// repetition or mixture shows.
#[derive(Clone, Debug)]
pub(crate) struct Representation {
    pub(crate) path: String,
    pub(crate) version: u64,
    pub(crate) length: u64,
    /// Its entity tag, as it is written.
    pub(crate) tag: Option<String>,
    /// More field lines, each with its CRLF.
    pub(crate) fields: String,
}

impl Representation {
    /// The first version, fresh for an hour, with a strong entity tag. Each response to a request
    /// for it ends its connection: so a test knows on which the next request comes.
    pub(crate) fn new(path: &str, length: u64) -> Self {
        Self {
            path: path.into(),
            version: 1,
            length,
            tag: Some(format!("\"{path}@1\"")),
            fields: "Cache-Control: max-age=3600\r\nConnection: close\r\n".into(),
        }
    }

    /// The same without a strong entity tag: with another one, or none.
    pub(crate) fn tagged(self, tag: Option<&str>) -> Self {
        Self {
            tag: tag.map(Into::into),
            ..self
        }
    }

    /// The same with these field lines instead of its Cache-Control.
    pub(crate) fn with_fields(self, fields: &str) -> Self {
        Self {
            fields: fields.into(),
            ..self
        }
    }

    /// Whether parts of it can be joined.
    pub(crate) fn is_strong(&self) -> bool {
        self.tag.as_ref().is_some_and(|tag| tag.starts_with('"'))
    }

    /// What took its place.
    pub(crate) fn next(&self, length: u64) -> Self {
        let version = self.version + 1;
        Self {
            version,
            length,
            tag: Some(format!("\"{}@{version}\"", self.path)),
            ..self.clone()
        }
    }

    /// A GET for it; `fields` with their CRLF.
    pub(crate) fn get(&self, fields: &str) -> String {
        self.ask("GET", fields)
    }

    /// A GET for a range of it.
    pub(crate) fn get_range(&self, range: &str) -> String {
        self.get(&format!("Range: bytes={range}\r\n"))
    }

    /// A request for it.
    pub(crate) fn ask(&self, method: &str, fields: &str) -> String {
        format!(
            "{method} {} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n",
            self.path
        )
    }

    /// The bytes from `from` up to `to`, which is not among them.
    pub(crate) fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let seed = self.seed();
        let table = TABLE.get_or_init(|| pattern(TABLE_BYTES + LINE_BYTES));
        let length = usize::try_from(to - from).expect("small");
        let mut bytes = Vec::with_capacity(length + 2 * LINE_BYTES);
        let line_bytes = LINE_BYTES as u64;
        let lines = from / line_bytes..to.div_ceil(line_bytes);
        for line in lines.clone() {
            let own = mixed(seed.wrapping_add(line)).to_le_bytes();
            let at = usize::from(u16::from_le_bytes([own[0], own[1]])) % TABLE_BYTES;
            bytes.extend_from_slice(&own);
            bytes.extend_from_slice(&table[at..at + LINE_BYTES - own.len()]);
        }
        let front = usize::try_from(from - lines.start * line_bytes).expect("small");
        bytes.drain(..front);
        bytes.truncate(length);
        bytes
    }

    fn seed(&self) -> u64 {
        let text = self.path.bytes().chain(self.version.to_le_bytes());
        // FNV-1a
        text.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The head of a 200 with its length.
    pub(crate) fn head(&self) -> String {
        let length = format!("Content-Length: {}\r\n", self.length);
        self.head_with("200 OK", &length)
    }

    /// The head of a 200 whose content comes in chunks.
    pub(crate) fn chunked_head(&self) -> String {
        self.head_with("200 OK", "Transfer-Encoding: chunked\r\n")
    }

    /// The head of a 206 for the bytes from `from` up to `to`.
    pub(crate) fn part_head(&self, from: u64, to: u64) -> String {
        let last = to - 1;
        let fields = format!(
            "Content-Range: bytes {from}-{last}/{}\r\nContent-Length: {}\r\n",
            self.length,
            to - from
        );
        self.head_with("206 Partial Content", &fields)
    }

    /// The head of a 416.
    pub(crate) fn unsatisfied_head(&self) -> String {
        let fields = format!(
            "Content-Range: bytes */{}\r\nContent-Length: 0\r\n",
            self.length
        );
        self.head_with("416 Range Not Satisfiable", &fields)
    }

    /// A head with these fields beside its own.
    pub(crate) fn head_with(&self, status: &str, fields: &str) -> String {
        let mut head = format!("HTTP/1.1 {status}\r\n{}", self.fields);
        if let Some(tag) = &self.tag {
            write!(head, "ETag: {tag}\r\n").expect("memory");
        }
        head + fields + "\r\n"
    }

    /// A 200, whole.
    pub(crate) fn whole(&self) -> Vec<u8> {
        let mut message = self.head().into_bytes();
        message.extend(self.bytes(0, self.length));
        message
    }

    /// A 206 with the bytes from `from` up to `to`.
    pub(crate) fn part(&self, from: u64, to: u64) -> Vec<u8> {
        let mut message = self.part_head(from, to).into_bytes();
        message.extend(self.bytes(from, to));
        message
    }

    /// A chunk with the bytes from `from` up to `to`.
    pub(crate) fn chunk(&self, from: u64, to: u64) -> Vec<u8> {
        let mut chunk = format!("{:x}\r\n", to - from).into_bytes();
        chunk.extend(self.bytes(from, to));
        chunk.extend(b"\r\n");
        chunk
    }

    /// These are its bytes from `from` on.
    #[track_caller]
    pub(crate) fn check(&self, from: u64, bytes: &[u8]) {
        let expected = self.bytes(from, from + bytes.len() as u64);
        if expected != bytes {
            let mut both = expected.iter().zip(bytes);
            let at = both.position(|(ours, byte)| ours != byte);
            panic!("wrong {at:?} bytes behind {from}, in {self:?}");
        }
    }

    /// This is a 200 with all of it.
    #[track_caller]
    pub(crate) fn check_whole(&self, response: &Response) {
        assert_eq!(response.status(), 200, "{:?}", response.head);
        assert_eq!(response.body.len() as u64, self.length);
        self.check(0, &response.body);
        assert_eq!(response.head.field("etag"), self.tag.as_deref());
    }

    /// This is a 206 with its bytes from `from` up to `to`.
    #[track_caller]
    pub(crate) fn check_part(&self, response: &Response, from: u64, to: u64) {
        assert_eq!(response.status(), 206, "{:?}", response.head);
        assert_eq!(response.body.len() as u64, to - from);
        self.check(from, &response.body);
        let range = format!("bytes {from}-{}/{}", to - 1, self.length);
        assert_eq!(response.head.field("content-range"), Some(range.as_str()));
        assert_eq!(response.head.field("etag"), self.tag.as_deref());
    }
}

/// A line of bytes begins with eight of its own, which also say what of the table follows: so that
/// making a megabyte takes no time in a test that is not optimised.
const LINE_BYTES: usize = 256;
const TABLE_BYTES: usize = 16_384;
static TABLE: OnceLock<Vec<u8>> = OnceLock::new();

/// `SplitMix64` (Steele, Lea, Flood 2014).
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
