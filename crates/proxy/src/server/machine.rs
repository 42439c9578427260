//! Compares a configuration with this machine: memory, disk, open files; and whether the paths it
//! names can be used.

mod next_hop_names;

pub use next_hop_names::next_hop_warnings;

use crate::admin::Token;
use crate::config::{Config, Invalid, Link, MembersSource, TokenFile, acme_orders};
use crate::server::advice;
use crate::server::descriptors::worker_count;
use crate::server::disk_tier::{default_disk_path, own_bytes};
use crate::server::history_place;
use crate::server::run::{read_client_logins, read_login};
use crate::server::secret_file::SecretFile;
use crate::settings::acme;
use crate::worker::links::{NO_PLACE, place_hint};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use weir_cluster::Source;
use weir_disk::files::SystemFiles;
use weir_policy::digest::Secret;
use weir_store::MemoryStore;

/// Descriptors that a worker has at the least, beside one for each listener: what its runtime waits
/// with and is woken by.
const WORKER_DESCRIPTORS_MIN: u64 = 2;

/// What the machine has. `None`: it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Machine {
    /// Memory of the machine, or of the control group if that is less, bytes.
    memory_bytes: Option<u64>,
    /// Files this process may have open.
    open_files_max: Option<u64>,
}

/// Refuses sizes and numbers that exceed this machine: each by itself, since the use of the others
/// is not known in advance.
///
/// # Errors
///
/// The first [`Invalid`] value.
pub fn check_machine(config: &Config) -> Result<(), Invalid> {
    let machine = Machine {
        memory_bytes: memory_bytes(),
        open_files_max: getrlimit(Resource::Nofile).maximum,
    };
    machine.check(config, worker_count(config) as u64)?;
    check_disks(config)?;
    check_link_places(config)
}

/// Refuses the quota of a link where there is no place for the file of what it has spent.
fn check_link_places(config: &Config) -> Result<(), Invalid> {
    let is_lacking = |link: &Link| link.quota.is_some() && link.state_file.is_none();
    let Some(index) = config.links.iter().position(is_lacking) else {
        return Ok(());
    };
    let of_config = config.disk.directories.first().map(|it| it.path.clone());
    let is_on_disk = config.disk.enabled && config.cache.enabled;
    let store = of_config.or_else(default_disk_path).filter(|_| is_on_disk);
    if history_place::automatic_directory(store.as_deref()).is_some() {
        return Ok(());
    }
    Err(Invalid::new(
        format!("link[{index}].quota"),
        NO_PLACE,
        place_hint(index),
    ))
}

impl Machine {
    fn check(self, config: &Config, workers: u64) -> Result<(), Invalid> {
        let memory = config.cache.memory;
        if let Some(most) = self.memory_bytes
            && config.cache.enabled
            && memory.bytes() > most
        {
            return Err(Invalid::new(
                "cache.memory",
                format!("{memory} is more than the {} of memory here", mib(most)),
                "use half of that at most: connections and the system need some too",
            ));
        }
        let listeners = config.listeners.len() as u64;
        let files = workers.saturating_mul(WORKER_DESCRIPTORS_MIN + listeners);
        if let Some(most) = self.open_files_max
            && files > most
        {
            return Err(Invalid::new(
                "workers",
                format!(
                    "{workers} threads need {files} open files alone, and this process may have {most}"
                ),
                "use fewer (0 is one a core), or raise `ulimit -n`",
            ));
        }
        Ok(())
    }
}

/// Refuses directories that are larger than their file system; those on one file system together.
fn check_disks(config: &Config) -> Result<(), Invalid> {
    if !config.disk.enabled || !config.cache.enabled {
        return Ok(());
    }
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for (index, directory) in config.disk.directories.iter().enumerate() {
        let there = existing(&directory.path);
        let (Some(size), Ok(found), Ok(space)) = (
            directory.size,
            fs::metadata(&there),
            rustix::fs::statvfs(&there),
        ) else {
            continue;
        };
        let total = space.f_blocks.saturating_mul(space.f_frsize);
        let sum = wanted.entry(found.dev()).or_default();
        *sum = sum.saturating_add(size.bytes());
        if *sum > total {
            return Err(Invalid::new(
                format!("disk.directories[{index}].size"),
                format!(
                    "{size} for `{}` is more than the {} of its file system can give",
                    directory.path.display(),
                    mib(total)
                ),
                "use less; without a size a tenth of what is free is taken",
            ));
        }
    }
    Ok(())
}

