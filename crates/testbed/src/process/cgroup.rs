//! Control groups: limits for the processes in them.

use std::path::{Path, PathBuf};
use xtask::failure::{During, Failure};

/// A control group of our own; removed when dropped.
#[derive(Debug)]
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes one in `parent`.
    pub(crate) fn make(parent: &Path, name: &str) -> Result<Self, Failure> {
        let path = parent.join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).during(format_args!("make `{}`", path.display()))?;
        Ok(Self(path))
    }

    /// Makes one that limits memory, page cache included.
    pub(crate) fn of_memory(name: &str, limit_mib: u64) -> Result<Self, Failure> {
        let own = std::fs::read_to_string("/proc/self/cgroup").during("read the control groups")?;
        let (parent, file) = parent_of_memory(&own).ok_or_else(|| {
            Failure::Outside("there is no control group for memory; try `--cgroup 0`".to_owned())
        })?;
        let group = Self::make(&parent, name)?;
        group.set(file, &(limit_mib << 20).to_string())?;
        Ok(group)
    }

    /// Writes one of its files.
    pub(crate) fn set(&self, file: &str, value: &str) -> Result<(), Failure> {
        std::fs::write(self.0.join(file), value)
            .during(format_args!("set `{file}` of a control group"))
    }

    /// Reads one of its files.
    pub(crate) fn get(&self, file: &str) -> Result<String, Failure> {
        std::fs::read_to_string(self.0.join(file))
            .during(format_args!("read `{file}` of a control group"))
    }

    /// A command that enters the group, then becomes the command behind it.
    pub(crate) fn within(&self) -> Vec<String> {
        Self::within_all(std::slice::from_ref(self))
    }

    /// The same for groups of different hierarchies.
    pub(crate) fn within_all(groups: &[Self]) -> Vec<String> {
        let mut enter = String::new();
        for group in groups {
            let file = group.0.join("cgroup.procs");
            enter += &format!("echo $$ > '{}' && ", file.display());
        }
        enter += "exec \"$@\"";
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // an empty group that stays behind does no harm
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Where a group can be made, and the file that takes its limit: of version 1 or 2.
fn parent_of_memory(own: &str) -> Option<(PathBuf, &'static str)> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        if controllers.split(',').any(|name| name == "memory") {
            let root = Path::new("/sys/fs/cgroup/memory");
            return Some((root.join(path), "memory.limit_in_bytes"));
        }
        let root = Path::new("/sys/fs/cgroup").join(path);
        let has_memory = controllers.is_empty() && root.join("memory.max").exists();
        has_memory.then_some((root, "memory.max"))
    })
}
