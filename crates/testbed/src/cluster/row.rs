//! A row of the table of figures.

/// One row: what is to be reached, what was, and whether that is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) figure: &'static str,
    pub(super) to_reach: String,
    pub(super) reached: String,
    pub(super) is_met: bool,
}
