//! Stored responses as modules find, make and change them.

use crate::support::{Response, Running, ScriptedOrigin, asking, localhost, pattern, scripted};
use weir_proxy::config::Config;

const FRESH: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nok";

/// A proxy with a module that makes the calls, and an origin.
struct Bed {
    proxy: Running,
    origin: ScriptedOrigin,
}

impl Bed {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let proxy = Running::forward_with(|config| {
            config.access.allow_destinations = vec![localhost()];
            config.modules = vec![asking("asks", &[])];
            change(config);
        });
        Self {
            proxy,
            origin: ScriptedOrigin::new(),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.origin.address())
    }

    /// A call about `path`; `fields` with their CRLF.
    fn ask(&self, verb: &str, path: &str, fields: &str) -> String {
        let mut client = self.proxy.client();
        client.send(format!(
            "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\nX-Do: {verb} {}\r\n{fields}\r\n",
            self.url(path)
        ));
        let response = client.read_response();
        assert_eq!(response.status(), 200, "{verb}");
        response.text()
    }

    /// The same, with what the origin answers meanwhile.
    fn ask_with(&self, verb: &str, path: &str, answer: &str) -> (String, String) {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| self.ask(verb, path, ""));
            let (hop, head) = self.origin.answer(answer);
            let said = asked.join().expect("an answer");
            drop(hop);
            (said, format!("{:?}", head.fields()))
        })
    }

    fn get(&self, path: &str) -> String {
        format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", self.url(path))
    }

    /// What a client gets from the store.
    fn hit(&self, path: &str) -> Response {
        let response = self.proxy.client().ask(self.get(path));
        assert!(response.is_hit(), "{}", response.verdict());
        response
    }

    /// A client has the response stored.
    fn store(&self, path: &str, answer: &str) {
        let mut client = self.proxy.client();
        client.send(self.get(path));
        let (_hop, _) = self.origin.answer(answer);
        client.read_response();
    }
}

#[test]
fn stored_response_is_found_with_its_age_and_what_is_left_of_its_freshness() {
    let bed = Bed::new();
    assert_eq!(bed.ask("query", "/", ""), "NotStored");
    bed.store("/", FRESH);
    bed.proxy.clock.advance_ms(10_000);
    assert_eq!(
        bed.ask("query", "/", ""),
        "200 2 bytes, age 10, fresh for 50"
    );
    assert_eq!(bed.ask("query", "/", "X-Mode: gateway\r\n"), "NotStored");
    assert_eq!(bed.ask("query", "/", "X-Of-Cookie: a=b\r\n"), "BadTarget");
    assert_eq!(
        bed.ask("query", "/", "X-Of-Range: bytes=0-1\r\n"),
        "BadTarget"
    );
    assert_eq!(bed.ask("query", "/#f", ""), "BadTarget");
}

#[test]
fn fetched_response_is_a_hit_for_clients_and_a_fresh_one_is_not_fetched_again() {
    let bed = Bed::new();
    let (said, head) = bed.ask_with("store", "/", FRESH);
    assert_eq!(said, "200 2 bytes, age 0, fresh for 60");
    assert!(head.contains("Via"), "{head}");
    assert_eq!(bed.hit("/").text(), "ok");
    assert_eq!(
        bed.ask("store", "/", ""),
        "200 2 bytes, age 0, fresh for 60"
    );
    bed.origin.expect_untouched();
    let private = "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(
        bed.ask_with("store", "/private", private).0,
        "refused: private"
    );
    let said =
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| bed.ask("store", "/cut", ""));
            drop(bed.origin.answer(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\no",
            ));
            asked.join().expect("an answer")
        });
    assert_eq!(said, "Unreachable");
}

#[test]
fn fetch_keeps_to_the_destination_rules() {
    let bed = Bed::with(|config| config.access.allow_destinations = Vec::new());
    assert_eq!(bed.ask("store", "/", ""), "Forbidden");
    bed.origin.expect_untouched();
}

