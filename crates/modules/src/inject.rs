//! `inject`: puts markup into HTML documents, for each client.
//!
//! ```toml
//! [[module]]
//! name = "notice"
//! kind = "inject"
//! options.html = "<p>Maintenance tonight.</p>"
//! options.element = "body"
//! options.place = "start"
//! ```
//!
//! The document is not built: its tags are found as its bytes pass (the `lol_html` crate).

use crate::options::{flag, one_of, text};
use lol_html::errors::RewritingError;
use lol_html::html_content::{ContentType, DocumentEnd, Element};
use lol_html::{
    AsciiCompatibleEncoding, HandlerResult, HtmlRewriter, MemorySettings, Settings, element, end,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Answer, Call, ContentMemory, Exchange, Hook, Hooks, Host, LoadError, Module, ModuleKind,
    Options, Piece, Progress, ResponseHead, Transform,
};

/// Most bytes of the markup.
const HTML_BYTES_MAX: usize = 64 * 1024;

/// Most bytes that the search for tags holds of one document, such as a long tag. A document that
/// needs more passes as it is from there on, and one for which the proxy has no memory is given up.
const MEMORY_BYTES_MAX: usize = 256 * 1024;

/// Bytes of that which are not charged to the memory of the proxy: ordinary tags are shorter.
const UNCHARGED_BYTES_MAX: usize = 16 * 1024;

/// Bytes that are searched at once: their output is held until there is room for it.
const STEP_BYTES: usize = 16 * 1024;

const OPTIONS: [&str; 4] = ["decode", "element", "html", "place"];

pub(crate) struct Inject;

impl ModuleKind for Inject {
    fn name(&self) -> &'static str {
        "inject"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let decode = flag(&mut options, "decode")?.unwrap_or(false);
        let html = text(&mut options, "html")?;
        let is_head = one_of(&mut options, "element", ["body", "head"])?;
        let is_start = one_of(&mut options, "place", ["end", "start"])?;
        options.finish(&OPTIONS)?;
        let html = html.filter(|html| !html.is_empty()).ok_or_else(|| {
            LoadError::new(
                "html",
                "there is nothing to put in",
                "give markup, such as \"<p>Hello</p>\"",
            )
        })?;
        if html.len() > HTML_BYTES_MAX {
            let what = format!("it has {} bytes, more than {HTML_BYTES_MAX}", html.len());
            let hint = "put in a <script> or <link> that loads the rest";
            return Err(LoadError::new("html", what, hint));
        }
        let place = match (is_head, is_start) {
            (true, true) => Place::HeadStart,
            (true, false) => Place::HeadEnd,
            (false, true) => Place::BodyStart,
            (false, false) => Place::BodyEnd,
        };
        let html = html.into();
        Ok(Arc::new(Injection {
            html,
            place,
            decode,
        }))
    }
}

/// Where in a document markup is put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    HeadStart,
    HeadEnd,
    BodyStart,
    /// In front of the end tag of `body`, or at the end of a document that has none.
    BodyEnd,
}

struct Injection {
    html: Arc<str>,
    place: Place,
    /// Whether documents with a content coding are decoded.
    decode: bool,
}

impl Module for Injection {
    fn hooks(&self) -> Hooks {
        Hooks::NONE.with(Hook::ResponseSent)
    }

    fn may_transform(&self) -> bool {
        true
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(InjectExchange {
            host: Rc::clone(host),
            html: Arc::clone(&self.html),
            place: self.place,
            decode: self.decode,
        })
    }
}

struct InjectExchange {
    host: Rc<dyn Host>,
    html: Arc<str>,
    place: Place,
    decode: bool,
}

impl Exchange for InjectExchange {
    fn response_sent(&mut self, head: &mut ResponseHead<'_>, _call: &Call) -> Answer {
        if is_coded(head) && !self.decode {
            return Answer::Continue;
        }
        if let Some(encoding) = encoding_of(head) {
            let document = Document::new(&self.html, self.place, encoding, self.host.memory());
            // no-transform, parts and unknown codings: the document passes as it is
            let _ = head.transform_plain(Box::new(document));
        }
        Answer::Continue
    }
}

/// Whether a document has a content coding.
fn is_coded(head: &ResponseHead<'_>) -> bool {
    let mut codings = head.fields.all("content-encoding");
    codings.any(|it| !it.eq_ignore_ascii_case(b"identity"))
}

