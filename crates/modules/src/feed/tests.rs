use super::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::ready;
use std::io::Write as _;
use std::task::{Context, Waker};
use weir_extend::{
    FetchError, InjectedHead, Injection, NoStore, OptionValue, OwnRequest, OwnResponse,
    StoredContent, StoredInfo, StoredReader, StoredResponses, Validation,
};

/// A host whose feed is what a test has set, and whose store notes what it is asked for.
#[derive(Default)]
struct Scripted {
    worker: usize,
    feed: RefCell<Vec<u8>>,
    status: Cell<u16>,
    asked: Rc<RefCell<Vec<String>>>,
    under_way: Rc<Cell<usize>>,
    under_way_max: Rc<Cell<usize>>,
    log: RefCell<Vec<String>>,
    fails: Cell<bool>,
}

impl Scripted {
    fn ask<T: 'static>(
        &self,
        what: &str,
        target: &StoredTarget,
        value: T,
    ) -> Pending<Result<T, StoredError>> {
        let vary = target.fields.get("accept-encoding").unwrap_or_default();
        let vary = String::from_utf8_lossy(vary);
        let line = format!("{what} {:?} {} {vary}", target.mode, target.url);
        self.asked.borrow_mut().push(line.trim_end().to_owned());
        let result = match (self.fails.get(), target.url.ends_with("/absent")) {
            (true, _) => Err(StoredError::Timeout),
            (_, true) => Err(StoredError::NotStored),
            _ => Ok(value),
        };
        let (under_way, most) = (Rc::clone(&self.under_way), Rc::clone(&self.under_way_max));
        under_way.set(under_way.get() + 1);
        most.set(most.get().max(under_way.get()));
        let mut result = Some(result);
        let mut polls = 0;
        Box::pin(poll_fn(move |_| {
            polls += 1;
            if polls < 3 {
                return Poll::Pending;
            }
            under_way.set(under_way.get() - 1);
            Poll::Ready(result.take().expect("ready once"))
        }))
    }
}

impl Host for Scripted {
    fn worker(&self) -> usize {
        self.worker
    }

    fn wall_ms(&self) -> u64 {
        0
    }

    fn log(&self, level: LogLevel, line: &str) {
        self.log.borrow_mut().push(format!("{level:?}: {line}"));
    }

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        assert_eq!(request.url, "http://cms.example/feed");
        let response = OwnResponse {
            status: self.status.get(),
            content: self.feed.borrow().clone(),
            ..OwnResponse::default()
        };
        Box::pin(ready(match self.status.get() {
            0 => Err(FetchError::Forbidden),
            _ => Ok(response),
        }))
    }

    fn stored(&self) -> &dyn StoredResponses {
        self
    }
}

impl StoredResponses for Scripted {
    fn fetch(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        self.ask("fetch", &target, StoredInfo::default())
    }

    fn set_expiry(&self, target: StoredTarget, for_: Duration) -> Pending<Result<(), StoredError>> {
        assert_eq!(for_, Duration::ZERO);
        self.ask("expire", &target, ())
    }

    fn delete(&self, target: StoredTarget) -> Pending<Result<u64, StoredError>> {
        self.ask("delete", &target, 1)
    }

    fn query(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        NoStore.query(target)
    }

    fn validate(&self, target: StoredTarget) -> Pending<Result<Validation, StoredError>> {
        NoStore.validate(target)
    }

    fn inject(&self, head: InjectedHead, c: Vec<u8>) -> Pending<Result<StoredInfo, StoredError>> {
        NoStore.inject(head, c)
    }

    fn start_injection(
        &self,
        head: InjectedHead,
        bytes: Option<u64>,
    ) -> Pending<Result<Box<dyn Injection>, StoredError>> {
        NoStore.start_injection(head, bytes)
    }

    fn read(&self, t: StoredTarget, most: usize) -> Pending<Result<StoredContent, StoredError>> {
        NoStore.read(t, most)
    }

    fn start_read(&self, t: StoredTarget) -> Pending<Result<Box<dyn StoredReader>, StoredError>> {
        NoStore.start_read(t)
    }
}

fn load(options: &[(&str, OptionValue)]) -> Result<Arc<dyn Module>, LoadError> {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Feed.load(Options::new(options.collect::<BTreeMap<_, _>>()))
}

