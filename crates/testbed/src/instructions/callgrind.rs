//! callgrind of valgrind: counts the instructions of each thread of a program.

use std::collections::BTreeMap;
use std::path::Path;
use xtask::failure::{During, Failure};
use xtask::files;

/// The program of the Debian package.
pub(super) const PROGRAM: &str = "valgrind";

/// Begins the names of its files; `-` and the number of the thread follow.
const FILE: &str = "out";

/// Instructions by thread, named as its file is.
pub(super) type ByThread = BTreeMap<String, u64>;

/// A command that counts the instructions of the command behind it into files in `directory`.
pub(super) fn command(directory: &Path) -> Vec<String> {
    let file = directory.join(FILE);
    vec![
        PROGRAM.to_owned(),
        "--tool=callgrind".to_owned(),
        "--separate-threads=yes".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
    ]
}

/// What a program that has ended used.
///
/// # Errors
/// There is no file of a thread, or one has no total.
pub(super) fn read(directory: &Path) -> Result<ByThread, Failure> {
    let mut by_thread = ByThread::new();
    let what = "read the files of callgrind";
    for path in files::list(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(&format!("{FILE}-")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).during(what)?;
        let total = total(&text).ok_or_else(|| format!("`{name}` has no total"));
        by_thread.insert(name.into_owned(), total.during(what)?);
    }
    if by_thread.is_empty() {
        let what = "callgrind left no file of a thread";
        return Err(Failure::Outside(what.to_owned()));
    }
    Ok(by_thread)
}

/// Instructions of the thread with the largest difference between two runs.
pub(super) fn busiest(fewer: &ByThread, more: &ByThread) -> u64 {
    let differences = more.iter().map(|(thread, more)| {
        let fewer = fewer.get(thread).copied().unwrap_or_default();
        more.saturating_sub(fewer)
    });
    differences.max().unwrap_or_default()
}

/// The number behind `totals:`; of several events the first, which is instructions.
fn total(text: &str) -> Option<u64> {
    let mut lines = text.lines().rev();
    let total = lines.find_map(|line| line.strip_prefix("totals:"))?;
    total.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n\
        cmd:  weir serve --config weir.toml\npart: 1\nthread: 2\n\ndesc: I1 cache: \n\
        desc: Trigger: Program termination\n\npositions: line\nevents: Ir\nsummary: 81726354\n\n\
        ob=(1) /usr/bin/weir\nfl=(1) worker.rs\nfn=(1) run\n0 20\n+3 81726334\n\n\
        totals: 81726354\n";

    #[test]
    fn total_of_a_thread_is_read_from_its_file() {
        assert_eq!(total(TEXT), Some(81_726_354));
        assert_eq!(total("totals: 5 6 7\n"), Some(5));
        assert_eq!(total("summary: 5\n"), None);
    }

    #[test]
    fn busiest_thread_has_the_largest_difference_of_two_runs() {
        let of = |one: u64, two: u64| {
            ByThread::from([("out-01".to_owned(), one), ("out-02".to_owned(), two)])
        };
        assert_eq!(busiest(&of(900, 100), &of(900, 300)), 200);
        assert_eq!(busiest(&ByThread::new(), &of(7, 5)), 7);
    }
}
