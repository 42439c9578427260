//! `transcode`: converts images to WebP before they are stored, for clients that accept it.
//!
//! ```toml
//! [[module]]
//! name = "images"
//! kind = "transcode"
//! options.quality = 75
//! options.width_max = 640
//! ```
//!
//! The head of a response says what the content is, so that it is decided on once the content is
//! there and converted: the exchange defers, and is handed the content meanwhile. The work is done
//! by processes of the lowest priority; an image for which they have no time passes as it is.

mod collector;
mod convert;
mod job;
mod processes;

pub(crate) use processes::{HELPER, serve};

use crate::options::{chosen, number_in, one_of, size_in};
use collector::{Collected, Collector, Held, Memory, Replacement, Stage};
use job::{IMAGE_BYTES_MAX, Work};
use processes::{Conversion, Launch, Processes};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use weir_extend::{
    Answer, Call, Exchange, Hook, Hooks, Host, LoadError, LocalResponse, Module, ModuleKind,
    ModuleMetric, Options, Pending, RequestHead, ResponseHead,
};

const OPTIONS: [&str; 8] = [
    "bytes_max",
    "formats",
    "larger",
    "memory",
    "pixels_max",
    "processes",
    "quality",
    "width_max",
];

/// The formats that are converted, by their media types.
const FORMATS: [(&str, &str); 3] = [
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("gif", "image/gif"),
];

/// Of photographs. libwebp's own default.
const QUALITY: u32 = 75;

/// Longer images pass as they are, or are refused.
const BYTES_MAX: u32 = 4 * 1024 * 1024;

/// Shorter images, where the length is known, pass as they are: little is to be won.
const BYTES_MIN: u64 = 1024;

/// Images with more pixels pass as they are. Each takes eight bytes in the process.
const PIXELS_MAX: u32 = 25_000_000;

/// Bytes of images that are held at one time, of all requests together.
const MEMORY: u32 = 64 * 1024 * 1024;

/// Of the response in the place of an image that is refused, as one that a module fails for.
const REFUSED_STATUS: u16 = 502;

/// The part of `module[].wait` after which an image passes as it is, in hundredths: before the
/// module is said to have failed.
const WAIT_PERCENT: u32 = 80;

pub(crate) struct Transcode(Launch);

impl Transcode {
    pub(crate) fn new() -> Self {
        Self(processes::this_program)
    }
}

impl ModuleKind for Transcode {
    fn name(&self) -> &'static str {
        "transcode"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let wait = options.settings().wait * WAIT_PERCENT / 100;
        let media_types = chosen(
            &mut options,
            "formats",
            &FORMATS,
            "format that is converted",
        )?;
        let mut number = |name, default, range| number_in(&mut options, name, default, range);
        let quality = number("quality", QUALITY, (1, 100))?;
        let work = Work {
            quality: u8::try_from(quality).unwrap_or(u8::MAX),
            width_max: number("width_max", 0, (0, 16_383))?,
            pixels_max: number("pixels_max", PIXELS_MAX, (1, 1_000_000_000))?.into(),
        };
        let processes = number("processes", 1, (1, 16))? as usize;
        let image_bytes_max = u32::try_from(IMAGE_BYTES_MAX).unwrap_or(u32::MAX);
        let mut size = |name, default, most| size_in(&mut options, name, default, (1, most));
        let bytes_max = size("bytes_max", BYTES_MAX, image_bytes_max)? as usize;
        let memory = size("memory", MEMORY, 1 << 30)? as usize;
        let refuses_larger = one_of(&mut options, "larger", ["pass", "refuse"])?;
        options.finish(&OPTIONS)?;
        let tag = match work.width_max {
            0 => "webp".to_owned(),
            width => format!("webp-{width}"),
        };
        Ok(Arc::new(Transcoder(Arc::new(Shared {
            media_types,
            work,
            tag,
            bytes_max,
            refuses_larger,
            wait,
            memory: Arc::new(Memory::new(memory)),
            processes: Processes::new(processes, self.0),
            converted: AtomicU64::new(0),
            passed: AtomicU64::new(0),
        }))))
    }
}

