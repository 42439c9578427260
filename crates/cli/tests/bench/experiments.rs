//! Several runs in one go.

use super::bench::Bench;
use super::support::{Config, Weir};

#[test]
fn sweep_records_each_client_count_with_and_without_caching() {
    let (caching, other) = (
        Weir::serve(&Config::forward()),
        Weir::serve(&Config::forward()),
    );
    let bench = Bench::new();
    let arguments = [
        "sweep",
        "wpb",
        "--scale",
        "0.02",
        "--set",
        "origin.latency=constant(5ms)",
        "--clients",
        "2..4:2",
        "--proxy",
        &caching.address().to_string(),
        "--proxy-without-cache",
        &other.address().to_string(),
        "--before-each",
        "echo $WEIR_BENCH_CLIENTS $WEIR_BENCH_CACHING >> before",
        "--label",
        "weir",
        "--out",
        "sweep",
    ];
    let output = bench.output(&arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let before = std::fs::read_to_string(bench.file("before")).expect("it was called");
    assert_eq!(before, "2 on\n2 off\n4 on\n4 off\n");
    for (name, clients, is_caching) in [
        ("wpb-0002-caching", 2.0, true),
        ("wpb-0002-no-caching", 2.0, false),
        ("wpb-0004-caching", 4.0, true),
        ("wpb-0004-no-caching", 4.0, false),
    ] {
        let record = bench.record(&format!("sweep/{name}.json"));
        assert_eq!(record["parameters"]["clients"], clients, "{name}");
        assert_eq!(record["subject"]["is_caching"], is_caching, "{name}");
    }
    let page = std::fs::read_to_string(bench.file("sweep/report.html")).expect("a report");
    assert!(page.contains("<svg"), "{page:.300}");
    let figures = std::fs::read_dir(bench.file("sweep/figures"))
        .expect("a folder")
        .count();
    assert!(figures > 0);
    let lines = String::from_utf8_lossy(&output.stdout).lines().count();
    assert_eq!(lines, 4, "{said}");
}

#[test]
fn several_proxies_are_measured_into_one_report() {
    let (one, two) = (
        Weir::serve(&Config::forward()),
        Weir::serve(&Config::forward()),
    );
    let bench = Bench::new();
    let first = format!("one={},pid={}", one.address(), one.id());
    let second = format!("two={}", two.address());
    let small = [
        "wpb",
        "--scale",
        "0.1",
        "--set",
        "origin.latency=constant(50ms)",
    ];
    let run = |command: &[&str]| {
        let mut arguments = command.to_vec();
        arguments.extend(small);
        arguments.extend(["--proxy", &first, "--proxy", &second]);
        let output = bench.output(&arguments);
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(output.status.code(), Some(0), "{said}");
        said
    };
    run(&["run", "--clients", "2", "--out", "all"]);
    let page = std::fs::read_to_string(bench.file("all/report.html")).expect("a report");
    assert!(page.contains("all/wpb-one.json") && page.contains("all/wpb-two.json"));
    assert!(
        page.contains("offered"),
        "the offered hit ratio is beside the measured one"
    );
    let usage = |name: &str| bench.record(name)["usage"].as_array().map(Vec::len);
    assert!(usage("all/wpb-one.json") > Some(0));
    assert_eq!(usage("all/wpb-two.json"), Some(0));

    let said = run(&["sweep", "--clients", "1,2", "--out", "sweep"]);
    assert!(
        said.contains("two,    2 clients") && said.contains(" offered"),
        "{said}"
    );
    for name in ["one-0001", "two-0001", "one-0002", "two-0002"] {
        let record = bench.record(&format!("sweep/wpb-{name}-caching.json"));
        assert_eq!(record["subject"]["label"], name[..3], "{name}");
    }
    assert!(bench.file("sweep/report.html").is_file());
}

#[test]
fn each_repetition_has_a_record_and_the_report_shows_their_median() {
    let (one, two) = (
        Weir::serve(&Config::forward()),
        Weir::serve(&Config::forward()),
    );
    let (first, second) = (
        format!("one={}", one.address()),
        format!("two={}", two.address()),
    );
    let bench = Bench::new();
    let small = [
        "wpb",
        "--scale",
        "0.02",
        "--set",
        "origin.latency=constant(5ms)",
        "--repeat",
        "3",
        "--before-each",
        "echo $WEIR_BENCH_PROXY $WEIR_BENCH_CLIENTS >> before",
        "--proxy",
        &first,
    ];
    let run = |command: &[&str]| {
        let mut arguments = command.to_vec();
        arguments.extend(small);
        let output = bench.output(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
    };
    let page = |name: &str| std::fs::read_to_string(bench.file(name)).expect("a report");
    let proxies = ["run", "--clients", "2", "--proxy", &second];
    let mut arguments = proxies.to_vec();
    arguments.extend(["--samples", "single.parquet", "--out", "runs"]);
    run(&arguments);
    let before = std::fs::read_to_string(bench.file("before")).expect("it was called");
    assert_eq!(before, "two 2\none 2\n".repeat(3), "in turn");
    let record = |number| bench.record(&format!("runs/wpb-two-{number}.json"));
    for number in 1..=3 {
        let record = record(number);
        assert_eq!(record["is_valid"], true);
        // the origin's address is another one each time, so the first phase finds nothing that was
        // stored before
        assert_eq!(record["phases"][0]["client"]["hits"], 0, "{number}");
        let samples = format!("single-two-{number}.parquet");
        assert_eq!(record["samples"], samples.as_str());
        assert!(bench.file(&samples).is_file());
    }
    assert!(page("runs/report.html").contains("Of up to 3 repetitions the median"));

    run(&["sweep", "--clients", "1,2", "--out", "sweep"]);
    for number in 1..=3 {
        for clients in 1..=2 {
            let record = bench.record(&format!("sweep/wpb-000{clients}-caching-{number}.json"));
            assert_eq!(record["parameters"]["clients"], f64::from(clients));
        }
    }
    assert!(page("sweep/report.html").contains("Of up to 3 repetitions the median"));
}

#[test]
fn repeated_gateway_run_without_before_each_command_is_refused() {
    let bench = Bench::new();
    let arguments = [
        "wpb",
        "--proxy",
        "front=127.0.0.1:1,gateway",
        "--repeat",
        "2",
    ];
    for command in ["run", "sweep"] {
        let mut all = vec![command];
        all.extend(arguments);
        let output = bench.output(&all);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("the gateway `front` would answer from what it stored before"),
            "{said}"
        );
        assert!(said.contains("--before-each"), "{said}");
    }
}

#[test]
fn modem_experiment_compares_shaped_and_unshaped_links() {
    let weir = Weir::serve(&Config::forward());
    let bench = Bench::new();
    let proxy = format!("weir={},pid={}", weir.address(), weir.id());
    let arguments = [
        "modem",
        "--proxy",
        &proxy,
        "--scale",
        "0.1",
        "--clients",
        "6",
        "--set",
        "origin.latency=constant(5ms)",
        "--set",
        "workload.sizes=constant(4KB)",
        "--set",
        "clients.link.down=288kbit/s",
        "--out",
        "modem",
    ];
    let output = bench.output(&arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (lan, modem) = (
        bench.record("modem/weir-lan.json"),
        bench.record("modem/weir-modem.json"),
    );
    // on a busy machine links are late, which the record says: of no matter to what is compared
    // here
    let reasons = modem["reasons"].as_array().expect("a list");
    let is_overload = |reason: &serde_json::Value| {
        reason
            .as_str()
            .is_some_and(|reason| reason.starts_with("The generator was overloaded"))
    };
    assert!(reasons.iter().all(is_overload), "{said}");
    assert_eq!(lan["is_valid"], true, "{said}");
    let exit = i32::from(modem["is_valid"] == false);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    assert_eq!(modem["parameters"]["link_bits_per_s"], 288_000.0);
    assert_eq!(modem["link_shaping"], "user");
    assert_eq!(lan["link_shaping"], serde_json::Value::Null);
    assert!(lan["parameters"].get("link_bits_per_s").is_none());
    // 4 KiB take 114 ms at that rate
    let least = |record: &serde_json::Value| {
        record["total"]["response_time"]["all"]["min"]
            .as_u64()
            .expect("a time")
    };
    assert!(least(&modem) > 100_000, "{}", least(&modem));
    assert!(least(&lan) < 100_000, "{}", least(&lan));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "weir, unshaped",
        "weir, 288.0 kbit/s",
        "phase-2 latency s",
        "byte hit ratio %",
        "disk busy %",
    ] {
        assert!(table.contains(part), "{table}");
    }
}
