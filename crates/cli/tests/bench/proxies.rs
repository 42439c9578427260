//! Against real proxies.

use super::bench::{Bench, SMALL, hit_percent, number};
use super::support::{Config, Nginx, Weir};
use serde_json::Value;

/// What holds for every caching forward proxy in a Wisconsin benchmark without errors.
#[track_caller]
fn check(record: &Value, said: &str) {
    assert_eq!(record["is_valid"], true, "{said}");
    assert_eq!(record["wrong_responses"].as_array().map(Vec::len), Some(0));
    let [first, second] = ["/phases/0", "/phases/1"];
    for phase in [first, second] {
        // 8 clients, 20 requests each
        assert_eq!(
            number(record, &format!("{phase}/client/requests")),
            160,
            "{said}"
        );
        let at = |field: &str| number(record, &format!("{phase}{field}"));
        // what the origin counted is what the marks say
        let asked = at("/origin/distinct");
        assert_eq!(at("/client/hits") + asked, 160, "{said}");
        assert_eq!(at("/client/forwarded"), asked, "{said}");
        // clients repeat their own requests alone, and only when those have ended
        assert_eq!(at("/client/collapsed"), 0, "{said}");
        assert_eq!(at("/origin/requests"), asked, "{said}");
        assert_eq!(at("/response_time/hit/count"), at("/client/hits"), "{said}");
    }
    assert_eq!(number(record, "/phases/0/client/hits"), 0, "{said}");
    assert_eq!(number(record, "/phases/0/client/cache_status/disagree"), 0);
    assert_eq!(number(record, "/phases/1/client/cache_status/disagree"), 0);
    let hit_ratio = hit_percent(record, second);
    assert!((35.0..65.0).contains(&hit_ratio), "{hit_ratio} %: {said}");
    assert!(said.contains(&format!("{hit_ratio:.2} %")), "{said}");
    assert_eq!(record["scale"], 0.1);
    assert_eq!(record["rules"].as_array().map(Vec::len), Some(5));
}

#[test]
fn hit_ratio_of_weir_agrees_with_the_origin_request_count() {
    let config = Config::forward()
        .set("log.access", "\"access.log\"")
        .set("log.format", "\"json\"");
    let mut weir = Weir::serve(&config);
    let bench = Bench::new();
    let (address, pid) = (weir.address().to_string(), weir.id().to_string());
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--proxy", &address, "--proxy-pid", &pid, "--label", "weir"]);
    arguments.extend(["--samples", "samples.parquet", "--threads", "2"]);
    // 20 requests of each client, one after the other, to an origin that takes 50 ms: the run lasts
    // longer than the half second below which nothing is said of the proxy's memory
    arguments.extend(["--set", "origin.latency=constant(50ms)"]);
    let (record, said) = bench.run(&arguments, 0);
    check(&record, &said);
    // the proxy's own account agrees, whatever it calls a request that shares another's fetch: a
    // client that asks again at once may be before the end of its own first fetch
    let hits = number(&record, "/total/client/hits");
    assert_eq!(weir.stop().code(), Some(0));
    let log = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    let lines = log.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["verdict"] == "hit" || line["joined"].is_string()
    });
    let spared = lines.filter(|spares_the_origin| *spares_the_origin).count();
    assert_eq!(u64::try_from(spared), Ok(hits), "{said}");
    assert_eq!(record["subject"]["label"], "weir");
    assert_eq!(record["samples"], "samples.parquet");
    assert!(bench.file("samples.parquet").is_file());
    let most = record["usage"].as_array().expect("a list").iter();
    let most = most.filter_map(|second| second["rss_bytes"].as_u64()).max();
    assert!(
        most.is_some_and(|bytes| bytes > 1 << 20),
        "{:?}",
        record["usage"]
    );
}

