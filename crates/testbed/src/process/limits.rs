//! Control groups that limit the memory of a process tree, page cache included, and its reads from
//! a device: a machine of its own with little memory and a slow disk.
//!
//! Version 1 of control groups has a hierarchy for each, and a process enters a group of both;
//! version 2 has one group with both limits.

use super::cgroup::ControlGroup;
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use xtask::failure::{During, Failure};

/// Where version 1 has its hierarchy for devices.
const BLOCK_CONTROLLER: &str = "/sys/fs/cgroup/blkio";

/// Limits of a process tree; they end when it is dropped.
#[derive(Debug)]
pub(crate) struct Limits {
    /// That of the device is the last one.
    groups: Vec<ControlGroup>,
    version: Version,
    /// Its numbers, `MAJOR:MINOR`.
    device: String,
}

/// Of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Limits {
    /// Limits memory, and can limit reads from the device that has `directory`.
    ///
    /// # Errors
    /// This is not root, or the machine has no controllers for both.
    pub(crate) fn make(name: &str, memory_mib: u64, directory: &Path) -> Result<Self, Failure> {
        let device = device_of(directory)?;
        let block = Path::new(BLOCK_CONTROLLER);
        if block.join("blkio.throttle.read_iops_device").exists() {
            let memory = ControlGroup::of_memory(name, memory_mib)?;
            let groups = vec![memory, ControlGroup::make(block, name)?];
            return Ok(Self {
                groups,
                version: Version::V1,
                device,
            });
        }
        let root = Path::new("/sys/fs/cgroup");
        // they may be on already
        let _ = fs::write(root.join("cgroup.subtree_control"), "+io +memory");
        let group = ControlGroup::make(root, name)?;
        group.set("memory.max", &(memory_mib << 20).to_string())?;
        Ok(Self {
            groups: vec![group],
            version: Version::V2,
            device,
        })
    }

    /// Sets how many reads there may be in a second; `None`: as many as the device does.
    pub(crate) fn set_reads_per_s(&self, reads: Option<u32>) -> Result<(), Failure> {
        let (file, line) = self.version.read_limit(&self.device, reads);
        self.of_reads()?.set(file, &line)
    }

    /// Reads that were done until now, counted from the first limit on.
    pub(crate) fn reads(&self) -> Result<u64, Failure> {
        let file = match self.version {
            Version::V1 => "blkio.throttle.io_serviced",
            Version::V2 => "io.stat",
        };
        Ok(self
            .version
            .parse_reads(&self.of_reads()?.get(file)?, &self.device))
    }

    /// A command that enters the groups, then becomes the command behind it.
    pub(crate) fn within(&self) -> Vec<String> {
        ControlGroup::within_all(&self.groups)
    }

    fn of_reads(&self) -> Result<&ControlGroup, Failure> {
        let group = self.groups.last();
        group.ok_or_else(|| Failure::Refused("there is no control group".to_owned()))
    }
}

impl Version {
    /// The file that takes a limit of reads, and the line that sets it.
    fn read_limit(self, device: &str, reads: Option<u32>) -> (&'static str, String) {
        match (self, reads) {
            // 0 is no limit
            (Self::V1, reads) => (
                "blkio.throttle.read_iops_device",
                format!("{device} {}", reads.unwrap_or_default()),
            ),
            (Self::V2, Some(reads)) => ("io.max", format!("{device} riops={reads}")),
            (Self::V2, None) => ("io.max", format!("{device} riops=max")),
        }
    }

    /// The reads of a device in what a group says; 0 where it has none.
    fn parse_reads(self, text: &str, device: &str) -> u64 {
        let of_device = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(device)?;
            rest.starts_with(' ').then_some(rest)
        });
        let mut words = of_device.flat_map(str::split_whitespace);
        let number = match self {
            Self::V1 => words
                .find(|word| *word == "Read")
                .and_then(|_| words.next()),
            Self::V2 => words.find_map(|word| word.strip_prefix("rios=")),
        };
        number.and_then(|it| it.parse().ok()).unwrap_or_default()
    }
}

