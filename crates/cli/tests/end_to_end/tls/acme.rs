//! Certificates that an authority issues: Pebble.

use super::{LOCATIONS, s_client};
use crate::support::{
    ClientsEnd, Config, Curl, Issued, KeyKind, Nginx, PATIENCE, Pebble, RawClient, Weir,
};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use tempfile::TempDir;

/// A gateway's origin, an authority, and a folder for what it issues.
struct Setting {
    nginx: Nginx,
    pebble: Pebble,
    folder: TempDir,
}

impl Setting {
    fn new(bad_nonces: u32) -> Self {
        Self::with(Pebble::start(bad_nonces))
    }

    fn with(pebble: Pebble) -> Self {
        Self {
            nginx: Nginx::start(LOCATIONS),
            pebble,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// A gateway in clear where the authority asks, and one with certificates for these lists of
    /// names.
    fn by_http(&self, lists: &[&[&str]]) -> Config {
        let clear = format!("127.0.0.1:{}", self.pebble.http_port);
        self.config(lists, "127.0.0.1:0", "http-01")
            .listener(&clear, "gateway")
    }

    /// A gateway with certificates where the authority asks.
    fn by_tls(&self, lists: &[&[&str]]) -> Config {
        let tls = format!("127.0.0.1:{}", self.pebble.tls_port);
        self.config(lists, &tls, "tls-alpn-01")
    }

    fn config(&self, lists: &[&[&str]], tls: &str, challenge: &str) -> Config {
        let lists = lists.iter().map(|names| format!("{{ acme = {names:?} }}"));
        let lists = lists.collect::<Vec<_>>().join(", ");
        let ca = self.pebble.issued.chain.display();
        Config::gateway(&[&self.nginx.origin()])
            .without_listeners()
            .listener(tls, "gateway")
            .of_listener(&format!("tls = {{ certificates = [{lists}] }}"))
            .set(
                "acme.directory",
                &format!("\"{}\"", self.pebble.directory()),
            )
            .set("acme.ca", &format!("\"{ca}\""))
            .set(
                "acme.folder",
                &format!("{:?}", self.folder.path().join("acme")),
            )
            .set("acme.challenge", &format!("\"{challenge}\""))
            .set("acme.contact", "[\"mailto:a@weir.test\"]")
            .set("acme.terms_agreed", "true")
            .set("acme.retry", "\"1s\"")
    }

    /// A file of the authority's folder.
    fn file(&self, name: &str) -> PathBuf {
        let all = self.folder.path().join("acme");
        let mut folders = std::fs::read_dir(all).expect("a folder");
        let folder = folders.next().expect("one").expect("readable");
        folder.path().join(name)
    }

    /// curl that trusts what the authority issues, and comes to the first listener.
    fn curl(&self, weir: &Weir) -> Curl {
        curl_to(weir.address(), &self.pebble.root())
    }
}

fn curl_to(address: SocketAddr, root: &Path) -> Curl {
    let to = format!("::{address}");
    Curl::direct().args(["--connect-to", &to, "--cacert", &root.to_string_lossy()])
}

fn orders(weir: &Weir, end: &str, at_least: u64) {
    let metric = format!("weir_acme_orders_total{{end=\"{end}\"}}");
    weir.until(&metric, |metrics| metrics.count(&metric) >= at_least);
}

/// What `weir explain` says of the certificate for `host`, in one line.
fn explain(weir: &Weir, host: &str) -> String {
    let path = format!("/explain?url=https://{host}/");
    let said = weir.ask("GET", &path).expect(200).text();
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let said = lines.join(" ");
    let begin = said.find("certificate: ").expect("a certificate");
    let end = said[begin..].find(" What is looked at").expect("more");
    said[begin..begin + end].trim_end().to_owned()
}

/// The serial number of the certificate that a client gets for `host`.
fn serial(weir: &Weir, host: &str) -> String {
    let said = s_client(weir.address(), &["-servername", host]);
    let begin = said.find("-----BEGIN CERTIFICATE").expect("a certificate");
    let end = said.find("-----END CERTIFICATE").expect("its end");
    said[begin..end].to_owned()
}

#[test]
fn certificate_is_ordered_by_http_and_kept_for_the_owner_and_the_next_start() {
    let setting = Setting::new(0);
    let config = setting.by_http(&[&["a.weir.test", "b.weir.test"]]);
    let mut weir = Weir::serve(&config);
    orders(&weir, "issued", 1);
    let curl = || setting.curl(&weir);
    for host in ["a.weir.test", "b.weir.test"] {
        curl()
            .fetch(&format!("https://{host}/cached"))
            .reply()
            .expect(200);
    }
    let metrics = weir.metrics();
    let expiry = "weir_tls_certificate_expiry_timestamp_seconds{name=\"a.weir.test\"}";
    assert!(metrics.count(expiry) > 1_700_000_000);
    assert_eq!(metrics.count("weir_acme_failures{name=\"a.weir.test\"}"), 0);
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    let [account, certificate] = ["account.json", "a.weir.test.pem"].map(|it| setting.file(it));
    assert_eq!((mode(&account), mode(&certificate)), (0o600, 0o600));
    assert_eq!(mode(certificate.parent().expect("a folder")), 0o700);

    // a token that is not pending is one as any
    let unknown = format!(
        "http://127.0.0.1:{}/.well-known/acme-challenge/x",
        setting.pebble.http_port
    );
    let reply = Curl::direct().fetch(&unknown).reply();
    assert_eq!(reply.status(), 404);
    assert!(reply.text().contains("nginx"), "{}", reply.text());

    // the next start has both, and orders nothing
    let (before, account_text) = (serial(&weir, "a.weir.test"), std::fs::read(&account));
    weir.stop();
    let weir = Weir::serve(&config);
    assert_eq!(serial(&weir, "b.weir.test"), before);
    // a further one is ordered by the same account
    let more = setting.by_http(&[&["a.weir.test", "b.weir.test"], &["c.weir.test"]]);
    weir.rewrite(&more.text());
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "issued", 1);
    curl_to(weir.address(), &setting.pebble.root())
        .fetch("https://c.weir.test/cached")
        .reply()
        .expect(200);
    assert_eq!(serial(&weir, "a.weir.test"), before);
    assert_eq!(
        std::fs::read(&account).expect("a file"),
        account_text.expect("a file")
    );
    let metrics = weir.metrics();
    assert_eq!(metrics.count("weir_acme_orders_total{end=\"issued\"}"), 1);
}

#[test]
fn names_are_proved_in_handshakes_and_bad_nonces_are_taken_again() {
    let setting = Setting::new(25);
    let weir = Weir::serve(&setting.by_tls(&[&["a.weir.test"], &["b.weir.test"]]));
    orders(&weir, "issued", 2);
    for host in ["a.weir.test", "b.weir.test"] {
        let url = format!("https://{host}/cached");
        setting.curl(&weir).fetch(&url).reply().expect(200);
    }
    let validated = "weir_tls_handshakes_total{end=\"validation\"}";
    assert!(weir.metrics().count(validated) >= 2);
    // nothing is to be validated any more
    let offer = ["-servername", "a.weir.test", "-alpn", "acme-tls/1"];
    let said = s_client(weir.address(), &offer);
    assert!(!said.contains("BEGIN CERTIFICATE"), "{said}");
}

#[test]
fn order_that_fails_is_tried_again_and_its_clients_are_refused_until_then() {
    let mut setting = Setting::new(0);
    // where nothing listens
    setting.pebble.find_at("127.0.0.77");
    let mut weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    let said = weir.wait_for("urn:ietf:params:acme:error:connection");
    assert!(said.contains("no certificate for a.weir.test"), "{said}");
    orders(&weir, "validation", 2);
    let said = s_client(weir.address(), &["-servername", "a.weir.test"]);
    assert!(!said.contains("BEGIN CERTIFICATE"), "{said}");
    let explained = explain(&weir, "a.weir.test");
    for part in [
        "certificate: none yet for a.weir.test, which https://",
        "; last order ",
        " validation: ",
        "urn:ietf:params:acme:error:connection",
    ] {
        assert!(explained.contains(part), "{explained}");
    }
    let metrics = weir.metrics();
    assert!(metrics.count("weir_acme_failures{name=\"a.weir.test\"}") >= 2);
    assert!(metrics.count("weir_tls_handshakes_total{end=\"no-certificate\"}") >= 1);
    // the operator has set it right, and a reload does not wait
    setting.pebble.find_at("127.0.0.1");
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "issued", 1);
    let url = "https://a.weir.test/cached";
    setting.curl(&weir).fetch(url).reply().expect(200);
    let metrics = weir.metrics();
    assert_eq!(metrics.count("weir_acme_failures{name=\"a.weir.test\"}"), 0);
    let explained = explain(&weir, "a.weir.test");
    let is_issued = explained.contains("certificate: a.weir.test, from https://")
        && explained.contains("; renewed ")
        && explained.ends_with(" issued");
    assert!(is_issued, "{explained}");
}

