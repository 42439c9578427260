//! What the paper says in numbers, and ours. Nothing else here knows a published result.

use super::findings::Findings;
use super::line::Line;
use crate::cluster::{Server, Server::Apache, Server::Flash};
use crate::paper::lard::job::Job;
use serde::Serialize;

/// A number of the paper beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// A word for it.
    pub key: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Whose costs nodes have.
    pub server: Server,
    /// Ours; none if its runs were not made.
    pub ours: Option<f64>,
    /// The paper's.
    pub published: f64,
    /// What both are of.
    pub unit: ClaimUnit,
    /// How far ours may be from it.
    pub within: Within,
    /// Whether something was fitted to it.
    pub kind: ClaimKind,
    /// Where the paper has it.
    pub place: &'static str,
    /// Ours is as published.
    pub holds: bool,
}

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimUnit {
    /// Hundredths.
    Percent,
    /// Requests a second.
    PerSecond,
    /// 1024 bytes.
    Kilobytes,
    /// How many times as much.
    Times,
}

/// How far a number may be from the published one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// So many percent of it.
    Percent(f64),
    /// So many points, of a percentage.
    Points(f64),
    /// It is not below.
    AtLeast,
}

/// Whether a number says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The trace or a cost was fitted to it, or it follows from published costs alone.
    Calibrated,
    /// Nothing was fitted to it.
    Predicted,
}

impl ClaimKind {
    /// As a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Predicted => "predicted",
        }
    }
}

use ClaimKind::{Calibrated, Predicted};

/// A claim before it is compared.
struct Spec {
    key: &'static str,
    what: &'static str,
    unit: ClaimUnit,
    within: Within,
    place: &'static str,
    published: &'static [(Server, f64, ClaimKind)],
    ours: fn(&Findings, Server) -> Option<f64>,
}

/// Nodes of the prototype (section 8).
const PROTOTYPE_NODES: u16 = 6;

/// What the paper's "within 8 %" leaves.
const OF_IDEAL: f64 = 92.0;

