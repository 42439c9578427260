//! `weir store verify`: is every byte what was written?

use super::flags::WholeStore;
use super::online::OnlineStore;
use super::source::{self, Source, failure};
use crate::messages::{Failure, give, give_json};
use weir_disk::offline::Directory;
use weir_proxy::on_disk::report::DirectoryCheck;

/// Checks everything; a line on stdout for each thing that is wrong, and one that sums up.
///
/// # Errors
///
/// Something is wrong (exit 1), or a directory cannot be read, or the proxy that uses it does not
/// answer (exit 3).
pub(super) fn verify(flags: &WholeStore) -> Result<(), Failure> {
    let mut report = Report {
        is_json: flags.json,
        ..Report::default()
    };
    match source::open(&flags.store(), "verify")? {
        Source::Files(directories) => {
            for directory in &directories {
                of_files(directory, &mut report)?;
            }
        }
        Source::Proxy(proxy) => of_proxy(&proxy, &mut report)?,
    }
    report.end()
}

fn of_files(directory: &Directory, report: &mut Report) -> Result<(), Failure> {
    let path = directory.path().display().to_string();
    let survey = directory.survey().map_err(|error| failure(&error))?;
    report.begin(DirectoryCheck {
        path: path.clone(),
        ..DirectoryCheck::default()
    })?;
    let mut unread = Ok(());
    let checked = directory
        .check(&survey, &mut |problem| {
            let told = report.problem(problem.to_string());
            if unread.is_ok() {
                unread = told;
            }
        })
        .map_err(|error| failure(&error))?;
    unread?;
    report.add(&DirectoryCheck::of(path, checked));
    Ok(())
}

/// Leaving ends it: the proxy reads no further than it is asked to.
fn of_proxy(proxy: &OnlineStore, report: &mut Report) -> Result<(), Failure> {
    let call = format!("verify?run={}&", std::process::id());
    let mut take = |page: Vec<DirectoryCheck>| {
        for mut part in page {
            let problems = std::mem::take(&mut part.problems);
            if report.all.last().is_none_or(|last| last.path != part.path) {
                report.begin(DirectoryCheck {
                    path: part.path.clone(),
                    ..DirectoryCheck::default()
                })?;
            }
            report.add(&part);
            for problem in problems {
                report.problem(problem)?;
            }
        }
        Ok(())
    };
    proxy.each_page(&call, "cannot verify what is stored", &mut take)
}

/// What was verified, directory by directory.
#[derive(Default)]
struct Report {
    is_json: bool,
    problems: u64,
    all: Vec<DirectoryCheck>,
}

impl Report {
    /// The next directory.
    fn begin(&mut self, directory: DirectoryCheck) -> Result<(), Failure> {
        self.sum_up()?;
        self.all.push(directory);
        Ok(())
    }

    fn add(&mut self, more: &DirectoryCheck) {
        if let Some(last) = self.all.last_mut() {
            last.add(more);
        }
    }

    fn problem(&mut self, problem: String) -> Result<(), Failure> {
        self.problems += 1;
        let Some(last) = self.all.last_mut() else {
            return Ok(());
        };
        if self.is_json {
            last.problems.push(problem);
            return Ok(());
        }
        give(&format!("{}/{problem}\n", last.path))
    }

    /// The line of the directory that was verified last.
    fn sum_up(&self) -> Result<(), Failure> {
        let Some(checked) = self.all.last().filter(|_| !self.is_json) else {
            return Ok(());
        };
        let evicted = match checked.partly_evicted {
            0 => String::new(),
            records => format!(", of {records} some content was evicted"),
        };
        give(&format!(
            "{}: {} segments, {} records ({} live{evicted}), {} extents, {} bytes verified\n",
            checked.path,
            checked.segments,
            checked.records,
            checked.live,
            checked.extents,
            checked.bytes
        ))
    }

    fn end(&self) -> Result<(), Failure> {
        self.sum_up()?;
        if self.is_json {
            give_json(&self.all)?;
        }
        if self.problems == 0 {
            return Ok(());
        }
        let each = match self.is_json {
            true => "each is named on stdout",
            false => "each has a line on stdout",
        };
        let cause = match self.problems {
            1 => format!("1 thing is wrong; {each}"),
            several => format!("{several} things are wrong; {each}"),
        };
        Err(Failure::check_said_no("the store is damaged", cause).hint(
            "nothing has to be done: what weir reads from the device it verifies, and fetches again \
             what does not; what it has verified before it serves from the page cache: start it \
             again if something else has written to its files",
        ))
    }
}
