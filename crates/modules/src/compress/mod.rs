//! `compress`: compresses responses before they are stored, so that a response is compressed once
//! for all clients that accept the same coding.
//!
//! ```toml
//! [[module]]
//! name = "smaller"
//! kind = "compress"
//! options.codings = ["br", "zstd", "gzip"]
//! options.level_br = 5
//! ```
//!
//! A request is given the variant of the coding that its client prefers. What comes from the next
//! hop for that variant is coded push by push, at the call that brings it.

mod accepted;
mod encoder;
mod media_types;

use crate::options::{chosen, number_in, size_in, texts};
use accepted::Coding;
use encoder::{Encoding, Stream};
use media_types::MediaType;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, LoadError, Module, ModuleKind, Options, RequestHead,
    ResponseHead,
};

const OPTIONS: [&str; 7] = [
    "codings",
    "level_br",
    "level_gzip",
    "level_zstd",
    "bytes_min",
    "streams_max",
    "types",
];

/// The levels that there are. A call encodes at most one block; higher levels would need more than
/// 10 ms for it, which is the deadline of a call.
const LEVELS_BR: (i64, i64) = (0, 6);
const LEVELS_GZIP: (i64, i64) = (1, 9);
const LEVELS_ZSTD: (i64, i64) = (1, 12);

/// Default levels. What is made is stored, so that size counts for more than for a response that is
/// compressed for each client; the next higher levels take about twice the time for 1 to 3 % less.
const LEVEL_BR: u32 = 5;
const LEVEL_GZIP: u32 = 6;
const LEVEL_ZSTD: u32 = 7;

/// Content of a known length with fewer bytes is left as it is: with its head it fits into one
/// packet in any case.
const BYTES_MIN: u32 = 1024;

/// Most responses that are compressed at once. A response beyond that is left as it is.
const STREAMS_MAX: u32 = 64;

pub(crate) struct Compress;

impl ModuleKind for Compress {
    fn name(&self) -> &'static str {
        "compress"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let codings = chosen(
            &mut options,
            "codings",
            &Coding::ALL.map(|it| (it.name(), it)),
            "coding of this module",
        )?;
        let types = read_types(&mut options)?;
        let mut number = |name, default, range| number_in(&mut options, name, default, range);
        let rules = Rules {
            codings,
            levels: [
                (Coding::Brotli, number("level_br", LEVEL_BR, LEVELS_BR)?),
                (Coding::Gzip, number("level_gzip", LEVEL_GZIP, LEVELS_GZIP)?),
                (Coding::Zstd, number("level_zstd", LEVEL_ZSTD, LEVELS_ZSTD)?),
            ],
            streams_max: number("streams_max", STREAMS_MAX, (1, 65_536))? as usize,
            bytes_min: size_in(&mut options, "bytes_min", BYTES_MIN, (0, 1 << 30))?.into(),
            types,
            streams: Arc::default(),
        };
        options.finish(&OPTIONS)?;
        Ok(Arc::new(Compressor(Arc::new(rules))))
    }
}

fn read_types(options: &mut Options) -> Result<Vec<MediaType>, LoadError> {
    let mut names = texts(options, "types")?;
    if names.is_empty() {
        names = media_types::DEFAULT.map(str::to_owned).into();
    }
    let types = names.iter().enumerate().map(|(index, name)| {
        MediaType::parse(name).ok_or_else(|| {
            let what = format!("`{name}` is no media type");
            let hint = "write one such as \"text/html\", \"text/*\" or \"*+json\"";
            LoadError::new(format!("types[{index}]"), what, hint)
        })
    });
    types.collect()
}

struct Rules {
    /// Those that are used, the preferred one first.
    codings: Vec<Coding>,
    levels: [(Coding, u32); Coding::ALL.len()],
    bytes_min: u64,
    streams_max: usize,
    types: Vec<MediaType>,
    /// How many responses are compressed now.
    streams: Arc<AtomicUsize>,
}

impl Rules {
    fn level(&self, coding: Coding) -> u32 {
        let mut levels = self.levels.iter();
        let level = levels.find(|(it, _)| *it == coding);
        level.map_or(0, |(_, level)| *level)
    }

    /// Whether a response with this head is one that may be compressed, or was, or is about one. A
    /// part varies as the whole does (RFC 9110 §15.3.7), and an answer that does not show what it
    /// is about may be about such a response.
    fn varies(&self, head: &ResponseHead<'_>) -> bool {
        let is_long_enough = || length_of_whole(head).is_none_or(|it| it >= self.bytes_min);
        if matches!(head.status(), 304 | 412 | 416) {
            return is_long_enough();
        }
        let media_type = head.fields.get("content-type");
        media_type.is_some_and(|it| media_types::has(&self.types, it))
            && (is_coded(head) || is_long_enough())
    }

