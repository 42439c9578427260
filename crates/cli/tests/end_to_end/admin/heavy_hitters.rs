//! Heavy hitters and recent misses of real requests.

use crate::support::{Config, Nginx, PATIENCE, Signal, Weir, content};
use std::time::Instant;
use weir_measure::live::{RecentMisses, TopTable};

const LOCATIONS: &str = "
    location /small { add_header Cache-Control max-age=3600; return 200 0123456789; }
    location /private { add_header Cache-Control no-store; return 200 secret; }
    location /files { add_header Cache-Control max-age=3600; }
";

/// The table of `query`, once `is_it` holds for it: sums of hits are given to it each second.
fn table_until(weir: &Weir, query: &str, is_it: impl Fn(&TopTable) -> bool) -> TopTable {
    let began = Instant::now();
    loop {
        let reply = weir.ask("GET", &format!("/top?{query}&format=json"));
        let text = reply.expect(200).text();
        let table: TopTable = serde_json::from_str(&text).expect("as declared");
        if is_it(&table) {
            return table;
        }
        assert!(began.elapsed() < PATIENCE, "{query}: {text}");
    }
}

fn count(table: &TopTable, name: &str) -> u64 {
    let row = table.rows.iter().find(|row| row.name == name);
    row.map_or(0, |row| row.count)
}

#[test]
fn requests_and_bytes_are_counted_for_url_host_client_and_next_hop() {
    let nginx = Nginx::start(LOCATIONS);
    let body = content(1, 300_000);
    nginx.file("files/large", &body);
    let weir = Weir::serve(&Config::forward());
    let (small, large) = (nginx.url("/small"), nginx.url("/files/large"));
    for _ in 0..5 {
        weir.get(&small).expect(200);
    }
    for _ in 0..3 {
        assert_eq!(weir.get(&large).expect(200).body, body);
    }
    let requests = table_until(&weir, "of=urls&by=requests", |table| table.total == 8);
    assert_eq!((count(&requests, &small), count(&requests, &large)), (5, 3));
    assert!(
        requests
            .rows
            .iter()
            .all(|row| row.error == 0 && row.certain)
    );
    let sent = table_until(&weir, "of=urls&by=bytes", |_| true);
    assert_eq!(sent.rows[0].name, large);
    assert!((900_000..905_000).contains(&sent.rows[0].count), "{sent:?}");
    // one fetch of each, heads included
    let host = nginx.address.to_string();
    for (query, name) in [
        ("of=hosts", &host),
        ("of=next-hops", &host),
        ("of=urls", &large),
    ] {
        let query = format!("{query}&by=from-next-hops");
        let table = table_until(&weir, &query, |table| count(table, name) > 300_000);
        assert!(count(&table, name) < 303_000, "{table:?}");
    }
    let misses = table_until(&weir, "of=urls&by=misses", |_| true);
    assert_eq!((count(&misses, &small), count(&misses, &large)), (1, 1));
    let clients = table_until(&weir, "of=clients&by=requests", |table| table.total == 8);
    assert_eq!(clients.rows.len(), 1);
    assert!(clients.rows[0].name.starts_with("client-"), "{clients:?}");
    assert_eq!(clients.rows[0].count, 8);
    let metrics = weir.metrics();
    assert_eq!(metrics.count("weir_top_dropped_total"), 0);
    assert_eq!(sent.total, metrics.count("weir_client_sent_bytes_total"));
}

#[test]
fn queries_and_clients_are_shown_only_after_a_setting_says_so() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward());
    let url = nginx.url("/private?token=hunter2");
    weir.get(&url).expect(200);
    let read = || {
        let reply = weir.ask("GET", "/misses?format=json");
        let misses: RecentMisses = serde_json::from_str(&reply.text()).expect("as declared");
        misses.misses
    };
    table_until(&weir, "by=requests", |table| table.total == 1);
    let misses = read();
    assert_eq!(misses.len(), 1);
    let (miss, client) = (&misses[0], &misses[0].client);
    assert_eq!(miss.url, nginx.url("/private"));
    assert_eq!(
        (miss.why.as_str(), miss.method.as_str(), miss.status),
        ("uri-miss", "GET", 200)
    );
    assert_eq!(miss.not_stored.as_deref(), Some("response-no-store"));
    assert!(client.starts_with("client-"), "{client}");
    let config = Config::forward()
        .set("admin.top_queries", "\"whole\"")
        .set("admin.top_clients", "\"addresses\"");
    weir.rewrite(&config.text());
    weir.signal(Signal::HangUp);
    weir.until("reloaded", |metrics| {
        metrics.count("weir_reloads_total{outcome=\"ok\"}") == 1
    });
    weir.get(&url).expect(200);
    let table = table_until(&weir, "by=requests", |table| table.total == 2);
    assert_eq!(count(&table, &url), 1, "{table:?}");
    let latest = &read()[0];
    assert_eq!(
        (latest.url.as_str(), latest.client.as_str()),
        (url.as_str(), "127.0.0.1")
    );
}

#[test]
fn nothing_is_counted_if_the_operator_says_so() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward().set("admin.top", "false"));
    weir.get(&nginx.url("/small")).expect(200);
    for path in ["/top", "/misses"] {
        weir.ask("GET", path).expect(404);
    }
}
