//! The numbers as a real Prometheus and its promtool read them, and what `contrib/` asks it.

use crate::support::{Config, Curl, Nginx, PATIENCE, RawClient, Weir, start_program};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;
use tempfile::TempDir;

const LOCATIONS: &str = "
    location /hit { add_header Cache-Control max-age=3600; return 200 0123456789; }
    location /private { add_header Cache-Control no-store; return 200 secret; }
";

/// The range of rates, in place of the one that Grafana computes from the interval of scrapes.
const RATE_INTERVAL: &str = "10s";

/// Scrapes of a target until rates have two in each range.
const SCRAPES: u32 = 6;

fn contrib(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../contrib")
        .join(path)
}

/// A running Prometheus that scrapes one Weir each second; it ends when dropped.
#[derive(Debug)]
struct Prometheus {
    child: Child,
    folder: TempDir,
    address: String,
}

impl Prometheus {
    fn start(weir: &Weir) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rules = contrib("prometheus/weir.rules.yml");
        let rules = rules.canonicalize().expect("the alerts");
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [\"{}\"]\n\
             scrape_configs:\n- job_name: weir\n  static_configs: [{{targets: [\"{}\"]}}]\n",
            rules.display(),
            weir.admin
        );
        let config = folder.path().join("prometheus.yml");
        std::fs::write(&config, text).expect("a file");
        let port = xtask::ports::take().expect("a port");
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = start_program(&mut command, "prometheus");
        Self {
            child,
            folder,
            address,
        }
    }

    /// What it answers, once it does.
    fn ask(&self, path: &str, query: &str) -> Option<Value> {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let query = format!("query={query}");
        let curl = Curl::direct().args(["-G", "--data-urlencode", &query]);
        let fetched = curl.fetch(&url);
        let answer = serde_json::from_slice::<Value>(&fetched.body).ok()?;
        if answer["status"] != "success" {
            let is_starting = fetched.exit != 0 || answer["errorType"] == "unavailable";
            assert!(is_starting, "{query}: {answer}");
            return None;
        }
        Some(answer["data"].clone())
    }

    /// The values of a query that are numbers.
    fn values(&self, query: &str) -> Vec<f64> {
        let data = self.ask("query", query).unwrap_or_default();
        let series = data["result"].as_array().cloned().unwrap_or_default();
        let values = series.iter().filter_map(|one| one["value"][1].as_str());
        let values = values.filter_map(|value| value.parse::<f64>().ok());
        values.filter(|value| value.is_finite()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
        let _ = self.folder.path();
    }
}

fn promtool(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new("promtool");
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = start_program(&mut command, "prometheus");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// It finds nothing to say.
#[track_caller]
fn approves(arguments: &[&str], input: &str) {
    let output = promtool(arguments, input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}\n{input}");
}

#[test]
fn promtool_reads_both_formats_and_has_no_complaint() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward());
    weir.get(&nginx.url("/hit")).expect(200);
    let url = format!("http://{}/metrics", weir.admin);
    let text = Curl::direct().fetch(&url).reply();
    assert_eq!(
        text.field("Content-Type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let output = promtool(&["check", "metrics"], &text.text());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");

    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let reply = Curl::direct().field(accept).fetch(&url).reply();
    let kind = reply.field("Content-Type");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    // its only command that parses OpenMetrics wants a time with each value
    let lines = reply.text();
    let lines = lines.lines().map(|line| match line.starts_with('#') {
        true => format!("{line}\n"),
        false => format!("{line} 1700000000\n"),
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, blocks) = (folder.path().join("text"), folder.path().join("blocks"));
    std::fs::write(&file, lines.collect::<String>()).expect("a file");
    let (file, blocks) = (file.display().to_string(), blocks.display().to_string());
    approves(
        &["tsdb", "create-blocks-from", "openmetrics", &file, &blocks],
        "",
    );
}

#[test]
fn alerts_fire_in_the_cases_that_they_are_for_and_in_no_other() {
    let tests = contrib("prometheus/weir.rules.test.yml");
    approves(&["test", "rules", &tests.display().to_string()], "");
    let config = contrib("prometheus/prometheus.yml");
    approves(&["check", "config", &config.display().to_string()], "");
}

#[test]
fn every_alert_says_what_to_do_and_asks_for_known_metrics_only() {
    let text = std::fs::read_to_string(contrib("prometheus/weir.rules.yml")).expect("a file");
    let (alerts, actions) = (text.matches("- alert:"), text.matches("action: >-"));
    assert_eq!(alerts.count(), actions.count());
    let known = include_str!("../../../../../docs/reference/metrics.md");
    for name in names(&text) {
        assert!(known.contains(&format!("`{name}")), "`{name}` is no metric");
    }
}

/// Names of metrics in a text.
fn names(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("weir_")).collect()
}