const SPECS: &[Spec] = &[
    Spec {
        key: "hits-8kb",
        what: "one node, hits of 8 KB over HTTP/1.0",
        unit: ClaimUnit::PerSecond,
        within: Within::Percent(1.0),
        place: "section 6, from its costs",
        published: &[(Apache, 682.0, Calibrated), (Flash, 1248.0, Calibrated)],
        ours: |findings, server| Some(findings.outcome(Job::Check(server))?.requests_per_s()),
    },
    Spec {
        key: "crossover",
        what: "hand-off costs what forwarding costs",
        unit: ClaimUnit::Kilobytes,
        within: Within::Percent(5.0),
        place: "figures 5 and 6",
        published: &[(Apache, 12.0, Calibrated), (Flash, 6.0, Calibrated)],
        ours: Findings::crossover_kb,
    },
    Spec {
        key: "one-node",
        what: "one node",
        unit: ClaimUnit::PerSecond,
        within: Within::Percent(10.0),
        place: "section 8, the prototype",
        published: &[(Apache, 151.0, Calibrated)],
        ours: |findings, server| findings.per_s(server, Line::Forwarding, 1),
    },
    Spec {
        key: "lard-loss",
        what: "simple LARD loses by persistent connections, at its worst size",
        unit: ClaimUnit::Percent,
        within: Within::Points(10.0),
        place: "section 6",
        published: &[(Apache, 39.0, Calibrated), (Flash, 54.0, Predicted)],
        ours: |findings, server| {
            let least = findings.least_share(server, Line::LardPersistent, Line::Lard)?;
            Some(100.0 - least)
        },
    },
    Spec {
        key: "hand-off-of-ideal",
        what: "extended LARD, multiple hand-off: of zero cost, at its worst size",
        unit: ClaimUnit::Percent,
        within: Within::AtLeast,
        place: "section 6, within 8 %",
        published: &[
            (Apache, OF_IDEAL, Calibrated),
            (Flash, OF_IDEAL, Calibrated),
        ],
        ours: |findings, server| {
            findings.least_share(server, Line::MultipleHandOff, Line::ZeroCost)
        },
    },
    Spec {
        key: "forwarding-of-ideal",
        what: "extended LARD, forwarding: of zero cost, at its worst size",
        unit: ClaimUnit::Percent,
        within: Within::AtLeast,
        place: "section 6, within 8 %",
        published: &[
            (Apache, OF_IDEAL, Calibrated),
            (Flash, OF_IDEAL, Calibrated),
        ],
        ours: |findings, server| findings.least_share(server, Line::Forwarding, Line::ZeroCost),
    },
    Spec {
        key: "hand-off-gain",
        what: "extended LARD, multiple hand-off: above simple LARD on HTTP/1.0, at best",
        unit: ClaimUnit::Percent,
        within: Within::Points(10.0),
        place: "section 6",
        published: &[(Apache, 20.0, Predicted), (Flash, 20.0, Predicted)],
        ours: |findings, server| gain(findings, server, Line::MultipleHandOff),
    },
    Spec {
        key: "forwarding-gain",
        what: "extended LARD, forwarding: above simple LARD on HTTP/1.0, at best",
        unit: ClaimUnit::Percent,
        within: Within::Points(10.0),
        place: "section 6",
        published: &[(Apache, 20.0, Predicted), (Flash, 20.0, Predicted)],
        ours: |findings, server| gain(findings, server, Line::Forwarding),
    },
    Spec {
        key: "over-wrr",
        what: "extended LARD, forwarding, over WRR: six nodes",
        unit: ClaimUnit::Times,
        within: Within::Percent(15.0),
        place: "section 8, the prototype",
        published: &[(Apache, 4.0, Predicted)],
        ours: |findings, server| {
            let ours = findings.per_s(server, Line::Forwarding, PROTOTYPE_NODES)?;
            Some(ours / findings.per_s(server, Line::Wrr, PROTOTYPE_NODES)?)
        },
    },
];

/// How much more than simple LARD on HTTP/1.0 that line has, at best; percent.
fn gain(findings: &Findings, server: Server, line: Line) -> Option<f64> {
    let most = findings.largest_share(server, line, Line::Lard)?;
    Some(most - 100.0)
}

/// All claims, with ours as far as the runs were made.
pub(super) fn claims(findings: &Findings) -> Vec<Claim> {
    let all = SPECS.iter().flat_map(|spec| {
        spec.published.iter().map(|(server, published, kind)| {
            let ours = (spec.ours)(findings, *server);
            Claim {
                key: spec.key,
                what: spec.what,
                server: *server,
                ours,
                published: *published,
                unit: spec.unit,
                within: spec.within,
                kind: *kind,
                place: spec.place,
                holds: ours.is_some_and(|ours| spec.within.holds(ours, *published)),
            }
        })
    });
    all.collect()
}

impl Within {
    fn holds(self, ours: f64, published: f64) -> bool {
        let off = (ours - published).abs();
        match self {
            Self::Percent(percent) => off <= published * percent / 100.0,
            Self::Points(points) => off <= points,
            Self::AtLeast => ours >= published,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_holds_up_to_its_tolerance_and_not_beyond() {
        for (within, ours, expected) in [
            (Within::Percent(10.0), 54.9, true),
            (Within::Percent(10.0), 44.9, false),
            (Within::Points(5.0), 45.0, true),
            (Within::Points(5.0), 55.1, false),
            (Within::AtLeast, 50.0, true),
            (Within::AtLeast, 49.9, false),
        ] {
            assert_eq!(within.holds(ours, 50.0), expected, "{within:?} {ours}");
        }
    }

    #[test]
    fn claim_without_its_runs_does_not_hold() {
        let all = claims(&Findings::default());
        assert_eq!(all.len(), 16);
        assert!(all.iter().all(|claim| claim.ours.is_none() && !claim.holds));
    }
}