#[test]
fn validation_freshens_replaces_or_drops_what_is_stored() {
    let bed = Bed::new();
    assert_eq!(bed.ask("validate", "/", ""), "NotStored");
    bed.store("/", FRESH);
    bed.proxy.clock.advance_ms(50_000);
    let unchanged = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\r\n";
    let (said, head) = bed.ask_with("validate", "/", unchanged);
    assert_eq!(said, "Valid");
    assert!(head.contains("\"If-None-Match\", \"\\\"a\\\"\""), "{head}");
    assert_eq!(
        bed.ask("query", "/", ""),
        "200 2 bytes, age 0, fresh for 60"
    );
    let changed = FRESH.replace("ok", "no");
    assert_eq!(bed.ask_with("validate", "/", &changed).0, "Replaced");
    assert_eq!(bed.hit("/").text(), "no");
    let gone = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(bed.ask_with("validate", "/", gone).0, "Dropped");
    assert_eq!(bed.ask("query", "/", ""), "NotStored");
}

#[test]
fn expired_response_is_validated_before_it_is_used_again() {
    let bed = Bed::new();
    assert_eq!(bed.ask("expire 0", "/", ""), "NotStored");
    bed.store("/", FRESH);
    assert_eq!(bed.ask("expire 0", "/", ""), "expires");
    assert_eq!(bed.ask("query", "/", ""), "200 2 bytes, age 0, fresh for 0");
    let mut client = bed.proxy.client();
    client.send(bed.get("/"));
    let unchanged = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\r\n";
    let (_hop, head) = bed.origin.answer(unchanged);
    assert_eq!(head.field("if-none-match"), Some("\"a\""));
    assert_eq!(client.read_response().text(), "ok");
}

#[test]
fn longer_freshness_than_that_of_the_response_needs_permission() {
    let bed = Bed::new();
    bed.store("/", FRESH);
    assert_eq!(bed.ask("expire 61", "/", ""), "Forbidden");
    assert_eq!(bed.ask("expire 30", "/", ""), "expires");
    assert_eq!(
        bed.ask("query", "/", ""),
        "200 2 bytes, age 0, fresh for 30"
    );
    let bed = Bed::with(|config| config.modules[0].may_store = true);
    bed.store("/", FRESH);
    assert_eq!(bed.ask("expire 1000", "/", ""), "expires");
    bed.proxy.clock.advance_ms(900_000);
    assert_eq!(bed.hit("/").text(), "ok");
}

#[test]
fn deleted_response_is_fetched_again_also_if_it_was_on_its_way() {
    let bed = Bed::new();
    bed.store("/", FRESH);
    let mut client = bed.proxy.client();
    client.send(bed.get("/late"));
    let mut hop = bed.origin.accept();
    hop.read_head();
    assert_eq!(bed.ask("delete", "/", ""), "deleted 1");
    assert_eq!(bed.ask("delete", "/", ""), "deleted 0");
    assert_eq!(bed.ask("delete", "/late", ""), "deleted 0");
    hop.send(FRESH);
    assert_eq!(client.read_response().text(), "ok");
    for path in ["/", "/late"] {
        assert_eq!(bed.ask("query", path, ""), "NotStored");
    }
}

#[test]
fn injected_response_is_a_hit_with_its_fields_and_content() {
    let bed = Bed::new();
    let fields = "X-In-Cache-Control: max-age=60\r\nX-In-Content-Type: text/x\r\nX-Content-Bytes: 100000\r\n";
    let said = "200 100000 bytes, age 0, fresh for 60";
    assert_eq!(bed.ask("inject", "/whole", fields), said);
    assert_eq!(bed.ask("inject-pieces", "/pieces", fields), said);
    let announced = format!("{fields}X-Announced: 100000\r\n");
    assert_eq!(bed.ask("inject-pieces", "/announced", &announced), said);
    for path in ["/whole", "/pieces", "/announced"] {
        let hit = bed.hit(path);
        assert_eq!(hit.head.all("content-length"), ["100000"]);
        assert_eq!(hit.head.field("content-type"), Some("text/x"));
        assert!(hit.head.has("date"));
        assert!(hit.body == pattern(100_000));
        assert_eq!(bed.ask("read", path, ""), "200 100000 bytes");
        let parts = bed.ask("read-parts", path, "");
        assert!(parts.ends_with(" parts"), "{parts}");
    }
    bed.origin.expect_untouched();
}