/// The charset of an HTML document; `None` if it is none, or its charset is one in which tags are
/// not ASCII.
fn encoding_of(head: &ResponseHead<'_>) -> Option<AsciiCompatibleEncoding> {
    let media_type = str::from_utf8(head.fields.get("content-type")?).ok()?;
    let mut parts = media_type.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("text/html") {
        return None;
    }
    let charset = parts.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim_end().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    });
    match charset {
        None => Some(AsciiCompatibleEncoding::utf_8()),
        Some(charset) => {
            let encoding = encoding_rs::Encoding::for_label(charset.as_bytes())?;
            AsciiCompatibleEncoding::new(encoding)
        }
    }
}

/// What the rewriter has put out.
type Output = Rc<RefCell<Vec<u8>>>;

/// Where the rewriter puts it.
type Sink = Box<dyn FnMut(&[u8])>;

/// A document on its way to a client.
struct Document {
    /// `None` once the document has ended.
    rewriter: Option<HtmlRewriter<'static, Sink>>,
    output: Output,
    /// Bytes of the output that were passed on.
    passed: usize,
    /// The search has given up, and put out all that it had: what follows passes as it is.
    gave_up: bool,
    withheld: Withheld,
}

/// What the search holds of a document, such as the beginning of a long tag.
struct Withheld {
    memory: Box<dyn ContentMemory>,
    written_bytes: usize,
    /// Of the output, with the markup.
    put_bytes: Rc<Cell<usize>>,
}

impl Withheld {
    /// More was searched. Whether there is memory for what is held: the search makes room for twice
    /// as much.
    fn charge(&mut self, searched_bytes: usize) -> bool {
        self.written_bytes += searched_bytes;
        let held = self.written_bytes.saturating_sub(self.put_bytes.get());
        held <= UNCHARGED_BYTES_MAX || self.memory.hold(2 * held)
    }
}

impl Document {
    fn new(
        html: &Arc<str>,
        place: Place,
        encoding: AsciiCompatibleEncoding,
        memory: Box<dyn ContentMemory>,
    ) -> Self {
        let output = Output::default();
        let sink = Rc::clone(&output);
        let is_done = Rc::new(Cell::new(false));
        let markup = Markup {
            html: Arc::clone(html),
            place,
            is_done: Rc::clone(&is_done),
        };
        let rest = markup.clone();
        let at_element = element!(markup.selector(), move |it| markup.put_into(it));
        let at_end = end!(move |it| rest.put_at_end(it));
        let search_memory = MemorySettings::new()
            .with_max_allowed_memory_usage(MEMORY_BYTES_MAX)
            .with_graceful_bail_out_on_memory_limit_exceeded(true);
        let settings = Settings::new()
            .append_element_content_handler(at_element)
            .append_document_content_handler(at_end)
            .with_encoding(encoding)
            .with_memory_settings(search_memory)
            .with_strict(false)
            .with_adjust_charset_on_meta_tag(true);
        let put_bytes = Rc::<Cell<usize>>::default();
        let put = Rc::clone(&put_bytes);
        let take: Sink = Box::new(move |bytes| {
            put.set(put.get() + bytes.len());
            sink.borrow_mut().extend_from_slice(bytes);
        });
        Self {
            rewriter: Some(HtmlRewriter::new(settings, take)),
            output,
            passed: 0,
            gave_up: false,
            withheld: Withheld {
                memory,
                written_bytes: 0,
                put_bytes,
            },
        }
    }

    /// Puts out what is there; whether that was all.
    fn pass(&mut self, piece: &mut Piece<'_>) -> bool {
        let mut output = self.output.borrow_mut();
        self.passed += piece.put(&output[self.passed..]);
        let is_all = self.passed == output.len();
        if is_all {
            output.clear();
            self.passed = 0;
        }
        is_all
    }
}

impl Transform for Document {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        loop {
            if !self.pass(piece) {
                return Progress::Continue;
            }
            if self.gave_up {
                piece.pass(usize::MAX);
                return match piece.is_last() && piece.input().is_empty() {
                    true => Progress::Done,
                    false => Progress::Continue,
                };
            }
            let Some(rewriter) = &mut self.rewriter else {
                return Progress::Done;
            };
            let input = piece.input();
            let count = input.len().min(STEP_BYTES);
            let searched = if count > 0 {
                piece.take(count);
                rewriter.write(&input[..count])
            } else if piece.is_last() {
                self.rewriter.take().map_or(Ok(()), HtmlRewriter::end)
            } else {
                return Progress::Continue;
            };
            match searched {
                Ok(()) if self.withheld.charge(count) => {}
                Err(RewritingError::MemoryLimitExceeded(_)) => self.gave_up = true,
                Ok(()) | Err(_) => return Progress::Fail,
            }
        }
    }
}

