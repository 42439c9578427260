//! The life of the package in a Debian tree: installed, upgraded, removed, purged. Upgrades keep
//! the configuration and the cache; removing keeps them; purging leaves nothing.

use super::served::Served;
use super::{must, origin, require};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

/// A version before all that there are.
const OLDER: &str = "0.0.1-1";

/// What an operator has made of the configuration.
const CONFIG: &str = "\
# mine
[[listener]]
address = \"127.0.0.1:0\"
[admin]
address = \"127.0.0.1:0\"
[access]
allow_destinations = [\"127.0.0.0/8\"]
[log]
access = \"/var/log/weir/access.log\"
";

/// What links the unit to the start of the system.
const ENABLED: &str = "etc/systemd/system/multi-user.target.wants/weir.service";

/// Starts a program in a tree, as a user of it.
const IN_TREE: &str = "mount -t proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && \
    exec chroot --userspec=weir:weir \"$0\" \"$@\"";

/// The longest that a first look may take: installed, started, and the page shows a saved byte.
const FIRST_LOOK: Duration = Duration::from_secs(60);

/// Goes through all of it; how long a first look takes, before which there is nothing of Weir.
pub(super) fn check(deb: &Path) -> Result<Duration, Failure> {
    let place = Workplace::make("debian")?;
    let tree = Tree::make(place.path().join("tree"))?;
    let older = older(deb, place.path())?;

    tree.install(&older)?;
    require(tree.dpkg_version()? == OLDER, || "another version".into())?;
    let passwd = tree.read("etc/passwd")?;
    require(passwd.contains("\nweir:x:"), || format!("users: {passwd}"))?;
    require(tree.has(ENABLED), || "the unit is not enabled".into())?;
    must(tree.run("systemd-analyze").args([
        "verify",
        "--man=no",
        "/usr/lib/systemd/system/weir.service",
    ]))?;
    tree.make_directories()?;
    must(&mut tree.as_user(&["check", "/etc/weir/weir.toml"]))?;

    fs::write(tree.path("etc/weir/weir.toml"), CONFIG).during("change the configuration")?;
    let origin = origin::start()?;
    let get = |expected: &str| {
        let serve = ["serve", "--config", "/etc/weir/weir.toml"];
        let served = Served::start(&mut tree.as_user(&serve))?;
        let status = served.get(origin)?;
        require(status.starts_with(expected), || {
            format!("Cache-Status in a Debian tree: {status}")
        })?;
        served.stop()
    };
    get("weir;fwd=uri-miss;fwd-status=200;stored")?;

    tree.install(deb)?;
    require(tree.dpkg_version()? != OLDER, || "not upgraded".into())?;
    require(tree.read("etc/weir/weir.toml")? == CONFIG, || {
        "an upgrade has changed the configuration".into()
    })?;
    get("weir;hit;")?;

    must(tree.run("dpkg").args(["--remove", "weir"]))?;
    require(!tree.has("usr/bin/weir"), || "not removed".into())?;
    require(tree.read("etc/weir/weir.toml")? == CONFIG, || {
        "to remove the package has changed the configuration".into()
    })?;
    tree.install(deb)?;
    get("weir;hit;")?;

    must(tree.run("dpkg").args(["--purge", "weir"]))?;
    for path in [
        "etc/weir",
        ENABLED,
        "var/cache/weir",
        "var/cache/private/weir",
        "var/lib/weir",
        "var/log/weir",
        "usr/share/doc/weir",
    ] {
        require(!tree.has(path), || format!("/{path} is left behind"))?;
    }
    first_look(&tree, deb)
}

/// As the first screen of the README has it, with ports that the system chooses: installed,
/// started, and a page requested twice.
fn first_look(tree: &Tree, deb: &Path) -> Result<Duration, Failure> {
    let origin = origin::start()?;
    let begun = Instant::now();
    tree.install(deb)?;
    let served = Served::start(&mut tree.as_user(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--allow-destination",
        "127.0.0.0/8",
    ]))?;
    for _ in 0..2 {
        served.get(origin)?;
    }
    served.wait_until_saved()?;
    let took = begun.elapsed();
    served.stop()?;
    require(took < FIRST_LOOK, || format!("a first look takes {took:?}"))?;
    Ok(took)
}

