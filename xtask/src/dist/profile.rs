//! `cargo xtask profile`: measures how often each part of weir runs, for releases that are compiled
//! with it.
//!
//! The program counts for itself while benchmarks request hits, forwarded responses and fills of
//! it, and hits under TLS. What they do not request is compiled as without a profile.

use crate::testbed;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::program::profile::{self, Origin};
use xtask::{files, root};

/// Benchmarks that load it; each is measured once, and no connection is held idle.
const TRAINING: [&str; 2] = ["peers", "tls"];

/// The variable of the environment by which programs write their counts to another place.
const ELSEWHERE: &str = "LLVM_PROFILE_FILE";

/// Makes the profile anew. It takes half an hour on two cores.
///
/// # Errors
/// `llvm-profdata` is missing, counts would be written elsewhere, the source is changed, weir
/// cannot be built, a benchmark fails, or it left no counts.
pub(crate) fn run() -> Result<(), Failure> {
    let merger = find_merger()?;
    if std::env::var_os(ELSEWHERE).is_some() {
        let text = format!("{ELSEWHERE} is set: counts would be written there; unset it");
        return Err(Failure::Refused(text));
    }
    profile::refuse_changed_source()?;
    let origin = Origin::now()?;
    let place = root::target().join("profile");
    let counts = place.join("counts");
    let program = build(&place.join("build"), &counts)?;
    // macros and scripts of the build counted, too
    if counts.exists() {
        fs::remove_dir_all(&counts).during(format_args!("remove `{}`", counts.display()))?;
    }
    for benchmark in TRAINING {
        load(benchmark, &program, &place)?;
    }
    if !counts.exists() {
        let text = format!("weir left no counts in `{}`", counts.display());
        return Err(Failure::Outside(text));
    }
    merge(&merger, &files::list(&counts)?)?;
    origin.write()
}

/// Finds the program of the toolchain that adds up counts: it has to understand what the compiler's
/// own version of LLVM writes.
fn find_merger() -> Result<PathBuf, Failure> {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(root::directory());
    let libraries = output(rustc.args(["--print", "target-libdir"]))?;
    let merger = Path::new(libraries.trim()).with_file_name("bin/llvm-profdata");
    if merger.is_file() {
        return Ok(merger);
    }
    Err(Failure::Outside(format!(
        "not installed: {}\nhint: `rustup component add llvm-tools`",
        merger.display()
    )))
}

/// Builds a weir that counts, and leaves its counts in a directory when it ends.
fn build(target: &Path, counts: &Path) -> Result<PathBuf, Failure> {
    let flag = format!("-Cprofile-generate={}", counts.display());
    let mut cargo = root::cargo();
    cargo
        .args(["build", "--release", "--locked", "-p", "weir-cli"])
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_ENCODED_RUSTFLAGS", flag)
        // the names of functions depend on it
        .env_remove("CARGO_BUILD_TARGET")
        .stderr(Stdio::inherit());
    output(&mut cargo)?;
    Ok(target.join("release/weir"))
}

/// Has a benchmark measure that weir.
fn load(benchmark: &str, program: &Path, place: &Path) -> Result<(), Failure> {
    let record = place.join(benchmark).with_extension("json");
    let (program, record) = (program.to_string_lossy(), record.to_string_lossy());
    let once = [benchmark, "--only", "weir", "--rounds", "1", "--idle", "0"];
    let arguments = [&once[..], &["--weir", &program, "--out", &record]].concat();
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    testbed::run(&arguments)
}

/// Adds up counts. Functions that never ran are left out, or they would be compiled for size.
fn merge(merger: &Path, counts: &[PathBuf]) -> Result<(), Failure> {
    let file = profile::file();
    let mut command = Command::new(merger);
    command.args(["merge", "--sparse", "-o"]).arg(&file);
    output(command.args(counts))?;
    let bytes = file.metadata().during("look at the profile")?.len();
    println!("{} ({bytes} bytes)", file.display());
    Ok(())
}
