//! The kinds of modules that come with weir, each between curl and nginx.

use crate::support::{Config, Curl, Nginx, Reply, Weir};

/// The machine of a test may have much else to do, and the program is not optimised.
const DEADLINE: &str = "deadline = \"1s\"";

/// What curl gets, with these fields.
fn get(proxy: &Weir, url: &str, fields: &[&str]) -> Reply {
    let curl = Curl::through(proxy.address());
    let curl = fields.iter().fold(curl, |curl, line| curl.field(line));
    curl.fetch(url).reply()
}

#[test]
fn compressed_page_is_the_page_of_the_origin_for_a_client_that_undoes_it() {
    let nginx = Nginx::start("location /own/ { add_header Cache-Control no-store; alias www/; }");
    let page = "<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(10_000);
    nginx.file("page.html", page.as_bytes());
    let proxy = Weir::serve(&Config::forward().module("smaller", "compress", DEADLINE));
    let url = nginx.url("/own/page.html");
    for _ in 0..2 {
        // curl undoes gzip, if it is built as usual; zstd and br it may not know
        let gzip = Curl::through(proxy.address())
            .args(["--compressed"])
            .field("Accept-Encoding: gzip");
        let reply = gzip.fetch(&url).reply().expect(200);
        assert!(reply.text() == page);
        assert_eq!(reply.field("content-encoding"), "gzip");
        assert_eq!(reply.field("vary"), "Accept-Encoding");
        for coding in ["br", "zstd"] {
            let accepted = format!("Accept-Encoding: {coding}");
            let reply = get(&proxy, &url, &[&accepted]).expect(200);
            assert_eq!(reply.field("content-encoding"), coding);
            assert!(reply.body.len() < page.len() / 100);
        }
        let plain = get(&proxy, &url, &[]).expect(200);
        assert_eq!(plain.field("content-encoding"), "");
        assert_eq!(plain.field("vary"), "Accept-Encoding");
        assert!(plain.text() == page);
    }
}

#[test]
fn compressed_page_is_stored_once_for_all_clients_that_accept_the_same_coding() {
    let nginx =
        Nginx::start("location /aged/ { add_header Cache-Control max-age=3600; alias www/; }");
    let page = "<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(10_000);
    nginx.file("page.html", page.as_bytes());
    let proxy = Weir::serve(&Config::forward().module("smaller", "compress", DEADLINE));
    let url = nginx.url("/aged/page.html");
    let spelt = [
        ("gzip", ["gzip", "GZIP;q=0.9, deflate"]),
        ("br", ["gzip, deflate, br", "br"]),
        ("", ["identity", "deflate"]),
    ];
    for (coding, [first, second]) in spelt {
        let one = get(&proxy, &url, &[&format!("Accept-Encoding: {first}")]).expect(200);
        assert_eq!(one.field("content-encoding"), coding);
        assert!(!one.is_hit(), "{}", one.head);
        let two = get(&proxy, &url, &[&format!("Accept-Encoding: {second}")]).expect(200);
        assert!(two.is_hit(), "{}", two.head);
        assert_eq!(two.field("content-encoding"), coding);
        assert_eq!(two.field("vary"), "Accept-Encoding");
        assert!(two.body == one.body);
        assert_eq!(two.body.len() == page.len(), coding.is_empty());
    }
}

#[test]
fn request_that_a_filter_list_names_is_answered_here_and_does_not_reach_the_origin() {
    let nginx = Nginx::start("");
    nginx.file("page.html", b"page");
    nginx.file("banner/a.gif", b"an advertisement");
    nginx.file("track.js", b"a tracker");
    let list = nginx.file("list.txt", b"! ours\n/banner/*$image\n/track.js|\n");
    let options = format!("options.lists = [{list:?}]\n{DEADLINE}");
    let proxy = Weir::serve(&Config::forward().module("no-ads", "block", &options));
    assert_eq!(
        get(&proxy, &nginx.url("/page.html"), &[])
            .expect(200)
            .text(),
        "page"
    );
    let image = get(&proxy, &nginx.url("/banner/a.gif"), &["Accept: image/*"]).expect(200);
    assert_eq!(image.field("content-type"), "image/gif");
    assert!(image.body.starts_with(b"GIF89a") && image.body.len() == 43);
    let script = get(&proxy, &nginx.url("/track.js"), &[]).expect(200);
    assert_eq!(
        (
            script.field("content-type").as_str(),
            script.text().as_str()
        ),
        ("text/javascript", "")
    );
    let blocked = "weir_module_metric{module=\"no-ads\",metric=\"blocked\"}";
    let metrics = proxy.metrics();
    assert_eq!(metrics.count(blocked), 2);
    assert_eq!(metrics.count("weir_module_responses_total"), 2);
}

