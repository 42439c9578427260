//! Which numbers stand in which exhibit, and where ours come from.

mod figures;
mod simulated;
mod traces;

use super::compared::Cell;
use super::exhibit::Exhibit;
use super::experiment::Kind;
use super::findings::Findings;
use super::published::{PublishedValue, Unit};
use super::shown::Line;
use crate::paper::drawing::Picture;

/// An exhibit before it is compared.
pub(super) struct Table {
    pub(super) about: String,
    pub(super) rows: Vec<Row>,
    pub(super) pictures: Vec<Picture>,
}

/// A line, and where our numbers come from.
pub(super) struct Row {
    pub(super) key: String,
    what: String,
    unit: Unit,
    ours: Ours,
}

/// A number of a trace's findings; `None` where they have none.
type Ours = Box<dyn Fn(&Findings) -> Option<f64>>;

impl Row {
    fn new(
        key: &str,
        what: &str,
        unit: Unit,
        ours: impl Fn(&Findings) -> Option<f64> + 'static,
    ) -> Self {
        Self {
            key: key.to_owned(),
            what: what.to_owned(),
            unit,
            ours: Box::new(ours),
        }
    }

    fn percent(key: &str, what: &str, ours: impl Fn(&Findings) -> Option<f64> + 'static) -> Self {
        Self::new(key, what, Unit::Percent, ours)
    }

    /// The line with the paper's numbers beside ours.
    pub(super) fn line(&self, findings: &[Findings]) -> Line {
        let cell = |kind: Kind| {
            let of_kind = findings.iter().find(|findings| findings.kind == kind);
            let ours = of_kind.and_then(|findings| (self.ours)(findings));
            let paper = PublishedValue::of(&self.key, kind);
            (ours.is_some() || paper.is_some()).then(|| Cell::new(ours, paper))
        };
        Line {
            key: self.key.clone(),
            what: self.what.clone(),
            unit: self.unit,
            modem: cell(Kind::Modem),
            research: cell(Kind::Research),
        }
    }
}

/// The table or figure.
pub(super) fn of(exhibit: Exhibit, findings: &[Findings]) -> Table {
    match exhibit {
        Exhibit::Traces => traces::traces(),
        Exhibit::Causes => traces::causes(),
        Exhibit::HitRatios => traces::hits(),
        Exhibit::Aborts => traces::aborts(),
        Exhibit::Bandwidth => simulated::bandwidth(findings),
        Exhibit::Latency => simulated::latency(),
        Exhibit::Connections => simulated::connections(),
        Exhibit::Figure4 => figures::validation(findings),
        Exhibit::Figure5 => figures::setup(findings),
        Exhibit::Figure6 => figures::spread(findings, Kind::Modem),
        Exhibit::Figure7 => figures::bars(findings, Kind::Modem),
        Exhibit::Figure8 => figures::spread(findings, Kind::Research),
        Exhibit::Figure9 => figures::bars(findings, Kind::Research),
    }
}