/// What all workers share.
struct Shared {
    media_types: Vec<&'static str>,
    work: Work,
    /// Of the variant of clients that accept WebP.
    tag: String,
    bytes_max: usize,
    /// Longer images, and those for which there is no memory, do not pass.
    refuses_larger: bool,
    wait: Duration,
    memory: Arc<Memory>,
    processes: Processes,
    /// Images that were converted, and those that passed as they were though they were candidates.
    converted: AtomicU64,
    passed: AtomicU64,
}

impl Shared {
    fn is_image(&self, head: &ResponseHead<'_>) -> bool {
        let media_type = head.fields.get("content-type").unwrap_or_default();
        let name = media_type.split(|byte| *byte == b';').next();
        let name = name.unwrap_or_default().trim_ascii();
        let mut known = self.media_types.iter();
        known.any(|it| name.eq_ignore_ascii_case(it.as_bytes()))
    }

    fn is_candidate(&self, head: &ResponseHead<'_>) -> bool {
        head.status() == 200
            && self.is_image(head)
            && head.fields.get("content-encoding").is_none()
            && length_of(head).is_none_or(|it| it >= BYTES_MIN)
            && head.check_transform().is_ok()
    }

    fn is_larger(&self, head: &ResponseHead<'_>) -> bool {
        length_of(head).is_some_and(|it| it > self.bytes_max as u64)
    }
}

/// The length of the content, if it is known.
fn length_of(head: &ResponseHead<'_>) -> Option<u64> {
    let length = head.fields.get("content-length")?;
    str::from_utf8(length).ok()?.parse().ok()
}

/// What takes the place of an image that is too large; `Fail` cannot come of it.
fn refusal() -> Answer {
    let response = LocalResponse::new(REFUSED_STATUS, "the image is too large\n");
    let response = response.map(|it| it.with("Content-Type", b"text/plain"));
    match response {
        Ok(Ok(response)) => Answer::Respond(response),
        _ => Answer::Fail,
    }
}

struct Transcoder(Arc<Shared>);

impl Module for Transcoder {
    fn hooks(&self) -> Hooks {
        Hooks::NONE
            .with(Hook::RequestReceived)
            .with(Hook::ResponseReceived)
            .with(Hook::ResponseSent)
    }

    fn may_transform(&self) -> bool {
        true
    }

    fn changes_stored(&self) -> bool {
        true
    }

    fn decides_by_content(&self) -> bool {
        true
    }

    fn metrics(&self) -> Vec<ModuleMetric> {
        let counted = |name: &str, value: &AtomicU64| ModuleMetric {
            name: name.to_owned(),
            value: value.load(Relaxed),
        };
        vec![
            counted("converted", &self.0.converted),
            counted("passed", &self.0.passed),
            counted("processes-started", &self.0.processes.started),
        ]
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(TranscodeExchange {
            shared: Arc::clone(&self.0),
            host: Rc::clone(host),
            accepts: false,
            state: State::Begun,
        })
    }
}

struct TranscodeExchange {
    shared: Arc<Shared>,
    host: Rc<dyn Host>,
    /// Whether the client accepts WebP.
    accepts: bool,
    state: State,
}

enum State {
    /// No image has come.
    Begun,
    /// It is being collected.
    Collecting(Rc<RefCell<Collected>>),
    /// It is being converted, and waited for for so long.
    Converting(Conversion, Pending<()>),
    /// It is decided on: other content takes its place, or it passes as it is.
    Decided(Option<Vec<u8>>),
    /// It is longer than it may be, or there is no memory for it.
    Larger,
}