#[test]
fn authority_that_is_down_or_has_forgotten_the_account_costs_no_certificate() {
    let mut setting = Setting::new(0);
    let weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    orders(&weir, "issued", 1);
    let (before, root) = (serial(&weir, "a.weir.test"), setting.pebble.root());
    setting.pebble.kill();
    let more = setting.by_http(&[&["a.weir.test"], &["b.weir.test"]]);
    weir.rewrite(&more.text());
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "unreachable", 1);
    let url = "https://a.weir.test/cached";
    curl_to(weir.address(), &root)
        .fetch(url)
        .reply()
        .expect(200);
    // it comes back and knows nothing
    setting.pebble.launch(0);
    orders(&weir, "issued", 2);
    let url = "https://b.weir.test/cached";
    setting.curl(&weir).fetch(url).reply().expect(200);
    assert_eq!(serial(&weir, "a.weir.test"), before);
    assert!(setting.file("account.json.unknown").is_file());
}

#[test]
fn certificate_is_renewed_as_the_authority_suggests_without_a_lost_request() {
    let setting = Setting::new(0);
    let weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    orders(&weir, "issued", 1);
    let before = serial(&weir, "a.weir.test");
    let root = setting.pebble.root();
    let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _end = ClientsEnd::new(&done);
        for _ in 0..2 {
            let (done, count, root) = (&done, &count, &root);
            let address = weir.address();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let url = "https://a.weir.test/cached";
                    let fetched = curl_to(address, root).args(["-f"]).fetch(url);
                    if fetched.exit != 0 {
                        done.store(true, Ordering::Relaxed);
                        panic!("{fetched:?}");
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let pem = std::fs::read_to_string(setting.file("a.weir.test.pem")).expect("a file");
        let begin = pem.find("-----BEGIN CERTIFICATE").expect("a certificate");
        setting.pebble.suggest_renewal(&pem[begin..]);
        // it is asked again at a reload, and else every 6 h
        weir.ask("POST", "/reload").expect(200);
        orders(&weir, "issued", 2);
        let (seen, until) = (count.load(Ordering::Relaxed), Instant::now() + PATIENCE);
        while count.load(Ordering::Relaxed) < seen + 4 && !done.load(Ordering::Relaxed) {
            assert!(Instant::now() < until, "requests have stopped");
            std::thread::yield_now();
        }
    });
    assert_ne!(serial(&weir, "a.weir.test"), before);
    assert_eq!(weir.metrics().count("weir_panics_total"), 0);
}

