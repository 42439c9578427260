//! A page in headless Chromium, through the forward proxy, twice: `make test-browser`.
//!
//! Plain `cargo test` leaves this program out (`test = false` in the manifest): a browser is a
//! large thing to install.

#[path = "../support/mod.rs"]
mod support;

use support::{Chromium, Config, Metrics, Nginx, Weir};

const LOCATIONS: &str = "
    add_header Cache-Control max-age=3600;
    location = /favicon.ico { return 404; }
";

/// The script writes what it found; a browser that misses a part shows another text.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>page</title>
<link rel="stylesheet" href="/style.css">
<img id="image" src="/image.png" alt="">
<p id="text">not yet</p>
<script src="/script.js"></script>
"#;

const SCRIPT: &str = r#"
addEventListener("load", () => {
    const image = document.getElementById("image");
    const text = document.getElementById("text");
    text.textContent = `image ${image.naturalWidth}, colour ${getComputedStyle(text).color}`;
});
"#;

/// One transparent pixel.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

#[test]
fn browser_loads_the_whole_page_and_its_parts_are_hits_the_second_time() {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("page.html", PAGE.as_bytes());
    nginx.file("style.css", b"#text { color: rgb(1, 2, 3) }");
    nginx.file("script.js", SCRIPT.as_bytes());
    nginx.file("image.png", IMAGE);
    // what the browser asks for of its own accord ends here: its names are not resolved
    let weir = Weir::serve(&Config::forward().set("dns.servers", "[\"127.0.0.1:9\"]"));
    let show = || {
        let browser = Chromium::through(&format!("http://{}", weir.address()));
        let shown = browser.page(&nginx.url("/page.html"));
        let expected = "<p id=\"text\">image 1, colour rgb(1, 2, 3)</p>";
        assert!(shown.contains(expected), "{shown}");
    };
    show();
    let parts = 4;
    let first = weir.until("stored", |metrics| stored(metrics) >= parts);
    // a fresh profile: the browser's own cache is empty again
    show();
    let second = weir.until("hits", |metrics| {
        metrics.requests("hit") >= first.requests("hit") + parts
    });
    assert_eq!(stored(&first), stored(&second));
    assert_eq!(second.count("weir_panics_total"), 0);
}

fn stored(metrics: &Metrics) -> u64 {
    metrics.count("weir_stored_total")
}
