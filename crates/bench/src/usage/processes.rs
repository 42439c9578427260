//! A process and all that come from it.

use super::proc_file::{Stat, named_numbers};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The sums over a process tree at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) processes: u32,
    /// CPU time since the tree was first looked at, ticks; never less than before.
    pub(super) cpu_ticks: u64,
    pub(super) rss_bytes: u64,
    /// Since the tree was first looked at.
    pub(super) read_bytes: u64,
    /// Since the tree was first looked at.
    pub(super) written_bytes: u64,
}

/// Follows a process tree by the id of its root.
#[derive(Debug)]
pub(super) struct Processes {
    root: u32,
    /// When the root was started, as it was first looked at: its id may be given out again.
    root_started: Option<u64>,
    proc: PathBuf,
    last: HashMap<(u32, u64), ByteCounts>,
    last_ticks: Option<u64>,
    so_far: Totals,
    hides_bytes: bool,
}

/// Bytes of one process when it was last seen.
#[derive(Clone, Copy, Debug, Default)]
struct ByteCounts {
    read_bytes: u64,
    written_bytes: u64,
}

impl Processes {
    pub(super) fn of(root: u32) -> Self {
        Self::under(root, PathBuf::from("/proc"))
    }

    fn under(root: u32, proc: PathBuf) -> Self {
        Self {
            root,
            root_started: None,
            proc,
            last: HashMap::new(),
            last_ticks: None,
            so_far: Totals::default(),
            hides_bytes: false,
        }
    }

    /// Bytes read and written cannot be seen: the processes are another user's.
    pub(super) const fn hides_bytes(&self) -> bool {
        self.hides_bytes
    }

    /// Looks at the tree. `None` when its root has ended.
    pub(super) fn look(&mut self) -> Option<Totals> {
        let stats = stats(&self.proc);
        let root = *stats.get(&self.root)?;
        let is_the_same = *self.root_started.get_or_insert(root.started) == root.started;
        if !is_the_same || !root.is_running {
            return None;
        }
        let tree = tree(self.root, root.started, &stats);
        let ticks = tree
            .iter()
            .map(|id| stats[id].own_ticks + stats[id].children_ticks)
            .sum::<u64>();
        // what a child used is in its parent's sum once it was waited for; of one that no process
        // waits for the sum loses what it had used, and that second counts as idle
        let before = self.last_ticks.replace(ticks).unwrap_or(ticks);
        self.so_far.cpu_ticks += ticks.saturating_sub(before);
        self.look_at_bytes(&tree, &stats);
        self.so_far.processes = u32::try_from(tree.len()).unwrap_or(u32::MAX);
        self.so_far.rss_bytes = tree.iter().map(|&id| self.rss_bytes(id)).sum();
        Some(self.so_far)
    }

    fn look_at_bytes(&mut self, tree: &[u32], stats: &HashMap<u32, Stat>) {
        let is_first = self.last.is_empty();
        let mut seen = HashMap::with_capacity(tree.len());
        for id in tree {
            let Some(now) = self.bytes(*id) else {
                // one that has just ended hides nothing from us
                let stat = self.read(*id, "stat");
                let stat = stat.as_deref().and_then(Stat::parse);
                self.hides_bytes |= stat.is_some_and(|stat| stat.is_running);
                continue;
            };
            let name = (*id, stats[id].started);
            // a process that came since counts from its birth, one that was there at first from
            // then on
            let start = if is_first { now } else { ByteCounts::default() };
            let before = self.last.get(&name).copied().unwrap_or(start);
            self.so_far.read_bytes += now.read_bytes.saturating_sub(before.read_bytes);
            self.so_far.written_bytes += now.written_bytes.saturating_sub(before.written_bytes);
            seen.insert(name, now);
        }
        self.last = seen;
    }

    fn rss_bytes(&self, id: u32) -> u64 {
        let text = self.read(id, "status").unwrap_or_default();
        1024 * named_numbers(&text).get("VmRSS").copied().unwrap_or(0)
    }

    /// `None` without the permission to read it, or if the process has ended.
    fn bytes(&self, id: u32) -> Option<ByteCounts> {
        let text = self.read(id, "io")?;
        let numbers = named_numbers(&text);
        Some(ByteCounts {
            read_bytes: numbers.get("read_bytes").copied()?,
            written_bytes: numbers.get("write_bytes").copied()?,
        })
    }

    fn read(&self, id: u32, file: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(id.to_string()).join(file)).ok()
    }
}

/// A process and its descendants, the process first; nothing if it is not there.
#[must_use]
pub fn process_tree(root: u32) -> Vec<(u32, Stat)> {
    let stats = stats(Path::new("/proc"));
    let started = stats.get(&root).map(|stat| stat.started);
    let ids = started.map_or_else(Vec::new, |started| tree(root, started, &stats));
    ids.into_iter().map(|id| (id, stats[&id])).collect()
}

/// One process; `None` if it is not there.
#[must_use]
pub fn stat_of(id: u32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Every process of the machine.
fn stats(proc: &Path) -> HashMap<u32, Stat> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stat = |id| {
        let file = proc.join(format!("{id}/stat"));
        Stat::parse(&fs::read_to_string(file).ok()?)
    };
    ids.filter_map(|id| Some((id, stat(id)?))).collect()
}

