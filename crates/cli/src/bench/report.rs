//! `weir bench report`.

use super::flags::ReportFlags;
use super::outcome;
use crate::messages::{Failure, tell};
use weir_bench::report;

/// Draws records.
///
/// # Errors
/// A record cannot be read (exit 2), or the report cannot be written (exit 3).
pub(super) fn report(flags: &ReportFlags) -> Result<(), Failure> {
    outcome::try_files([flags.out.as_path()])?;
    let runs = report::read(&flags.records)?;
    report::write(&runs, &flags.out, flags.figures.as_deref())?;
    tell(&format!("report: {}", flags.out.display()));
    if let Some(figures) = &flags.figures {
        tell(&format!("figures: {}", figures.display()));
    }
    Ok(())
}