/// A file system with less free space than the store may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrowdedDisk {
    /// The last directory of the configuration on it.
    pub path: PathBuf,
    /// What the directories on it may take, bytes.
    pub wanted_bytes: u64,
    /// What is free, and what they take already, bytes.
    pub room_bytes: u64,
}

impl fmt::Display for CrowdedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} for `{}` is more than the {} that its file system has free or the store has already",
            mib(self.wanted_bytes),
            self.path.display(),
            mib(self.room_bytes)
        )
    }
}

/// The file systems with less free space than the directories on them may take. The proxy starts
/// all the same, as others may have filled the file system after the store was made, and the store
/// works with less; the operator gets a warning.
#[must_use]
pub fn crowded_disks(config: &Config) -> Vec<CrowdedDisk> {
    if !config.disk.enabled || !config.cache.enabled {
        return Vec::new();
    }
    let mut disks: BTreeMap<u64, CrowdedDisk> = BTreeMap::new();
    for directory in &config.disk.directories {
        let there = existing(&directory.path);
        let (Some(size), Ok(found), Ok(space)) = (
            directory.size,
            fs::metadata(&there),
            rustix::fs::statvfs(&there),
        ) else {
            continue;
        };
        let disk = disks.entry(found.dev()).or_insert_with(|| CrowdedDisk {
            path: PathBuf::new(),
            wanted_bytes: 0,
            room_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        });
        let own = own_bytes(&SystemFiles, &directory.path);
        disk.path.clone_from(&directory.path);
        disk.wanted_bytes = disk.wanted_bytes.saturating_add(size.bytes());
        disk.room_bytes = disk.room_bytes.saturating_add(own);
    }
    let disks = disks.into_values();
    disks
        .filter(|disk| disk.wanted_bytes > disk.room_bytes)
        .collect()
}

/// The directory, or the nearest one above it that is there.
fn existing(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let found = above.find(|path| path.is_dir());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn mib(bytes: u64) -> String {
    format!("{}MiB", bytes >> 20)
}

/// Memory of the machine, or what control groups leave of it.
fn memory_bytes() -> Option<u64> {
    let total = meminfo_total(&fs::read_to_string("/proc/meminfo").ok()?);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    total.into_iter().chain(group).min()
}

fn meminfo_total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least limit of the control group and of those above it, in version 2 and in version 1, whose
/// groups of memory are by themselves.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let version_2 = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let version_1 = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, own) = rest.split_once(":/")?;
        let has_memory = controllers.split(',').any(|name| name == "memory");
        has_memory.then_some(own)
    });
    let memory_root = root.join("memory");
    let version_2 = version_2.and_then(|own| least_limit(root, own, "memory.max"));
    let version_1 =
        version_1.and_then(|own| least_limit(&memory_root, own, "memory.limit_in_bytes"));
    version_2.into_iter().chain(version_1).min()
}

/// What the file `name` says in the group `own` and in those above it, up to `root`.
fn least_limit(root: &Path, own: &str, name: &str) -> Option<u64> {
    let folder = root.join(own);
    let above = folder.ancestors().take_while(|path| path.starts_with(root));
    // `max` is no limit, and no number
    let limit = |path: &Path| {
        let text = fs::read_to_string(path.join(name)).ok()?;
        text.trim().parse().ok()
    };
    above.filter_map(limit).min()
}

/// What a configuration names and cannot be used.
#[derive(Debug)]
pub struct Unusable {
    /// What it is for, and its path.
    pub what: String,
    /// What the system said.
    pub cause: io::Error,
    /// What to do about it, where the cause does not say.
    pub hint: Option<String>,
}

/// The largest response, head and bookkeeping included, that memory takes in when it is asked for
/// the first time, bytes: an eviction algorithm may take newcomers into a part of it.
#[must_use]
pub fn newcomer_max_bytes(config: &Config) -> u64 {
    let cache = &config.cache;
    let store = MemoryStore::new(
        cache.memory.bytes(),
        cache.eviction,
        worker_count(config),
        cache.largest_response.bytes(),
        Secret([0; 16]),
    );
    store
        .newcomer_max_bytes()
        .min(cache.largest_response.bytes())
}

