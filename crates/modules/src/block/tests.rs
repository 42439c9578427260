use super::*;
use std::collections::BTreeMap;
use std::io::Write as _;
use tempfile::NamedTempFile;
use weir_extend::{Fields, ListenerMode, OptionValue};

const CALL: Call = Call {
    client: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    mode: ListenerMode::Forward,
    now_ms: 0,
};

const LIST: &str = "\
[Adblock Plus 2.0]
! Title: ours
||ads.example^
||both.example^$third-party
/banner/*$image
@@||ads.example/needed.js
||pages.example^$document
||news.example^$subdocument
$removeparam=utm_source,domain=shop.example
shop.example##.ad
";

fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(content.as_ref()).expect("a file");
    file
}

fn load(
    files: &[&NamedTempFile],
    more: &[(&str, OptionValue)],
) -> Result<Arc<dyn Module>, LoadError> {
    let paths = files
        .iter()
        .map(|file| OptionValue::Text(file.path().to_str().expect("text").to_owned()));
    let mut options = BTreeMap::from([("lists".to_owned(), OptionValue::List(paths.collect()))]);
    let more = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    options.extend(more);
    Block.load(Options::new(options))
}

/// What becomes of a request for a path of a host with these fields.
fn ask(
    module: &Arc<dyn Module>,
    (method, host, path): (&str, &str, &str),
    lines: &[(&str, &str)],
) -> (Answer, String) {
    let lines = lines.iter().map(|(name, value)| (*name, value.as_bytes()));
    let mut head = RequestHead::new(method, host, path, Fields::received(lines));
    let answer = module
        .begin(&weir_extend::Detached::host())
        .request_received(&mut head, &CALL);
    (answer, head.path_and_query().to_owned())
}

fn status(answer: &Answer) -> Option<u16> {
    match answer {
        Answer::Respond(response) => Some(response.status()),
        _ => None,
    }
}

#[test]
fn request_that_a_rule_blocks_is_answered_here_and_no_other() {
    let list = file(LIST);
    let module = load(&[&list], &[]).expect("a module");
    let page = ("Referer", "http://news.example/today");
    for (host, path, lines, expected) in [
        ("ads.example", "/a.js", &[page][..], Some(200)),
        ("x.ads.example", "/a", &[page], Some(204)),
        ("ads.example", "/needed.js", &[page], None),
        ("badads.example", "/a.js", &[page], None),
        ("news.example", "/banner/a.gif", &[page], Some(200)),
        ("news.example", "/banner/a.html", &[page], None),
        ("both.example", "/a.js", &[page], Some(200)),
        (
            "both.example",
            "/a.js",
            &[("Referer", "http://www.both.example/")],
            None,
        ),
        // it does not say where it comes from: it may come from the site itself
        ("both.example", "/a.js", &[], None),
        (
            "both.example",
            "/a.js",
            &[("Origin", "http://news.example")],
            Some(200),
        ),
        ("pages.example", "/", &[("Accept", "text/html")], Some(403)),
        (
            "news.example",
            "/",
            &[page, ("Sec-Fetch-Dest", "iframe")],
            Some(204),
        ),
        ("shop.example", "/a.js", &[page], None),
    ] {
        let (answer, _) = ask(&module, ("GET", host, path), lines);
        assert_eq!(status(&answer), expected, "{host}{path} {lines:?}");
    }
    let blocked = &module.metrics()[0];
    assert_eq!((blocked.name.as_str(), blocked.value), ("blocked", 7));
}

#[test]
fn tunnel_to_a_blocked_host_is_refused_and_never_answered_with_success() {
    let list = file(LIST);
    let module = load(&[&list], &[]).expect("a module");
    let (answer, _) = ask(&module, ("CONNECT", "ads.example:443", ""), &[]);
    assert_eq!(status(&answer), Some(403));
    let (answer, _) = ask(&module, ("CONNECT", "news.example:443", ""), &[]);
    assert_eq!(answer, Answer::Continue);
}

#[test]
fn parameters_that_a_rule_names_are_removed() {
    let list = file(LIST);
    let module = load(&[&list], &[]).expect("a module");
    let from = [("Accept", "text/html")];
    let asked = ("GET", "shop.example", "/a?x=1&utm_source=y&z=2");
    let (answer, path) = ask(&module, asked, &from);
    assert_eq!((answer, path.as_str()), (Answer::Continue, "/a?x=1&z=2"));
}

#[test]
fn names_of_a_hosts_file_are_blocked() {
    let list = file("# ours\n127.0.0.1 localhost\n0.0.0.0 ads.example # why\ntracker.example\n");
    let format = [("format", OptionValue::Text("hosts".to_owned()))];
    let module = load(&[&list], &format).expect("a module");
    for (host, blocked) in [
        ("ads.example", true),
        ("tracker.example", true),
        ("localhost", false),
        ("a.example", false),
    ] {
        let (answer, _) = ask(&module, ("GET", host, "/a.js"), &[]);
        assert_eq!(status(&answer).is_some(), blocked, "{host}");
    }
}

#[test]
fn state_is_a_digest_of_all_lists() {
    let (one, other) = (file(LIST), file("||other.example^\n"));
    let state = |files: &[&NamedTempFile]| load(files, &[]).expect("a module").state();
    assert_eq!(state(&[&one]), state(&[&file(LIST)]));
    assert_ne!(state(&[&one]), state(&[&other]));
    assert_ne!(state(&[&one]), state(&[&one, &other]));
}

#[test]
fn line_that_is_not_understood_is_noted_and_refused_where_the_operator_is_strict() {
    let list =
        file("||ads.example^\n! comment\n||b.example^$unknown-option\n||c.example^$webrtc2\n");
    let module = load(&[&list], &[]).expect("a module");
    let note = &module.notes()[0];
    let end = ": 1 rules; 2 lines are not understood, the first is line 3: \
               `||b.example^$unknown-option`";
    assert!(note.ends_with(end), "{note}");
    let strict = [("strict", OptionValue::Flag(true))];
    let refused = load(&[&list], &strict).err().expect("refused");
    assert_eq!(refused.option, "lists[0]");
    let line = "line 3: network filter error: unrecognised option: `||b.example^$unknown-option`";
    assert!(refused.what.ends_with(line), "{refused}");
    let good = file(LIST);
    assert!(load(&[&good], &strict).is_ok());
}

#[test]
fn file_that_is_no_list_is_refused_with_its_name_and_the_line() {
    let good = file(LIST);
    for (content, what) in [
        (&b""[..], "it has no rule about requests"),
        (b"! only a comment\n", "it has no rule about requests"),
        (b"<html>\n<p>Not Found\n", "it has no rule about requests"),
        (b"||a.example^\n||b.example^\n\xff\n", "line 3 is not UTF-8"),
    ] {
        let bad = file(content);
        let refused = load(&[&good, &bad], &[]).err().expect("refused");
        assert_eq!(refused.option, "lists[1]");
        let path = bad.path().to_str().expect("text");
        assert!(
            refused.what.starts_with(&format!("`{path}`: {what}")),
            "{refused}"
        );
    }
    let missing = BTreeMap::from([(
        "lists".to_owned(),
        OptionValue::List(vec![OptionValue::Text("/nowhere/ads.txt".to_owned())]),
    )]);
    let refused = Block.load(Options::new(missing)).err().expect("refused");
    assert!(
        refused
            .what
            .starts_with("`/nowhere/ads.txt`: cannot read it: "),
        "{refused}"
    );
    assert_eq!(load(&[], &[]).err().expect("refused").option, "lists");
}
