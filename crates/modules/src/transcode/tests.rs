use super::convert::tests::jpeg;
use super::processes::tests::test_program;
use super::*;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::task::Waker;
use std::time::Instant;
use weir_extend::{
    ContentMemory, FetchError, Fields, ListenerMode, LogLevel, OptionValue, OwnRequest,
    OwnResponse, Piece, Progress, Transform,
};

const CALL: Call = Call {
    client: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    mode: ListenerMode::Forward,
    now_ms: 0,
};

fn load(options: &[(&str, i64)], launch: Launch) -> Result<Arc<dyn Module>, LoadError> {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), OptionValue::Number(*value)));
    Transcode(launch).load(Options::new(options.collect::<BTreeMap<_, _>>()))
}

type Lines<'a> = &'a [(&'a str, &'a str)];

fn fields(lines: Lines<'_>) -> Fields {
    Fields::received(lines.iter().map(|(name, value)| (*name, value.as_bytes())))
}

const ACCEPT: (&str, &str) = ("Accept", "image/avif,image/webp,*/*;q=0.8");
const JPEG: (&str, &str) = ("Content-Type", "image/jpeg");

fn begin(module: &Arc<dyn Module>, accept: Lines<'_>) -> (Box<dyn Exchange>, Option<String>) {
    let mut exchange = module.begin(&weir_extend::Detached::host());
    let mut head = RequestHead::new("GET", "a.example", "/a", fields(accept));
    assert_eq!(
        exchange.request_received(&mut head, &CALL),
        Answer::Continue
    );
    (exchange, head.take_variant())
}

/// Hands content over in pieces of so many bytes, as long as it is taken or put out.
fn hand(
    transform: &mut Box<dyn Transform>,
    rest: &mut &[u8],
    size: usize,
    (out, room): (&mut Vec<u8>, usize),
) -> Progress {
    loop {
        let (count, before) = (rest.len().min(size), out.len());
        let mut piece = Piece::new(&rest[..count], count == rest.len(), out, room);
        let progress = transform.transform(&mut piece);
        let taken = piece.taken();
        *rest = &rest[taken..];
        if progress != Progress::Continue || taken == 0 && out.len() == before {
            return progress;
        }
    }
}

/// What becomes of a response with this content, as the proxy calls a module that decides by it.
fn decide(
    module: &Arc<dyn Module>,
    lines: Lines<'_>,
    content: &[u8],
    size: usize,
) -> (ResponseHead<'static>, Vec<u8>) {
    let (mut exchange, _) = begin(module, &[ACCEPT]);
    let mut head = ResponseHead::new(200, fields(lines));
    let (mut rest, mut out) = (content, Vec::new());
    if exchange.response_received(&mut head, &CALL) == Answer::Continue {
        assert!(!head.is_transformed());
        return (head, content.to_vec());
    }
    let mut transform = head.take_transform().expect("a collector").1;
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let progress = hand(&mut transform, &mut rest, size, (&mut out, 0));
        assert!(progress == Progress::Continue && out.is_empty());
        let mut cx = Context::from_waker(Waker::noop());
        if exchange.poll_deferred(&mut cx).is_ready() {
            break;
        }
        assert!(Instant::now() < until, "no decision");
        std::thread::yield_now();
    }
    assert_eq!(
        exchange.response_received(&mut head, &CALL),
        Answer::Continue
    );
    if let Some((_, other)) = head.take_transform() {
        transform = other;
    }
    let progress = hand(&mut transform, &mut rest, size, (&mut out, 100));
    assert_eq!(progress, Progress::Done);
    (head, out)
}

#[test]
fn variant_is_that_of_clients_that_name_webp() {
    let plain = load(&[], test_program).expect("a module");
    let narrow = load(&[("width_max", 640)], test_program).expect("a module");
    for (accept, accepts) in [
        (&[ACCEPT][..], true),
        (
            &[("Accept", "text/html"), ("Accept", "IMAGE/WEBP;q=0.1")],
            true,
        ),
        (&[("Accept", "image/webp;q=0")], false),
        (&[("Accept", "image/webp; q=0.000")], false),
        (&[("Accept", "image/*,*/*")], false),
        (&[ACCEPT, ("Cache-Control", "no-transform")], false),
        (&[], false),
    ] {
        let (_, variant) = begin(&plain, accept);
        assert_eq!(variant.as_deref(), accepts.then_some("webp"), "{accept:?}");
        let (_, variant) = begin(&narrow, accept);
        assert_eq!(variant.as_deref(), accepts.then_some("webp-640"));
    }
}