#[test]
fn expired_certificate_is_used_and_further_names_are_refused_until_another_is_issued() {
    let mut setting = Setting::new(0);
    let other = tempfile::tempdir().expect("a folder");
    let expired = Issued::expired(other.path(), "a.weir.test");
    let text = [&expired.key, &expired.chain].map(|it| std::fs::read_to_string(it).expect("text"));
    let place = setting
        .pebble
        .directory()
        .replace("https://", "")
        .replace([':', '/'], "-");
    let place = setting.folder.path().join("acme").join(place);
    std::fs::create_dir_all(&place).expect("a folder");
    std::fs::write(place.join("a.weir.test.pem"), text.concat()).expect("a file");
    setting.pebble.kill();
    let weir = Weir::serve(&setting.by_http(&[&["a.weir.test", "b.weir.test"]]));
    orders(&weir, "unreachable", 1);
    let said = s_client(weir.address(), &["-servername", "a.weir.test"]);
    assert!(said.contains("certificate has expired"), "{said}");
    let said = s_client(weir.address(), &["-servername", "b.weir.test"]);
    assert!(!said.contains("BEGIN CERTIFICATE"), "{said}");
    setting.pebble.launch(0);
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "issued", 1);
    for host in ["a.weir.test", "b.weir.test"] {
        let url = format!("https://{host}/cached");
        setting.curl(&weir).fetch(&url).reply().expect(200);
    }
}

/// The wall clock of a program alone, as libfaketime sets it.
struct WallClock {
    library: String,
    setting: PathBuf,
}

impl WallClock {
    fn new(folder: &Path) -> Self {
        let library = xtask::need::find("libfaketime.so.1").expect("Debian's package libfaketime");
        let clock = Self {
            library: library.to_string_lossy().into_owned(),
            setting: folder.join("clock"),
        };
        clock.set_off_by_days(0);
        clock
    }