/// Tries the files and directories that `config` names as a start would: directories for stored
/// responses and certificates, the access log, the token. What had to be made for that is removed
/// again.
#[must_use]
pub fn try_places(config: &Config) -> Vec<Unusable> {
    let mut all = Vec::new();
    let mut add = |what: String, path: &Path, setting: &str, tried: io::Result<()>| {
        all.extend(tried.err().map(|cause| Unusable {
            hint: advice::of_place(path, setting, &cause),
            what,
            cause,
        }));
    };
    if config.disk.enabled && config.cache.enabled {
        for directory in &config.disk.directories {
            let path = directory.path.display();
            let what = format!("the directory `{path}` for stored responses");
            let tried = try_directory(&directory.path);
            add(what, &directory.path, "`disk.directories`", tried);
        }
    }
    if !acme_orders(&config.listeners).is_empty() {
        let storage = acme::storage(config);
        let path = storage.folder();
        let what = format!("the folder `{}` for certificates", path.display());
        add(what, path, "`acme.folder`", try_directory(path));
    }
    if let Some(path) = config.log.access.path() {
        add(
            format!("the access log `{}`", path.display()),
            path,
            "`log.access`",
            try_log(path),
        );
    }
    for crowded in crowded_disks(config) {
        all.push(Unusable {
            what: "the size of the store".to_owned(),
            cause: io::Error::other(crowded.to_string()),
            hint: Some(
                "use less, or make room; without a size a tenth of what is free is taken"
                    .to_owned(),
            ),
        });
    }
    if let MembersSource::Of(Source::File(path)) = &config.cluster.source {
        all.extend(weir_cluster::read_file(path).err().map(|error| Unusable {
            what: "the list of members".to_owned(),
            cause: io::Error::other(error),
            hint: None,
        }));
    }
    let (token, secret) = (&config.admin.token_file, &config.cluster.secret_file);
    all.extend(unreadable("the admin token", token, "admin.token_file"));
    if let Some(path) = secret.path()
        && let Err(cause) = SecretFile::read(path)
    {
        all.push(Unusable {
            hint: cause.hint(),
            what: format!("the cluster's secret in `{}`", path.display()),
            cause: io::Error::other(cause),
        });
    }
    all.extend(read_client_logins(config).err().map(|error| Unusable {
        what: error.what.trim_start_matches("use ").to_owned(),
        cause: error.cause,
        hint: error.hint,
    }));
    for (index, parent) in config.parents.iter().enumerate() {
        let Some(path) = parent.login_file.path() else {
            continue;
        };
        if let Err(cause) = read_login(path) {
            all.push(Unusable {
                hint: Some(format!(
                    "`parent[{index}].login_file` names a file with one line `NAME:PASSWORD`, mode 0600"
                )),
                what: format!("the login in `{}`", path.display()),
                cause,
            });
        }
    }
    all
}

/// Why the token in `file`, if it is one, cannot be used; `setting` names it.
fn unreadable(what: &str, file: &TokenFile, setting: &str) -> Option<Unusable> {
    let path = file.path()?;
    let cause = Token::read(path).err()?;
    Some(Unusable {
        hint: cause.hint(setting),
        what: format!("{what} in `{}`", path.display()),
        cause: io::Error::other(cause),
    })
}

/// Makes a file in the directory, which is made for that if it has to be.
fn try_directory(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    let made = fs::create_dir_all(path).and_then(|()| {
        let file = path.join(format!(".weir-check-{}", std::process::id()));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&file)?;
        fs::remove_file(&file)
    });
    for path in missing {
        // one that was not made, or is another's by now, stays
        let _ = fs::remove_dir(path);
    }
    made
}

