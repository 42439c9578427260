//! callgrind of valgrind: counts instructions, system calls and allocations of each thread of a
//! program.
//!
//! The program runs without the kernel's vDSO there, so each reading of a clock is a system call
//! that it is not elsewhere: they are counted apart. A system call that valgrind does not know
//! (`cachestat` in 3.19) fails with `ENOSYS`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use xtask::command::output;
use xtask::failure::{During, Failure};
use xtask::files;

/// The program of the Debian package.
pub(crate) const PROGRAM: &str = "valgrind";

/// Begins the names of its files; `-` and the number of the thread follow.
const FILE: &str = "out";

/// What reads a clock.
const CLOCK: &str = "clock_gettime";

/// What allocates: mimalloc as Rust calls it, and the C library as libraries in C do.
const ALLOCATORS: [&str; 11] = [
    "mi_malloc",
    "mi_zalloc",
    "mi_realloc",
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
];

/// What a thread did, or by what two runs of it differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadWork {
    /// Of the program itself, without the kernel.
    pub(crate) instructions: u64,
    /// Without readings of clocks.
    pub(crate) system_calls: u64,
    pub(crate) clock_readings: u64,
    /// Reallocations are some, too.
    pub(crate) allocations: u64,
}

impl ThreadWork {
    /// What is more than in another one.
    pub(crate) fn beyond(self, fewer: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(fewer.instructions),
            system_calls: self.system_calls.saturating_sub(fewer.system_calls),
            clock_readings: self.clock_readings.saturating_sub(fewer.clock_readings),
            allocations: self.allocations.saturating_sub(fewer.allocations),
        }
    }
}

/// By thread, named as its file ends.
pub(crate) type ByThread = BTreeMap<String, ThreadWork>;

/// A command that counts what the command behind it does, into files in `directory`.
pub(crate) fn command(directory: &Path) -> Vec<String> {
    let file = directory.join(FILE);
    vec![
        PROGRAM.to_owned(),
        "--tool=callgrind".to_owned(),
        "--separate-threads=yes".to_owned(),
        "--collect-systime=yes".to_owned(),
        // of the source, which nothing here reads
        "--dump-line=no".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
    ]
}

/// What a program that has ended did.
///
/// # Errors
/// There is no file of a thread, or one has no totals.
pub(crate) fn read(directory: &Path) -> Result<ByThread, Failure> {
    read_files(directory, &format!("{FILE}-"))
}

/// What a program did between a dump and the one before.
///
/// # Errors
/// The same as of [`read`].
pub(crate) fn read_dump(directory: &Path, number: u32) -> Result<ByThread, Failure> {
    read_files(directory, &format!("{FILE}.{number}-"))
}

/// Has a process write what it did since the last time, and count from 0 on.
///
/// # Errors
/// valgrind cannot reach it.
pub(crate) fn dump(process: u32) -> Result<(), Failure> {
    let mut vgdb = Command::new("timeout");
    vgdb.args(["30", "vgdb", &format!("--pid={process}"), "dump"]);
    output(&mut vgdb).map(drop)
}

fn read_files(directory: &Path, front: &str) -> Result<ByThread, Failure> {
    let mut by_thread = ByThread::new();
    let what = "read the files of callgrind";
    for path in files::list(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(thread) = name.strip_prefix(front) else {
            continue;
        };
        let text = std::fs::read(&path).during(what)?;
        let work = thread_work(&String::from_utf8_lossy(&text));
        let work = work.ok_or_else(|| format!("`{name}` has no totals"));
        by_thread.insert(thread.to_owned(), work.during(what)?);
    }
    if by_thread.is_empty() {
        let what = "callgrind left no file of a thread";
        return Err(Failure::Outside(what.to_owned()));
    }
    Ok(by_thread)
}

