//! Programs that chores and tests need, and how to get them on Debian.
//!
//! A missing program is installed when that is possible (root, and `apt-get` is there) and named
//! otherwise: nothing passes because something was not there to fail.

use crate::command::output;
use crate::failure::Failure;
use crate::root;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program and the Debian package that has it.
pub type Need = (&'static str, &'static str);

/// Every program that a chore or a test may need.
const KNOWN: &[Need] = &[
    ("nginx", "nginx"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("git", "git"),
    ("mkfs.ext4", "e2fsprogs"),
    ("fsfreeze", "util-linux"),
    ("mount", "mount"),
    ("chromium", "chromium"),
    ("valgrind", "valgrind"),
    ("wrk", "wrk"),
    ("h2load", "nghttp2-client"),
    ("nghttp", "nghttp2-client"),
    ("haproxy", "haproxy"),
    ("caddy", "caddy"),
    ("varnishd", "varnish"),
    ("squid", "squid"),
    ("etcd", "etcd-server"),
    ("dnsmasq", "dnsmasq-base"),
    ("tmux", "tmux"),
    ("c-icap", "c-icap"),
    ("virus_scan.so", "libc-icap-mod-virus-scan"),
    ("libfaketime.so.1", "libfaketime"),
    ("clamd", "clamav-daemon"),
    // its modules cache, cache_disk, proxy and proxy_http, and htcacheclean, come with it
    ("apache2", "apache2"),
    ("traffic_server", "trafficserver"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("tc", "iproute2"),
    ("timeout", "coreutils"),
    ("go", "golang-go"),
    ("python3", "python3"),
    ("pip3", "python3-pip"),
    ("npm", "npm"),
    ("apt-cache", "apt"),
    // promtool comes with it
    ("prometheus", "prometheus"),
    ("groff", "groff-base"),
    ("zsh", "zsh"),
    ("node", "nodejs"),
    ("fish", "fish"),
    ("chroot", "coreutils"),
    ("cmp", "diffutils"),
    ("dpkg-deb", "dpkg"),
    ("gzip", "gzip"),
    ("lintian", "lintian"),
    ("mmdebstrap", "mmdebstrap"),
    ("objcopy", "binutils"),
    ("runc", "runc"),
    ("systemd-analyze", "systemd"),
    ("tar", "tar"),
    ("umoci", "umoci"),
];

/// Where daemons, Go and libraries to load are kept; not all of it is on every `PATH`.
const MORE_DIRECTORIES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    // where the archives of go.dev are unpacked
    "/usr/local/go/bin",
    // the services of c-icap
    "/usr/lib/x86_64-linux-gnu/c_icap",
    // what gives a program another time than the machine's
    "/usr/lib/x86_64-linux-gnu/faketime",
];

/// The oldest Go that builds the filters: it fetches the one that they name by itself.
const GO_MIN: (u32, u32) = (1, 21);

/// Finds a program on `PATH` or where Debian keeps daemons.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Makes sure that all of these programs are there: `cargo xtask need PROGRAM...`
///
/// # Errors
/// A program is not known, or a package is missing that cannot be installed from here.
pub fn programs(names: &[impl AsRef<str>]) -> Result<(), Failure> {
    let needs = names.iter().map(|name| known(name.as_ref()));
    let needs = needs.collect::<Result<Vec<Need>, Failure>>()?;
    let packages = packages_missing(&needs);
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Outside(format!(
            "not installed: {list}\nhint: as root, `apt-get install {list}`"
        )));
    }
    if find("apt-get").is_none() {
        return Err(Failure::Outside(format!(
            "not installed, and there is no `apt-get` to get them: {list}"
        )));
    }
    eprintln!("installing {list}");
    apt_get(&["update"])?;
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&packages);
    apt_get(&install)?;
    match packages_missing(&needs).as_slice() {
        [] => Ok(()),
        missing => Err(Failure::Outside(format!(
            "still missing after installing: {}",
            missing.join(" ")
        ))),
    }
}

/// Makes sure that there is a Go that builds the filters.
///
/// # Errors
/// There is none, and none can be installed from here.
pub fn go() -> Result<(), Failure> {
    programs(&["go"])?;
    let mut go = Command::new(find("go").unwrap_or_else(|| "go".into()));
    let text = output(go.args(["env", "GOVERSION"]))?;
    if go_version(&text).is_some_and(|version| version >= GO_MIN) {
        return Ok(());
    }
    let (major, minor) = GO_MIN;
    Err(Failure::Outside(format!(
        "this Go is too old: {}\nhint: install {major}.{minor} or later from https://go.dev/dl",
        text.trim()
    )))
}

