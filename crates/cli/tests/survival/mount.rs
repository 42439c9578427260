//! File systems of a test's own, with the kernel's faults: too small, only to be read, standing
//! still, or with a device that has lost what was on it. They need root, and programs of Debian's
//! packages `mount`, `e2fsprogs` and `util-linux`.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Runs a program; whether it did what it should.
fn run<const N: usize>(program: &str, arguments: [&str; N]) -> bool {
    let status = Command::new(program).args(arguments).status();
    status.is_ok_and(|status| status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

/// A file system on a folder, away when dropped.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// One in memory, of so many bytes.
    pub(crate) fn memory(place: &Path, size: &str) -> Self {
        let options = format!("size={size}");
        assert!(
            run(
                "mount",
                ["-t", "tmpfs", "-o", &options, "tmpfs", text(place)]
            ),
            "a file system of a test's own needs root, and mount"
        );
        Self(place.to_path_buf())
    }

    /// From now on it can only be read. No file may be open for writing.
    pub(crate) fn forbid_writing(&self) {
        assert!(run("mount", ["-o", "remount,ro", text(&self.0)]));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", ["-l", text(&self.0)]);
    }
}

/// An ext4 file system in a file (a loop device), away when dropped.
pub(crate) struct Device {
    folder: TempDir,
}

impl Device {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let device = Self { folder };
        let image = std::fs::File::create(device.image()).expect("a file");
        image.set_len(256 << 20).expect("a file may have holes");
        assert!(
            run("mkfs.ext4", ["-q", "-F", text(&device.image())]),
            "mkfs.ext4 is in Debian's package e2fsprogs"
        );
        std::fs::create_dir(device.place()).expect("a folder");
        device.mount();
        device
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Where it is mounted.
    pub(crate) fn place(&self) -> PathBuf {
        self.folder.path().join("place")
    }

    fn mount(&self) {
        assert!(
            run(
                "mount",
                ["-o", "loop", text(&self.image()), text(&self.place())]
            ),
            "a file system in a file needs root, mount, and a kernel with loop devices and ext4"
        );
    }

    /// Nothing of it is in the page cache. No file of it may be open.
    pub(crate) fn forget(&self) {
        assert!(run("umount", [text(&self.place())]));
        self.mount();
    }

    /// The device loses everything: each read of it fails (EIO).
    pub(crate) fn lose(&self) {
        let image = OpenOptions::new().write(true).open(self.image());
        image.and_then(|image| image.set_len(0)).expect("a file");
    }

    /// The kernel takes it for broken, and refuses writes (EROFS): what ext4 does after an
    /// error.
    pub(crate) fn forbid_writing(&self) {
        assert!(run("mount", ["-o", "remount,abort", text(&self.place())]));
    }

    /// Writes wait for as long as this value lives.
    pub(crate) fn freeze(&self) -> Frozen {
        assert!(
            run("fsfreeze", ["--freeze", text(&self.place())]),
            "fsfreeze is in Debian's package util-linux"
        );
        Frozen(self.place())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        run("umount", ["-l", text(&self.place())]);
    }
}

/// A file system that stands still. To be dropped before who waits for it, who could not even be
/// killed.
pub(crate) struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        run("fsfreeze", ["--unfreeze", text(&self.0)]);
    }
}