#[test]
fn image_is_replaced_by_webp_whatever_the_pieces() {
    let module = load(&[], test_program).expect("a module");
    let content = jpeg(200, 100);
    for size in [7, 1000, 1 << 20] {
        let lines = [JPEG, ("Content-Length", "5000"), ("ETag", "\"x\"")];
        let (head, out) = decide(&module, &lines, &content, size);
        assert_eq!(head.fields.get("content-type"), Some(&b"image/webp"[..]));
        assert_eq!(head.fields.get("etag"), Some(&b"\"x\""[..]));
        assert_eq!(head.fields.get("content-length"), None);
        assert!(out.starts_with(b"RIFF") && out.len() < content.len());
    }
    let counted: Vec<_> = module.metrics().iter().map(|it| it.value).collect();
    assert_eq!(counted, [3, 0, 1]);
}

#[test]
fn image_that_is_not_converted_passes_with_every_byte_and_its_entity_tag() {
    let module = load(&[("bytes_max", 20_000), ("memory", 15_000)], test_program);
    let module = module.expect("a module");
    let no_image = b"not an image at all ".repeat(100);
    let (large, larger) = (vec![7; 19_000], vec![7; 30_000]);
    for content in [&b""[..], &no_image, &large, &larger] {
        for size in [999, 1 << 20] {
            let lines = [JPEG, ("ETag", "\"x\"")];
            let (head, out) = decide(&module, &lines, content, size);
            assert!(out == content, "{} {size}", content.len());
            assert_eq!(head.fields.get("content-type"), Some(&b"image/jpeg"[..]));
            assert_eq!(head.fields.get("etag"), Some(&b"\"x\""[..]));
        }
    }
    // what was held is given back
    let (_, out) = decide(&module, &[JPEG], &jpeg(50, 50), 999);
    assert!(out.starts_with(b"RIFF"));
}

#[test]
fn image_passes_if_no_process_can_be_had() {
    let module = load(&[], || Command::new("/nowhere/program")).expect("a module");
    let content = jpeg(50, 50);
    let (_, out) = decide(&module, &[JPEG], &content, 1000);
    assert!(out == content);
}

#[test]
fn response_that_is_no_candidate_is_left_as_it_is() {
    let module = load(&[], test_program).expect("a module");
    for (status, lines) in [
        (200, &[][..]),
        (200, &[("Content-Type", "image/svg+xml")]),
        (200, &[("Content-Type", "image/webp")]),
        (206, &[JPEG]),
        (404, &[JPEG]),
        (200, &[JPEG, ("Content-Encoding", "gzip")]),
        (200, &[JPEG, ("Content-Length", "1023")]),
        (200, &[JPEG, ("Content-Length", "4194305")]),
        (200, &[JPEG, ("Cache-Control", "no-transform")]),
    ] {
        let (mut exchange, _) = begin(&module, &[ACCEPT]);
        let mut head = ResponseHead::new(status, fields(lines));
        assert_eq!(
            exchange.response_received(&mut head, &CALL),
            Answer::Continue
        );
        assert!(
            !head.is_changed() && !head.is_transformed(),
            "{status} {lines:?}"
        );
    }
    let (mut exchange, _) = begin(&module, &[]);
    let mut head = ResponseHead::new(200, fields(&[JPEG]));
    assert_eq!(
        exchange.response_received(&mut head, &CALL),
        Answer::Continue
    );
}

#[test]
fn caches_behind_are_told_that_images_vary_by_accept() {
    let module = load(&[], test_program).expect("a module");
    for (status, lines, expected) in [
        (200, &[JPEG][..], &["Accept"][..]),
        (200, &[("Content-Type", "image/webp")], &["Accept"]),
        (
            200,
            &[JPEG, ("Vary", "accept, Cookie")],
            &["accept, Cookie"],
        ),
        (200, &[("Content-Type", "text/html")], &[]),
        (206, &[JPEG, ("Content-Range", "bytes 0-9/99")], &["Accept"]),
        // what they are of is not in them
        (304, &[], &["Accept"]),
        (412, &[], &["Accept"]),
        (416, &[("Content-Range", "bytes */99")], &["Accept"]),
    ] {
        let (mut exchange, _) = begin(&module, &[]);
        let mut head = ResponseHead::new(status, fields(lines));
        assert_eq!(exchange.response_sent(&mut head, &CALL), Answer::Continue);
        let vary: Vec<_> = head.fields.all("vary").collect();
        let expected: Vec<_> = expected.iter().map(|it| it.as_bytes()).collect();
        assert_eq!(vary, expected, "{lines:?}");
    }
}

#[test]
fn options_out_of_range_are_refused() {
    for (name, value) in [
        ("quality", 0),
        ("quality", 101),
        ("width_max", 16_384),
        ("pixels_max", 0),
        ("bytes_max", 0),
        ("memory", 0),
        ("processes", 0),
        ("misspelt", 1),
    ] {
        let refused = load(&[(name, value)], test_program).err().expect("refused");
        assert_eq!(refused.option, name);
    }
    let formats = OptionValue::List(vec![OptionValue::Text("tiff".to_owned())]);
    let options = Options::new(BTreeMap::from([("formats".to_owned(), formats)]));
    let refused = Transcode(test_program)
        .load(options)
        .err()
        .expect("refused");
    assert_eq!(refused.option, "formats[0]");
}