/// The numbers of the device that has a directory: limits are those of whole devices.
fn device_of(directory: &Path) -> Result<String, Failure> {
    let meta = fs::metadata(directory).during(format_args!("find `{}`", directory.display()))?;
    let number = format!("{}:{}", major(meta.dev()), minor(meta.dev()));
    let entry = PathBuf::from("/sys/dev/block").join(&number);
    let entry = fs::canonicalize(entry).during(format_args!(
        "find the block device of `{}`",
        directory.display()
    ))?;
    let whole = match entry.parent() {
        Some(parent) if entry.join("partition").exists() => parent,
        _ => &entry,
    };
    let number = fs::read_to_string(whole.join("dev")).during("read the number of a device")?;
    Ok(number.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::guarded;
    use std::time::{Duration, Instant};
    use xtask::namespace::is_permitted;
    use xtask::workplace::Workplace;

    const READS: u32 = 40;
    const READS_PER_S: u32 = 20;

    #[test]
    fn limit_of_reads_is_written_as_each_version_takes_it() {
        let check = |version: Version, reads, expected: &str| {
            let (file, line) = version.read_limit("8:0", reads);
            assert_eq!(format!("{file}: {line}"), expected);
        };
        let file = "blkio.throttle.read_iops_device";
        check(Version::V1, Some(40), &format!("{file}: 8:0 40"));
        check(Version::V1, None, &format!("{file}: 8:0 0"));
        check(Version::V2, Some(40), "io.max: 8:0 riops=40");
        check(Version::V2, None, "io.max: 8:0 riops=max");
    }

    #[test]
    fn reads_of_the_device_are_counted_and_those_of_others_are_not() {
        let v1 = "8:01 Read 9\n7:0 Read 3\n7:0 Write 4\n8:0 Write 5\n8:0 Read 6\n8:0 Total 11\nTotal 20\n";
        let v2 = "7:0 rbytes=1 rios=3\n8:0 rbytes=9 wbytes=8 rios=6 wios=5\n";
        for (version, text) in [(Version::V1, v1), (Version::V2, v2)] {
            assert_eq!(version.parse_reads(text, "8:0"), 6);
            assert_eq!(version.parse_reads(text, "7:0"), 3);
            assert_eq!(version.parse_reads(text, "9:0"), 0);
            assert_eq!(version.parse_reads("", "8:0"), 0);
        }
    }

    #[test]
    fn process_reads_no_faster_than_its_group_permits() {
        if !is_permitted() {
            return;
        }
        let workplace = Workplace::make("limits").expect("a directory");
        let limits = Limits::make("limits-test", 64, workplace.path()).expect("control groups");
        let file = workplace.path().join("data");
        let bytes = u64::from(READS) * 4096;
        let content = vec![7; usize::try_from(bytes).expect("160 KiB")];
        fs::write(&file, content).expect("a file");
        // what is not on the device yet is not read from it
        let written = fs::File::open(&file).and_then(|file| file.sync_all());
        written.expect("a device");
        let begun = Instant::now();
        limits.set_reads_per_s(Some(READS_PER_S)).expect("a limit");
        let mut command = limits.within();
        let (input, count) = (format!("if={}", file.display()), format!("count={READS}"));
        let words = [
            "dd",
            &input,
            "of=/dev/null",
            "bs=4096",
            &count,
            "iflag=direct",
        ];
        command.extend(words.map(str::to_owned));
        guarded::output(0, &command, Duration::from_secs(60)).expect("dd");
        // a fifth less: the kernel counts in slices of time
        let fastest = Duration::from_secs(u64::from(READS / READS_PER_S)) * 4 / 5;
        assert!(begun.elapsed() >= fastest, "{:?}", begun.elapsed());
        let reads = limits.reads().expect("a count");
        assert!(reads >= u64::from(READS), "{reads}");
    }
}
