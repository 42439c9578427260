//! The paper made again: every exhibit with its numbers and pictures.

use super::claims::{Claim, ClaimKind};
use super::exhibit::Exhibit;
use crate::paper::drawing::Picture;
use serde::Serialize;

/// What it was made with: the same makes the same, to the last byte.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct About {
    /// Of weir.
    pub version: &'static str,
    /// The trace.
    pub trace: String,
    /// How its connections and batches are known.
    pub grouping: String,
    /// Its requests.
    pub requests: usize,
    /// Its targets.
    pub targets: usize,
    /// Its connections.
    pub connections: usize,
    /// For choices at random, and tables of policies.
    pub seed: u64,
    /// What forwarding 512 bytes costs, as a part of a send.
    pub scale: f64,
}

/// All that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Paper {
    /// What it was made with.
    pub about: About,
    /// How many of the paper's numbers are among it, and how many are as published.
    pub count: Count,
    /// Figures and numbers.
    pub exhibits: Vec<ShownExhibit>,
}

/// Numbers of the paper. Those that something was calibrated to do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Predicted.
    pub predicted: usize,
    /// Predicted, and as published.
    pub as_published: usize,
    /// Calibrated.
    pub calibrated: usize,
}

/// A figure, or numbers of the text.
#[derive(Clone, Debug, Serialize)]
pub struct ShownExhibit {
    /// Which.
    pub exhibit: Exhibit,
    /// What is seen in it.
    pub about: String,
    /// The paper's numbers beside ours.
    pub claims: Vec<Claim>,
    /// Numbers of the figure.
    pub grids: Vec<Grid>,
    /// Pictures.
    pub(super) pictures: Vec<Picture>,
}

/// Numbers by line and by what goes along the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grid {
    /// What the numbers are.
    pub title: String,
    /// What goes along.
    pub along: String,
    /// Its values.
    pub heads: Vec<u32>,
    /// Digits behind the point.
    pub digits: usize,
    /// Lines.
    pub rows: Vec<GridRow>,
}

/// The numbers of a line; none where a run was not made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridRow {
    /// The name of the line.
    pub name: String,
    /// Whether the paper has this line.
    pub is_paper: bool,
    /// By place of the heads.
    pub values: Vec<Option<f64>>,
}

impl Paper {
    pub(super) fn of(about: About, exhibits: Vec<ShownExhibit>) -> Self {
        let mut count = Count::default();
        for claim in exhibits.iter().flat_map(|shown| &shown.claims) {
            match claim.kind {
                ClaimKind::Calibrated => count.calibrated += 1,
                ClaimKind::Predicted => {
                    count.predicted += 1;
                    count.as_published += usize::from(claim.holds);
                }
            }
        }
        Self {
            about,
            count,
            exhibits,
        }
    }

    /// How many numbers are as published, and what that means.
    pub(super) fn count_words(&self) -> String {
        let Count {
            predicted,
            as_published,
            calibrated,
        } = self.count;
        format!(
            "{as_published} of {predicted} predicted numbers are as published; {calibrated} more are calibrated: the trace or a cost was \
             fitted to them, and they say nothing"
        )
    }
}