/// Queries of the dashboard's panels, with the panel's title.
fn panels() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(contrib("grafana/weir.json")).expect("a file");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "panel `{title}` asks for nothing");
        for target in targets {
            let query = target["expr"].as_str().expect("a query");
            let query = query
                .replace("$__rate_interval", RATE_INTERVAL)
                .replace("$job", "weir")
                .replace("$instance", ".*");
            assert!(!query.contains('$'), "panel `{title}`: {query}");
            queries.push((title.to_owned(), query));
        }
    }
    queries
}

/// A hit, a miss and what is not stored.
fn requests(client: &mut RawClient, nginx: &Nginx, number: usize) {
    for path in [
        "/hit".to_owned(),
        format!("/hit?{number}"),
        "/private".to_owned(),
    ] {
        client.get(&nginx.url(&path)).expect(200);
    }
}

#[test]
fn no_panel_is_empty_and_no_alert_fails_with_a_real_prometheus() {
    let nginx = Nginx::start(LOCATIONS);
    let store = tempfile::tempdir().expect("a temporary folder");
    let config = Config::forward()
        .set("disk.enabled", "true")
        .set(
            "disk.directories",
            &format!("[{{ path = {:?} }}]", store.path()),
        )
        .set(
            "link",
            r#"[{ name = "uplink", quota = "1GiB", period = "month" }]"#,
        )
        .rule("name = \"pages\"\nresponse = [\"set X-Page: 1\"]");
    let weir = Weir::serve(&config);
    let mut client = RawClient::connect(weir.address());
    let prometheus = Prometheus::start(&weir);
    let begun = Instant::now();
    let scrapes = format!("count_over_time(up[{RATE_INTERVAL}]) >= {SCRAPES}");
    let mut empty = panels();
    for number in 0.. {
        requests(&mut client, &nginx, number);
        if !prometheus.values(&scrapes).is_empty() {
            empty.retain(|(_, query)| prometheus.values(query).is_empty());
            if empty.is_empty() {
                break;
            }
        }
        assert!(begun.elapsed() < PATIENCE, "no values: {empty:#?}");
    }
    assert_eq!(prometheus.values("up{job=\"weir\"}"), [1.0]);
    assert!(
        !prometheus
            .values("weir_requests_total{verdict=\"hit\"} > 0")
            .is_empty()
    );
    loop {
        let rules = prometheus.ask("rules", "").expect("its rules");
        let rules = rules["groups"][0]["rules"].as_array().cloned();
        let rules = rules.expect("the group of alerts");
        let health = rules
            .iter()
            .map(|rule| rule["health"].as_str().unwrap_or_default());
        if health.clone().all(|health| health == "ok") {
            assert!(rules.len() > 10, "{rules:?}");
            let states = rules
                .iter()
                .map(|rule| rule["state"].as_str().unwrap_or_default());
            assert!(
                states.clone().all(|state| state == "inactive"),
                "{rules:#?}"
            );
            break;
        }
        assert!(health.clone().all(|health| health != "err"), "{rules:#?}");
        assert!(begun.elapsed() < PATIENCE, "{rules:#?}");
    }
}
