//! A file system on a device that takes so many bytes a second: a file behind a loop device, slowed
//! by the block controller.
//!
//! The kernel keeps little of it in its own memory (`bdi`), or gigabytes would be written before
//! any writer waited.

use crate::process::cgroup::ControlGroup;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::output;
use xtask::failure::{During, Failure};

/// Dirty pages that the kernel may hold for the device, bytes.
const DIRTY_BYTES_MAX: u64 = 16 << 20;

/// The limit of the root group, version 1 of control groups.
const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";

/// A mounted slow disk; undone when it is dropped.
#[derive(Debug)]
pub(crate) struct SlowDisk {
    mounted_at: PathBuf,
    device: String,
    /// Its numbers, `MAJOR:MINOR`.
    number: String,
    /// A control group of version 2 that limits those in it.
    group: Option<ControlGroup>,
}

impl SlowDisk {
    /// Makes one of `size_mib` MiB below `directory`.
    ///
    /// # Errors
    /// This is not root, or the machine has no loop devices or no block controller.
    pub(crate) fn make(directory: &Path, size_mib: u64, mb_s: u64) -> Result<Self, Failure> {
        let image = directory.join("disk.img");
        let file = fs::File::create(&image).during(format_args!("create `{}`", image.display()))?;
        file.set_len(size_mib << 20).during("size the disk")?;
        let image = image.display().to_string();
        output_of("mkfs.ext4", &["-q", "-F", &image])?;
        let device = output_of("losetup", &["--find", "--show", &image])?;
        let name = device.rsplit('/').next().unwrap_or_default();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev"));
        let number = number.during(format_args!("find `{device}`"))?;
        let mut disk = Self {
            mounted_at: directory.join("disk"),
            device,
            number: number.trim().to_owned(),
            group: None,
        };
        fs::create_dir_all(&disk.mounted_at).during("make a directory to mount at")?;
        let mounted_at = disk.mounted_at.display().to_string();
        output_of("mount", &[&disk.device, &mounted_at])?;
        disk.slow(mb_s * 1_000_000)?;
        Ok(disk)
    }

    fn slow(&mut self, bytes_s: u64) -> Result<(), Failure> {
        let bdi = PathBuf::from(format!("/sys/class/bdi/{}", self.number));
        fs::write(bdi.join("strict_limit"), "1").during("limit dirty pages of a device")?;
        fs::write(bdi.join("max_bytes"), DIRTY_BYTES_MAX.to_string())
            .during("limit dirty pages of a device")?;
        if Path::new(THROTTLE).exists() {
            let limit = format!("{} {bytes_s}", self.number);
            return fs::write(THROTTLE, limit).during("slow a device");
        }
        let root = Path::new("/sys/fs/cgroup");
        // it may be on already
        let _ = fs::write(root.join("cgroup.subtree_control"), "+io +memory");
        let group = ControlGroup::make(root, "memory")?;
        let limited = group.set("io.max", &format!("{} wbps={bytes_s}", self.number));
        self.group = Some(group);
        limited
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.mounted_at
    }

    /// What enters its control group and then becomes a command; nothing where the limit is for all
    /// processes.
    pub(crate) fn within(&self) -> Vec<String> {
        self.group
            .as_ref()
            .map_or_else(Vec::new, ControlGroup::within)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        match &self.group {
            None => drop(fs::write(THROTTLE, format!("{} 0", self.number))),
            Some(group) => drop(group.set("io.max", &format!("{} wbps=max", self.number))),
        }
        let mounted_at = self.mounted_at.display().to_string();
        let unmounted = output_of("umount", &[&mounted_at]);
        let detached = output_of("losetup", &["-d", &self.device]);
        for failure in [unmounted.err(), detached.err()].into_iter().flatten() {
            eprintln!("warning: {failure}");
        }
    }
}

/// The output of a program.
fn output_of(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{path}:/usr/sbin:/sbin");
    let text = output(Command::new(program).args(arguments).env("PATH", path))?;
    Ok(text.trim().to_owned())
}