/// What the thread with the largest difference of instructions between two runs did more.
pub(crate) fn busiest(fewer: &ByThread, more: &ByThread) -> ThreadWork {
    let thread = busiest_thread(fewer, more);
    thread.map_or_else(ThreadWork::default, |thread| of_thread(thread, fewer, more))
}

/// The name of that thread.
pub(crate) fn busiest_thread<'t>(fewer: &ByThread, more: &'t ByThread) -> Option<&'t str> {
    let threads = more.keys().map(String::as_str);
    threads.max_by_key(|thread| of_thread(thread, fewer, more).instructions)
}

/// What a thread did more in one run than in another.
pub(crate) fn of_thread(thread: &str, fewer: &ByThread, more: &ByThread) -> ThreadWork {
    let of = |run: &ByThread| run.get(thread).copied().unwrap_or_default();
    of(more).beyond(of(fewer))
}

/// Reads the file of a thread: its totals, and how often which functions were called.
fn thread_work(text: &str) -> Option<ThreadWork> {
    let mut work = ThreadWork::default();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut called, mut totals) = ("", None);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function(name, &mut names);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            called = function(name, &mut names);
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let calls: u64 = calls.split(' ').next()?.parse().ok()?;
            if called.split('@').next() == Some(CLOCK) {
                work.clock_readings += calls;
            } else if ALLOCATORS.contains(&called) {
                work.allocations += calls;
            }
        } else if let Some(numbers) = line.strip_prefix("totals:") {
            totals = Some(numbers);
        }
    }
    // `Ir`, which is instructions, and `sysCount`; it is left out by a thread that made no call
    let mut numbers = totals?.split_whitespace();
    work.instructions = numbers.next()?.parse().ok()?;
    let calls: u64 = numbers
        .next()
        .map_or(Some(0), |number| number.parse().ok())?;
    work.system_calls = calls.saturating_sub(work.clock_readings);
    Some(work)
}

/// The name of a function: `(7) name` where it comes first, `(7)` from then on.
fn function<'t>(text: &'t str, names: &mut BTreeMap<&'t str, &'t str>) -> &'t str {
    let (id, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        names.insert(id, name);
    }
    names.get(id).copied().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n\
        cmd:  weir serve --config weir.toml\npart: 1\nthread: 2\n\ndesc: I1 cache: \n\
        desc: Trigger: Program termination\n\npositions: line\nevents: Ir sysCount sysTime\n\
        summary: 81726354 42 9\n\n\
        ob=(1) /usr/bin/weir\nfl=(1) worker.rs\nfn=(1) run\n0 20\n\
        cfn=(2) mi_malloc_aligned\ncalls=3 0\n0 200\ncfn=(3) clock_gettime@@GLIBC_2.17\n\
        calls=10 0\n0 70 10 1\n\nfn=(4) read\n0 5\ncfn=(2)\ncalls=2 0\n0 100\n\
        cfn=(5) mi_malloc_aligned_at\ncalls=7 0\n0 100\n\ntotals: 81726354 42 9\n";

    #[test]
    fn work_of_a_thread_is_read_from_its_file() {
        let expected = ThreadWork {
            instructions: 81_726_354,
            system_calls: 32,
            clock_readings: 10,
            allocations: 5,
        };
        assert_eq!(thread_work(TEXT), Some(expected));
        let instructions = |text| thread_work(text).map(|work| work.instructions);
        assert_eq!(instructions("totals: 5\n"), Some(5));
        assert_eq!(instructions("summary: 5\n"), None);
    }

    #[test]
    fn busiest_thread_has_the_largest_difference_of_two_runs() {
        let of = |one: u64, two: u64| {
            let work = |instructions| ThreadWork {
                instructions,
                ..ThreadWork::default()
            };
            ByThread::from([("01".to_owned(), work(one)), ("02".to_owned(), work(two))])
        };
        assert_eq!(busiest(&of(900, 100), &of(900, 300)).instructions, 200);
        assert_eq!(busiest(&ByThread::new(), &of(7, 5)).instructions, 7);
    }
}