    /// Has the content pass an encoder. Content that must not or need not be coded passes as it is.
    fn compress(&self, head: &mut ResponseHead<'_>, coding: Coding) -> Answer {
        let has_content = !matches!(head.status(), 204 | 205 | 206 | 304);
        if !has_content || is_coded(head) || !self.varies(head) || head.check_transform().is_err() {
            return Answer::Continue;
        }
        let Some(stream) = Stream::take(&self.streams, self.streams_max) else {
            return Answer::Continue;
        };
        let Ok(encoding) = Encoding::new(coding, self.level(coding), length(head), stream) else {
            return Answer::Continue;
        };
        if head
            .fields
            .set("Content-Encoding", coding.name().as_bytes())
            .is_err()
            || head.transform(Box::new(encoding)).is_err()
        {
            return Answer::Fail;
        }
        Answer::Continue
    }
}

fn is_coded(head: &ResponseHead<'_>) -> bool {
    let mut codings = head.fields.all("content-encoding");
    codings.any(|it| !it.is_empty() && !it.eq_ignore_ascii_case(b"identity"))
}

fn length(head: &ResponseHead<'_>) -> Option<u64> {
    let length = head.fields.get("content-length")?;
    str::from_utf8(length).ok()?.parse().ok()
}

/// The length of the representation that a response is, or is a part of, where it is known.
fn length_of_whole(head: &ResponseHead<'_>) -> Option<u64> {
    match head.status() {
        206 | 416 => {
            let range = head.fields.get("content-range")?;
            let (_, complete) = str::from_utf8(range).ok()?.rsplit_once('/')?;
            complete.trim_ascii().parse().ok()
        }
        // the length of their own content, which is about something else
        304 | 412 => None,
        _ => length(head),
    }
}

struct Compressor(Arc<Rules>);

impl Module for Compressor {
    fn hooks(&self) -> Hooks {
        Hooks::NONE
            .with(Hook::RequestReceived)
            .with(Hook::ResponseReceived)
            .with(Hook::ResponseSent)
    }

    fn may_transform(&self) -> bool {
        true
    }

    /// At `response-sent` it only adds a field.
    fn may_transform_sent(&self) -> bool {
        false
    }

    fn changes_stored(&self) -> bool {
        true
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(CompressExchange {
            rules: Arc::clone(&self.0),
            varies: false,
            coding: None,
        })
    }
}

struct CompressExchange {
    rules: Arc<Rules>,
    /// Whether the response may differ by Accept-Encoding.
    varies: bool,
    /// What the response is coded with.
    coding: Option<Coding>,
}

impl Exchange for CompressExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        self.varies = matches!(head.method(), "GET" | "HEAD")
            && !media_types::is_compressed_file(head.path_and_query());
        self.coding = None;
        if !self.varies || head.check_transform().is_err() {
            return Answer::Continue;
        }
        let chosen = accepted::choose(&self.rules.codings, head.fields.all("accept-encoding"));
        let Some(coding) = chosen else {
            return Answer::Continue;
        };
        if head.set_variant(coding.name()).is_err() {
            return Answer::Fail;
        }
        // the response to a HEAD has no content to code
        self.coding = (head.method() == "GET").then_some(coding);
        Answer::Continue
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        match self.coding {
            Some(coding) => self.rules.compress(head, coding),
            None => Answer::Continue,
        }
    }

    /// Caches behind this one must not give a coded response to a client that cannot undo it
    /// (RFC 9110 §12.5.5). The field is added here, not to what is stored: that is chosen by the
    /// variant, so that all spellings of Accept-Encoding that lead to it share one response.
    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        if !self.varies || !self.rules.varies(head) || names_accept_encoding(head) {
            return Answer::Continue;
        }
        match head.fields.add("Vary", b"Accept-Encoding") {
            Ok(()) => Answer::Continue,
            Err(_) => Answer::Fail,
        }
    }
}

fn names_accept_encoding(head: &ResponseHead<'_>) -> bool {
    let lines = head.fields.all("vary");
    let mut names = lines.flat_map(|line| line.split(|byte| *byte == b','));
    names.any(|name| {
        let name = name.trim_ascii();
        name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding")
    })
}

#[cfg(test)]
mod tests;
