//! Sizes as logs write them.

use crate::import::damage::{Damage, Place, reason};
use crate::import::items::NoRow;
use crate::import::logs::number::{shown, unsigned};
use crate::import::settings::MissingSize;

/// What helps where a size is missing.
const HINT: &str =
    "use `--missing-size skip` to drop such lines, or `--missing-size 8KiB` to assume one";

/// A size in bytes. `dash` is what the format means by `-`, if it means anything.
pub(crate) fn logged(
    text: &[u8],
    place: Place,
    missing: MissingSize,
    dash: Option<u64>,
) -> Result<u64, NoRow> {
    if let Some(size) = unsigned(text) {
        return Ok(size);
    }
    let what = format!("size `{}` is not a number", shown(text));
    let damaged = Damage::item(place, reason::SIZE, what);
    if text != b"-" {
        return Err(damaged.into());
    }
    match missing {
        MissingSize::Skip => Err(NoRow::Dropped(reason::MISSING_SIZE)),
        MissingSize::Assume(size) => Ok(size),
        MissingSize::AsTheFormatSays => dash.ok_or_else(|| damaged.hinted(HINT).into()),
    }
}
