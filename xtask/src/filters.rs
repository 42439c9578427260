//! `cargo xtask filters`: builds the proxy-wasm filters of the tests and of the benchmark under
//! `target/`.
//!
//! Our own in Rust and in Go (`crates/filters/filters`), and the Coraza WAF, which is fetched as a
//! Go module and built by stock Go after two edits: the path of its SDK, and `main`, which a
//! library does not run, becomes `init`. Prints the path of each filter, one a line.

use crate::command::{json, output};
use crate::failure::{During, Failure};
use crate::{need, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What filters in Rust are built for.
pub const TARGET: &str = "wasm32-wasip1";

/// Filters in Rust of the tests.
const RUST: [&str; 2] = ["exercise", "greeting"];

/// The filter that is measured, in Rust and in Go.
const PROBE: &str = "probe";

/// The WAF, and its version.
const CORAZA: &str = "github.com/corazawaf/coraza-proxy-wasm@v0.0.0-20260824140537-b1770f5b0be3";

/// As its authors build it, with rules that are evaluated as early as they can be. There is no file
/// system to try.
const CORAZA_TAGS: &str = "-tags=coraza.rule.multiphase_evaluation,no_fs_access";

/// The SDK that it names, which TinyGo alone builds, and the one that stock Go builds.
const SDK: [&str; 2] = [
    "github.com/tetratelabs/proxy-wasm-go-sdk",
    "github.com/proxy-wasm/proxy-wasm-go-sdk",
];

/// The versions of both.
const SDK_VERSIONS: [&str; 2] = ["v0.24.0", "v0.0.0-20260105142703-44c7d5847745"];

/// Builds what is named: `rust-go`, `probes`, `coraza`, or all of them by default.
///
/// # Errors
/// A compiler is missing, or a filter cannot be built.
pub fn run(names: &[String]) -> Result<(), Failure> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let files = match names[..] {
        ["rust-go"] => rust_and_go()?,
        ["probes"] => probes()?,
        ["coraza"] => vec![coraza()?],
        [] => [rust_and_go()?, probes()?, vec![coraza()?]].concat(),
        _ => {
            let what = "name `rust-go`, `probes`, `coraza`, or nothing for all";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

fn rust_and_go() -> Result<Vec<PathBuf>, Failure> {
    let built = rust()?;
    let mut files: Vec<PathBuf> = RUST.map(|name| rust_file(&built, name)).into();
    files.push(go(".", "go.wasm")?);
    Ok(files)
}

fn probes() -> Result<Vec<PathBuf>, Failure> {
    Ok(vec![rust_probe()?, go_probe()?])
}

/// Builds the filter in Rust that the benchmark measures, and returns its path.
///
/// # Errors
/// Rust cannot build for WebAssembly, or the filter cannot be built.
pub fn rust_probe() -> Result<PathBuf, Failure> {
    rust().map(|built| rust_file(&built, PROBE))
}

/// The same in Go.
///
/// # Errors
/// There is no Go, or the filter cannot be built.
pub fn go_probe() -> Result<PathBuf, Failure> {
    go("./probe", "go-probe.wasm")
}

/// Where filters are built.
fn place() -> PathBuf {
    root::target().join("filters")
}

/// Where the sources of our own are.
#[must_use]
pub fn sources() -> PathBuf {
    root::directory().join("crates/filters/filters")
}

fn rust_file(built: &Path, name: &str) -> PathBuf {
    built.join(format!("{name}.wasm"))
}

/// Builds all filters in Rust, and returns where they are.
fn rust() -> Result<PathBuf, Failure> {
    need::target(TARGET)?;
    let built = place().join("rust");
    let mut command = root::cargo();
    command
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--target",
            TARGET,
        ])
        .arg("--manifest-path")
        .arg(sources().join("rust/Cargo.toml"))
        .arg("--target-dir")
        .arg(&built)
        // flags for this machine are none for that one
        .env_remove("RUSTFLAGS")
        .stderr(Stdio::inherit());
    output(&mut command)?;
    Ok(built.join(TARGET).join("release"))
}

/// Builds a package of our module in Go into a file.
fn go(package: &str, file: &str) -> Result<PathBuf, Failure> {
    need::go()?;
    let built = place().join(file);
    build_go(&sources().join("go"), package, &built, &[])?;
    Ok(built)
}

fn go_command(directory: &Path) -> Command {
    let mut go = Command::new(need::find("go").unwrap_or_else(|| "go".into()));
    go.current_dir(directory)
        .env("GOWORK", "off")
        .env_remove("GOFLAGS")
        .stderr(Stdio::inherit());
    go
}

fn build_go(directory: &Path, package: &str, built: &Path, flags: &[&str]) -> Result<(), Failure> {
    let mut go = go_command(directory);
    go.args(["build", "-trimpath", "-buildmode=c-shared"])
        .args(flags)
        .arg("-o")
        .arg(built)
        .arg(package)
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm");
    output(&mut go).map(drop)
}

fn coraza() -> Result<PathBuf, Failure> {
    need::go()?;
    let built = place().join("coraza.wasm");
    let marker = place().join("coraza.version");
    let version = format!("{CORAZA} {} {CORAZA_TAGS}\n", SDK_VERSIONS[1]);
    let is_built = std::fs::read_to_string(&marker).is_ok_and(|text| text == version);
    if is_built && built.is_file() {
        return Ok(built);
    }
    let source = place().join("coraza");
    // what a run before has left is edited already
    let _ = std::fs::remove_dir_all(&source);
    std::fs::create_dir_all(&source).during(format_args!("make `{}`", source.display()))?;
    let mut download = go_command(&place());
    download.args(["mod", "download", "-json", CORAZA]);
    let module: serde_json::Value = json(&mut download)?;
    let fetched = module["Dir"].as_str().unwrap_or_default();
    if fetched.is_empty() {
        return Err(Failure::Outside(format!(
            "go does not say where `{CORAZA}` is"
        )));
    }
    copy(Path::new(fetched), &source)?;
    edit(&source)?;
    build_go(&source, ".", &built, &["-mod=mod", CORAZA_TAGS])?;
    std::fs::write(&marker, version).during(format_args!("write `{}`", marker.display()))?;
    Ok(built)
}

/// Copies a tree; files of the module cache cannot be written to, and copies can.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let entries = std::fs::read_dir(from);
    for entry in entries.during(format_args!("read `{}`", from.display()))? {
        let entry = entry.during(format_args!("read `{}`", from.display()))?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            std::fs::create_dir_all(&copied).during(format_args!("make `{}`", copied.display()))?;
            copy(&path, &copied)?;
            continue;
        }
        let content = std::fs::read(&path).during(format_args!("read `{}`", path.display()))?;
        std::fs::write(&copied, content).during(format_args!("write `{}`", copied.display()))?;
    }
    Ok(())
}

/// The two edits.
fn edit(directory: &Path) -> Result<(), Failure> {
    let entries = std::fs::read_dir(directory);
    for entry in entries.during(format_args!("read `{}`", directory.display()))? {
        let path = entry.during("read a directory")?.path();
        if path.is_dir() {
            edit(&path)?;
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let is_source = path.extension().is_some_and(|it| it == "go") || name == Some("go.mod");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if !is_source {
            continue;
        }
        let mut edited = text.replace(
            &format!("{} {}", SDK[0], SDK_VERSIONS[0]),
            &format!("{} {}", SDK[1], SDK_VERSIONS[1]),
        );
        edited = edited.replace(SDK[0], SDK[1]);
        if name == Some("main.go") {
            edited = edited.replace("func main() {", "func main() {}\n\nfunc init() {");
        }
        if edited != text {
            std::fs::write(&path, edited).during(format_args!("write `{}`", path.display()))?;
        }
    }
    Ok(())
}