/// A host whose budget for content has so many bytes, which all of it has together.
struct Budget(usize, Arc<AtomicUsize>);

impl Host for Budget {
    fn worker(&self) -> usize {
        0
    }

    fn wall_ms(&self) -> u64 {
        0
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        weir_extend::Detached.fetch(request)
    }

    fn memory(&self) -> Box<dyn ContentMemory> {
        Box::new(Share {
            bytes_max: self.0,
            used: Arc::clone(&self.1),
            held: 0,
        })
    }
}

struct Share {
    bytes_max: usize,
    used: Arc<AtomicUsize>,
    held: usize,
}

impl ContentMemory for Share {
    fn hold(&mut self, bytes: usize) -> bool {
        let used = self.used.load(Relaxed) - self.held + bytes;
        if used <= self.bytes_max {
            self.used.store(used, Relaxed);
            self.held = bytes;
        }
        used <= self.bytes_max
    }

    fn another(&self) -> Box<dyn ContentMemory> {
        Box::new(Self {
            held: 0,
            used: Arc::clone(&self.used),
            ..*self
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.held, Relaxed);
    }
}

/// The answer to a response with this content, once it is decided on, and the head.
fn answer(
    module: &Arc<dyn Module>,
    host: &Rc<dyn Host>,
    (lines, content): (Lines<'_>, &[u8]),
) -> (Answer, ResponseHead<'static>) {
    let mut exchange = module.begin(host);
    let mut request = RequestHead::new("GET", "a.example", "/a", fields(&[ACCEPT]));
    let _ = exchange.request_received(&mut request, &CALL);
    let mut head = ResponseHead::new(200, fields(lines));
    let mut answer = exchange.response_received(&mut head, &CALL);
    if answer == Answer::Defer {
        let (_, mut transform) = head.take_transform().expect("a collector");
        let mut rest = content;
        hand(&mut transform, &mut rest, 999, (&mut Vec::new(), 0));
        let until = Instant::now() + Duration::from_secs(30);
        let mut cx = Context::from_waker(Waker::noop());
        while exchange.poll_deferred(&mut cx).is_pending() {
            assert!(Instant::now() < until, "no decision");
            std::thread::yield_now();
        }
        answer = exchange.response_received(&mut head, &CALL);
    }
    (answer, head)
}

#[test]
fn images_and_what_is_made_of_them_are_charged_to_the_budget_of_the_proxy() {
    let module = load(&[], test_program).expect("a module");
    let content = jpeg(200, 100);
    let used = Arc::<AtomicUsize>::default();
    let budget = |bytes_max| -> Rc<dyn Host> { Rc::new(Budget(bytes_max, Arc::clone(&used))) };
    let (answered, head) = answer(&module, &budget(1 << 20), (&[JPEG], &content));
    assert_eq!(answered, Answer::Continue);
    // what takes the place of the image
    assert!(head.is_transformed());
    let held = used.load(Relaxed);
    assert!((1..content.len()).contains(&held), "{held}");
    drop(head);
    assert_eq!(used.load(Relaxed), 0);
    // room for a part of the image
    let host = budget(content.len() - 1);
    let (answered, head) = answer(&module, &host, (&[JPEG], &content));
    assert!(answered == Answer::Continue && !head.is_transformed() && !head.changes_content());
    assert_eq!(used.load(Relaxed), 0);
}

#[test]
fn larger_images_pass_or_are_refused_as_the_operator_chooses() {
    let content = jpeg(200, 100);
    let length = content.len().to_string();
    let known = [JPEG, ("Content-Length", &length)];
    for (bytes_max, budget) in [(content.len() - 1, 1 << 20), (1 << 20, content.len() - 1)] {
        for larger in ["pass", "refuse"] {
            let options = BTreeMap::from([
                (
                    "bytes_max".to_owned(),
                    OptionValue::Number(bytes_max as i64),
                ),
                ("larger".to_owned(), OptionValue::Text(larger.to_owned())),
            ]);
            let module = Transcode(test_program).load(Options::new(options));
            let module = module.expect("a module");
            let host: Rc<dyn Host> = Rc::new(Budget(budget, Arc::default()));
            for lines in [&known[..], &[JPEG]] {
                let (answered, _) = answer(&module, &host, (lines, &content));
                match (larger, answered) {
                    ("pass", Answer::Continue) => {}
                    ("refuse", Answer::Respond(response)) => assert_eq!(response.status(), 502),
                    (_, other) => panic!("{larger}: {other:?}"),
                }
            }
        }
    }
}