impl Exchange for TranscodeExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _: &Call) -> Answer {
        self.accepts = head.method() == "GET"
            && head.fields.all("accept").any(accepts_webp)
            && head.check_transform().is_ok();
        if self.accepts && head.set_variant(&self.shared.tag).is_err() {
            return Answer::Fail;
        }
        Answer::Continue
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        match std::mem::replace(&mut self.state, State::Begun) {
            State::Decided(content) => self.apply(head, content),
            State::Larger if self.shared.refuses_larger => refusal(),
            State::Larger => self.apply(head, None),
            _ if !self.accepts || !self.shared.is_candidate(head) => Answer::Continue,
            _ if self.shared.is_larger(head) => match self.shared.refuses_larger {
                true => refusal(),
                false => Answer::Continue,
            },
            _ => {
                let held = Held::new(&self.shared.memory, self.host.memory());
                let collected = Collected::new(held, self.shared.bytes_max);
                // it passes every byte as it came, unless the image is converted
                head.inspect(Box::new(Collector::new(&collected)));
                self.state = State::Collecting(collected);
                Answer::Defer
            }
        }
    }

    /// Caches behind this one must not give WebP to a client that cannot show it. The field is
    /// added here, not to what is stored, as that is chosen by the variant.
    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _: &Call) -> Answer {
        let is_webp = head.fields.get("content-type") == Some(b"image/webp");
        // such an answer does not show what it is about
        let is_bare = matches!(head.status(), 304 | 412 | 416);
        if !(is_webp || self.shared.is_image(head) || is_bare) || names_accept(head) {
            return Answer::Continue;
        }
        match head.fields.add("Vary", b"Accept") {
            Ok(()) => Answer::Continue,
            Err(_) => Answer::Fail,
        }
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let State::Collecting(collected) = &self.state {
            let collected = Rc::clone(collected);
            let mut collected = collected.borrow_mut();
            match collected.stage {
                Stage::Arriving => {
                    collected.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Stage::TooLong => self.state = State::Larger,
                Stage::Whole => self.state = self.begin_conversion(collected.held()),
            }
        }
        if let State::Converting(conversion, timer) = &mut self.state {
            let content = match conversion.poll(cx) {
                Poll::Ready(content) => content,
                Poll::Pending if timer.as_mut().poll(cx).is_ready() => None,
                Poll::Pending => return Poll::Pending,
            };
            self.state = State::Decided(content);
        }
        Poll::Ready(())
    }
}

impl TranscodeExchange {
    fn begin_conversion(&self, content: Arc<Held>) -> State {
        match self.shared.processes.convert(self.shared.work, content) {
            Some(conversion) => {
                let timer = self.host.sleep(self.shared.wait);
                State::Converting(conversion, timer)
            }
            None => State::Decided(None),
        }
    }

    fn apply(&self, head: &mut ResponseHead<'_>, content: Option<Vec<u8>>) -> Answer {
        let replacement = content.and_then(|content| Replacement::new(content, self.host.memory()));
        let Some(replacement) = replacement else {
            self.shared.passed.fetch_add(1, Relaxed);
            return Answer::Continue;
        };
        let replacement = Box::new(replacement);
        if head.fields.set("Content-Type", b"image/webp").is_err()
            || head.transform(replacement).is_err()
        {
            return Answer::Fail;
        }
        self.shared.converted.fetch_add(1, Relaxed);
        Answer::Continue
    }
}

/// Whether a line of Accept names WebP itself. Programs that accept everything, by `*/*` or
/// `image/*`, do not all show it.
fn accepts_webp(line: &[u8]) -> bool {
    line.split(|byte| *byte == b',').any(|element| {
        let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let is_refused = |parameter: &[u8]| {
            let zero = parameter.strip_prefix(b"q=0");
            zero.is_some_and(|rest| rest.iter().all(|byte| matches!(byte, b'.' | b'0')))
        };
        name.eq_ignore_ascii_case(b"image/webp") && !parts.any(is_refused)
    })
}

fn names_accept(head: &ResponseHead<'_>) -> bool {
    let lines = head.fields.all("vary");
    let mut names = lines.flat_map(|line| line.split(|byte| *byte == b','));
    names.any(|name| {
        let name = name.trim_ascii();
        name == b"*" || name.eq_ignore_ascii_case(b"accept")
    })
}

#[cfg(test)]
mod tests;