fn try_log(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path);
    // opening it waits for its reader
    if found
        .as_ref()
        .is_ok_and(|found| found.file_type().is_fifo())
    {
        return Ok(());
    }
    OpenOptions::new().append(true).create(true).open(path)?;
    if found.is_err() {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Directory, LogTarget};

    #[test]
    fn memory_beyond_the_machine_is_refused() {
        let machine = Machine {
            memory_bytes: Some(256 << 20),
            open_files_max: None,
        };
        let mut config = Config::default();
        assert_eq!(machine.check(&config, 1), Ok(()));
        config.cache.memory = "257MiB".parse().expect("a size");
        let refused = machine.check(&config, 1).expect_err("too much");
        assert_eq!(refused.key_path, "cache.memory");
        assert_eq!(
            refused.reason,
            "257MiB is more than the 256MiB of memory here"
        );
        config.cache.enabled = false;
        assert_eq!(machine.check(&config, 1), Ok(()));
        // this one has some, and less than that
        config = Config::default();
        config.cache.memory = "1000TiB".parse().expect("a size");
        assert_eq!(
            check_machine(&config).expect_err("too much").key_path,
            "cache.memory"
        );
    }

    #[test]
    fn workers_beyond_the_limit_of_open_files_are_refused() {
        let machine = Machine {
            memory_bytes: None,
            open_files_max: Some(3000),
        };
        let config = Config::default();
        assert_eq!(machine.check(&config, 1000), Ok(()));
        let refused = machine.check(&config, 1001).expect_err("too many");
        assert_eq!(refused.key_path, "workers");
    }

    #[test]
    fn disk_size_beyond_its_file_system_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let space = rustix::fs::statvfs(folder.path()).expect("a file system");
        let total = (space.f_blocks * space.f_frsize) >> 20;
        let directory = |name: &str, mib: u64| Directory {
            path: folder.path().join(name),
            size: Some(format!("{mib}MiB").parse().expect("a size")),
        };
        let mut config = Config::default();
        let mut check = |directories: Vec<Directory>| {
            config.disk.directories = directories;
            check_disks(&config).map_err(|invalid| invalid.key_path)
        };
        assert_eq!(check(vec![directory("a/b", total / 2)]), Ok(()));
        let too_large = Err("disk.directories[0].size".to_owned());
        assert_eq!(check(vec![directory("a/b", total + 1)]), too_large);
        let together = vec![directory("a", total / 2 + 1), directory("b", total / 2 + 1)];
        assert_eq!(check(together), Err("disk.directories[1].size".to_owned()));
    }

    #[test]
    fn memory_limit_is_read_from_meminfo_and_cgroups() {
        assert_eq!(
            meminfo_total("MemTotal:       2048 kB\nMemFree: 1 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(meminfo_total("MemTotal: x kB\n"), None);
        let root = tempfile::tempdir().expect("a folder");
        let limit = |groups: &str| group_limit(groups, root.path());
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("a/memory.max", "2000\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "1000\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("12:cpu:/x\n"), None);
        assert_eq!(limit("0::/a/b\n"), Some(2000));
        assert_eq!(limit("7:cpu,memory:/c/d\n0::/\n"), Some(1000));
        assert_eq!(limit("7:memory:/\n"), Some(9_223_372_036_854_771_712));
        assert!(memory_bytes().is_some_and(|bytes| bytes > 16 << 20));
    }

    #[test]
    fn directories_exceeding_free_and_own_space_are_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let space = rustix::fs::statvfs(folder.path()).expect("a file system");
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let mut config = Config::default();
        let mut crowded = |first: u64, second: u64| {
            let directory = |name: &str, bytes| Directory {
                path: folder.path().join(name),
                size: Some(crate::config::ByteSize::from_bytes(bytes)),
            };
            config.disk.directories = vec![directory("a", first), directory("b", second)];
            crowded_disks(&config)
        };
        assert_eq!(crowded(free / 4, free / 4), []);
        // each alone has room, both together have not, also if other files are removed meanwhile
        let both = crowded(free / 4 * 3, free / 4 * 3);
        assert_eq!(both.len(), 1, "{both:?}");
        assert!(both[0].path.ends_with("b"), "{both:?}");
        // what the store has already is its own: a sparse file takes no room
        fs::create_dir(folder.path().join("a")).expect("made");
        let file = fs::File::create(folder.path().join("a/0000000000000001.seg"));
        file.expect("made").set_len(free).expect("set");
        assert_eq!(crowded(free / 4 * 3, free / 4 * 3), []);
    }

    #[test]
    fn probing_paths_leaves_no_trace_and_reports_unusable_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config::default();
        let directory = |path: PathBuf| Directory { path, size: None };
        config.disk.directories = vec![directory(folder.path().join("a/b"))];
        config.log.access = LogTarget::File(folder.path().join("access.log"));
        assert!(try_places(&config).is_empty());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        // what is there stays
        fs::create_dir(folder.path().join("a")).expect("a folder");
        fs::write(folder.path().join("access.log"), "a line\n").expect("a file");
        assert!(try_places(&config).is_empty());
        assert!(folder.path().join("a").is_dir());
        let log = fs::read_to_string(folder.path().join("access.log"));
        assert_eq!(log.expect("there"), "a line\n");
        // a file is no folder
        let file = folder.path().join("access.log");
        config.disk.directories.push(directory(file.join("x")));
        config.log.access = LogTarget::File(folder.path().join("missing/access.log"));
        config.admin.token_file = TokenFile::At(folder.path().join("no-token"));
        let unusable: Vec<String> = try_places(&config).into_iter().map(|it| it.what).collect();
        assert_eq!(unusable.len(), 3, "{unusable:?}");
        for (what, part) in unusable
            .iter()
            .zip(["access.log/x", "missing/access.log", "no-token"])
        {
            assert!(what.contains(part), "{what}");
        }
    }
}
