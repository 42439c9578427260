//! The kinds of modules that come with weir, each between curl and nginx.

use crate::support::{Config, Curl, Nginx, Reply, Weir};

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
    let proxy = Weir::serve(&Config::forward().module("smaller", "compress", ""));
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
fn request_that_a_filter_list_names_is_answered_here_and_does_not_reach_the_origin() {
    let nginx = Nginx::start("");
    nginx.file("page.html", b"page");
    nginx.file("banner/a.gif", b"an advertisement");
    nginx.file("track.js", b"a tracker");
    let list = nginx.file("list.txt", b"! ours\n/banner/*$image\n/track.js|\n");
    let options = format!("options.lists = [{list:?}]");
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
