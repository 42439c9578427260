//! What the operator sees and does, over the admin interface.

mod heavy_hitters;
mod prometheus;

use crate::support::{Config, Curl, Nginx, Weir};
use std::process::Command;

const LOCATIONS: &str = "
    location /id { add_header Cache-Control max-age=3600; return 200 $request_id; }
    location /vary {
        add_header Cache-Control max-age=3600;
        add_header Vary X-Colour;
        return 200 $request_id;
    }
";

#[test]
fn healthz_of_a_running_proxy_answers_200_ok() {
    let weir = Weir::serve(&Config::guarded());
    let url = format!("http://{}/healthz", weir.admin);
    let reply = Curl::direct().args(["--fail"]).fetch(&url).reply();
    assert_eq!(reply.expect(200).text(), "ok\n");
}

#[test]
fn metrics_count_requests_responses_bytes_and_connections() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward());
    let before = weir.metrics();
    for _ in 0..10 {
        weir.get(&nginx.url("/id")).expect(200);
    }
    weir.get(&nginx.url("/missing")).expect(404);
    weir.get("http://10.0.0.1/").expect(403);
    let after = weir.until("counted", |metrics| metrics.all_requests() == 12);
    assert_eq!(before.all_requests(), 0);
    assert_eq!(after.requests("hit"), 9);
    assert_eq!(after.requests("uri-miss"), 2);
    assert_eq!(after.requests("refused"), 1);
    let class = |class: &str| after.count(&format!("weir_responses_total{{class=\"{class}\"}}"));
    assert_eq!((class("2xx"), class("4xx"), class("5xx")), (10, 2, 0));
    assert_eq!(after.count("weir_client_connections_accepted_total"), 12);
    assert_eq!(after.count("weir_store_sent_bytes_total"), 9 * 32);
    let times = |source: &str| {
        after.count(&format!(
            "weir_response_time_seconds_count{{source=\"{source}\"}}"
        ))
    };
    assert_eq!(
        (times("store"), times("next-hop"), times("proxy")),
        (9, 2, 1)
    );
    assert_eq!(after.count("weir_workers"), 2);
    weir.until("closed", |metrics| {
        metrics.count("weir_client_connections_open") == 0
            && metrics.count("weir_requests_in_flight") == 0
    });
}

#[test]
fn config_endpoint_shows_the_config_in_force() {
    let config = Config::forward().set("limits.drain", "\"7s\"");
    let flags = ["--memory", "32MiB"];
    let weir = Weir::serve_with(&config, &flags);
    let shown = weir.ask("GET", "/config").expect(200);
    assert_eq!(
        shown.field("content-type"),
        "application/toml; charset=utf-8"
    );
    let printed = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--config", "weir.toml", "--print-config"])
        .args(flags)
        .current_dir(weir.folder())
        .output()
        .expect("the binary was built with this test");
    assert_eq!(shown.text(), String::from_utf8_lossy(&printed.stdout));
    assert!(
        shown.text().contains("drain = \"7s\"\n"),
        "{}",
        shown.text()
    );
    assert!(
        shown.text().contains("memory = \"32MiB\"\n"),
        "{}",
        shown.text()
    );
}

#[test]
fn purge_covers_every_stored_response_of_the_target_uri_and_no_other() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward());
    let (url, other) = (nginx.url("/id?a=1&b=2"), nginx.url("/id"));
    let old = weir.get(&url).expect(200);
    weir.get(&other).expect(200);
    assert!(weir.get(&url).is_hit());
    let purge = |url: &str| {
        Curl::direct()
            .args(["-X", "POST", "--data-urlencode", &format!("url={url}")])
            .fetch(&format!("http://{}/purge", weir.admin))
            .reply()
    };
    assert_eq!(purge(&url).expect(200).text(), "purged 1\n");
    let new = weir.get(&url).expect(200);
    assert!(!new.is_hit() && new.body != old.body, "{}", new.head);
    assert!(weir.get(&other).is_hit(), "the other URL was not meant");
    assert_eq!(
        purge(&nginx.url("/nothing")).expect(200).text(),
        "purged 0\n"
    );
    purge("/id").expect(400);

    // all responses of a URL, whatever they vary by
    for colour in ["red", "blue"] {
        let curl = Curl::through(weir.address()).field(&format!("X-Colour: {colour}"));
        curl.fetch(&nginx.url("/vary")).reply().expect(200);
    }
    assert_eq!(purge(&nginx.url("/vary")).expect(200).text(), "purged 2\n");
    assert_eq!(weir.metrics().count("weir_purged_total"), 3);
}

#[test]
fn gateway_purges_by_the_host_name_its_clients_use() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::gateway(&[&nginx.origin()]));
    let get = || {
        let curl = Curl::direct().field("Host: www.example.com");
        curl.fetch(&weir.url("/id")).reply().expect(200)
    };
    get();
    assert!(get().is_hit());
    let purged = weir
        .ask("POST", "/purge?url=http://www.example.com/id")
        .expect(200);
    assert_eq!(purged.text(), "purged 1\n");
    assert!(!get().is_hit());
}
