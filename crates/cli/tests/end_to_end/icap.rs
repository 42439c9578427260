//! ICAP in both directions: Squid is served by modules of Weir, and Weir by c-icap and by itself.

use crate::support::{CIcap, Config, Nginx, RawClient, Squid, Weir, WeirIcap};
use std::io::Write as _;
use std::net::SocketAddr;

/// The machine of a test may have much else to do, and the program is not optimised: five calls
/// that take too long open the breaker.
const TIMES: &str = "deadline = \"1s\"\nwait = \"30s\"";

/// Modules to serve: for requests, for responses, and with content.
const MODULES: &str = r#"
[[module]]
name = "mark"
kind = "headers"
options.request_sent = ["set X-Marked: by-weir"]

[[module]]
name = "moved"
kind = "rewrite"
options.rules = [
    { path = "/old/", to_path = "/pages/" },
    { path = "/away/", redirect = "http://elsewhere.example/" },
]

[[module]]
name = "notice"
kind = "inject"
options.html = "<b>Hello</b>"
options.place = "start"
options.decode = true
"#;

/// The origin says which field it was sent.
const LOCATIONS: &str = "
    location /pages/ { alias www/; }
    location /gzip/ { alias www/; gzip on; gzip_proxied any; gzip_vary on; }
    location /br/ { alias www/; default_type text/html; add_header Content-Encoding br; }
    location /marked { default_type text/plain; return 200 \"$http_x_marked\"; }
";

fn page() -> String {
    let text = "<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(20_000);
    format!("<html><head></head><body>{text}</body></html>")
}

#[test]
fn squid_has_requests_and_responses_adapted_by_modules_of_weir() {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("page.html", page().as_bytes());
    nginx.file("plain.txt", page().as_bytes());
    let served = WeirIcap::serve(MODULES);
    let icap = served.address;
    let squid = Squid::start(&format!(
        "
cache deny all
icap_enable on
icap_preview_enable on
icap_service mark reqmod_precache icap://{icap}/mark bypass=off
icap_service moved reqmod_precache icap://{icap}/moved bypass=off
icap_service notice respmod_precache icap://{icap}/notice bypass=off
adaptation_service_chain requests mark moved
adaptation_access requests allow all
adaptation_access notice allow all
"
    ));
    let get = |path: &str| RawClient::connect(squid.address()).get(&nginx.url(path));
    for _ in 0..3 {
        assert_eq!(
            get("/marked").expect(200).text(),
            "by-weir",
            "{}",
            squid.errors()
        );
        let changed = page().replace("<body>", "<body><b>Hello</b>");
        assert!(get("/pages/page.html").expect(200).text() == changed);
        assert!(get("/old/page.html").expect(200).text() == changed);
        assert!(get("/pages/plain.txt").expect(200).text() == page());
        let away = get("/away/x").expect(307);
        assert_eq!(away.field("location"), "http://elsewhere.example/x");
    }
    assert!(served.stop());
}

/// nginx codes the one page itself, and has the other one as a file.
#[test]
fn squid_and_weir_have_pages_adapted_that_the_origin_coded() {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("page.html", page().as_bytes());
    nginx.file("page", &brotli(page().as_bytes()));
    let served = WeirIcap::serve(MODULES);
    let service = format!("icap://{}/notice", served.address);
    let squid = Squid::start(&format!(
        "
cache deny all
icap_enable on
icap_preview_enable on
icap_service notice respmod_precache {service} bypass=off
adaptation_access notice allow all
"
    ));
    let option = format!("{TIMES}\noptions.service = \"{service}\"");
    let weir = Weir::serve(&Config::forward().module("notice", "icap", &option));
    let get = |proxy: SocketAddr, path: &str| {
        let url = nginx.url(path);
        let mut client = RawClient::connect(proxy);
        let fields = "Host: a.example\r\nAccept-Encoding: gzip, br\r\n";
        client.send(format!("GET {url} HTTP/1.1\r\n{fields}\r\n"));
        client.reply().expect(200)
    };
    // without a module they are coded
    for (path, coding) in [("/gzip/page.html", "gzip"), ("/br/page", "br")] {
        assert_eq!(get(nginx.address, path).field("content-encoding"), coding);
    }
    let changed = page().replace("<body>", "<body><b>Hello</b>");
    for proxy in [squid.address(), weir.address()] {
        for path in ["/gzip/page.html", "/br/page"] {
            for _ in 0..2 {
                let found = get(proxy, path);
                assert_eq!(found.field("content-encoding"), "", "{path}");
                assert!(found.text() == changed, "{path}: {}", squid.errors());
            }
        }
    }
}

fn brotli(content: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    encoder.write_all(content).expect("memory is enough");
    encoder.into_inner()
}

#[test]
fn weir_has_messages_adapted_by_c_icap_and_by_weir() {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("page.html", page().as_bytes());
    let (echo, served) = (CIcap::start(), WeirIcap::serve(MODULES));
    let service = |name: &str| format!("icap://{}/{name}", served.address);
    let option = |service: &str| format!("{TIMES}\noptions.service = \"{service}\"");
    let config = Config::forward()
        .module("echo", "icap", &option(&echo.echo()))
        .module("mark", "icap", &option(&service("mark")))
        .module("notice", "icap", &option(&service("notice")));
    let proxy = Weir::serve(&config);
    for _ in 0..3 {
        let marked = proxy.get(&nginx.url("/marked")).expect(200);
        assert_eq!(marked.text(), "by-weir");
        let found = proxy.get(&nginx.url("/pages/page.html")).expect(200);
        assert!(found.text() == page().replace("<body>", "<body><b>Hello</b>"));
    }
}

/// The state of a service is in its ISTag, and `weir icap` makes it of the options of a module.
#[test]
fn stored_responses_of_a_service_whose_state_changes_are_misses() {
    let nginx = Nginx::start("add_header Cache-Control max-age=3600;");
    nginx.file("a.html", page().as_bytes());
    let with = |html: &str| MODULES.replace("<b>Hello</b>", html);
    let first = WeirIcap::serve(&with("<b>Hello</b>"));
    let address = first.address.to_string();
    let options = format!("{TIMES}\noptions.service = \"icap://{address}/notice\"");
    let proxy = Weir::serve(&Config::forward().module("notice", "icap", &options));
    let get = |name: &str, html: &str| {
        let found = proxy.get(&nginx.url(&format!("/{name}"))).expect(200);
        assert!(
            found.text() == page().replace("<body>", &format!("<body>{html}")),
            "{name}"
        );
        found
    };
    assert!(!get("a.html", "<b>Hello</b>").is_hit());
    assert!(get("a.html", "<b>Hello</b>").is_hit());
    assert!(first.stop());
    let second = WeirIcap::serve_at(&with("<i>Goodbye</i>"), &address);
    assert!(get("a.html", "<b>Hello</b>").is_hit());
    // its answer has the other state
    proxy.get(&nginx.url("/connection")).expect(200);
    let found = get("a.html", "<i>Goodbye</i>");
    assert!(found.cache_status().contains("fwd="), "{}", found.head);
    assert!(get("a.html", "<i>Goodbye</i>").is_hit());
    // a config that cannot be used, and one of which a module is not loaded, change nothing
    for bad in ["module = 1".to_owned(), with("")] {
        second.reload(&bad, "stays as it was");
        assert!(get("a.html", "<i>Goodbye</i>").is_hit());
    }
    second.reload(&with("<u>Again</u>"), "reloaded");
    proxy.get(&nginx.url("/connection")).expect(200);
    assert!(!get("a.html", "<u>Again</u>").is_hit());
    assert!(get("a.html", "<u>Again</u>").is_hit());
    // the same again is no other state
    second.reload(&with("<u>Again</u>"), "reloaded");
    proxy.get(&nginx.url("/connection")).expect(200);
    assert!(get("a.html", "<u>Again</u>").is_hit());
    assert!(second.stop());
}

/// Services that do nothing, add fields, and take content.
const PROBES: &str = include_str!("../../../../peers/extend/services.toml");

/// As the benchmark of modules has them: the response is stored once, and each hit is a request
/// that the service sees.
fn check_hits(service: &str, expected: &[(&str, &str)]) {
    let nginx =
        Nginx::start("add_header Cache-Control max-age=3600; add_header X-Request $request_id;");
    let options = format!("{TIMES}\noptions.service = \"{service}\"");
    let proxy = Weir::serve(&Config::forward().module("icap", "icap", &options));
    for (name, bytes) in [("small", 1024), ("large", 256 * 1024)] {
        let letters = (b'a'..=b'w').cycle();
        let content: Vec<u8> = letters.take(bytes).collect();
        nginx.file(name, &content);
        let url = nginx.url(&format!("/{name}"));
        let mut clients: Vec<RawClient> = (0..4)
            .map(|_| RawClient::connect(proxy.address()))
            .collect();
        let first = clients[0].get(&url).expect(200);
        assert!(first.body == content, "{service}, {name}");
        for turn in 0..200 {
            let found = clients[turn % 4].get(&url).expect(200);
            assert!(found.is_hit(), "{service}, {name}, {turn}: {}", found.head);
            assert!(found.body == content, "{service}, {name}, {turn}");
            // another fetch would have another one
            assert_eq!(found.field("x-request"), first.field("x-request"));
            for (field, value) in expected {
                assert_eq!(found.field(field), *value);
            }
        }
    }
}

#[test]
fn hits_with_a_service_ask_the_origin_once_and_have_every_byte() {
    let echo = CIcap::start();
    check_hits(&echo.echo(), &[]);
    // a request and a response for each fetch, and a request for each hit
    assert_eq!(echo.log_until("RESPMOD", 2).len(), 2);
    assert_eq!(echo.log_until("REQMOD", 402).len(), 402);
    let served = WeirIcap::serve(PROBES);
    let service = |name: &str| format!("icap://{}/{name}", served.address);
    check_hits(&service("empty"), &[]);
    let fields = [("x-probe", "response-received, response-sent")];
    check_hits(&service("fields"), &fields);
    check_hits(&service("content"), &fields);
}

#[test]
fn each_request_of_icap_has_a_line_in_the_access_log() {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("page.html", page().as_bytes());
    let served = WeirIcap::serve(&format!("log.access = \"access.log\"\n{MODULES}"));
    let option = format!(
        "{TIMES}\noptions.service = \"icap://{}/notice\"",
        served.address
    );
    let proxy = Weir::serve(&Config::forward().module("notice", "icap", &option));
    let url = nginx.url("/pages/page.html");
    proxy.get(&url).expect(200);
    // a line is written when its response has been sent
    served.access_log_until(2);
    let mut broken = RawClient::connect(served.address);
    broken.send("no ICAP\r\n\r\n");
    assert_eq!(broken.head().status(), 400);
    let lines = served.access_log_until(3);
    let [options, respmod, refused] = [0, 1, 2].map(|at| &lines[at]);
    assert_eq!(options["method"], "OPTIONS");
    assert_eq!(
        (&options["status"], &options["result"]),
        (&200.into(), &"options".into())
    );
    assert_eq!(respmod["method"], "RESPMOD");
    assert_eq!(respmod["service"], "/notice");
    assert_eq!(respmod["http_method"], "GET");
    assert_eq!(respmod["target"], url);
    assert_eq!(
        (&respmod["http_status"], &respmod["status"]),
        (&200.into(), &200.into())
    );
    assert_eq!(
        (&respmod["result"], &respmod["is_whole"]),
        (&"modified".into(), &true.into())
    );
    for bytes in ["request_bytes", "response_bytes"] {
        let bytes = respmod[bytes].as_u64().expect("a number");
        assert!(bytes > page().len() as u64, "{bytes}");
    }
    assert_eq!(
        (&refused["status"], &refused["result"]),
        (&400.into(), &"refused".into())
    );
    assert_eq!(refused["target"], serde_json::Value::Null);
    // the file was moved away
    served.move_access_log();
    served.reload(MODULES, "reloaded");
    proxy.get(&nginx.url("/pages/other")).expect(404);
    assert_eq!(served.access_log_until(1)[0]["method"], "RESPMOD");
}