#[test]
fn injected_response_is_judged_as_one_of_its_origin() {
    let bed = Bed::new();
    let inject = |fields: &str| bed.ask("inject", "/", fields);
    assert_eq!(
        inject("X-In-Cache-Control: no-store\r\n"),
        "refused: response-no-store"
    );
    assert_eq!(
        inject("X-In-Cache-Control: private, max-age=9\r\n"),
        "refused: private"
    );
    assert_eq!(inject(""), "refused: no-lifetime");
    for bad in [
        "X-Status: 206\r\n",
        "X-Status: 304\r\n",
        "X-Status: 101\r\n",
        "X-In-Content-Length: 5\r\n",
        "X-In-Age: 5\r\n",
    ] {
        let fields = format!("X-In-Cache-Control: max-age=60\r\n{bad}");
        assert_eq!(inject(&fields), "BadResponse", "{bad}");
    }
    let pieces = |announced: &str| {
        let fields = "X-In-Cache-Control: max-age=60\r\nX-Content-Bytes: 30000\r\n";
        bed.ask(
            "inject-pieces",
            "/",
            &format!("{fields}X-Announced: {announced}\r\n"),
        )
    };
    assert_eq!(pieces("30001"), "BadResponse");
    assert_eq!(pieces("29999"), "BadResponse");
    assert_eq!(bed.ask("query", "/", ""), "NotStored");
    let bed = Bed::with(|config| config.modules[0].may_store = true);
    let private = "X-In-Cache-Control: private, max-age=60\r\n";
    assert_eq!(
        bed.ask("inject", "/", private),
        "200 0 bytes, age 0, fresh for 60"
    );
    assert_eq!(bed.ask("inject", "/no", ""), "refused: no-lifetime");
}

#[test]
fn injected_response_is_found_by_what_it_varies_on() {
    let bed = Bed::new();
    let fields = "X-In-Cache-Control: max-age=60\r\nX-In-Vary: Accept\r\nX-Of-Accept: text/a\r\n";
    assert_eq!(
        bed.ask("inject", "/", fields),
        "200 0 bytes, age 0, fresh for 60"
    );
    assert_eq!(bed.ask("query", "/", ""), "NotStored");
    let found = bed.ask("query", "/", "X-Of-Accept: text/a\r\n");
    assert_eq!(found, "200 0 bytes, age 0, fresh for 60");
    assert_eq!(
        bed.ask("expire 0", "/", "X-Of-Accept: text/a\r\n"),
        "expires"
    );
    assert_eq!(bed.ask("delete", "/", ""), "deleted 1");
}

#[test]
fn content_larger_than_the_caller_takes_is_not_read() {
    let bed = Bed::new();
    let fields = "X-In-Cache-Control: max-age=60\r\nX-Content-Bytes: 1000\r\n";
    bed.ask("inject", "/", fields);
    assert_eq!(bed.ask("read", "/", "X-Max: 999\r\n"), "TooLarge");
    assert_eq!(bed.ask("read", "/", "X-Max: 1000\r\n"), "200 1000 bytes");
    assert_eq!(bed.ask("read", "/other", ""), "NotStored");
}

#[test]
fn content_on_disk_is_injected_read_and_expired_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let bed = Bed::with(|config| {
        config.disk.enabled = true;
        config.disk.directories = vec![weir_proxy::config::Directory {
            path: folder.path().join("store"),
            size: Some("1GiB".parse().expect("a size")),
        }];
        config.modules[0].may_store = true;
    });
    // larger than one write: to disk as it comes
    let fields = "X-In-Cache-Control: max-age=60\r\nX-Content-Bytes: 6000000\r\n";
    let said = "200 6000000 bytes, age 0, fresh for 60";
    assert_eq!(bed.ask("inject-pieces", "/", fields), said);
    bed.ask("read-parts", "/", "");
    assert_eq!(bed.ask("expire 600", "/", ""), "expires");
    let info = "200 6000000 bytes, age 0, fresh for 600";
    assert_eq!(bed.ask("query", "/", ""), info);
    bed.ask("read-parts", "/", "");
    assert!(bed.hit("/").body == pattern(6_000_000));
    assert_eq!(bed.ask("delete", "/", ""), "deleted 1");
    assert_eq!(bed.ask("query", "/", ""), "NotStored");
}

#[test]
fn module_has_no_more_calls_under_way_than_it_may() {
    let bed = Bed::with(|config| config.modules[0].requests_max = 0);
    for verb in ["query", "store", "delete", "read", "inject"] {
        assert_eq!(bed.ask(verb, "/", ""), "TooMany", "{verb}");
    }
}

/// The GET of a client whose requests get this tag.
fn get_tagged(bed: &Bed, tag: &str) -> String {
    format!(
        "GET {} HTTP/1.1\r\nHost: x\r\nX-Tag: {tag}\r\n\r\n",
        bed.url("/")
    )
}

