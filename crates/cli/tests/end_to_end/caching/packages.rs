//! The preset `packages` between the clients that people have, apt, pip, npm and cargo, and a
//! mirror that says nothing of lifetimes: nginx as it is installed.

use crate::support::{Config, Nginx, Weir, content};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// As much as a person installs at once.
const APT_BYTES: u64 = 100_000_000;

/// Content of a package that is made up.
const MADE_BYTES: usize = 1 << 20;

/// Packages that each Debian has installed. Their files are packed again, as a test has no network.
const INSTALLED: [&str; 10] = [
    "apt",
    "bash",
    "coreutils",
    "dpkg",
    "findutils",
    "grep",
    "libc6",
    "perl-base",
    "tar",
    "util-linux",
];

/// What these have at least, compressed: more than a few made up of their names.
const INSTALLED_BYTES: u64 = 10_000_000;

struct Mirror {
    nginx: Nginx,
    weir: Weir,
    folder: TempDir,
}

impl Mirror {
    fn new() -> Self {
        let config = Config::forward()
            .set("log.access", "\"access.log\"")
            .set("log.format", "\"json\"")
            .set("cache.memory", "\"256MiB\"")
            .rule("preset = \"packages\"\nhost = [\"127.0.0.1\"]");
        Self {
            nginx: Nginx::start("index index.html;"),
            weir: Weir::serve(&config),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Ends the proxy; the lines of its access log.
    fn lines(mut self) -> Vec<Value> {
        assert_eq!(self.weir.stop().code(), Some(0));
        let log = std::fs::read_to_string(self.weir.file("access.log")).expect("a log");
        let lines = log.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }
}

/// What a program prints; it must end well.
#[track_caller]
fn run(command: &mut Command) -> String {
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Verdicts of the requests whose target ends so, in their order.
fn verdicts<'a>(lines: &'a [Value], end: &str) -> Vec<&'a str> {
    let lines = lines.iter();
    let found = lines.filter(|line| line["target"].as_str().is_some_and(|it| it.ends_with(end)));
    found.filter_map(|line| line["verdict"].as_str()).collect()
}

/// Packs the files of an installed package into a package of its name.
fn repack(pool: &Path, package: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut list = Command::new("dpkg-query");
    let list = run(list.arg("--listfiles").arg(package));
    for file in list.lines().map(Path::new) {
        // images of containers leave documentation out, and directories come with their files
        if !file.symlink_metadata().is_ok_and(|it| it.is_file()) {
            continue;
        }
        let to = folder
            .path()
            .join(file.strip_prefix("/").expect("an absolute path"));
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(file, to).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let fields = [
        "Package",
        "Version",
        "Architecture",
        "Maintainer",
        "Description",
    ];
    let format: String = fields.map(|it| format!("{it}: ${{{it}}}\\n")).concat();
    let mut control = Command::new("dpkg-query");
    let control = run(control.args(["--show", "--showformat", &format, package]));
    let debian = folder.path().join("DEBIAN");
    std::fs::create_dir(&debian).expect("a folder");
    std::fs::write(debian.join("control"), control).expect("a file");
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zgzip", "-z1", "--build"]);
    // it gives the file the name that it has in a pool
    run(dpkg.arg(folder.path()).arg(pool));
}

/// Makes up a package with random content. Characters of its version are escaped in URLs, or are
/// not.
fn make(pool: &Path, number: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let part = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(part("DEBIAN")).expect("a folder");
    std::fs::create_dir_all(part("usr/share")).expect("a folder");
    let (name, version) = (format!("weir-test-{number}"), "1:2.0~rc1+dfsg-1");
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: none <none@a.example>\n\
         Description: content of a test\n"
    );
    std::fs::write(part("DEBIAN/control"), control).expect("a file");
    std::fs::write(part("usr/share/content"), content(number, MADE_BYTES)).expect("a file");
    let file = pool.join(format!("{name}_2.0~rc1+dfsg-1_all.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Znone", "--build"]);
    run(dpkg.arg(folder.path()).arg(file));
}

/// Fills a pool with packages of [`APT_BYTES`] in all: the list of them, how many they are, and
/// how much of it is of packages that are installed.
fn fill(nginx: &Nginx) -> (String, usize, String) {
    let pool = nginx.path("debian/pool/main");
    std::fs::create_dir_all(&pool).expect("a folder");
    for package in INSTALLED {
        repack(&pool, package);
    }
    let debs = || {
        let entries = std::fs::read_dir(&pool).expect("a folder");
        let mut paths: Vec<_> = entries.map(|it| it.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let bytes = |path: &PathBuf| path.metadata().expect("a file").len();
    let real = debs();
    let mut sum: u64 = real.iter().map(bytes).sum();
    assert_eq!(real.len(), INSTALLED.len(), "{real:?}");
    assert!(sum >= INSTALLED_BYTES, "{sum}");
    let origin = format!("{} packages with {sum} bytes of this machine", real.len());
    for number in 1.. {
        if sum >= APT_BYTES {
            break;
        }
        make(&pool, number);
        sum += MADE_BYTES as u64;
    }
    let mut list = String::new();
    let all = debs();
    for deb in &all {
        let control = run(Command::new("dpkg-deb").arg("--field").arg(deb));
        let name = deb.file_name().expect("a file").to_string_lossy();
        let (size, sum) = (bytes(deb), sha256(deb));
        writeln!(
            list,
            "{}\nFilename: pool/main/{name}\nSize: {size}\nSHA256: {sum}\n",
            control.trim_end()
        )
        .expect("a string takes everything");
    }
    (list, all.len(), origin)
}

fn sha256(file: &Path) -> String {
    let printed = run(Command::new("sha256sum").arg("--").arg(file));
    // a name with a backslash would be escaped
    printed.split(' ').next().unwrap_or_default().to_owned()
}

/// Puts the list where apt looks for it: under its name and under its digest.
fn publish(nginx: &Nginx, list: &str) {
    let folder = "debian/dists/stable/main/binary-amd64";
    let file = nginx.file(&format!("{folder}/Packages"), list.as_bytes());
    let (sum, size) = (sha256(&file), list.len());
    nginx.file(&format!("{folder}/by-hash/SHA256/{sum}"), list.as_bytes());
    let release = format!(
        "Suite: stable\nCodename: stable\nComponents: main\nArchitectures: amd64\n\
         Acquire-By-Hash: yes\nSHA256:\n {sum} {size} main/binary-amd64/Packages\n"
    );
    nginx.file("debian/dists/stable/Release", release.as_bytes());
}

/// `apt-get update`, then all packages, as a machine that has nothing yet.
fn apt_run(mirror: &Mirror, run_name: &str) {
    let machine = mirror.path(run_name);
    for folder in [
        "etc/apt/apt.conf.d",
        "etc/apt/preferences.d",
        "etc/apt/sources.list.d",
        "state/lists/partial",
        "cache/archives/partial",
        "log",
        "here",
    ] {
        std::fs::create_dir_all(machine.join(folder)).expect("a folder");
    }
    let write = |name: &str, text: &str| std::fs::write(machine.join(name), text).expect("a file");
    let source = format!(
        "deb [trusted=yes] {} stable main\n",
        mirror.nginx.url("/debian")
    );
    write("etc/apt/sources.list", &source);
    write("status", "");
    let machine_path = machine.display();
    let proxy = mirror.weir.address();
    let settings = format!(
        "Dir \"{machine_path}\";\nDir::State \"state\";\nDir::State::status \"{machine_path}/status\";\n\
         Dir::Cache \"cache\";\nDir::Log \"log\";\nAPT::Architecture \"amd64\";\n\
         APT::Architectures {{ \"amd64\"; }};\nAPT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\nAcquire::http::Proxy \"http://{proxy}\";\n\
         Acquire::http::User-Agent \"{run_name}\";\n"
    );
    write("apt.conf", &settings);
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("APT_CONFIG", machine.join("apt.conf"));
        apt.current_dir(machine.join("here"));
        apt
    };
    run(apt().arg("update"));
    let list = run(Command::new("apt-cache")
        .arg("pkgnames")
        .env("APT_CONFIG", machine.join("apt.conf")));
    let mut names: Vec<&str> = list.lines().collect();
    names.sort_unstable();
    // dependencies are not asked for: the mirror has no whole Debian
    run(apt().arg("download").args(names));
}

#[test]
fn second_apt_run_of_100_mb_is_at_least_95_percent_hits() {
    let mirror = Mirror::new();
    let (list, count, origin) = fill(&mirror.nginx);
    publish(&mirror.nginx, &list);
    for run_name in ["first", "second"] {
        apt_run(&mirror, run_name);
        let here = std::fs::read_dir(mirror.path(run_name).join("here"));
        assert_eq!(here.expect("a folder").count(), count, "{run_name}");
    }
    let lines = mirror.lines();
    let second = lines.iter().filter(|line| line["user_agent"] == "second");
    let second: Vec<&Value> = second.collect();
    let bytes = |line: &&Value| line["body_bytes"].as_u64().unwrap_or(0);
    let hits = second
        .iter()
        .filter(|line| line["verdict"] == "hit")
        .copied();
    let hits: Vec<&Value> = hits.collect();
    let (all_bytes, hit_bytes): (u64, u64) =
        (second.iter().map(bytes).sum(), hits.iter().map(bytes).sum());
    let found = format!(
        "hits: {} of {}, bytes: {hit_bytes} of {all_bytes}; {origin}",
        hits.len(),
        second.len()
    );
    assert!(all_bytes >= APT_BYTES, "{found}");
    assert!(hit_bytes * 100 >= all_bytes * 95, "{found}");
    assert!(hits.len() * 100 >= second.len() * 95, "{found}");
    let debs = hits.iter().filter(|line| {
        let target = line["target"].as_str().unwrap_or_default();
        Path::new(target).extension().is_some_and(|it| it == "deb")
    });
    assert_eq!(debs.count(), count, "each package is a hit; {found}");
    // what names the lists is validated: apt must see a new release at once
    let release = verdicts(&lines, "/dists/stable/Release");
    assert_eq!(release, ["uri-miss", "stale"]);
}

#[test]
fn second_pip_download_is_a_hit() {
    let mirror = Mirror::new();
    let source = tempfile::tempdir().expect("a folder");
    let info = source.path().join("weirdemo-1.0.dist-info");
    std::fs::create_dir(&info).expect("a folder");
    for (name, text) in [
        (
            "METADATA",
            "Metadata-Version: 2.1\nName: weirdemo\nVersion: 1.0\n",
        ),
        (
            "WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        ),
        ("RECORD", ""),
    ] {
        std::fs::write(info.join(name), text).expect("a file");
    }
    let wheel = "weirdemo-1.0-py3-none-any.whl";
    let packages = mirror.nginx.path("packages");
    std::fs::create_dir(&packages).expect("a folder");
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"]).arg(packages.join(wheel));
    run(zip.arg(&info).current_dir(source.path()));
    let page = format!("<!DOCTYPE html><a href=\"../../packages/{wheel}\">{wheel}</a>");
    mirror
        .nginx
        .file("simple/weirdemo/index.html", page.as_bytes());
    for run_name in ["first", "second"] {
        let mut pip = Command::new("pip3");
        pip.args(["--isolated", "download", "--no-deps", "--no-cache-dir"])
            .args(["--disable-pip-version-check", "--trusted-host", "127.0.0.1"])
            .args(["--index-url", &mirror.nginx.url("/simple/")])
            .args(["--proxy", &format!("http://{}", mirror.weir.address())])
            .arg("--dest")
            .arg(mirror.path(run_name))
            .arg("weirdemo");
        run(&mut pip);
        assert!(mirror.path(run_name).join(wheel).is_file());
    }
    let lines = mirror.lines();
    // pip wants its lists validated: it sends `max-age=0`, which takes what was stored within the
    // same second
    let list = verdicts(&lines, "/simple/weirdemo/");
    assert!(
        matches!(list[..], ["uri-miss", "request" | "hit"]),
        "{list:?}"
    );
    assert_eq!(verdicts(&lines, wheel), ["uri-miss", "hit"]);
}

#[test]
fn second_npm_install_of_a_package_is_a_hit() {
    let mirror = Mirror::new();
    let manifest = r#"{"name": "weirdemo", "version": "1.0.0"}"#;
    let source = mirror.path("package");
    std::fs::create_dir(&source).expect("a folder");
    std::fs::write(source.join("package.json"), manifest).expect("a file");
    let file = "weirdemo/-/weirdemo-1.0.0.tgz";
    let tarball = mirror.nginx.file(&format!("files/{file}"), b"");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&tarball).arg("package");
    run(tar.current_dir(mirror.folder.path()));
    let url = mirror.nginx.url(&format!("/files/{file}"));
    let entry = format!(
        r#"{{"name": "weirdemo", "dist-tags": {{"latest": "1.0.0"}}, "versions": {{"1.0.0":
            {{"name": "weirdemo", "version": "1.0.0", "dist": {{"tarball": "{url}"}}}}}}}}"#
    );
    mirror.nginx.file("registry/weirdemo", entry.as_bytes());
    for run_name in ["first", "second"] {
        let project = mirror.path(run_name);
        std::fs::create_dir(&project).expect("a folder");
        std::fs::write(project.join("package.json"), r#"{"name": "project"}"#).expect("a file");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
            .args(["--no-update-notifier", "--fetch-retries", "0"])
            .args(["--registry", &mirror.nginx.url("/registry/")])
            .args(["--proxy", &format!("http://{}", mirror.weir.address())])
            .arg("weirdemo")
            // its configuration and its cache are there
            .env("HOME", &project)
            .current_dir(&project);
        run(&mut npm);
        assert!(project.join("node_modules/weirdemo/package.json").is_file());
    }
    let lines = mirror.lines();
    assert_eq!(verdicts(&lines, file), ["uri-miss", "hit"]);
}