/// The ids of a process and its descendants. An id that was given out again is not mistaken for a
/// child: a child is not older than its parent.
fn tree(root: u32, started: u64, stats: &HashMap<u32, Stat>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    for (&id, stat) in stats {
        children
            .entry(stat.parent)
            .or_default()
            .push((id, stat.started));
    }
    let mut seen = HashSet::from([root]);
    let mut found = vec![root];
    let mut to_do = vec![(root, started)];
    while let Some((parent, parent_started)) = to_do.pop() {
        for &(id, started) in children.get(&parent).into_iter().flatten() {
            if started >= parent_started && seen.insert(id) {
                found.push(id);
                to_do.push((id, started));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like `/proc`.
    struct Proc(tempfile::TempDir);

    impl Proc {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary folder"))
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        /// (id, parent, own ticks, children's ticks, bytes read)
        fn put(&self, id: u32, parent: u32, own: u64, children: u64, read: u64) {
            let folder = self.path().join(id.to_string());
            fs::create_dir_all(&folder).expect("a folder");
            let stat = format!(
                "{id} (p) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {children} 0 20 0 1 0 {id} 0 0\n"
            );
            fs::write(folder.join("stat"), stat).expect("a file");
            fs::write(folder.join("status"), "VmRSS:\t10 kB\n").expect("a file");
            let io = format!("read_bytes: {read}\nwrite_bytes: 1\n");
            fs::write(folder.join("io"), io).expect("a file");
        }

        fn remove(&self, id: u32) {
            fs::remove_dir_all(self.path().join(id.to_string())).expect("it was there");
        }
    }

    #[test]
    fn cpu_time_of_an_ended_child_remains_in_the_total() {
        let proc = Proc::new();
        proc.put(1, 0, 5, 5, 5);
        proc.put(100, 1, 50, 0, 1000);
        proc.put(101, 100, 20, 0, 100);
        let mut processes = Processes::under(100, proc.path().to_owned());
        let first = processes.look().expect("it is there");
        assert_eq!(
            (first.processes, first.cpu_ticks, first.read_bytes),
            (2, 0, 0)
        );
        assert_eq!(first.rss_bytes, 20 * 1024);

        // the child ended with 25 ticks and was waited for; another came
        proc.remove(101);
        proc.put(100, 1, 51, 25, 1010);
        proc.put(102, 100, 3, 0, 7);
        let second = processes.look().expect("it is there");
        assert_eq!(second.processes, 2);
        assert_eq!(second.cpu_ticks, 1 + 5 + 3);
        assert_eq!(second.read_bytes, 10 + 7);

        // a zombie does not make the sum fall
        proc.remove(102);
        let third = processes.look().expect("it is there");
        assert_eq!((third.processes, third.cpu_ticks), (1, 9));

        proc.remove(100);
        assert_eq!(processes.look(), None);
    }

    #[test]
    fn unrelated_process_or_child_of_a_reused_id_is_not_counted() {
        let proc = Proc::new();
        proc.put(100, 1, 1, 0, 0);
        // older than what its parent's id now names
        proc.put(7, 100, 1000, 0, 0);
        proc.put(200, 3, 1000, 0, 0);
        let mut processes = Processes::under(100, proc.path().to_owned());
        assert_eq!(processes.look().expect("it is there").processes, 1);
    }

    #[test]
    fn unreadable_process_io_is_reported_as_hidden() {
        let proc = Proc::new();
        proc.put(100, 1, 1, 0, 0);
        fs::remove_file(proc.path().join("100/io")).expect("it was there");
        let mut processes = Processes::under(100, proc.path().to_owned());
        assert!(processes.look().is_some());
        assert!(processes.hides_bytes());
    }

    #[test]
    fn zombie_child_hides_nothing_and_a_zombie_root_counts_as_gone() {
        let proc = Proc::new();
        proc.put(100, 1, 1, 0, 0);
        proc.put(101, 100, 1, 0, 0);
        fs::remove_file(proc.path().join("101/io")).expect("it was there");
        // its parent has not waited for it yet
        let end = |id: u32| {
            let stat = proc.path().join(id.to_string()).join("stat");
            let text = fs::read_to_string(&stat).expect("it was put there");
            let (name, rest) = text.rsplit_once(") ").expect("a name in parentheses");
            fs::write(&stat, format!("{name}) Z{}", &rest[1..])).expect("a file");
        };
        end(101);
        let mut processes = Processes::under(100, proc.path().to_owned());
        assert!(processes.look().is_some());
        assert!(!processes.hides_bytes());
        end(100);
        assert!(processes.look().is_none());
    }

    #[test]
    fn reused_process_id_is_not_taken_for_the_proxy() {
        let proc = Proc::new();
        proc.put(100, 1, 1, 0, 0);
        let mut processes = Processes::under(100, proc.path().to_owned());
        assert!(processes.look().is_some());
        let stat = proc.path().join("100/stat");
        let text = fs::read_to_string(&stat).expect("it was put there");
        // the last field but two is when it was started
        fs::write(&stat, text.replace(" 0 100 0 0", " 0 777 0 0")).expect("a file");
        assert!(processes.look().is_none());
    }
}