/// Pebble, the authority by which implementations of ACME are tested, and its version: that of
/// Debian 12 knows no renewal information.
const PEBBLE: &str = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.3";

/// Makes sure that Pebble is there, in a folder of `target/`; its path.
///
/// # Errors
/// It cannot be built from here.
pub fn pebble() -> Result<PathBuf, Failure> {
    let folder = root::directory()
        .join("target/pebble")
        .join(version_of(PEBBLE));
    let program = folder.join("pebble");
    if program.is_file() {
        return Ok(program);
    }
    go()?;
    eprintln!("building {PEBBLE}");
    let mut install = Command::new(find("go").unwrap_or_else(|| "go".into()));
    install.args(["install", PEBBLE]).env("GOBIN", &folder);
    output(install.stderr(Stdio::inherit()))?;
    Ok(program)
}

/// The version in the name of a Go module.
fn version_of(module: &str) -> &str {
    module.split_once('@').map_or("", |(_, version)| version)
}

/// Major and minor of `go1.26.8`.
fn go_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix("go")?.split('.');
    let digits = |part: &str| {
        part.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let mut number = || digits(parts.next()?).parse().ok();
    Some((number()?, number()?))
}

/// Makes sure that Rust can build for this target.
///
/// # Errors
/// It cannot, and `rustup` cannot be run or does not add it.
pub fn target(name: &str) -> Result<(), Failure> {
    let mut rustc = Command::new("rustc");
    let place = output(rustc.args(["--print", "target-libdir", "--target", name]))?;
    if PathBuf::from(place.trim()).is_dir() {
        return Ok(());
    }
    if find("rustup").is_none() && home_rustup().is_none() {
        return Err(Failure::Outside(format!(
            "Rust cannot build for {name}, and there is no `rustup` to add that\n\
             hint: install the standard library for {name}"
        )));
    }
    let rustup = find("rustup").or_else(home_rustup);
    let mut rustup = Command::new(rustup.unwrap_or_else(|| "rustup".into()));
    rustup
        .args(["target", "add", name])
        .stderr(Stdio::inherit());
    output(&mut rustup).map(drop)
}

/// `rustup` where its installer puts it.
fn home_rustup() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")?;
    let rustup = PathBuf::from(home).join(".cargo/bin/rustup");
    rustup.is_file().then_some(rustup)
}

/// The package of a program.
///
/// # Errors
/// It is not known.
pub fn known(program: &str) -> Result<Need, Failure> {
    let need = KNOWN.iter().find(|(name, _)| *name == program);
    need.copied().ok_or_else(|| {
        let names: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
        Failure::Usage(format!(
            "the package of `{program}` is not known; known programs: {}",
            names.join(", ")
        ))
    })
}

fn packages_missing(needs: &[Need]) -> Vec<&'static str> {
    let missing = needs.iter().filter(|(program, _)| find(program).is_none());
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn apt_get(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    // what it prints says how far it is
    output(command.stdout(Stdio::inherit()).stderr(Stdio::inherit())).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_listed_once_by_package() {
        let needs = [
            ("no-such-program-a", "b-package"),
            ("sh", "dash"),
            ("no-such-program-b", "b-package"),
            ("no-such-program-c", "a-package"),
        ];
        assert_eq!(packages_missing(&needs), ["a-package", "b-package"]);
    }

    #[test]
    fn version_of_go_has_two_numbers() {
        for (text, expected) in [
            ("go1.26.8\n", Some((1, 26))),
            ("go1.25rc1", Some((1, 25))),
            ("devel", None),
        ] {
            assert_eq!(go_version(text), expected, "{text}");
        }
    }

    #[test]
    fn program_without_a_known_package_is_a_usage_error() {
        assert_eq!(
            known("no-such-program").map_err(|failure| failure.exit_code()),
            Err(2)
        );
        assert_eq!(
            known("varnishd")
                .map(|(_, package)| package)
                .map_err(|failure| failure.exit_code()),
            Ok("varnish")
        );
    }
}