    fn set_off_by_days(&self, days: i32) {
        // replaced whole: it is read with each reading of the clock
        let new = self.setting.with_extension("new");
        std::fs::write(&new, format!("{days:+}d\n")).expect("a file");
        std::fs::rename(new, &self.setting).expect("the same folder");
    }

    fn variables(&self) -> [(&str, &str); 5] {
        let setting = self.setting.to_str().expect("a path of the test");
        [
            ("LD_PRELOAD", &self.library),
            ("FAKETIME_TIMESTAMP_FILE", setting),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("NO_FAKE_STAT", "1"),
        ]
    }
}

#[test]
fn clock_that_is_set_orders_one_certificate_and_no_more() {
    let setting = Setting::with(Pebble::start_with(0, 20));
    let clock = WallClock::new(setting.folder.path());
    let config = setting.by_http(&[&["a.weir.test"]]);
    let config = config.set("acme.retry", "\"1h\"");
    let weir = Weir::serve_in(&config, &clock.variables());
    orders(&weir, "issued", 1);
    let first = serial(&weir, "a.weir.test");
    let served = || {
        let url = "https://a.weir.test/cached";
        setting.curl(&weir).fetch(url).reply().expect(200);
    };
    served();

    // past its end, as this clock has it; that the clock was set is noticed within a minute, and
    // at once if the operator reloads
    clock.set_off_by_days(25);
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "issued", 2);
    let second = serial(&weir, "a.weir.test");
    assert_ne!(second, first);
    served();

    // the new one is due by this clock as well, and is not ordered again before `acme.retry`
    assert_eq!(setting.pebble.issued_count(), 2);

    // before its begin, where not even the authority's own certificate is valid yet
    clock.set_off_by_days(-25);
    weir.ask("POST", "/reload").expect(200);
    served();

    clock.set_off_by_days(0);
    weir.ask("POST", "/reload").expect(200);
    served();
    assert_eq!(serial(&weir, "a.weir.test"), second);
    assert_eq!(setting.pebble.issued_count(), 2);
    assert_eq!(weir.metrics().count("weir_panics_total"), 0);
}

#[test]
fn authority_that_demands_to_be_left_alone_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "own", &["127.0.0.1"], KeyKind::Ecdsa);
    let authority = Nginx::start_tls(
        &issued,
        "location /dir {
            default_type application/problem+json;
            add_header Retry-After 3600 always;
            return 429 '{\"type\": \"urn:ietf:params:acme:error:rateLimited\", \"detail\": \"\u{1b}[31mslow\"}';
        }",
    );
    let setting = Setting::new(0);
    let directory = format!("\"{}/dir\"", authority.https("127.0.0.1"));
    let config = setting.by_http(&[&["a.weir.test"]]);
    let config = config.set("acme.directory", &directory);
    let config = config.set("acme.ca", &format!("\"{}\"", issued.chain.display()));
    let mut weir = Weir::serve(&config);
    let said = weir.wait_for("(limited; failure 1");
    assert!(said.contains("no certificate for a.weir.test"), "{said}");
    // what it says is no command for a terminal
    assert!(!said.contains('\u{1b}') && said.contains("slow"), "{said}");
    // a reload does not try again, and a further certificate is not ordered either
    weir.ask("POST", "/reload").expect(200);
    weir.ask("POST", "/reload").expect(200);
    let limited = "weir_acme_orders_total{end=\"limited\"}";
    assert_eq!(weir.metrics().count(limited), 1);
}