#[test]
fn collapsed_requests_are_counted_separately_from_forwarded_ones() {
    let weir = Weir::serve(&Config::forward());
    let address = weir.address().to_string();
    // one target, which the origin takes half a second for: seven of the first eight requests wait
    let arguments = [
        "hits",
        "--clients",
        "8",
        "--set",
        "workload.targets=1",
        "--set",
        "workload.duration=2s",
        "--set",
        "origin.latency=constant(500ms)",
        "--proxy",
        &address,
    ];
    let (record, said) = Bench::new().run(&arguments, 0);
    let at = |name: &str| number(&record, &format!("/total/{name}"));
    assert_eq!(at("origin/requests"), 1, "{said}");
    assert_eq!(at("client/forwarded"), 1, "{said}");
    assert_eq!(at("client/collapsed"), 7, "{said}");
    assert_eq!(at("client/hits"), at("client/requests") - 1, "{said}");
}

#[test]
fn persistent_connections_are_reused() {
    let weir = Weir::serve(&Config::forward());
    let address = weir.address().to_string();
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--proxy", &address, "--keep-alive"]);
    let (record, said) = Bench::new().run(&arguments, 0);
    check(&record, &said);
    assert_eq!(
        number(&record, "/total/client/connections_opened"),
        8,
        "{said}"
    );
    assert_eq!(
        number(&record, "/total/client/connections_reused"),
        312,
        "{said}"
    );
}

/// nginx as a forward proxy with a cache: it says in `X-Cache` what came from it.
pub(super) fn forward_nginx() -> Nginx {
    Nginx::start_with(
        "proxy_cache_path cache keys_zone=bench:1m;
         map $request $target { default \"\"; \"~^[A-Z]+ (?<absolute>http://[^/ ]+/[^ ]*) HTTP/\" $absolute; }
         map \"$http_cache_control $http_pragma\" $is_reload { default 0; \"~no-cache\" 1; }",
        "location / {
             proxy_pass $target;
             proxy_http_version 1.1;
             proxy_set_header Connection \"\";
             proxy_set_header Host $proxy_host;
             proxy_cache bench;
             proxy_cache_key $target;
             proxy_cache_revalidate on;
             proxy_cache_bypass $is_reload;
             if_modified_since before;
             add_header X-Cache $upstream_cache_status;
         }",
    )
}

#[test]
fn hit_ratio_of_nginx_agrees_with_the_origin_request_count() {
    let nginx = forward_nginx();
    let address = nginx.address.to_string();
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--proxy", &address, "--label", "nginx"]);
    let (record, said) = Bench::new().run(&arguments, 0);
    check(&record, &format!("{said}{}", nginx.errors()));
    // every response with content had its word, and it was the marks'
    let said_by_proxy = number(&record, "/total/client/cache_status/agree");
    assert_eq!(said_by_proxy, 320, "{said}");
}

#[test]
fn gateway_is_measured_and_content_of_another_seed_makes_a_run_invalid() {
    // the gateway has to know the origin before it is there
    let port = xtask::ports::take().expect("a port");
    let origin = format!("127.0.0.1:{port}");
    let weir = Weir::serve(&Config::gateway(&[&format!("http://{origin}")]));
    let address = weir.address().to_string();
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--proxy", &address, "--gateway", "--origin-listen", &origin]);
    let bench = Bench::new();
    let (record, said) = bench.run(&arguments, 0);
    check(&record, &said);
    assert_eq!(record["subject"]["mode"], "gateway");

    // its cache still has what an origin of another seed said: every such response is wrong
    arguments.extend(["--seed", "2"]);
    let (record, said) = bench.run(&arguments, 1);
    assert_eq!(record["is_valid"], false, "{said}");
    let wrong = record["wrong_responses"].as_array().expect("a list");
    assert!(!wrong.is_empty(), "{said}");
    let kind = wrong[0]["kind"].as_str().expect("a kind");
    assert!(
        record["reasons"][0]
            .as_str()
            .is_some_and(|reason| reason.contains(kind)),
        "{said}"
    );
    assert!(
        said.contains("error: the run is not valid") && said.contains(kind),
        "{said}"
    );
}