#[test]
fn image_is_converted_by_a_process_of_its_own_for_clients_that_accept_webp() {
    let nginx = Nginx::start(
        "location /own/ { add_header Cache-Control no-store; default_type image/jpeg; alias www/; }",
    );
    let picture = image::RgbImage::from_fn(400, 300, |x, y| {
        let wave = |at: u32| u8::try_from((at % 480).min(480 - at % 480)).unwrap_or(0);
        image::Rgb([wave(3 * x + y), wave(x + 5 * y), wave(x * y / 16)])
    });
    picture.save(nginx.path("a.jpg")).expect("a file");
    let jpeg = std::fs::read(nginx.path("a.jpg")).expect("a file");
    let text = b"this is no image\n".repeat(1000);
    nginx.file("text.jpg", &text);
    let options = format!("options.width_max = 200\nwait = \"60s\"\n{DEADLINE}");
    let proxy = Weir::serve(&Config::forward().module("images", "transcode", &options));
    let (url, accept) = (nginx.url("/own/a.jpg"), "Accept: image/webp,*/*");
    let webp = get(&proxy, &url, &[accept]).expect(200);
    assert_eq!(webp.field("content-type"), "image/webp", "{}", webp.head);
    assert_eq!(webp.field("vary"), "Accept");
    assert!(webp.body.starts_with(b"RIFF") && webp.body.len() < jpeg.len());
    let plain = get(&proxy, &url, &["Accept: image/*"]).expect(200);
    assert_eq!(plain.field("content-type"), "image/jpeg");
    assert!(plain.body == jpeg);
    let same = get(&proxy, &nginx.url("/own/text.jpg"), &[accept]).expect(200);
    assert_eq!(same.field("content-type"), "image/jpeg");
    assert!(same.body == text);
    let metrics = proxy.metrics();
    let count = |name: &str| {
        metrics.count(&format!(
            "weir_module_metric{{module=\"images\",metric=\"{name}\"}}"
        ))
    };
    assert_eq!(
        ["converted", "passed", "processes-started"].map(count),
        [1, 1, 1]
    );
}

/// A feed of this one line, which is read at once.
fn feed(nginx: &Nginx, line: &str) -> Config {
    let file = nginx.file("feed.txt", line.as_bytes());
    let options = format!("options.file = {file:?}\noptions.period_s = 1\n{DEADLINE}");
    Config::forward().module("news", "feed", &options)
}

/// Waits until the feed has done so much of `what`.
fn wait_for_feed(proxy: &Weir, what: &str, count: u64) {
    let name = format!("weir_module_metric{{module=\"news\",metric=\"{what}\"}}");
    proxy.until(what, |metrics| metrics.count(&name) >= count);
}

#[test]
fn feed_has_a_response_stored_then_validated_then_fetched_again() {
    let nginx =
        Nginx::start("location /own/ { add_header Cache-Control max-age=3600; alias www/; }");
    nginx.file("page.html", b"the page");
    let url = nginx.url("/own/page.html");
    let proxy = Weir::serve(&feed(&nginx, &format!("fetch {url}\n")));
    let ask = |expected: &str| {
        let reply = get(&proxy, &url, &[]).expect(200);
        assert_eq!(reply.text(), "the page");
        let status = reply.cache_status();
        assert!(status.starts_with(expected), "{expected}: {status}");
        status
    };
    wait_for_feed(&proxy, "fetched", 1);
    ask("weir;hit");
    feed(&nginx, &format!("expire {url}\n"));
    wait_for_feed(&proxy, "expired", 1);
    let validated = ask("weir;fwd=stale");
    assert!(validated.contains("fwd-status=304"), "{validated}");
    ask("weir;hit");
    feed(&nginx, &format!("delete {url}\n"));
    wait_for_feed(&proxy, "deleted", 1);
    let missed = ask("weir;fwd=uri-miss");
    assert!(missed.contains("fwd-status=200"), "{missed}");
    // a line that stands is done once
    ask("weir;hit");
}
