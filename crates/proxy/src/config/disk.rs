//! Directories for responses that memory has no room for, and how their bytes are verified.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::{Ranged as _, table, unit_hint};
use crate::config::values::byte_size::ByteSize;
use crate::config::values::text::{BadValue, Form, choice, text_value};
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use weir_disk::{SEGMENT_BYTES_MIN, SEGMENTS_MIN};

/// The most bytes of the store if the configuration does not set its size: enough for days of one
/// person's browsing, and not so much that it is noticed.
pub(crate) const DISK_BYTES_DEFAULT: u64 = 10 << 30;

table! {
    /// The `[disk]` table.
    pub struct Disk in "disk" {
        /// Whether stored responses are kept on disk, too: the cache is then far larger than memory
        /// and survives a restart.
        enabled: bool = true;
        /// Which responses are written: all, those stored for a second time, or small ones. All is
        /// the default, since a response that was not written is lost with the next restart; the
        /// other values reduce the wear of a device.
        admission: Admission = Admission::Always;
        /// The largest response that `admission = "small"` writes, content.
        admission_largest: ByteSize = ByteSize::from_mib(1), from ByteSize::from_kib(1), to ByteSize::from_gib(4096);
        /// The largest response on disk, content. The only limit is the size of the store: a
        /// response is written while it arrives and needs no more memory than a small one.
        largest_response: ByteSize = ByteSize::from_gib(4096), from ByteSize::from_kib(1), to ByteSize::from_gib(4096);
        /// Time that a look-up on disk may take, from the request until the head of the response
        /// is read. Beyond it the request is a miss, and the response is asked of the next hop. The
        /// default is more than a busy rotating disk takes; a longer time is for origins that take
        /// longer than a disk at its limit, or are to be asked for nothing that is stored.
        lookup_wait: Span = Span::from_millis(500), from Span::from_millis(10), to Span::from_mins(5);
        /// When bytes are verified by their checksums: when they are read from the device, or at
        /// every use. Bytes that were verified and stayed in memory are as safe as other memory;
        /// `always` also guards against errors there.
        verify: Verify = Verify::Device;
        /// Bytes a second, for each directory, that are read and verified in the background, or
        /// `off`. The default is off: content is verified before it is sent in any case, and a
        /// sleeping device is not woken.
        scrub: Scrub = Scrub::Off;
        /// Directories and their sizes, normally one a device. The default is one under the user's
        /// cache directory, `$XDG_CACHE_HOME/weir` or `~/.cache/weir`, with 10GiB or a tenth of the
        /// free space, whichever is less.
        directories: Vec<Directory> = Vec::new();
    }
}

/// A directory for stored responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Its path; created if it does not exist.
    pub path: PathBuf,
    /// Bytes that its files may take; left out: 10GiB or a tenth of the free space, whichever is
    /// less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteSize>,
}

impl Form for bool {
    const FORM: &'static str = "true or false";
}

impl Form for Vec<Directory> {
    const FORM: &'static str =
        "a list of directories, such as [{ path = \"/var/cache/weir\", size = \"10GiB\" }]";
}

choice! {
    /// Which responses are written to disk.
    pub enum Admission {
        /// All that are stored.
        Always = "always",
        /// Those that are stored a second time within what is remembered.
        SecondRequest = "second-request",
        /// Those of at most `admission_largest`.
        Small = "small",
    }
}

choice! {
    /// When bytes on disk are verified.
    pub enum Verify {
        /// When they are read from the device.
        Device = "device",
        /// At every use.
        Always = "always",
    }
}

/// How fast stored bytes are verified in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrub {
    /// Not at all.
    Off,
    /// So many bytes a second.
    Rate(ByteSize),
}

impl Scrub {
    /// Bytes a second; 0 for none.
    #[must_use]
    pub const fn bytes_per_s(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Rate(rate) => rate.bytes(),
        }
    }
}

impl fmt::Display for Scrub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Rate(rate) => rate.fmt(f),
        }
    }
}

impl std::str::FromStr for Scrub {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" | "0" => Ok(Self::Off),
            _ => text.parse().map(Self::Rate),
        }
    }
}

impl Form for Scrub {
    const FORM: &'static str = "bytes a second, such as \"10MiB\", or \"off\"";
}

text_value!(Scrub);

/// The least a directory can be: as many of the smallest segments as the disk tier cuts one into.
const DIRECTORY_BYTES_MIN: ByteSize = ByteSize::from_mib(16);

const _: () = assert!(DIRECTORY_BYTES_MIN.bytes() == SEGMENTS_MIN * SEGMENT_BYTES_MIN);

/// Refuses directories that cannot be used, and two at one place.
pub(super) fn check(disk: &Disk, mistakes: &mut Mistakes) {
    for index in 0..disk.directories.len() {
        mistakes.note(check_directory(disk, index));
    }
}

fn check_directory(disk: &Disk, index: usize) -> Result<(), Invalid> {
    let directory = &disk.directories[index];
    let key = |name: &str| format!("disk.directories[{index}].{name}");
    let shown = directory.path.display();
    if !directory.path.is_absolute() {
        return Err(Invalid::new(
            key("path"),
            format!("`{shown}` is not an absolute path"),
            "begin it with `/`: the store must be the same wherever weir is started",
        ));
    }
    if let Some(size) = directory.size.filter(|size| *size < DIRECTORY_BYTES_MIN) {
        let hint = format!("use at least \"{DIRECTORY_BYTES_MIN}\", or `enabled = false`");
        let most = ByteSize::from_gib(4096);
        let hint = match size.with_unit(&DIRECTORY_BYTES_MIN, &most) {
            Some(meant) => format!("{hint}; {}", unit_hint(&meant)),
            None => hint,
        };
        return Err(Invalid::new(
            key("size"),
            format!("{size} is less than the minimum, {DIRECTORY_BYTES_MIN}"),
            hint,
        ));
    }
    let before = &disk.directories[..index];
    if before.iter().any(|other| other.path == directory.path) {
        return Err(Invalid::new(
            key("path"),
            format!("`{shown}` is in the list twice"),
            "name each directory once, with all of its size",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str, size: &str) -> Directory {
        Directory {
            path: path.into(),
            size: Some(size.parse().unwrap()),
        }
    }

    #[test]
    fn relative_duplicate_or_undersized_disk_directory_is_refused() {
        let verdict = |directories: Vec<Directory>| {
            let disk = Disk {
                directories,
                ..Disk::default()
            };
            let mut mistakes = Mistakes::default();
            check(&disk, &mut mistakes);
            mistakes.first().err().map(|invalid| invalid.key_path)
        };
        assert_eq!(verdict(Vec::new()), None);
        assert_eq!(verdict(vec![directory("/a", "16MiB")]), None);
        assert_eq!(
            verdict(vec![directory("/a", "16MiB"), directory("b", "16MiB")]).as_deref(),
            Some("disk.directories[1].path")
        );
        assert_eq!(
            verdict(vec![directory("/a", "16383KiB")]).as_deref(),
            Some("disk.directories[0].size")
        );
        assert_eq!(
            verdict(vec![directory("/a", "1GiB"), directory("/a", "1GiB")]).as_deref(),
            Some("disk.directories[1].path")
        );
    }

    #[test]
    fn scrub_rate_round_trips_and_an_unknown_word_is_refused() {
        let rate = |text: &str| text.parse::<Scrub>().map(|scrub| scrub.to_string());
        assert_eq!(rate("off"), Ok("off".to_owned()));
        assert_eq!(rate("10MiB"), Ok("10MiB".to_owned()));
        assert!(rate("fast").is_err());
    }
}
