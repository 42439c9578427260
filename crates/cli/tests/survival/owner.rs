//! Whose store it is (R10, R18): one process, of a version that can read it.

use super::Parts;
use crate::support::Config;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use weir_disk::format::Seal;

/// Starts a process that is expected to end by itself; what it says.
pub(super) fn refusal(config: &Config) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("weir.toml"), config.text()).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args(["serve", "--config", "weir.toml"])
        .current_dir(folder.path());
    let mut process = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
    let mut said = String::new();
    for line in lines.map_while(Result::ok) {
        let serves = line.contains("  try ");
        said.push_str(&line);
        said.push('\n');
        if serves {
            let _ended_already = process.kill();
        }
    }
    let ended = process.wait().expect("it can be waited for");
    assert!(ended.code().is_some_and(|code| code != 0), "{said}");
    said
}

#[test]
fn second_process_on_a_store_is_refused() {
    let parts = Parts::new();
    let weir = parts.serve();
    let said = refusal(&parts.config());
    let path = parts.path().display().to_string();
    for part in [path.as_str(), &weir.id().to_string()] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    // the first one is as before
    parts.get(&weir, "/a?size=100");
    drop(weir);
    parts.serve();
}

#[test]
fn directory_that_is_named_again_by_a_symbolic_link_is_refused_as_named_twice() {
    let parts = Parts::new();
    let link = parts.path().with_extension("again");
    std::os::unix::fs::symlink(parts.path(), &link).expect("a link");
    let path_of = |path: &Path| format!("{{ path = \"{}\", size = \"64MiB\" }}", path.display());
    let directories = format!("[{}, {}]", path_of(parts.path()), path_of(&link));
    let config = parts.config().set("disk.directories", &directories);
    let said = refusal(&config);
    std::fs::remove_file(&link).expect("a link");
    for part in [&*link.display().to_string(), "it is named twice"] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}

#[test]
fn store_of_a_newer_format_version_is_refused_and_left_unchanged() {
    let parts = Parts::new();
    drop(parts.serve());
    let file = parts.path().join("store.weir");
    let mut bytes = std::fs::read(&file).expect("the superblock");
    // the format's version follows the magic, and each page ends with its checksum:
    // docs/store-format.md
    for page in bytes.chunks_mut(4096) {
        page[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let sum = Seal::UNKEYED.sum(0, &page[..4088]);
        page[4088..].copy_from_slice(&sum.to_le_bytes());
    }
    std::fs::write(&file, &bytes).expect("a file");
    let said = refusal(&parts.config());
    assert!(said.contains("version"), "{said}");
    assert_eq!(std::fs::read(&file).expect("the superblock"), bytes);
}

#[test]
fn proxy_continues_to_serve_after_its_store_directory_is_removed() {
    let parts = Parts::new();
    let weir = parts.serve();
    parts.get(&weir, "/before?size=5000");
    // until then the proxy makes files there
    super::wait_for_entries(&weir, 1);
    std::fs::remove_dir_all(parts.path()).expect("it can be removed");
    for number in 0..50 {
        parts.get(&weir, &format!("/after/{number}?size=200000"));
    }
    weir.ask("GET", "/metrics").expect(200);
}

#[test]
fn store_directory_that_cannot_be_made_is_named_in_the_error() {
    let parts = Parts::new();
    let path = parts.path().join("file");
    std::fs::write(&path, b"not a directory").expect("a file");
    let path = path.display().to_string();
    let directories = format!("[{{ path = \"{path}\", size = \"64MiB\" }}]");
    let said = refusal(&parts.config().set("disk.directories", &directories));
    assert!(said.contains(&path), "{said}");
}