/// Markup that is put in once.
#[derive(Clone)]
struct Markup {
    html: Arc<str>,
    place: Place,
    is_done: Rc<Cell<bool>>,
}

impl Markup {
    const fn selector(&self) -> &'static str {
        match self.place {
            Place::HeadStart | Place::HeadEnd => "head",
            Place::BodyStart | Place::BodyEnd => "body",
        }
    }

    fn put_into(&self, element: &mut Element<'_, '_>) -> HandlerResult {
        if self.is_done.get() {
            return Ok(());
        }
        match self.place {
            Place::HeadStart | Place::BodyStart => {
                self.is_done.set(true);
                element.prepend(&self.html, ContentType::Html);
            }
            Place::HeadEnd | Place::BodyEnd => {
                let markup = self.clone();
                element.on_end_tag(lol_html::end_tag!(move |tag| {
                    if !markup.is_done.replace(true) {
                        tag.before(&markup.html, ContentType::Html);
                    }
                    Ok(())
                }))?;
            }
        }
        Ok(())
    }

    fn put_at_end(&self, end: &mut DocumentEnd<'_>) -> HandlerResult {
        if self.place == Place::BodyEnd && !self.is_done.replace(true) {
            end.append(&self.html, ContentType::Html);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_extend::{Fields, OptionValue};

    fn load(options: &[(&str, &str)]) -> Result<Arc<dyn Module>, LoadError> {
        let options = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), OptionValue::Text((*value).to_owned())));
        Inject.load(Options::new(options.collect::<BTreeMap<_, _>>()))
    }

    fn head(fields: &[(&'static str, &'static str)]) -> ResponseHead<'static> {
        let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
        ResponseHead::new(200, Fields::received(fields))
    }

    fn call() -> Call {
        Call {
            client: std::net::Ipv4Addr::LOCALHOST.into(),
            mode: weir_extend::ListenerMode::Forward,
            now_ms: 0,
        }
    }

    /// What becomes of a document that comes in pieces of so many bytes.
    fn document(content: &[u8], size: usize, options: &[(&str, &str)]) -> Vec<u8> {
        let mut options = options.to_vec();
        options.push(("html", "<i>ü</i>"));
        let module = load(&options).expect("a module");
        let mut head = head(&[("Content-Type", "text/html; Charset=\"utf-8\"")]);
        let answer = module
            .begin(&weir_extend::Detached::host())
            .response_sent(&mut head, &call());
        assert_eq!(answer, Answer::Continue);
        let (_, mut transform) = head.take_transform().expect("a transform");
        let (mut rest, mut out) = (content, Vec::new());
        loop {
            let count = rest.len().min(size);
            let mut piece = Piece::new(&rest[..count], count == rest.len(), &mut out, 100);
            let progress = transform.transform(&mut piece);
            let taken = piece.taken();
            rest = &rest[taken..];
            if progress == Progress::Done {
                return out;
            }
            assert_eq!(progress, Progress::Continue);
        }
    }

    #[test]
    fn markup_is_put_once_where_the_options_say_whatever_the_pieces() {
        let content = "<!doctype html><head><title>x</title></head><BODY a=b>text<body></BODY>";
        for (options, expected) in [
            (
                &[("element", "head"), ("place", "start")][..],
                content.replace("<head>", "<head><i>ü</i>"),
            ),
            (
                &[("element", "head")],
                content.replace("</head>", "<i>ü</i></head>"),
            ),
            (
                &[("place", "start")],
                content.replace("<BODY a=b>", "<BODY a=b><i>ü</i>"),
            ),
            (&[], content.replace("</BODY>", "<i>ü</i></BODY>")),
        ] {
            for size in [1, 7, 1000] {
                let out = document(content.as_bytes(), size, options);
                assert_eq!(String::from_utf8_lossy(&out), expected, "{options:?}");
            }
        }
    }

    #[test]
    fn markup_for_the_end_of_a_body_without_end_tag_stands_at_the_end_of_the_document() {
        assert_eq!(document(b"<p>x", 9, &[]), "<p>x<i>ü</i>".as_bytes());
        assert_eq!(document(b"<p>x", 9, &[("place", "start")]), b"<p>x");
    }

    #[test]
    fn document_that_needs_too_much_memory_passes_as_it_is() {
        let long = "x".repeat(2 * MEMORY_BYTES_MAX);
        for tag in ["a", "body"] {
            let long = format!("<p>text</p><{tag} {long}>text</{tag}>");
            for size in [1000, STEP_BYTES, 1 << 20] {
                let out = document(long.as_bytes(), size, &[("place", "start")]);
                assert!(out == long.as_bytes(), "{tag} {size}");
            }
        }
    }

    /// Memory for so many bytes.
    struct Room(usize);

    impl ContentMemory for Room {
        fn hold(&mut self, bytes: usize) -> bool {
            bytes <= self.0
        }

        fn another(&self) -> Box<dyn ContentMemory> {
            Box::new(Self(self.0))
        }
    }

    #[test]
    fn document_with_a_long_tag_for_which_there_is_no_memory_is_given_up() {
        let is_given_up = |tag_bytes: usize, room: usize| {
            let html = "<i>x</i>".into();
            let encoding = AsciiCompatibleEncoding::utf_8();
            let memory = Box::new(Room(room));
            let mut document = Document::new(&html, Place::BodyEnd, encoding, memory);
            let content = format!("<p>text</p><body {}></body>", "x".repeat(tag_bytes));
            let mut rest = content.as_bytes();
            loop {
                let mut out = Vec::new();
                let mut piece = Piece::new(rest, true, &mut out, 65_536);
                match document.transform(&mut piece) {
                    Progress::Fail => return true,
                    Progress::Done => return false,
                    _ => rest = &rest[piece.taken()..],
                }
            }
        };
        assert!(!is_given_up(10_000, 0));
        assert!(is_given_up(100_000, 0));
        assert!(!is_given_up(100_000, 200_100));
    }

    #[test]
    fn only_html_with_ascii_tags_is_searched() {
        for fields in [
            &[("Content-Type", "text/plain")][..],
            &[("Content-Type", "text/html; charset=utf-16")],
            &[("Content-Type", "text/html; charset=unknown")],
            &[],
        ] {
            assert!(encoding_of(&head(fields)).is_none(), "{fields:?}");
        }
        for fields in [
            &[("Content-Type", "TEXT/HTML")][..],
            &[("Content-Type", "text/html;charset=iso-8859-1")],
        ] {
            assert!(encoding_of(&head(fields)).is_some(), "{fields:?}");
        }
    }

    #[test]
    fn document_with_a_coding_is_decoded_only_where_the_option_says_so() {
        for (coding, decode, expected) in [
            ("identity", false, Some(0)),
            ("gzip", false, None),
            ("gzip", true, Some(1)),
            ("gzip, br", true, Some(2)),
            ("compress", true, None),
        ] {
            let options = [
                ("html".to_owned(), OptionValue::Text("x".to_owned())),
                ("decode".to_owned(), OptionValue::Flag(decode)),
            ];
            let module = Inject.load(Options::new(options.into())).expect("a module");
            let mut head = head(&[("Content-Type", "text/html"), ("Content-Encoding", coding)]);
            let mut exchange = module.begin(&weir_extend::Detached::host());
            exchange.response_sent(&mut head, &call());
            let is_kept = head.fields.get("content-encoding").is_some();
            let codings = head.take_transform().map(|(codings, _)| codings);
            let count = codings.map(|codings| codings.iter().count());
            assert_eq!(count, expected, "{coding}, {decode}");
            assert_eq!(is_kept, expected.is_none(), "{coding}, {decode}");
        }
    }

    #[test]
    fn options_that_put_nothing_in_or_name_no_place_are_refused() {
        let long = "x".repeat(HTML_BYTES_MAX + 1);
        for (options, option) in [
            (&[][..], "html"),
            (&[("html", "")], "html"),
            (&[("html", long.as_str())], "html"),
            (&[("html", "x"), ("element", "p")], "element"),
            (&[("html", "x"), ("place", "middle")], "place"),
            (&[("html", "x"), ("other", "y")], "other"),
        ] {
            let refused = load(options).err().expect("refused");
            assert_eq!(refused.option, option);
        }
    }
}
