//! `cargo xtask ci`: everything that has to be green, in one command.
//!
//! Steps run in the order in which they usually fail (cheap first), and a failing step does not
//! hide the following ones. There is one build profile and one set of features: clippy and the
//! documentation share what `check` makes, tests are built once. The lock file is taken as it is
//! (`--locked`).

mod environment;
mod ignored;
mod outcome;

use crate::tidy;
use outcome::TestCount;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::{filters, need, program, root};

/// Programs without which a test cannot do its work: a real origin, a real client, what issues
/// certificates and speaks TLS, an ICAP server and an ICAP client, a front end, what lists the
/// members of a cluster, what reads metrics, the list of files for `tidy`, file systems that are
/// full, broken or frozen, networks and mounts of the test's own, what runs the programs of
/// `docs/`, terminals, package managers, and what reads man pages and completions.
const PROGRAMS: [&str; 29] = [
    "nginx",
    "curl",
    "openssl",
    "c-icap",
    "squid",
    "haproxy",
    "etcd",
    "dnsmasq",
    "git",
    "mount",
    "mkfs.ext4",
    "fsfreeze",
    "ip",
    "nft",
    "tc",
    "unshare",
    "nsenter",
    "setpriv",
    "python3",
    "tmux",
    "pip3",
    "npm",
    "apt-cache",
    "dpkg-deb",
    "prometheus",
    "groff",
    "zsh",
    "fish",
    "node",
];

/// What a step hands back: a remark for the table.
type Remark = Result<String, Failure>;

/// Name and work.
type Step = (&'static str, fn() -> Remark);

const STEPS: [Step; 7] = [
    ("fmt", fmt),
    ("tidy", house_rules),
    ("clippy", clippy),
    ("test", test),
    ("dist", dist),
    ("doc", doc),
    ("fuzz build", fuzz_build),
];

struct StepResult {
    name: &'static str,
    took: Duration,
    remark: Remark,
}

/// Runs every step and prints a table of them.
///
/// # Errors
/// Names the steps that failed. Missing prerequisites end the run at once.
pub(crate) fn run() -> Result<(), Failure> {
    let begun = Instant::now();
    let first = perform(("prerequisites", prerequisites));
    let remark = first.remark?;
    let mut all = vec![StepResult {
        remark: Ok(remark),
        ..first
    }];
    for name in environment::settings() {
        println!("{name} is set in the environment; the steps run without it");
    }
    all.extend(STEPS.map(perform));
    print_table(&all, begun.elapsed());
    let failed = all.iter().filter(|done| done.remark.is_err());
    let failed: Vec<&str> = failed.map(|done| done.name).collect();
    match failed.join(", ") {
        names if names.is_empty() => Ok(()),
        names => Err(Failure::Refused(format!("ci failed in: {names}"))),
    }
}

fn perform((name, work): Step) -> StepResult {
    println!("\n==> {name}");
    let begun = Instant::now();
    let remark = work();
    let took = begun.elapsed();
    let verdict = match &remark {
        Ok(_) => "took".to_owned(),
        Err(failure) => format!("FAILED: {failure}; after"),
    };
    println!("<== {name} {verdict} {:.1} s", took.as_secs_f64());
    StepResult { name, took, remark }
}

fn print_table(all: &[StepResult], total: Duration) {
    println!("\n{:<14} {:>8}  result", "step", "seconds");
    for done in all {
        let result = match &done.remark {
            Ok(remark) if remark.is_empty() => "ok".to_owned(),
            Ok(remark) => format!("ok, {remark}"),
            Err(failure) => {
                let text = failure.to_string();
                format!("FAILED: {}", text.lines().next().unwrap_or_default())
            }
        };
        let (name, took) = (done.name, done.took.as_secs_f64());
        println!("{name:<14} {took:>8.1}  {result}");
    }
    println!("{:<14} {:>8.1}", "total", total.as_secs_f64());
}

fn prerequisites() -> Remark {
    // tests mount file systems and make network namespaces
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Outside(
            "the tests mount file systems and make network namespaces, which takes root\n\
             hint: run it as root, in a container or a virtual machine if you like"
                .to_owned(),
        ));
    }
    need::programs(&PROGRAMS)?;
    // filters of the tests
    need::go()?;
    need::target(filters::TARGET)?;
    let missing = ["fmt", "clippy"].into_iter().any(|part| !has_cargo(part));
    if missing {
        let mut rustup = Command::new("rustup");
        finish(
            "rustup",
            rustup.args(["component", "add", "rustfmt", "clippy"]),
        )?;
    }
    Ok(String::new())
}