/// The same package as an older version, with another configuration.
fn older(deb: &Path, place: &Path) -> Result<PathBuf, Failure> {
    let content = place.join("older");
    must(
        Command::new("dpkg-deb")
            .arg("--raw-extract")
            .arg(deb)
            .arg(&content),
    )?;
    let change = |name: &str, change: &dyn Fn(String) -> String| {
        let file = content.join(name);
        let text = fs::read_to_string(&file).during(format_args!("read `{name}`"))?;
        fs::write(&file, change(text)).during(format_args!("write `{name}`"))
    };
    change("DEBIAN/control", &|text| {
        let line = |line: &str| match line.starts_with("Version: ") {
            true => format!("Version: {OLDER}\n"),
            false => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    })?;
    change("etc/weir/weir.toml", &|text| format!("# older\n{text}"))?;
    let file = place.join("older.deb");
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zgzip", "-z1", "--build"]);
    must(build.arg(&content).arg(&file))?;
    Ok(file)
}

/// A small Debian with systemd, of the release and the mirror of this machine.
struct Tree(PathBuf);

impl Tree {
    fn make(path: PathBuf) -> Result<Self, Failure> {
        let release = fs::read_to_string("/etc/os-release").during("read /etc/os-release")?;
        let mut lines = release.lines();
        let suite = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let suite = suite.ok_or_else(|| {
            Failure::Outside("/etc/os-release has no VERSION_CODENAME; is this Debian?".to_owned())
        })?;
        let mut mmdebstrap = Command::new("mmdebstrap");
        mmdebstrap
            .args(["--quiet", "--variant=essential", "--include=procps,systemd"])
            .arg(suite.trim_matches('"'))
            .arg(&path)
            .args(apt_sources());
        output(&mut mmdebstrap)?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Whether there is something, also a link that leads nowhere.
    fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    fn read(&self, name: &str) -> Result<String, Failure> {
        fs::read_to_string(self.path(name)).during(format_args!("read `{name}`"))
    }

    /// A program of the tree, as root.
    fn run(&self, program: &str) -> Command {
        let mut chroot = Command::new("chroot");
        chroot
            .arg(&self.0)
            .arg(program)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        chroot
    }

    fn install(&self, deb: &Path) -> Result<(), Failure> {
        fs::copy(deb, self.path("tmp/weir.deb")).during("copy the package")?;
        let mut dpkg = self.run("dpkg");
        // as an unattended upgrade is: a file that both have changed stays as it is
        dpkg.args(["--force-confdef", "--force-confold"]);
        must(dpkg.args(["--install", "/tmp/weir.deb"])).map(drop)
    }

    fn dpkg_version(&self) -> Result<String, Failure> {
        let mut query = self.run("dpkg-query");
        must(query.args(["--show", "--showformat=${Version}", "weir"]))
    }

    /// What systemd makes before it starts the service: with `DynamicUser=` they are in `private`.
    /// There only root comes, and the service sees them mounted; here the user comes too.
    fn make_directories(&self) -> Result<(), Failure> {
        let script = "for top in /var/cache /var/lib /var/log; do \
            install -d $top/private && install -d -o weir -g weir $top/private/weir && \
            ln -s private/weir $top/weir || exit 1; done; install -d -o weir -g weir /run/weir";
        must(self.run("sh").args(["-euc", script])).map(drop)
    }

    /// `weir` as its user, with the environment that the unit gives it.
    fn as_user(&self, arguments: &[&str]) -> Command {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "sh", "-c", IN_TREE])
            .arg(&self.0)
            .arg("/usr/bin/weir")
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("XDG_CACHE_HOME", "/var/cache")
            .env("XDG_RUNTIME_DIR", "/run")
            .env("STATE_DIRECTORY", "/var/lib/weir");
        unshare
    }
}

/// The files that say where this machine has its packages from.
fn apt_sources() -> Vec<PathBuf> {
    let lists = xtask::files::list(Path::new("/etc/apt/sources.list.d")).unwrap_or_default();
    let is_source = |path: &PathBuf| {
        let extension = path.extension().and_then(|it| it.to_str());
        let is_one = matches!(extension, Some("list" | "sources"));
        is_one && path.metadata().is_ok_and(|it| it.len() > 0)
    };
    let one = PathBuf::from("/etc/apt/sources.list");
    [one].into_iter().chain(lists).filter(is_source).collect()
}
