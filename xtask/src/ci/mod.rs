//! `cargo xtask ci`: everything that has to be green, in one command.
//!
//! Steps run in the order in which they usually fail (cheap first), and a failing step does not
//! hide the following ones. There is one build profile and one set of features: clippy and the
//! documentation share what `check` makes, tests are built once. The lock file is taken as it is
//! (`--locked`).

mod environment;
mod failures;
mod hang;
mod ignored;
mod outcome;

use crate::testbed;
use crate::tidy;
use failures::Failures;
use hang::Running;
use outcome::TestCount;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::{filters, need, program, root};

/// Programs without which a test cannot do its work: a real origin, real clients, what issues
/// certificates and speaks TLS, an ICAP server and an ICAP client, a front end, what lists the
/// members of a cluster, what reads metrics, the list of files for `tidy`, file systems that are
/// full, broken or frozen, networks and mounts of the test's own, what sets a program's clock, what
/// counts instructions, what runs the programs of `docs/`, terminals, package managers, and what
/// reads man pages and completions.
const PROGRAMS: [&str; 33] = [
    "nginx",
    "curl",
    "nghttp",
    "chromium",
    "valgrind",
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
    "libfaketime.so.1",
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

/// Lines that were read and not yet passed on.
const LINES_WAITING_MAX: usize = 1000;

/// What a step hands back: a remark for the table.
type Remark = Result<String, Failure>;

/// Name and work.
type Step = (&'static str, fn() -> Remark);

const STEPS: [Step; 8] = [
    ("fmt", fmt),
    ("tidy", house_rules),
    ("clippy", clippy),
    ("test", test),
    ("count", count),
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
    let mut details = Vec::new();
    println!("\n{:<14} {:>8}  result", "step", "seconds");
    for done in all {
        let result = match &done.remark {
            Ok(remark) if remark.is_empty() => "ok".to_owned(),
            Ok(remark) => format!("ok, {remark}"),
            Err(failure) => format!("FAILED: {failure}"),
        };
        let (name, took) = (done.name, done.took.as_secs_f64());
        let mut lines = result.lines();
        println!(
            "{name:<14} {took:>8.1}  {}",
            lines.next().unwrap_or_default()
        );
        details.extend(lines.map(str::to_owned));
    }
    println!("{:<14} {:>8.1}", "total", total.as_secs_f64());
    details.iter().for_each(|line| println!("{line}"));
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
    need::pebble()?;
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

/// What a request costs the program that the tests use, in instructions, system calls and
/// allocations: no more than the newest record has, and 2 per cent.
fn count() -> Remark {
    let arguments = ["count", "--check"];
    testbed::run(&arguments.map(str::to_owned)).map(|()| String::new())
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
    let (success, count, failures) = cargo_test(&["--no-fail-fast".to_owned()])?;
    let list = std::fs::read_to_string(root::directory().join("xtask/ignored-tests.txt"))
        .during("read xtask/ignored-tests.txt")?;
    let complaints = ignored::compare(&list, &count.ignored);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if count.passed == 0 || count.filtered_out > 0 || !complaints.is_empty() {
        return Err(Failure::Refused(format!("not every test was run; {count}")));
    }
    if success {
        return Ok(count.to_string());
    }
    let names: Vec<&str> = failures.names().collect();
    let names = names.join(", ");
    let text = failures.text().join("\n");
    if passes_alone(&failures)? {
        let remark = format!("{count}, of which passed when run again, alone: {names}\n{text}");
        return Ok(remark);
    }
    let failed = format!("cargo test failed: {names}; {count}\n{text}");
    Err(Failure::Refused(failed))
}

/// Whether failed tests pass when they are run a second time without others beside them.
fn passes_alone(failures: &Failures) -> Result<bool, Failure> {
    let Some(arguments) = failures.rerun() else {
        return Ok(false);
    };
    println!("\n==> test, what failed, alone");
    let (success, count, _) = cargo_test(&arguments)?;
    Ok(success && count.passed >= failures.names().count() as u64)
}

/// Runs tests, passes on what they print, and says whether all passed.
fn cargo_test(arguments: &[String]) -> Result<(bool, TestCount, Failures), Failure> {
    // both streams by one pipe: names of targets are on one of them, results on the other
    let (output, input) = std::io::pipe().during("make a pipe")?;
    let mut command = environment::cargo();
    command.args(["test", "--workspace", "--locked"]);
    command.args(arguments).stdin(Stdio::null());
    command.stderr(input.try_clone().during("make a pipe")?);
    let child = command.stdout(input).spawn();
    let mut child = child.during("start cargo test")?;
    // it has the writing ends, which would keep the pipe open
    drop(command);
    let (mut count, mut failures) = (TestCount::default(), Failures::default());
    let mut running = Running::default();
    let mut out = std::io::stdout().lock();
    let lines = lines_of(output);
    loop {
        match lines.recv_timeout(hang::QUIET_MAX) {
            Ok(line) => {
                let line = line.during("read what cargo test prints")?;
                let line = String::from_utf8_lossy(&line);
                writeln!(out, "{line}").during("pass on what cargo test prints")?;
                count.line(&line);
                failures.line(&line);
                running.line(&line);
            }
            Err(RecvTimeoutError::Timeout) if running.is_under_way() => {
                failures.hang(running.hanging());
                running = Running::default();
                hang::kill_descendants(child.id());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().during("wait for cargo test")?;
    Ok((status.success(), count, failures))
}

/// The lines of a pipe, read by a thread, so that it can be waited for them in time.
fn lines_of(pipe: PipeReader) -> Receiver<std::io::Result<Vec<u8>>> {
    let (sender, lines) = sync_channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn finish(what: &str, command: &mut Command) -> Remark {
    let status = command.stdin(Stdio::null()).status();
    let status = status.during(format_args!("run {what}"))?;
    if status.success() {
        return Ok(String::new());
    }
    Err(Failure::Refused(format!("{what} ended with {status}")))
}