#[test]
fn files_that_are_written_keep_no_ordered_certificate_from_use_and_are_not_read_again() {
    let mut setting = Setting::new(0);
    setting.pebble.kill();
    let folder = tempfile::tempdir().expect("a folder");
    let issued = |stem: &str, name: &str| Issued::new(folder.path(), stem, &[name], KeyKind::Ecdsa);
    let [cut, replaced] = [("f", "f.weir.test"), ("g", "g.weir.test")].map(|(a, b)| issued(a, b));
    let certificates = |files: &Issued, ordered: &str| {
        let (chain, key) = (files.chain.display(), files.key.display());
        format!(
            "tls = {{ certificates = [{{ chain = \"{chain}\", key = \"{key}\" }}, \
             {{ acme = [{ordered:?}] }}] }}"
        )
    };
    let clear = format!("127.0.0.1:{}", setting.pebble.http_port);
    // listeners are known by their addresses in the configuration
    let [second, third] = [(); 2].map(|()| xtask::ports::take().expect("a port"));
    let config = setting
        .config(&[&["c.weir.test"]], "127.0.0.1:0", "http-01")
        .listener(&format!("127.0.0.1:{second}"), "gateway")
        .of_listener(&certificates(&cut, "a.weir.test"))
        .listener(&format!("127.0.0.1:{third}"), "gateway")
        .of_listener(&certificates(&replaced, "b.weir.test"))
        .listener(&clear, "gateway");
    let mut weir = Weir::serve(&config);
    let said = weir.wait_for("(unreachable; failure 1");
    let place = setting.pebble.directory().replace("/dir", ": ");
    let place = place.trim_start_matches("https://");
    for part in [
        place,
        "; next try in ",
        " s, or at `weir reload`",
        "`acme.directory`",
        "firewall",
    ] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    // an operator is writing one, and has written the other
    std::fs::write(&cut.chain, "-----BEGIN CERTIFICATE-----\nMII").expect("a file");
    let before = std::fs::read_to_string(&replaced.chain).expect("text");
    let end = before.find("-----END CERTIFICATE").expect("its end");
    let before = &before[..end];
    issued("g", "g.weir.test");
    setting.pebble.launch(0);
    orders(&weir, "issued", 3);
    let root = setting.pebble.root();
    for (listener, host) in [(0, "c"), (1, "a"), (2, "b")] {
        curl_to(weir.listeners[listener], &root)
            .fetch(&format!("https://{host}.weir.test/cached"))
            .reply()
            .expect(200);
    }
    let said = s_client(weir.listeners[2], &["-servername", "g.weir.test"]);
    assert!(
        said.contains(before),
        "a file is used without a reload: {said}"
    );
    let said = s_client(weir.listeners[1], &["-servername", "f.weir.test"]);
    assert!(said.contains("BEGIN CERTIFICATE"), "{said}");
}

#[test]
fn nothing_is_asked_of_the_authority_while_a_certificate_could_not_be_kept() {
    let mut setting = Setting::new(0);
    let mut weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    orders(&weir, "issued", 1);
    let more = setting.by_http(&[&["a.weir.test"], &["b.weir.test"]]);
    weir.rewrite(&more.text());
    // an authority that is not there keeps the order from success until the folder is unusable
    let blocked = ["probe.new", "b.weir.test.pem.new"].map(|name| setting.file(name));
    setting.pebble.kill();
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "unreachable", 1);
    // as where it is full: files are read and none is written
    for path in &blocked {
        std::fs::create_dir(path).expect("a folder");
    }
    setting.pebble.launch(0);
    weir.wait_for("(storage; failure");
    orders(&weir, "storage", 2);
    assert_eq!(setting.pebble.issued_count(), 0);
    for path in &blocked {
        std::fs::remove_dir(path).expect("a folder");
    }
    weir.ask("POST", "/reload").expect(200);
    orders(&weir, "issued", 2);
    assert_eq!(setting.pebble.issued_count(), 1);
}

#[test]
fn account_that_cannot_be_read_is_set_aside_and_said() {
    let setting = Setting::new(0);
    let mut weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    orders(&weir, "issued", 1);
    let account = setting.file("account.json");
    let whole = std::fs::read_to_string(&account).expect("text");
    let half = &whole[..whole.len() / 2];
    std::fs::write(&account, half).expect("a file");
    let more = setting.by_http(&[&["a.weir.test"], &["b.weir.test"]]);
    weir.rewrite(&more.text());
    weir.ask("POST", "/reload").expect(200);
    let said = weir.wait_for("account.json` cannot be read: it is no JSON (line 1, column ");
    assert!(said.contains("account.json.unknown`"), "{said}");
    orders(&weir, "issued", 2);
    let aside = std::fs::read_to_string(setting.file("account.json.unknown"));
    assert_eq!(aside.expect("text"), half);
    let new = std::fs::read_to_string(&account).expect("text");
    assert!(new.len() > half.len() && new != whole, "a new account");
}