fn has_cargo(part: &str) -> bool {
    output(environment::cargo().args([part, "--version"])).is_ok()
}

fn fmt() -> Remark {
    finish(
        "cargo fmt",
        environment::cargo().args(["fmt", "--all", "--check"]),
    )?;
    // the fuzz targets and the filters are workspaces of their own
    let mut fuzz = environment::cargo();
    fuzz.args(["fmt", "--check", "--manifest-path"]);
    finish("cargo fmt of the fuzz targets", fuzz.arg(fuzz_manifest()?))?;
    let mut rust = environment::cargo();
    rust.args(["fmt", "--all", "--check", "--manifest-path"]);
    rust.arg(filters::sources().join("rust/Cargo.toml"));
    finish("cargo fmt of the filters", &mut rust)
}

fn house_rules() -> Remark {
    tidy::run().map(|()| String::new())
}

/// With the program's feature that is off by default; the tests run without it.
fn clippy() -> Remark {
    let mut command = environment::cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--locked"]);
    command.args(["--features", "weir-cli/wasm"]);
    finish("cargo clippy", command.args(["--", "-D", "warnings"]))
}

/// Archives of the program that the tests use: they are made, compared, installed and run.
fn dist() -> Remark {
    let program = program::build_for_tests(&["--package", "weir-cli", "--bin", "weir"], "weir")?;
    let arguments = ["--check", "--program", &program];
    crate::dist::run(&arguments.map(str::to_owned)).map(|()| String::new())
}

fn doc() -> Remark {
    let mut command = environment::cargo();
    command.args(["doc", "--workspace", "--no-deps", "--locked"]);
    finish("cargo doc", command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// The fuzz targets must keep compiling. `check` needs neither a nightly toolchain nor a C++
/// compiler: the fuzzing engine is not linked, so its build script gets the path of a finished
/// one.
fn fuzz_build() -> Remark {
    let mut command = environment::cargo();
    command.args(["check", "--bins", "--locked", "--manifest-path"]);
    command
        .arg(fuzz_manifest()?)
        .env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a");
    finish("cargo check of the fuzz targets", &mut command)
}

fn fuzz_manifest() -> Result<PathBuf, Failure> {
    let manifest = root::directory().join("fuzz/Cargo.toml");
    if manifest.is_file() {
        return Ok(manifest);
    }
    let what = "fuzz/Cargo.toml is missing; the fuzz targets live there";
    Err(Failure::Refused(what.to_owned()))
}

fn test() -> Remark {
    let mut child = environment::cargo()
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .during("start cargo test")?;
    let mut count = TestCount::default();
    if let Some(pipe) = child.stdout.take() {
        let mut out = std::io::stdout().lock();
        for line in BufReader::new(pipe).lines() {
            let line = line.during("read what cargo test prints")?;
            writeln!(out, "{line}").during("pass on what cargo test prints")?;
            count.line(&line);
        }
    }
    let status = child.wait().during("wait for cargo test")?;
    let list = std::fs::read_to_string(root::directory().join("xtask/ignored-tests.txt"))
        .during("read xtask/ignored-tests.txt")?;
    let complaints = ignored::compare(&list, &count.ignored);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !status.success() {
        return Err(Failure::Refused(format!(
            "cargo test ended with {status}; {count}"
        )));
    }
    if count.passed == 0 || count.filtered_out > 0 || !complaints.is_empty() {
        return Err(Failure::Refused(format!("not every test was run; {count}")));
    }
    Ok(count.to_string())
}

fn finish(what: &str, command: &mut Command) -> Remark {
    let status = command.stdin(Stdio::null()).status();
    let status = status.during(format_args!("run {what}"))?;
    if status.success() {
        return Ok(String::new());
    }
    Err(Failure::Refused(format!("{what} ended with {status}")))
}
