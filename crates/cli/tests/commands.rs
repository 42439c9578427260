//! The command line as a stranger meets it: each command beside exit code, stdout and stderr.

mod snapshot;

use snapshot::{compare, finish, folder, weir, whole};

#[test]
fn command_says_something_else_than_its_snapshot() {
    let configs = folder("configs");
    let snapshots = folder("commands");
    let mut differences = Vec::new();
    for (name, arguments) in COMMANDS {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let output = weir(&configs, &arguments);
        let version = concat!("weir ", env!("CARGO_PKG_VERSION"));
        let said = whole(&output).replace(version, "weir VERSION");
        let found = format!("$ weir {}\n{said}", arguments.join(" "));
        compare(
            &snapshots.join(format!("{name}.txt")),
            &found,
            &mut differences,
        );
    }
    finish(&differences);
}

/// Name of the snapshot and the arguments. Paths are those in `tests/configs`.
const COMMANDS: &[(&str, &str)] = &[
    ("nothing", ""),
    ("help", "--help"),
    ("serve-help", "serve --help"),
    ("check-help", "check --help"),
    ("version", "--version"),
    ("unknown-command", "server"),
    ("unknown-flag", "serve --listn 127.0.0.1:1"),
    ("knobs", "knobs"),
    ("store-nothing", "store"),
    ("store-help", "store --help"),
    ("store-ls-help", "store ls --help"),
    ("store-verify-help", "store verify --help"),
    ("store-stats-help", "store stats --help"),
    ("store-export-help", "store export --help"),
    ("store-missing", "store verify --dir not-there"),
    ("store-is-none", "store ls --dir ."),
    (
        "store-export-nothing",
        "store export --dir . http://example.com/ --key 00",
    ),
    ("bench-help", "bench --help"),
    ("bench-run-help", "bench run --help"),
    ("bench-master-help", "bench master --help"),
    ("bench-origin-help", "bench origin --help"),
    ("bench-clients-help", "bench clients --help"),
    ("bench-sweep-help", "bench sweep --help"),
    ("bench-modem-help", "bench modem --help"),
    ("bench-report-help", "bench report --help"),
    ("bench-scenarios", "bench scenarios"),
    ("bench-no-proxy", "bench run wpb"),
    ("bench-bad-proxy", "bench run wpb --proxy 127.0.0.1"),
    ("bench-bad-proxies", "bench modem --proxy squid:3128"),
    (
        "bench-unknown-scenario",
        "bench run wbp --proxy 127.0.0.1:1",
    ),
    (
        "bench-missing-scenario",
        "bench run ./not-there.toml --proxy 127.0.0.1:1",
    ),
    (
        "bench-unknown-key",
        "bench run wpb --direct --set origin.latncy=constant(1s)",
    ),
    ("bench-bad-scale", "bench run wpb --direct --scale 0"),
    (
        "bench-polymix-clients",
        "bench run polymix3 --direct --clients 8",
    ),
    (
        "bench-bad-range",
        "bench sweep wpb --proxy 127.0.0.1:1 --clients 96..8:8",
    ),
    (
        "bench-no-process",
        "bench run wpb --scale 0.01 --direct --proxy-pid 4294967294",
    ),
    (
        "bench-missing-record",
        "bench report not-there.json --out x.html",
    ),
    ("bench-unknown-built-in", "bench scenarios wpb2"),
    ("check-good", "check gateway.toml"),
    ("check-empty", "check empty.toml"),
    ("check-bad", "check unknown-key.toml"),
    ("check-missing", "check not-there.toml"),
    ("check-nothing", "check"),
    ("print-default", "serve --print-config"),
    (
        "print-flags",
        "serve --listen 127.0.0.1:1 --listen [::1]:1 --admin off --allow-destination 127.0.0.0/8 \
         --allow-destination 10.0.0.1 --memory 32MiB --workers 1 --access-log off --log-format squid --print-config",
    ),
    (
        "print-origin",
        "serve --origin http://127.0.0.1:80 --origin http://[::1]:81 --print-config",
    ),
    (
        "print-flags-over-file",
        "serve --config every-key.toml --origin http://127.0.0.1:81 --allow-destination 127.0.0.1 --memory 1GiB --print-config",
    ),
    (
        "listen-keeps-the-mode",
        "serve --config gateway.toml --listen 127.0.0.1:1 --print-config",
    ),
    (
        "listen-does-not-say-which",
        "serve --config every-key.toml --listen 127.0.0.1:1 --print-config",
    ),
    ("bad-listen", "serve --listen localhost:3128"),
    (
        "bad-listen-twice",
        "serve --listen 127.0.0.1:1 --listen 127.0.0.1:1",
    ),
    ("bad-memory", "serve --memory 64MB"),
    ("bad-memory-range", "serve --memory 64KiB"),
    ("bad-origin", "serve --origin https://a"),
    ("bad-admin", "serve --admin none"),
    ("bad-log-format", "serve --log-format xml"),
    ("bad-network", "serve --allow-destination 10.1.2.3/8"),
    ("workers-is-no-number", "serve --workers two"),
    ("bad-workers", "serve --workers 1025"),
    (
        "flag-contradicts-file",
        "serve --config every-key.toml --memory 512MiB",
    ),
];