#[test]
fn demand_in_answer_to_a_question_for_a_suggestion_holds() {
    let setting = Setting::new(0);
    let mut weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    orders(&weir, "issued", 1);
    let pem = std::fs::read(setting.file("a.weir.test.pem")).expect("a file");
    weir.stop();
    let folder = tempfile::tempdir().expect("a folder");
    let own = Issued::new(folder.path(), "own", &["127.0.0.1"], KeyKind::Ecdsa);
    let log = folder.path().join("log");
    let directory = format!(
        "location /dir {{
            access_log {};
            add_header Retry-After 3600 always;
            return 429;
        }}",
        log.display()
    );
    let authority = Nginx::start_tls(&own, &directory);
    let place = format!("127.0.0.1-{}-dir", authority.address.port());
    let place = setting.folder.path().join("acme").join(place);
    std::fs::create_dir_all(&place).expect("a folder");
    std::fs::write(place.join("a.weir.test.pem"), pem).expect("a file");
    let config = |lists: &[&[&str]]| {
        let url = format!("\"{}/dir\"", authority.https("127.0.0.1"));
        let config = setting.by_http(lists).set("acme.directory", &url);
        config.set("acme.ca", &format!("\"{}\"", own.chain.display()))
    };
    let asked = || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let mut weir = Weir::serve(&config(&[&["a.weir.test"]]));
    let until = Instant::now() + PATIENCE;
    while asked() == 0 {
        assert!(
            Instant::now() < until,
            "no suggestion is asked for: {}",
            weir.said()
        );
        std::thread::yield_now();
    }
    // each has one more ordered; after the first the suggestion would be asked for again
    let lists: [&[&[&str]]; 2] = [
        &[&["a.weir.test"], &["b.weir.test"]],
        &[&["a.weir.test"], &["b.weir.test"], &["c.weir.test"]],
    ];
    for (count, lists) in (1..).zip(lists) {
        weir.rewrite(&config(lists).text());
        weir.ask("POST", "/reload").expect(200);
        orders(&weir, "limited", count);
    }
    let said = weir.wait_for("next try in 60 min, as the authority demands");
    assert!(said.contains("b.weir.test"), "{said}");
    assert_eq!(asked(), 3, "{}", weir.said());
}

#[test]
fn request_for_a_token_that_is_pending_reaches_no_origin() {
    let mut setting = Setting::new(0);
    // an authority that finds the name at a relay sees what is answered there
    let relay = std::net::TcpListener::bind(("127.0.0.88", setting.pebble.http_port));
    let relay = relay.expect("the address is of loopback");
    setting.pebble.find_at("127.0.0.88");
    let weir = Weir::serve(&setting.by_http(&[&["a.weir.test"]]));
    let (mut asked, _) = relay.accept().expect("the authority asks");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut asked, &mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let path = head.split(' ').nth(1).expect("a path");
    let clear = weir.listeners[1];
    let get = |method: &str, host: &str| {
        let mut client = RawClient::connect(clear);
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.reply()
    };
    let answer = get("GET", "A.weir.test:80").expect(200);
    assert_eq!(answer.field("cache-control"), "no-store");
    assert!(
        !answer.field("cache-status").contains("fwd"),
        "{}",
        answer.head
    );
    let token = path.rsplit('/').next().expect("a token");
    assert!(
        answer.text().starts_with(&format!("{token}.")),
        "{}",
        answer.text()
    );
    assert_eq!(get("POST", "a.weir.test").status(), 400);
    // of another name it is a request as any
    assert!(get("GET", "b.weir.test").text().contains("nginx"));
    // so it is at the listener with TLS
    let url = format!("https://a.weir.test{path}");
    let to = format!("::{}", weir.address());
    let curl = Curl::direct().args(["-k", "--connect-to", &to]);
    assert_ne!(curl.fetch(&url).exit, 0, "there is no certificate yet");
    // the authority is answered after all
    let content = answer.text();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}",
        content.len()
    );
    std::io::Write::write_all(&mut asked, response.as_bytes()).expect("it reads");
    drop(asked);
    orders_or_again(&weir, &relay, &content);
    // the token is not pending any more
    assert!(get("GET", "a.weir.test").text().contains("nginx"));
}

/// Waits for the certificate; the authority looks several times.
fn orders_or_again(weir: &Weir, relay: &std::net::TcpListener, content: &str) {
    relay.set_nonblocking(true).expect("set");
    let until = Instant::now() + PATIENCE;
    let issued = "weir_acme_orders_total{end=\"issued\"}";
    while weir.metrics().count(issued) == 0 {
        assert!(Instant::now() < until, "no certificate: {}", weir.said());
        if let Ok((mut asked, _)) = relay.accept() {
            asked.set_nonblocking(false).expect("set");
            let mut head = [0; 4096];
            let _ = std::io::Read::read(&mut asked, &mut head);
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}",
                content.len()
            );
            let _ = std::io::Write::write_all(&mut asked, response.as_bytes());
        }
    }
}
