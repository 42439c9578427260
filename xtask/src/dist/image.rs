//! The image: the program, the shared objects that it needs, and nothing else. It is an archive in
//! the layout of OCI, which `podman load`, `docker load` and `skopeo copy oci-archive:` take.
//!
//! No shell, no package manager, no name of a user: it runs as a number, and its root file system
//! can be read-only. What it writes is in `/var/cache/weir`.

use super::parts::Parts;
use super::tarball::copy;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::output;
use xtask::failure::{During, Failure};

/// User and group: the highest that subordinate ids of one user usually reach, less 3; images
/// without users of their own take it.
pub(super) const USER: u32 = 65_532;

/// The name of the image in the layout.
pub(super) const TAG: &str = "weir";

/// What the program is started with. It listens for all, and serves this machine alone until it is
/// told whom: `serve --listen 0.0.0.0:3128 --allow-client NETWORK`.
const COMMAND: [&str; 3] = ["serve", "--listen", "0.0.0.0:3128"];

/// Licences of the shared objects, where the machine has them.
const COPYRIGHTS: [&str; 2] = [
    "/usr/share/doc/libc6/copyright",
    "/usr/share/doc/libgcc-s1/copyright",
];

/// Makes it in a directory.
pub(super) fn make(parts: &Parts, directory: &Path) -> Result<PathBuf, Failure> {
    let layer = layer(parts)?;
    let layout = parts.path("image");
    let name = format!("{}:{TAG}", layout.display());
    let at = format!("--date=@{}", parts.epoch);
    let created = output(Command::new("date").args(["--utc", "--iso-8601=seconds", &at]))?;
    let created = created.trim();
    let umoci = |arguments: &[&str]| output(Command::new("umoci").args(arguments)).map(drop);
    let layout_path = layout.display().to_string();
    umoci(&["init", "--layout", &layout_path])?;
    umoci(&["new", "--image", &name])?;
    let layer = layer.display().to_string();
    umoci(&[
        "raw",
        "add-layer",
        "--image",
        &name,
        "--history.created",
        created,
        &layer,
    ])?;
    let user = format!("{USER}:{USER}");
    let version = format!("org.opencontainers.image.version={}", parts.version);
    let mut config = Command::new("umoci");
    config
        .args(["config", "--no-history", "--image", &name])
        .args(["--created", created, "--os", "linux"])
        .args(["--architecture", &parts.architecture])
        .args(["--config.user", &user])
        .args(["--config.entrypoint", "/usr/bin/weir"])
        .args(["--config.env", "PATH=/usr/bin"])
        // where the store is without a configuration
        .args(["--config.env", "XDG_CACHE_HOME=/var/cache"])
        .args(["--config.volume", "/var/cache/weir"])
        .args(["--config.exposedports", "3128/tcp"])
        .args(["--config.workingdir", "/"])
        .args(["--config.label", &version]);
    for word in COMMAND {
        config.args(["--config.cmd", word]);
    }
    output(&mut config)?;
    umoci(&["gc", "--layout", &layout_path])?;

    let version = &parts.version;
    let file = directory.join(format!("weir-{version}-oci-{}.tar", parts.architecture));
    let mut tar = parts.tar();
    tar.args(["--owner=0", "--group=0", "--create", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(&layout);
    output(tar.arg("."))?;
    Ok(file)
}

/// The root file system as an archive.
fn layer(parts: &Parts) -> Result<PathBuf, Failure> {
    let top = parts.path("layer");
    let weir = parts.path("weir");
    copy(&weir, &top.join("usr/bin/weir"))?;
    let objects = shared_objects(&weir)?;
    for object in objects.iter().map(String::as_str).chain(COPYRIGHTS) {
        let place = object.strip_prefix('/').unwrap_or(object);
        if Path::new(object).exists() {
            copy(Path::new(object), &top.join(place))?;
        }
    }
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let from = xtask::root::directory().join(file);
        copy(&from, &top.join("usr/share/doc/weir").join(file))?;
    }
    let cache = parts.path("cache");
    fs::create_dir_all(cache.join("var/cache/weir")).during("make the cache's directory")?;
    let file = parts.path("layer.tar");
    let mut tar = parts.tar();
    tar.args(["--owner=0", "--group=0", "--create", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(&top);
    let names = xtask::files::list(&top)?;
    output(tar.args(names.iter().filter_map(|path| path.file_name())))?;
    // the one directory that belongs to the user
    let mut tar = parts.tar();
    tar.args([format!("--owner={USER}"), format!("--group={USER}")])
        .args(["--append", "--no-recursion", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(&cache);
    output(tar.arg("var/cache/weir"))?;
    Ok(file)
}

/// The paths of what the dynamic linker loads.
fn shared_objects(program: &Path) -> Result<Vec<String>, Failure> {
    let listed = output(Command::new("ldd").arg(program))?;
    let paths = objects_in(&listed);
    if paths.iter().any(|path| path.contains("/ld-linux")) {
        return Ok(paths);
    }
    Err(Failure::Outside(format!(
        "`ldd` names no dynamic linker: {listed}"
    )))
}

/// Absolute paths in the output of `ldd`: `libm.so.6 => /lib/libm.so.6 (0x…)`, `/lib64/ld… (0x…)`.
fn objects_in(listed: &str) -> Vec<String> {
    let words = listed.lines().flat_map(str::split_whitespace);
    let mut paths: Vec<String> = words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_objects_are_those_with_a_path() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0a)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f0b)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(objects_in(listed), expected);
        assert_eq!(objects_in("\tstatically linked\n"), [""; 0]);
    }
}
