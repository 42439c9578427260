//! What is kept and when it is asked for again, with nginx's own validators, ranges and encodings.

mod packages;
mod stale;

use crate::support::{Config, Curl, Nginx, Reply, Weir, content};

const LOCATIONS: &str = "
    gzip_types text/plain;
    location /hour/ { add_header Cache-Control max-age=3600; alias www/; }
    location /validated/ {
        add_header Cache-Control \"max-age=0, must-revalidate\";
        add_header X-Request $request_id;
        alias www/;
    }
    location /dated/ { etag off; add_header Cache-Control max-age=0; alias www/; }
    location /vary {
        add_header Cache-Control max-age=3600;
        add_header Vary X-Colour;
        return 200 \"$http_x_colour $request_id\";
    }
    location /zipped/ { gzip on; gzip_proxied any; gzip_vary on; gzip_min_length 1; add_header Cache-Control max-age=3600; alias www/; }
    location /private { add_header Cache-Control private; return 200 $request_id; }
    location /id { add_header Cache-Control max-age=3600; return 200 $request_id; }
";

struct Parts {
    nginx: Nginx,
    weir: Weir,
}

impl Parts {
    fn new() -> Self {
        Self {
            nginx: Nginx::start(LOCATIONS),
            weir: Weir::serve(&Config::forward()),
        }
    }

    fn get<const N: usize>(&self, path: &str, fields: [&str; N]) -> Reply {
        let curl = Curl::through(self.weir.address());
        let curl = fields.into_iter().fold(curl, Curl::field);
        curl.fetch(&self.nginx.url(path)).reply()
    }
}

#[test]
fn stored_response_answers_range_and_if_range_requests() {
    let parts = Parts::new();
    let whole = content(7, 100_000);
    parts.nginx.file("file", &whole);
    let first = parts.get("/hour/file", []).expect(200);
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=10-99", 10, 100),
        ("bytes=99999-", 99_999, 100_000),
        ("bytes=-5", 99_995, 100_000),
        ("bytes=50000-200000", 50_000, 100_000),
    ] {
        let part = parts
            .get("/hour/file", [&format!("Range: {range}")])
            .expect(206);
        assert!(part.is_hit(), "{range}: {}", part.head);
        assert_eq!(part.body, &whole[from..to], "{range}");
        let expected = format!("bytes {from}-{}/100000", to - 1);
        assert_eq!(part.field("content-range"), expected);
    }
    let beyond = parts
        .get("/hour/file", ["Range: bytes=100000-"])
        .expect(416);
    assert_eq!(beyond.field("content-range"), "bytes */100000");
    let tag = first.field("etag");
    let same = format!("If-Range: {tag}");
    parts
        .get("/hour/file", ["Range: bytes=0-1", &same])
        .expect(206);
    let changed = parts.get("/hour/file", ["Range: bytes=0-1", "If-Range: \"other\""]);
    assert_eq!(changed.expect(200).body, whole);
}

#[test]
fn partial_response_is_forwarded_and_not_served_as_the_whole() {
    let parts = Parts::new();
    parts.nginx.file("file", b"0123456789");
    let part = parts.get("/hour/file", ["Range: bytes=2-4"]).expect(206);
    assert_eq!(part.body, b"234");
    assert_eq!(parts.get("/hour/file", []).expect(200).body, b"0123456789");
}

#[test]
fn conditional_request_matching_a_stored_response_gets_304() {
    let parts = Parts::new();
    parts.nginx.file("file", b"content");
    let first = parts.get("/hour/file", []).expect(200);
    let (tag, modified) = (first.field("etag"), first.field("last-modified"));
    for field in [
        format!("If-None-Match: {tag}"),
        format!("If-None-Match: \"other\", W/{tag}"),
        "If-None-Match: *".to_owned(),
        format!("If-Modified-Since: {modified}"),
    ] {
        let reply = parts.get("/hour/file", [&field]).expect(304);
        assert!(
            reply.is_hit() && reply.body.is_empty(),
            "{field}: {}",
            reply.head
        );
        assert_eq!(reply.field("etag"), tag, "{field}");
    }
    let other = parts
        .get("/hour/file", ["If-None-Match: \"other\""])
        .expect(200);
    assert!(other.is_hit() && other.body == b"content", "{}", other.head);
}

#[test]
fn stale_response_is_validated_and_fetched_again_only_if_changed() {
    let parts = Parts::new();
    for (path, seed) in [("/validated/", 1), ("/dated/", 2)] {
        let old = content(seed, 70_000);
        let file = parts.nginx.file(&format!("file{seed}"), &old);
        // a date has whole seconds: what changes within one changes unseen
        let minute_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        let opened = std::fs::File::options().write(true).open(&file);
        opened
            .and_then(|file| file.set_modified(minute_ago))
            .expect("its date can be set");
        let path = format!("{path}file{seed}");
        let first = parts.get(&path, []).expect(200);
        assert_eq!(first.body, old);
        let second = parts.get(&path, []).expect(200);
        assert_eq!(second.body, old);
        // a second may pass until it is sent
        let said = ["0", "-1"].map(|ttl| format!("weir;fwd=stale;fwd-status=304;ttl={ttl};stored"));
        let status = second.cache_status();
        assert!(said.contains(&status), "{path}: {status}");
        // what the 304 brought is what the client sees (RFC 9111 §3.2)
        if seed == 1 {
            assert_ne!(first.field("x-request"), second.field("x-request"));
        }
        let new = content(seed + 10, 70_001);
        std::fs::write(file, &new).expect("a file");
        let third = parts.get(&path, []).expect(200);
        assert!(third.body == new, "{path}: {}", third.head);
        assert_eq!(third.cache_status(), "weir;fwd=stale;fwd-status=200;stored");
    }
    let metrics = parts
        .weir
        .until("counted", |metrics| metrics.all_requests() == 6);
    assert_eq!(metrics.count("weir_freshened_total"), 2);
}

