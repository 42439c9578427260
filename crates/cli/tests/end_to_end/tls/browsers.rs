//! Headless Chromium: at a gateway that speaks HTTP/2, and set to an HTTPS proxy.

use super::{Gateway, NodeOrigin};
use crate::support::{Chromium, Config, Issued, KeyKind, Metrics, Nginx, Weir};

const LOCATIONS: &str = "
    add_header Cache-Control max-age=3600;
    location = /favicon.ico { return 404; }
";

/// The page, and its pictures: one more than a browser has connections of HTTP/1.1 to a host.
const PICTURES: u64 = 7;

/// Writes how many pictures came, and how the page and they did.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>page</title>
<p id="text">not yet</p>
IMAGES
<script>
addEventListener("load", () => {
    const images = Array.from(document.images).filter((it) => it.naturalWidth === 1);
    const entries = ["navigation", "resource"].flatMap((it) => performance.getEntriesByType(it));
    const ways = new Set(entries.map((it) => it.nextHopProtocol));
    document.getElementById("text").textContent =
        `${images.length} images by ${Array.from(ways).join(" and ")}`;
});
</script>
"#;

/// One transparent pixel.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

fn put_page(nginx: &Nginx) {
    let images = (0..PICTURES).map(|number| format!("<img src=\"/image{number}.png\" alt=\"\">\n"));
    let page = PAGE.replace("IMAGES", &images.collect::<String>());
    nginx.file("page.html", page.as_bytes());
    for number in 0..PICTURES {
        nginx.file(&format!("image{number}.png"), IMAGE);
    }
}

#[track_caller]
fn expect_page(shown: &str, way: &str) {
    let expected = format!("<p id=\"text\">{PICTURES} images by {way}</p>");
    assert!(shown.contains(&expected), "{expected}: {shown}");
}

/// The page and its pictures were answered from what is stored, and nothing has gone wrong.
#[track_caller]
fn expect_hits(weir: &Weir) {
    let metrics = weir.until("hits", |metrics| metrics.requests("hit") > PICTURES);
    assert_eq!(metrics.count("weir_panics_total"), 0);
    assert_eq!(http2_floods(&metrics), 0);
}

fn http2_floods(metrics: &Metrics) -> u64 {
    let ends = ["resets", "control", "window-updates", "field-lines", "head"];
    let count = |end| metrics.count(&format!("weir_http2_connections_total{{end=\"{end}\"}}"));
    ends.into_iter().map(count).sum()
}

#[test]
fn browser_loads_a_page_from_a_gateway_by_http2_and_from_memory_the_second_time() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    put_page(&gateway.nginx);
    for _ in 0..2 {
        let browser = Chromium::direct().host("a.test", gateway.weir.address());
        let shown = browser.trust(&[&gateway.first]);
        expect_page(&shown.page("https://a.test/page.html"), "h2");
        gateway.weir.until("stored", |metrics| {
            metrics.count("weir_stored_total") > PICTURES
        });
    }
    expect_hits(&gateway.weir);
}

#[test]
fn browser_set_to_an_https_proxy_loads_pages_over_http_and_through_connect() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "proxy", &["localhost"], KeyKind::Ecdsa);
    let of_origin = Issued::new(folder.path(), "origin", &["127.0.0.1"], KeyKind::Ecdsa);
    let clear = Nginx::start(LOCATIONS);
    let tls = Nginx::start_tls(&of_origin, LOCATIONS);
    put_page(&clear);
    put_page(&tls);
    let log = folder.path().join("access.log");
    let ports = format!("[{}]", tls.address.port());
    let config = Config::forward().tls(&[&issued]);
    let config = config.set("access.connect_ports", &ports);
    // what the browser requests of its own accord ends here: its names are not resolved
    let config = config.set("dns.servers", "[\"127.0.0.1:9\"]");
    let mut weir = Weir::serve(&config.set("log.access", &format!("{log:?}")));
    let browser = || {
        let url = format!("https://localhost:{}", weir.address().port());
        Chromium::through(&url).trust(&[&issued, &of_origin])
    };
    for _ in 0..2 {
        // what it says of requests to a proxy is how that is reached
        let shown = browser().page(&clear.url("/page.html"));
        let expected = format!("{PICTURES} images by ");
        assert!(shown.contains(&expected), "{shown}");
        weir.until("stored", |metrics| {
            metrics.count("weir_stored_total") > PICTURES
        });
    }
    expect_hits(&weir);
    let shown = browser().page(&format!("{}/page.html", tls.https("127.0.0.1")));
    expect_page(&shown, "http/1.1");
    let metrics = weir.until("closed", |metrics| {
        metrics.requests("tunnel") > 0 && metrics.count("weir_tunnels_open") == 0
    });
    assert_eq!(http2_floods(&metrics), 0);
    assert!(weir.stop().success());
    let log = std::fs::read_to_string(&log).expect("a log");
    for line in log.lines() {
        assert!(line.contains("\"HTTP/2.0\""), "{line}");
    }
    let origin = tls.address.to_string();
    let tunnels = log
        .lines()
        .filter(|line| line.contains("CONNECT") && line.contains(&origin));
    assert!(tunnels.count() > 0, "{log}");
}

#[test]
fn browser_opens_a_websocket_on_a_stream_of_the_connection_that_its_page_came_by() {
    let origin = NodeOrigin::start(include_str!("websocket_page.js"));
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "a", &["a.test"], KeyKind::Ecdsa);
    let log = folder.path().join("access.log");
    let config = Config::gateway(&[&origin.url]).tls(&[&issued]);
    let mut weir = Weir::serve(&config.set("log.access", &format!("{log:?}")));
    let browser = Chromium::direct().host("a.test", weir.address());
    let shown = browser.trust(&[&issued]).page("https://a.test/page");
    let expected = "<p id=\"text\">one two three by chat, page by h2</p>";
    assert!(shown.contains(expected), "{shown}");
    let metrics = weir.until("closed", |metrics| metrics.count("weir_tunnels_open") == 0);
    assert_eq!(metrics.count("weir_tunnels_opened_total"), 1);
    assert_eq!(metrics.count("weir_panics_total"), 0);
    assert!(weir.stop().success());
    // by extended CONNECT: one by HTTP/1.1 would have a connection of its own
    let log = std::fs::read_to_string(&log).expect("a log");
    let of_websocket: Vec<&str> = log.lines().filter(|line| line.contains("/chat")).collect();
    assert_eq!(of_websocket.len(), 1, "{log}");
    assert!(of_websocket[0].contains("\"HTTP/2.0\""), "{log}");
}
