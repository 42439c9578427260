//! `cargo xtask dist`: what people install, from one program: a Debian package, a tarball, and an
//! image for containers in the layout of OCI.
//!
//! The same commit makes the same bytes: times are that of the commit (`SOURCE_DATE_EPOCH`), owners
//! are numbers, and files are in the order of their names.

mod check;
mod deb;
mod image;
mod parts;
pub(crate) mod profile;
mod tarball;

use parts::Parts;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::program::profile::{compiler_flags, warn_if_stale};
use xtask::{need, root};

const USAGE: &str = "\
usage: cargo xtask dist [options]

  makes a Debian package, a tarball and an OCI image of weir in target/dist

      --program FILE  of this program; without it, one is built in release
      --check         twice, and compare bytes; lintian; install, upgrade, remove and purge the
                      package in a Debian tree (mmdebstrap); run the image (runc). Takes root
      --rebuild       build the program twice, too, and compare bytes
";

/// What the archives are made with.
const PROGRAMS: [&str; 6] = ["cmp", "dpkg-deb", "gzip", "objcopy", "tar", "umoci"];

#[derive(Default)]
struct Options {
    program: Option<PathBuf>,
    check: bool,
    rebuild: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--program" => {
                    let file = words.next().map(PathBuf::from);
                    let file = file.ok_or_else(|| usage("--program takes a file"))?;
                    options.program = Some(file);
                }
                "--check" => options.check = true,
                "--rebuild" => options.rebuild = true,
                other => return Err(usage(format!("`{other}` is not known"))),
            }
        }
        if options.program.is_some() && options.rebuild {
            return Err(usage("a given program is not built: leave out --rebuild"));
        }
        Ok(options)
    }
}

fn usage(what: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{what}\n{USAGE}"))
}

/// The archives of one run.
struct Archives {
    deb: PathBuf,
    tarball: PathBuf,
    image: PathBuf,
}

impl Archives {
    fn all(&self) -> [&Path; 3] {
        [&self.deb, &self.tarball, &self.image]
    }
}

/// Makes the archives, and checks them if the arguments say so.
///
/// # Errors
/// The command line is wrong, a program is missing or fails, or a check says no.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let [word] = arguments
        && matches!(word.as_str(), "--help" | "-h")
    {
        print!("{USAGE}");
        return Ok(());
    }
    let options = Options::parse(arguments)?;
    need::programs(&PROGRAMS)?;
    let place = root::directory().join("target/dist");
    fs::create_dir_all(&place).during(format_args!("make `{}`", place.display()))?;
    let program = match &options.program {
        Some(file) => file.clone(),
        None => built(&place, options.rebuild)?,
    };
    // a program that tests use is large and changes often: what it is packed in is made in seconds
    let is_fast = options.program.is_some();
    let archives = make(&place, &program, is_fast)?;
    if options.check {
        let again = place.join("again");
        fs::create_dir_all(&again).during(format_args!("make `{}`", again.display()))?;
        let second = make(&again, &program, is_fast)?;
        for (one, other) in archives.all().into_iter().zip(second.all()) {
            same(one, other)?;
        }
        fs::remove_dir_all(&again).during(format_args!("remove `{}`", again.display()))?;
        check::run(&archives)?;
    }
    for archive in archives.all() {
        let bytes = archive.metadata().during("look at an archive")?.len();
        println!("{} ({bytes} bytes)", archive.display());
    }
    Ok(())
}

/// All archives of a program, in a directory.
fn make(directory: &Path, program: &Path, is_fast: bool) -> Result<Archives, Failure> {
    let parts = Parts::make(program)?;
    Ok(Archives {
        deb: deb::make(&parts, directory, is_fast)?,
        tarball: tarball::make(&parts, directory, is_fast)?,
        image: image::make(&parts, directory)?,
    })
}

/// Builds the program, twice if asked. The paths of this machine are not in it.
fn built(place: &Path, is_twice: bool) -> Result<PathBuf, Failure> {
    let epoch = parts::epoch()?;
    warn_if_stale()?;
    let build = |name: &str| {
        let target = place.join(name);
        let replaced = replaced_paths(&target);
        let mut cargo = root::cargo();
        cargo
            .args(["build", "--release", "--locked", "-p", "weir-cli"])
            .env("CARGO_TARGET_DIR", &target)
            // separated so, paths may have spaces
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                rust_flags(&replaced).join("\u{1f}"),
            )
            .env("CFLAGS", c_flags(&replaced))
            .env("CC_SHELL_ESCAPED_FLAGS", "1")
            // what C has for `__DATE__` and `__TIME__`, which the allocator says of itself
            .env("SOURCE_DATE_EPOCH", epoch.to_string())
            // what a developer has set for other builds: another place for the program, and code
            // that depends on the build before
            .env_remove("CARGO_BUILD_TARGET")
            .env("CARGO_INCREMENTAL", "0")
            .stderr(std::process::Stdio::inherit());
        output(&mut cargo)?;
        Ok(target.join("release/weir"))
    };
    let program: PathBuf = build("build")?;
    if is_twice {
        let again: PathBuf = build("build-again")?;
        // what differs in debug information is not packed
        same(&parts::stripped(&program)?, &parts::stripped(&again)?)?;
    }
    Ok(program)
}

/// Paths of this machine, and what stands for them in the program; of several that a path begins
/// with, the last counts.
fn replaced_paths(target: &Path) -> Vec<(PathBuf, &'static str)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let all = [
        (home.unwrap_or_default(), "/cargo"),
        (root::directory(), "/weir"),
        (target.to_owned(), "/build"),
    ];
    // every path begins with an empty one
    let known = all.into_iter().filter(|(path, _)| path.is_absolute());
    known.collect()
}

fn rust_flags(replaced: &[(PathBuf, &str)]) -> Vec<String> {
    let maps = replaced.iter().map(|(path, new)| {
        let path = path.display();
        format!("--remap-path-prefix={path}={new}")
    });
    // it is a digest of all that is linked, debug information included, which is not packed
    let without_id = "-Clink-arg=-Wl,--build-id=none".to_owned();
    maps.chain([without_id]).chain(compiler_flags()).collect()
}

/// The same for libraries in C, behind what is set already.
fn c_flags(replaced: &[(PathBuf, &str)]) -> String {
    let mut flags = std::env::var("CFLAGS").unwrap_or_default();
    for (path, new) in replaced {
        // as a shell reads it
        let path = path.display().to_string().replace('\'', r"'\''");
        flags.push_str(&format!(" '-ffile-prefix-map={path}={new}'"));
    }
    flags
}

/// Fails unless two files have the same bytes.
fn same(one: &Path, other: &Path) -> Result<(), Failure> {
    let status = Command::new("cmp").arg(one).arg(other).status();
    if status.during("run `cmp`")?.success() {
        return Ok(());
    }
    let (one, other) = (one.display(), other.display());
    Err(Failure::Refused(format!(
        "made twice, it differs: `{one}` and `{other}`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_replaced_whatever_is_in_their_names() {
        let paths = replaced_paths(Path::new("/a b/it's"));
        assert_eq!(paths.last(), Some(&("/a b/it's".into(), "/build")));
        assert!(paths.iter().all(|(path, _)| path.is_absolute()));
        let flags = rust_flags(&paths);
        assert!(flags.contains(&"--remap-path-prefix=/a b/it's=/build".to_owned()));
        let flags = c_flags(&paths);
        let last = r" '-ffile-prefix-map=/a b/it'\''s=/build'";
        assert!(flags.ends_with(last), "{flags}");
    }
}