/// A proxy with a module that puts the tag of the variant, a request's X-Tag, before content.
fn bed_with_variants() -> Bed {
    let tagged = [
        ("request-received", "variant X-Tag"),
        ("response-received", "content tag"),
    ];
    Bed::with(|config| config.modules.push(scripted("tagged", &tagged)))
}

#[test]
fn call_is_about_the_variant_that_a_client_with_its_fields_gets() {
    let bed = bed_with_variants();
    let mut client = bed.proxy.client();
    client.send(get_tagged(&bed, "a"));
    let (hop, _) = bed.origin.answer(FRESH);
    assert_eq!(client.read_response().text(), "[a]ok");
    let query = |tag: &str| bed.ask("query", "/", &format!("X-Of-X-Tag: {tag}\r\n"));
    assert_eq!(query("a"), "200 5 bytes, age 0, fresh for 60");
    assert_eq!(
        (query("b"), bed.ask("query", "/", "")),
        ("NotStored".into(), "NotStored".into())
    );
    // what is fetched for the store is what a client gets
    let fetched = std::thread::scope(|scope| {
        let asked = scope.spawn(|| bed.ask("store", "/", "X-Of-X-Tag: b\r\n"));
        let mut hop = hop;
        let head = hop.answer(FRESH);
        assert_eq!(head.field("x-tag"), Some("b"));
        drop(hop);
        asked.join().expect("an answer")
    });
    assert_eq!(fetched, "200 5 bytes, age 0, fresh for 60");
    // what is injected is sent as it is
    let inject = bed.ask(
        "inject",
        "/",
        "X-Of-X-Tag: c\r\nX-Content-Bytes: 9\r\nX-In-Cache-Control: max-age=60\r\n",
    );
    assert!(inject.starts_with("200 9 bytes"), "{inject}");
    assert_eq!(bed.ask("read", "/", "X-Of-X-Tag: c\r\n"), "200 9 bytes");
    for (tag, content) in [
        ("a", b"[a]ok".to_vec()),
        ("b", b"[b]ok".to_vec()),
        ("c", pattern(9)),
    ] {
        let hit = bed.proxy.client().ask(get_tagged(&bed, tag));
        assert!(
            hit.is_hit() && hit.body == content,
            "{tag}: {}",
            hit.verdict()
        );
    }
    assert_eq!(bed.ask("delete", "/", ""), "deleted 3");
    assert_eq!(query("a"), "NotStored");
}

#[test]
fn validation_is_about_the_variant_that_a_client_with_its_fields_gets() {
    let bed = bed_with_variants();
    for tag in ["a", "b"] {
        let mut client = bed.proxy.client();
        client.send(get_tagged(&bed, tag));
        drop(bed.origin.answer(FRESH));
        client.read_response();
    }
    let validate = |answer: &str| {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| bed.ask("validate", "/", "X-Of-X-Tag: a\r\n"));
            let (_hop, head) = bed.origin.answer(answer);
            assert_eq!(head.field("if-none-match"), Some("\"a\""));
            asked.join().expect("an answer")
        })
    };
    assert_eq!(
        validate("HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"a\"\r\n\r\n"),
        "Valid"
    );
    assert_eq!(
        validate(&FRESH.replace("\r\n\r\nok", "\r\nConnection: close\r\n\r\nno")),
        "Replaced"
    );
    for (tag, text) in [("a", "[a]no"), ("b", "[b]ok")] {
        let hit = bed.proxy.client().ask(get_tagged(&bed, tag));
        assert_eq!((hit.is_hit(), hit.text()), (true, text.to_owned()));
    }
}

#[test]
fn call_is_refused_where_a_module_answers_such_requests_and_expiry_and_deletion_are_not() {
    let answering = [
        ("request-received", "respond 403 no"),
        ("response-received", "content upper"),
    ];
    let bed = Bed::new();
    bed.store("/", FRESH);
    bed.proxy.reload(|config| {
        config.modules = vec![asking("asks", &[]), scripted("answers", &answering)];
    });
    for call in ["query", "store", "validate", "read"] {
        assert_eq!(bed.ask(call, "/", ""), "refused: module", "{call}");
    }
    assert_eq!(bed.ask("expire 0", "/", ""), "expires");
    assert_eq!(bed.ask("delete", "/", ""), "deleted 1");
}