#[test]
fn second_cargo_fetch_of_a_crate_is_a_hit() {
    let mirror = Mirror::new();
    let manifest = "[package]\nname = \"weirdemo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    let source = mirror.path("weirdemo-1.0.0");
    std::fs::create_dir_all(source.join("src")).expect("a folder");
    std::fs::write(source.join("Cargo.toml"), manifest).expect("a file");
    std::fs::write(source.join("src/lib.rs"), "").expect("a file");
    let download = mirror.nginx.file("crates/weirdemo/1.0.0/download", b"");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&download).arg("weirdemo-1.0.0");
    run(tar.current_dir(mirror.folder.path()));
    let sum = sha256(&download);
    let entry = format!(
        "{{\"name\":\"weirdemo\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{sum}\",\
         \"features\":{{}},\"yanked\":false}}\n"
    );
    mirror.nginx.file("index/we/ir/weirdemo", entry.as_bytes());
    let config = format!("{{\"dl\":\"{}\"}}", mirror.nginx.url("/crates"));
    mirror.nginx.file("index/config.json", config.as_bytes());
    for run_name in ["first", "second"] {
        let project = mirror.path(run_name);
        std::fs::create_dir_all(project.join("src")).expect("a folder");
        std::fs::create_dir_all(project.join(".cargo")).expect("a folder");
        let manifest = format!(
            "{}[dependencies]\nweirdemo = {{ version = \"1\", registry = \"mirror\" }}\n\
             [workspace]\n",
            manifest.replace("weirdemo", "project")
        );
        std::fs::write(project.join("Cargo.toml"), manifest).expect("a file");
        std::fs::write(project.join("src/lib.rs"), "").expect("a file");
        let settings = format!(
            "[registries.mirror]\nindex = \"sparse+{}/\"\n[http]\nproxy = \"http://{}\"\n",
            mirror.nginx.url("/index"),
            mirror.weir.address()
        );
        std::fs::write(project.join(".cargo/config.toml"), settings).expect("a file");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.arg("fetch").current_dir(&project);
        run(cargo.env("CARGO_HOME", project.join("home")));
    }
    let lines = mirror.lines();
    assert_eq!(
        verdicts(&lines, "/crates/weirdemo/1.0.0/download"),
        ["uri-miss", "hit"]
    );
}
