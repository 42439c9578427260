//! A folder of sources shows what is in it at one look: not more than so many modules side by side.

use crate::tidy::complaint::Complaint;
use crate::tidy::tree::File;
use std::collections::{BTreeMap, BTreeSet};

/// Modules side by side in one folder; more need folders by topic. `x.rs` and `x/` are one.
const MODULES_MAX: usize = 15;

/// Folders that may have more, for now. A number must be lowered with the folder, and never raised.
const LIMITS: [(&str, usize); 1] = [("crates/bench/src/report", 17)];

fn limit(folder: &str) -> usize {
    let known = LIMITS.iter().find(|(known, _)| *known == folder);
    known.map_or(MODULES_MAX, |(_, limit)| *limit)
}

/// Complains about folders with too many modules.
pub(in crate::tidy) fn check(files: &[File]) -> Vec<Complaint> {
    let mut folders: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let Some(path) = file.path.strip_suffix(".rs") else {
            continue;
        };
        let parts: Vec<&str> = path.split('/').collect();
        for (depth, name) in parts.iter().enumerate().skip(1) {
            if !matches!(*name, "lib" | "main" | "mod") {
                let folder = parts[..depth].join("/");
                folders.entry(folder).or_default().insert(name);
            }
        }
    }
    let complaint = |(folder, modules): (&String, &BTreeSet<&str>)| {
        let count = modules.len();
        let what = format!("{count} modules side by side, more than {MODULES_MAX}");
        let instead = "give those of one topic a folder";
        (count > limit(folder) && is_of_modules(folder))
            .then(|| Complaint::new(folder, 1, what, instead))
    };
    folders.iter().filter_map(complaint).collect()
}

/// Whether the folder holds modules of a crate, and not crates.
fn is_of_modules(folder: &str) -> bool {
    let mut parts = folder.split('/');
    parts.any(|part| matches!(part, "src" | "tests" | "fuzz_targets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> File {
        File::new(path, "")
    }

    fn modules(count: usize) -> Vec<File> {
        let numbered = |number: usize| file(&format!("crates/a/src/b/m{number}.rs"));
        (0..count).map(numbered).collect()
    }

    #[test]
    fn folder_may_have_fifteen_modules_whose_own_folders_do_not_count() {
        let mut files = modules(MODULES_MAX);
        files.push(file("crates/a/src/b/m0/inner.rs"));
        files.push(file("crates/a/src/b/mod.rs"));
        files.push(file("crates/a/src/b/notes.md"));
        assert_eq!(check(&files), []);
        files.push(file("crates/a/src/b/another/inner.rs"));
        let complaints = check(&files);
        assert_eq!(complaints.len(), 1);
        assert!(
            complaints[0]
                .to_string()
                .starts_with("crates/a/src/b:1: 16 modules")
        );
    }
}