fn text_of(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

fn of_url() -> Arc<dyn Module> {
    load(&[("url", text_of("http://cms.example/feed"))]).expect("a module")
}

/// What is asked of the store in one period.
fn tick(module: &Arc<dyn Module>, host: &Rc<Scripted>) -> Vec<String> {
    let as_host: Rc<dyn Host> = Rc::<Scripted>::clone(host);
    if let Some(mut reading) = module.tick(&as_host) {
        let mut cx = Context::from_waker(Waker::noop());
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while reading.as_mut().poll(&mut cx).is_pending() {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::yield_now();
        }
    }
    host.asked.take()
}

fn host(feed: &str) -> Rc<Scripted> {
    let host = Scripted::default();
    host.status.set(200);
    *host.feed.borrow_mut() = feed.into();
    Rc::new(host)
}

#[test]
fn entries_are_done_and_those_that_change_the_store_once_while_they_are_listed() {
    let host = host("fetch http://a/1\nexpire http://a/2\ndelete http://a/3\n");
    let module = of_url();
    let first = [
        "fetch Forward http://a/1",
        "expire Forward http://a/2",
        "delete Forward http://a/3",
    ];
    assert_eq!(tick(&module, &host), first);
    assert_eq!(tick(&module, &host), first[..1]);
    // named by another tag, it is another entry
    *host.feed.borrow_mut() = b"expire http://a/2 again\ndelete http://a/3".to_vec();
    assert_eq!(tick(&module, &host), first[1..2]);
    // listed anew after it was left out
    *host.feed.borrow_mut() = Vec::new();
    assert!(tick(&module, &host).is_empty());
    *host.feed.borrow_mut() = b"delete http://a/3".to_vec();
    assert_eq!(tick(&module, &host), first[2..]);
    let counted: Vec<_> = module.metrics().iter().map(|it| it.value).collect();
    assert_eq!(counted, [2, 2, 2, 0]);
}

#[test]
fn failed_entry_is_logged_and_tried_again_and_an_absent_response_is_none() {
    let host = host("expire http://a/1\ndelete http://a/absent\n");
    let module = of_url();
    host.fails.set(true);
    assert_eq!(tick(&module, &host).len(), 2);
    assert_eq!(
        host.log.take()[0],
        "Warning: Expire http://a/1: it took too long"
    );
    host.fails.set(false);
    assert_eq!(tick(&module, &host).len(), 2);
    assert!(tick(&module, &host).is_empty());
    assert!(host.log.take().is_empty());
}

#[test]
fn few_entries_are_under_way_at_one_time() {
    let feed: String = (0..100).map(|n| format!("fetch http://a/{n}\n")).collect();
    let host = host(&feed);
    assert_eq!(tick(&of_url(), &host).len(), 100);
    assert_eq!(host.under_way_max.get(), UNDER_WAY_MAX);
    assert_eq!(host.under_way.get(), 0);
}

#[test]
fn feed_that_is_not_there_or_has_a_mistake_changes_nothing() {
    let host = host("delete http://a/\nfoo\n");
    let module = of_url();
    for (status, part) in [(200, "line 2"), (404, "status is 404"), (0, "forbidden")] {
        host.status.set(status);
        assert!(tick(&module, &host).is_empty());
        let log = host.log.take();
        assert!(
            log[0].starts_with("Error: the feed is not used: "),
            "{log:?}"
        );
        assert!(log[0].contains(part), "{log:?}");
    }
}

#[test]
fn one_worker_reads_the_feed() {
    let feed = b"fetch http://a/".to_vec();
    let host = Scripted {
        worker: 1,
        status: Cell::new(200),
        feed: feed.into(),
        ..Scripted::default()
    };
    assert!(tick(&of_url(), &Rc::new(host)).is_empty());
}

#[test]
fn file_is_read_for_the_mode_and_the_fields_that_are_configured() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"fetch http://a/\n").expect("a file");
    let fields = OptionValue::List(vec![text_of("Accept-Encoding: br")]);
    let module = load(&[
        ("file", text_of(file.path().to_str().expect("text"))),
        ("mode", text_of("gateway")),
        ("fields", fields),
        ("period_s", OptionValue::Number(5)),
    ]);
    let module = module.expect("a module");
    assert_eq!(module.period(), Some(Duration::from_secs(5)));
    assert!(module.hooks().is_empty());
    let host = host("");
    assert_eq!(tick(&module, &host), ["fetch Gateway http://a/ br"]);
    drop(file);
    assert!(tick(&module, &host).is_empty());
    assert!(host.log.take()[0].contains("cannot read it"));
}

#[test]
fn options_without_one_feed_or_with_a_bad_field_are_refused() {
    let url = || ("url", text_of("http://a/"));
    let bad = OptionValue::List(vec![text_of("Host: a")]);
    for (options, option) in [
        (&[][..], "url"),
        (&[url(), ("file", text_of("/x"))], "url"),
        (&[url(), ("mode", text_of("reverse"))], "mode"),
        (&[url(), ("period_s", OptionValue::Number(0))], "period_s"),
        (&[url(), ("fields", bad)], "fields[0]"),
        (&[url(), ("misspelt", text_of("x"))], "misspelt"),
    ] {
        assert_eq!(load(options).err().expect("refused").option, option);
    }
}
