//! The tarball, for systems without dpkg: the layout of `/usr/local`.

use super::parts::Parts;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::root;

/// Parts, and where they are in the archive.
const PARTS: [(&str, &str); 6] = [
    ("weir", "bin/weir"),
    ("man1", "share/man/man1"),
    ("man5", "share/man/man5"),
    ("weir.bash", "share/bash-completion/completions/weir"),
    ("_weir", "share/zsh/site-functions/_weir"),
    ("weir.fish", "share/fish/vendor_completions.d/weir.fish"),
];

/// Files of the repository, and where they are in the archive.
const FILES: [(&str, &str); 7] = [
    ("packaging/weir.toml", "etc/weir/weir.toml"),
    ("packaging/logrotate", "etc/logrotate.d/weir"),
    (
        "packaging/debian/weir.service",
        "lib/systemd/system/weir.service",
    ),
    ("packaging/debian/weir.sysusers", "lib/sysusers.d/weir.conf"),
    ("CHANGELOG.md", "share/doc/weir/CHANGELOG.md"),
    ("LICENSE-APACHE", "share/doc/weir/LICENSE-APACHE"),
    ("LICENSE-MIT", "share/doc/weir/LICENSE-MIT"),
];

/// Makes it in a directory.
pub(super) fn make(parts: &Parts, directory: &Path, is_fast: bool) -> Result<PathBuf, Failure> {
    let name = format!("weir-{}-linux-{}", parts.version, parts.architecture);
    let top = parts.path("tarball").join(&name);
    for (part, place) in PARTS {
        copy(&parts.path(part), &top.join(place))?;
    }
    for (file, place) in FILES {
        copy(&root::directory().join(file), &top.join(place))?;
    }
    // units of administrators run what is in /usr/local
    let unit = top.join("lib/systemd/system/weir.service");
    let text = fs::read_to_string(&unit).during("read the unit")?;
    let text = text.replace("/usr/bin/weir", "/usr/local/bin/weir");
    fs::write(&unit, text).during("write the unit")?;

    let tar_file = directory.join(format!("{name}.tar"));
    let mut tar = parts.tar();
    tar.args(["--owner=0", "--group=0", "--create", "--file"])
        .arg(&tar_file)
        .arg("--directory")
        .arg(parts.path("tarball"));
    output(tar.arg(&name))?;
    parts.compress(&tar_file, is_fast)?;
    Ok(directory.join(format!("{name}.tar.gz")))
}

/// Copies a file, or the files of a directory.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let during = || format!("copy `{}`", from.display());
    if from.is_dir() {
        for file in xtask::files::list(from)? {
            let name = file.file_name().unwrap_or_default();
            copy(&file, &to.join(name))?;
        }
        return Ok(());
    }
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).during(during())?;
    fs::copy(from, to).during(during()).map(drop)
}
