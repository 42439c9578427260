//! The command line as a stranger meets it: each command beside exit code, stdout and stderr.

#[path = "snapshot/generated.rs"]
mod generated;
#[path = "snapshot/references.rs"]
mod references;
mod snapshot;

use snapshot::{compare, finish, folder, weir, whole};

#[test]
fn command_output_matches_its_snapshot() {
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
    ("settings", "settings"),
    ("purge-help", "purge --help"),
    ("purge-nothing", "purge"),
    ("purge-all-and-one", "purge --all http://a/"),
    ("purge-no-proxy", "purge http://a/"),
    ("purge-bad-admin", "purge --all --admin localhost:3129"),
    ("purge-off", "purge --all --admin off"),
    (
        "purge-no-answer",
        "purge --all --admin unix:/nowhere/admin.sock",
    ),
    (
        "purge-no-token",
        "purge --all --admin unix:/nowhere/admin.sock --token-file not-there",
    ),
    ("cluster-help", "cluster --help"),
    ("cluster-no-proxy", "cluster"),
    ("route-help", "route --help"),
    ("explain-help", "explain --help"),
    ("explain-no-proxy", "explain http://a/"),
    ("route-nothing", "route"),
    ("route-no-proxy", "route http://a/"),
    ("top-help", "top --help"),
    ("top-no-proxy", "top"),
    ("top-bad-measure", "top --by size"),
    ("icap-help", "icap --help"),
    ("icap-no-modules", "icap --config empty.toml"),
    ("icap-bad-listen", "icap --config empty.toml --listen 1344"),
    ("stored-help", "stored --help"),
    ("stored-expire-help", "stored expire --help"),
    ("stored-inject-help", "stored inject --help"),
    ("stored-nothing", "stored query"),
    ("stored-no-proxy", "stored query http://a.example/"),
    (
        "stored-bad-mode",
        "stored query http://a.example/ --mode both",
    ),
    (
        "stored-no-file",
        "stored inject http://a.example/ missing.http",
    ),
    ("modules-help", "modules --help"),
    ("modules-disable-help", "modules disable --help"),
    ("modules-enable-help", "modules enable --help"),
    ("modules-no-proxy", "modules"),
    ("modules-disable-nothing", "modules disable"),
    (
        "modules-bad-name",
        "modules disable a/b --admin unix:/nowhere/admin.sock",
    ),
    ("drain-help", "drain --help"),
    ("drain-no-proxy", "drain --end"),
    ("reload-help", "reload --help"),
    ("reload-no-proxy", "reload"),
    ("reload-bad-config", "reload --config unknown-key.toml"),
    ("reload-missing-config", "reload --config not-there.toml"),
    ("public-admin", "serve --admin 0.0.0.0:3129"),
    ("generate-help", "generate --help"),
    ("generate-nothing", "generate man"),
    ("generate-bad-shell", "generate completions csh"),
    ("generate-no-directory", "generate man empty.toml"),
    ("store-nothing", "store"),
    ("store-help", "store --help"),
    ("store-ls-help", "store ls --help"),
    ("store-verify-help", "store verify --help"),
    ("store-stats-help", "store stats --help"),
    ("store-export-help", "store export --help"),
    ("store-missing", "store verify --dir not-there"),
    ("store-is-none", "store ls --dir ."),
    ("store-is-none-in-place", "store stats ."),
    ("store-off", "store ls --admin off"),
    (
        "store-export-nothing",
        "store export --dir . http://example.com/ --key 00",
    ),
    ("sim-help", "sim --help"),
    ("sim-hits-help", "sim hits --help"),
    ("sim-mrc-help", "sim mrc --help"),
    ("sim-sweep-help", "sim sweep --help"),
    (
        "sim-hits",
        "sim hits --zipf 20000 --zipf-keys 2000 --size 1%,10%",
    ),
    (
        "sim-mrc",
        "sim mrc --zipf 20000 --zipf-keys 2000 --zipf-size 700 --sizes 1%..100%:4 --policy lru,sieve",
    ),
    (
        "sim-mrc-sample",
        "sim mrc --zipf 20000 --zipf-keys 5000 --sizes 1%,10%,50% --policy lru,s3-fifo --sample 0.2",
    ),
    ("sim-no-trace", "sim hits not-there.parquet"),
    ("sim-no-format", "sim hits gateway.toml"),
    ("sim-bad-policy", "sim mrc --zipf 10 --policy lru,s3fifo"),
    ("sim-bad-size", "sim hits --zipf 10 --size 10MB"),
    (
        "sim-bad-admission",
        "sim hits --zipf 10 --admission allways",
    ),
    (
        "sim-bad-sample",
        "sim mrc --zipf 10 --policy lru --sample-keys 500",
    ),
    ("sim-bad-axis", "sim sweep --zipf 10 --axis polciy=lru"),
    ("sim-bad-value", "sim sweep --zipf 10 --axis policy=lru,arc"),
    ("sim-cluster-help", "sim cluster --help"),
    (
        "sim-cluster",
        "sim cluster rice-1999 --requests 3000 --nodes 1,2 --policy lard,extended-lard",
    ),
    ("sim-cluster-no-trace", "sim cluster not-there.parquet"),
    (
        "sim-cluster-bad-cost",
        "sim cluster rice-1999 --cost request=0",
    ),
    (
        "sim-cluster-bad-scale",
        "sim cluster rice-1999 --scale -0.5",
    ),
    (
        "sim-cluster-caches",
        "sim cluster web-2026 --model caches --requests 20000 --nodes 1,4 --cache-size 32MiB",
    ),
    (
        "sim-cluster-caches-of-back-ends",
        "sim cluster web-2026 --model caches --server flash",
    ),
    (
        "sim-cluster-caches-bad-policy",
        "sim cluster web-2026 --model caches --policy lard",
    ),
    (
        "sim-cluster-sample-of-back-ends",
        "sim cluster rice-1999 --sample 4",
    ),
    ("sim-cluster-too-many", "sim cluster rice-1999 --nodes 2000"),
    ("sim-paper-lard-help", "sim paper lard --help"),
    ("sim-paper-lard-bad-scale", "sim paper lard --scale 0"),
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
    ("trace-compare-help", "trace compare --help"),
    (
        "trace-compare-missing",
        "trace compare not-there.parquet nor-there.parquet",
    ),
    (
        "trace-compare-bad-equal",
        "trace compare a.parquet b.parquet --equal verdict",
    ),
    (
        "trace-compare-bad-examples",
        "trace compare a.parquet b.parquet --examples 1001",
    ),
    ("trace-stats-help", "trace stats --help"),
    ("trace-stats-missing", "trace stats not-there.parquet"),
    ("trace-top-help", "trace top --help"),
    ("check-empty-disk-list", "check disk-empty-list.toml"),
    ("check-links", "check links.toml"),
    (
        "check-link-refresh-without-top",
        "check link-refresh-without-top.toml",
    ),
    ("check-rules", "check rules.toml"),
    ("check-good", "check gateway-by-address.toml"),
    ("check-by-flag", "check --config gateway-by-address.toml"),
    ("check-empty", "check empty.toml"),
    ("check-bad", "check unknown-key.toml"),
    ("check-missing", "check not-there.toml"),
    ("check-nothing", "check"),
    ("check-service-away", "check module-service-away.toml"),
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
        "serve gateway.toml --listen 127.0.0.1:1 --print-config",
    ),
    (
        "listen-does-not-say-which",
        "serve --config every-key.toml --listen 127.0.0.1:1 --print-config",
    ),
    ("bad-listen-without-port", "serve --listen 0.0.0.0"),
    (
        "bad-allow-client-without-prefix",
        "serve --allow-client 192.168.1.0",
    ),
    ("bad-listen", "serve --listen localhost:3128"),
    (
        "bad-listen-twice",
        "serve --listen 127.0.0.1:1 --listen 127.0.0.1:1",
    ),
    ("bad-memory", "serve --memory 64MB"),
    ("bad-memory-range", "serve --memory 64KiB"),
    ("bad-memory-without-unit", "serve --memory 64"),
    ("bad-origin", "serve --origin ftp://a"),
    ("bad-admin", "serve --admin none"),
    ("bad-log-format", "serve --log-format xml"),
    ("bad-network", "serve --allow-destination 10.1.2.3/8"),
    ("workers-is-no-number", "serve --workers two"),
    ("bad-workers", "serve --workers 1025"),
    ("record-no-folder", "serve --record not-there/t.parquet"),
    ("record-folder", "serve --record ."),
    (
        "record-bad-rotate",
        "serve --record t.parquet --record-rotate hourly",
    ),
    (
        "record-short-rotate",
        "serve --record t.parquet --record-rotate 1KiB",
    ),
    ("record-nothing", "serve --record-rotate 1h"),
    (
        "record-bad-key",
        "serve --record t.parquet --record-key-file empty.toml",
    ),
    (
        "flag-contradicts-file",
        "serve --config every-key.toml --memory 512MiB",
    ),
    ("trace-import-help", "trace import --help"),
    ("trace-import-nothing", "trace import"),
    (
        "trace-import-missing",
        "trace import not-there --out a.parquet",
    ),
    (
        "trace-import-unknown",
        "trace import cut-in-half.toml --out a.parquet",
    ),
    (
        "trace-import-format",
        "trace import cut-in-half.toml --format apache --out a.parquet",
    ),
    (
        "trace-import-size",
        "trace import cut-in-half.toml --missing-size 8KB --out a.parquet",
    ),
    (
        "trace-import-site",
        "trace import cut-in-half.toml --site www.example.org --out a.parquet",
    ),
    (
        "trace-import-damaged",
        "trace import cut-in-half.toml --format squid --out a.parquet",
    ),
    (
        "trace-import-itself",
        "trace import cut-in-half.toml --out cut-in-half.toml",
    ),
];