#[test]
fn client_with_the_current_entity_tag_gets_304_after_validation() {
    let parts = Parts::new();
    parts.nginx.file("file", b"content");
    let tag = parts.get("/validated/file", []).expect(200).field("etag");
    let reply = parts.get("/validated/file", [&format!("If-None-Match: {tag}")]);
    assert_eq!(
        reply.clone().expect(304).cache_status(),
        "weir;fwd=stale;fwd-status=304;ttl=0;stored"
    );
    let other = parts.get("/validated/file", ["If-None-Match: \"other\""]);
    assert_eq!(other.expect(200).body, b"content");
}

#[test]
fn no_cache_request_is_forwarded_and_only_if_cached_miss_gets_504() {
    let parts = Parts::new();
    let first = parts.get("/id", []).expect(200);
    let second = parts.get("/id", ["Cache-Control: no-cache"]).expect(200);
    assert!(
        second.cache_status().starts_with("weir;fwd=request"),
        "{}",
        second.head
    );
    assert_ne!(first.body, second.body);
    let third = parts.get("/id", []).expect(200);
    assert!(
        third.is_hit() && third.body == second.body,
        "{}",
        third.head
    );
    parts
        .get("/nothing", ["Cache-Control: only-if-cached"])
        .expect(504);
}

#[test]
fn field_named_by_vary_selects_the_stored_response() {
    let parts = Parts::new();
    let red = parts.get("/vary", ["X-Colour: red"]).expect(200);
    let blue = parts.get("/vary", ["X-Colour: blue"]).expect(200);
    assert!(
        blue.cache_status().contains("fwd=vary-miss"),
        "{}",
        blue.head
    );
    for (field, expected) in [("X-Colour: red", &red), ("X-Colour:  blue ", &blue)] {
        let again = parts.get("/vary", [field]).expect(200);
        assert!(
            again.is_hit() && again.body == expected.body,
            "{field}: {}",
            again.head
        );
    }
    assert!(!parts.get("/vary", []).is_hit());
}

#[test]
fn encoded_content_is_passed_unchanged_and_only_to_clients_that_accept_it() {
    let parts = Parts::new();
    let text = "all work and no play ".repeat(5000);
    parts.nginx.file("page.txt", text.as_bytes());
    for round in ["miss", "hit"] {
        let packed = parts
            .get("/zipped/page.txt", ["Accept-Encoding: gzip"])
            .expect(200);
        assert_eq!(packed.field("content-encoding"), "gzip", "{round}");
        assert_eq!(packed.body.get(..2), Some(&[0x1f, 0x8b][..]), "{round}");
        assert!(packed.body.len() < text.len() / 10, "{round}");
        assert_eq!(packed.is_hit(), round == "hit", "{}", packed.head);
        let curl = Curl::through(parts.weir.address()).args(["--compressed"]);
        let unpacked = curl.fetch(&parts.nginx.url("/zipped/page.txt")).reply();
        assert!(unpacked.text() == text, "{round}");
        let plain = parts.get("/zipped/page.txt", []).expect(200);
        assert!(
            plain.text() == text && plain.field("content-encoding").is_empty(),
            "{round}"
        );
    }
}

#[test]
fn private_response_is_not_stored() {
    let parts = Parts::new();
    let (first, second) = (parts.get("/private", []), parts.get("/private", []));
    assert_ne!(first.body, second.body);
    assert_eq!(parts.weir.metrics().count("weir_store_entries"), 0);
}

#[test]
fn authority_is_part_of_the_cache_key_and_scheme_case_is_not() {
    let (one, other) = (Nginx::start(LOCATIONS), Nginx::start(LOCATIONS));
    let weir = Weir::serve(&Config::forward());
    let of_one = weir.get(&one.url("/id")).expect(200);
    let of_other = weir.get(&other.url("/id")).expect(200);
    assert!(
        !of_other.is_hit() && of_one.body != of_other.body,
        "{}",
        of_other.head
    );
    // another spelling of the same is the same
    let again = weir
        .get(&one.url("/id").replace("http", "HTTP"))
        .expect(200);
    assert!(
        again.is_hit() && again.body == of_one.body,
        "{}",
        again.head
    );
}

#[test]
fn store_does_not_exceed_its_budget_with_a_larger_working_set() {
    let nginx = Nginx::start("location / { add_header Cache-Control max-age=3600; }");
    let weir = Weir::serve(&Config::forward().set("cache.memory", "\"4MiB\""));
    let count = 300;
    for number in 0..count {
        nginx.file(
            &format!("{number}"),
            &content(number, 500 * (number as usize % 97 + 1)),
        );
    }
    let mut client = crate::support::RawClient::connect(weir.address());
    for round in 0..2 {
        for number in 0..count {
            let reply = client.get(&nginx.url(&format!("/{number}"))).expect(200);
            let expected = content(number, 500 * (number as usize % 97 + 1));
            assert!(reply.body == expected, "round {round}, file {number}");
            if number % 10 == 0 {
                let metrics = weir.metrics();
                let budget = metrics.count("weir_store_budget_bytes");
                assert_eq!(budget, 4 << 20);
                let used = metrics.count("weir_store_used_bytes");
                assert!(used <= budget, "{used} of {budget} bytes after {number}");
            }
        }
    }
    let metrics = weir.metrics();
    assert!(metrics.count("weir_evicted_total") > 0);
    // a budget that keeps nothing is kept as well
    assert!(
        metrics.count("weir_store_used_bytes") > 2 << 20,
        "{metrics:?}"
    );
}
