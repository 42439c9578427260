use super::*;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    names
}

#[test]
fn output_file_replaces_its_target_only_on_commit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.parquet");
    fs::write(&path, "old").expect("written");
    let part = OutputFile::create(&path).expect("created");
    part.file()
        .expect("a file")
        .write_all(b"new")
        .expect("written");
    assert_eq!(fs::read(&path).expect("read"), b"old");
    let second = OutputFile::create(&path).expect_err("it is being written");
    assert!(second.to_string().contains("another process"), "{second}");
    drop(part);
    assert_eq!(names(folder.path()), ["x.parquet"]);

    fs::write(folder.path().join("x.parquet.part"), "left after a crash").expect("written");
    let part = OutputFile::create(&path).expect("created");
    part.file()
        .expect("a file")
        .write_all(b"new")
        .expect("written");
    part.commit().expect("named");
    assert_eq!(fs::read(&path).expect("read"), b"new");
    assert_eq!(names(folder.path()), ["x.parquet"]);
    let error = OutputFile::create(folder.path()).expect_err("a directory");
    let hint = hint(folder.path(), &error).expect("a hint");
    assert!(hint.starts_with("name a file in `"), "{hint}");
}

#[test]
fn replaced_file_keeps_its_permissions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x");
    fs::write(&path, "old").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
    write(&path, b"new").expect("written");
    let mode = fs::metadata(&path).expect("it is there").mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn fifo_is_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    try_path(&path).expect("it can be written, and is not opened");
    let from = path.clone();
    let reader = std::thread::spawn(move || {
        let mut read = String::new();
        let mut fifo = File::open(from).expect("opened");
        fifo.read_to_string(&mut read).expect("read");
        read
    });
    write(&path, b"through").expect("written");
    assert_eq!(reader.join().expect("read"), "through");
    let kind = fs::symlink_metadata(&path)
        .expect("it is there")
        .file_type();
    assert!(kind.is_fifo());
    assert_eq!(names(folder.path()), ["fifo"]);
}

/// A private node like the null device; only root can make one, and others see the fifo above.
#[test]
fn device_is_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("null");
    let made = Command::new("mknod")
        .arg(&path)
        .args(["c", "1", "3"])
        .output()
        .expect("mknod");
    let opens = made.status.success() && OpenOptions::new().write(true).open(&path).is_ok();
    if !opens {
        // without the right to make a device, or on a file system without devices: reported on a
        // line of its own, as the test harness does it, so that `cargo xtask ci` sees it
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        let line = format!("\ntest {name} ... ignored, no device file can be made here\n");
        std::io::stdout()
            .write_all(line.as_bytes())
            .expect("written");
        return;
    }
    try_path(&path).expect("it can be written");
    write(&path, b"gone").expect("written");
    let kind = fs::symlink_metadata(&path)
        .expect("it is there")
        .file_type();
    assert!(kind.is_char_device());
    assert_eq!(names(folder.path()), ["null"]);
    assert_eq!(replaceable(&path).expect("looked at"), None);
    let scratch = scratch_name(&path, ".run-0");
    assert!(!scratch.starts_with(folder.path()), "{scratch:?}");
}

#[test]
fn symbolic_link_is_followed_and_not_replaced_even_if_dangling() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("deep")).expect("made");
    symlink("deep/second", at("first")).expect("linked");
    symlink("file", at("deep/second")).expect("linked");
    for text in ["dangling before", "replaced"] {
        write(&at("first"), text.as_bytes()).expect("written");
        for link in ["first", "deep/second"] {
            let kind = fs::symlink_metadata(at(link)).expect("it is there");
            assert!(kind.file_type().is_symlink(), "{link}");
        }
        assert_eq!(fs::read(at("deep/file")).expect("read"), text.as_bytes());
        assert_eq!(names(&at("deep")), ["file", "second"]);
    }
    symlink("loop", at("loop")).expect("linked");
    assert!(write(&at("loop"), b"x").is_err());
}

#[test]
fn socket_is_refused_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).expect("bound");
    let error = write(&path, b"x").expect_err("a socket");
    assert!(error.to_string().contains("it is a socket"), "{error}");
    assert_eq!(names(folder.path()), ["socket"]);
}

#[test]
fn trying_a_path_creates_nothing_and_an_unusable_path_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "kept").expect("written");
    try_path(&at("file")).expect("a regular file");
    try_path(&at("new")).expect("a free name");
    try_path(&at("a/b/new")).expect("directories that can be made");
    assert_eq!(names(folder.path()), ["file"]);
    assert_eq!(fs::read(at("file")).expect("read"), b"kept");
    let below = try_path(&at("file/new")).expect_err("below a file");
    assert!(
        below.to_string().contains("file` is not a directory"),
        "{below}"
    );
    let below = try_path(&at("file/deep/new")).expect_err("below a file");
    assert_eq!(below.kind(), io::ErrorKind::NotADirectory);
    assert!(try_path(folder.path()).is_err());
}
