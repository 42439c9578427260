//! The content of all targets as files, which nginx serves, and of which the stores of weir are
//! filled.

use super::schedule::{Schedule, path};
use rustix::fs::{Advice, fadvise, statvfs};
use std::fs;
use std::path::Path;
use weir_bench::origin::content_of;
use xtask::failure::{During, Failure};

/// Free space that is left beside all copies, bytes: the disk of the machine shall not be full.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// What a copy takes beside its content, at most, as part of it: blocks of files, segments.
const OVERHEAD_PERCENT: u64 = 30;

/// Refuses to write so many copies where there is no room for them.
///
/// # Errors
/// There is too little room.
pub(super) fn require_room(
    directory: &Path,
    schedule: &Schedule,
    copies: u64,
) -> Result<(), Failure> {
    let content = schedule.content_bytes();
    let needed = copies * (content + content * OVERHEAD_PERCENT / 100) + FREE_BYTES_MIN;
    let found = statvfs(directory).during("ask for free space")?;
    let free = found.f_bavail * found.f_frsize;
    if free >= needed {
        return Ok(());
    }
    Err(Failure::Outside(format!(
        "{} MB are free below `{}`, and {copies} copies of the content need {} MB\n\
         hint: a smaller `--scale`, or `TMPDIR` on another disk",
        free / 1_000_000,
        directory.display(),
        needed / 1_000_000
    )))
}

/// Writes a file for each target below a directory. They are on the device when it returns, and
/// not in the page cache.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write_files(directory: &Path, schedule: &Schedule) -> Result<(), Failure> {
    let folder = directory.join("t");
    fs::create_dir_all(&folder).during("make a directory of files")?;
    for number in 0..schedule.targets() {
        let length = usize::try_from(schedule.size(number)).during("size a file")?;
        let mut bytes = vec![0; length];
        content_of(&schedule.target(number)).fill(0, &mut bytes);
        let file = directory.join(path(number).trim_start_matches('/'));
        fs::write(&file, bytes).during(format_args!("write `{}`", file.display()))?;
    }
    rustix::fs::sync();
    drop_from_page_cache(directory)
}

/// Has the kernel drop what it holds of the files below a directory: the page cache counts for the
/// group that read a page first, and so each node is to read it itself.
///
/// # Errors
/// A file cannot be opened.
pub(super) fn drop_from_page_cache(directory: &Path) -> Result<(), Failure> {
    let during = || format!("list `{}`", directory.display());
    for entry in fs::read_dir(directory).during(during())? {
        let path = entry.during(during())?.path();
        if path.is_dir() {
            drop_from_page_cache(&path)?;
        } else {
            let file = fs::File::open(&path).during(format_args!("open `{}`", path.display()))?;
            fadvise(&file, 0, None, Advice::DontNeed).during("drop a file from the page cache")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::workplace::Workplace;

    #[test]
    fn each_target_has_a_file_with_its_content() {
        let workplace = Workplace::make("figure13-content").expect("a directory");
        let schedule = Schedule::make(0.00001, 1).expect("the trace");
        write_files(workplace.path(), &schedule).expect("files");
        let listed = fs::read_dir(workplace.path().join("t")).expect("a directory");
        assert_eq!(listed.count(), schedule.targets());
        for number in 0..schedule.targets() {
            let file = workplace.path().join(format!("t/{number}"));
            let bytes = fs::read(file).expect("a file");
            assert_eq!(bytes.len() as u64, schedule.size(number));
            let content = content_of(&schedule.target(number));
            assert_eq!(content.differs_at(0, &bytes), None);
        }
    }

    #[test]
    fn copies_that_do_not_fit_are_refused_with_a_hint() {
        let schedule = Schedule::make(0.00001, 1).expect("the trace");
        let here = std::env::temp_dir();
        assert!(require_room(&here, &schedule, 1).is_ok());
        let refused = require_room(&here, &schedule, 1 << 40).map_err(|it| it.to_string());
        assert!(refused.is_err_and(|text| text.contains("hint: a smaller `--scale`")));
    }
}
