//! What is laid beside the paper: its figures, and what its text says of them.

use super::job::{Job, LOADS, SIZES_KB};
use super::line::Line;
use crate::cluster::{Mechanism, Server};
use crate::paper::exhibit::written_as_words;
use std::collections::BTreeSet;
use weir_semantics::words;

words! {
    /// A figure, or numbers of the text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Exhibit {
        /// What the text says, number by number.
        Claims = "claims",
        /// Throughput and delay of one node by its load.
        Figure3 = "figure-3",
        /// Hand-off and forwarding by size of the response: Apache.
        Figure5 = "figure-5",
        /// The same: Flash.
        Figure6 = "figure-6",
        /// Throughput by number of nodes: Apache.
        Figure7 = "figure-7",
        /// The same: Flash.
        Figure8 = "figure-8",
        /// What the costs that are not published change.
        Costs = "costs",
    }
}

/// Numbers of nodes in figures 7 and 8.
pub(super) const NODES: std::ops::RangeInclusive<u16> = 1..=10;

/// Costs of forwarding 512 bytes that are compared, thousandths of a send.
pub(super) const SCALES: [u32; 3] = [250, 500, 1000];

impl Exhibit {
    /// As a heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claims => "What the text says",
            Self::Figure3 => "Figure 3: one node by its load",
            Self::Figure5 => "Figure 5: hand-off and forwarding, Apache",
            Self::Figure6 => "Figure 6: hand-off and forwarding, Flash",
            Self::Figure7 => "Figure 7: throughput of clusters, Apache",
            Self::Figure8 => "Figure 8: throughput of clusters, Flash",
            Self::Costs => "What the costs that are not published change",
        }
    }

    /// The runs that it is made of; `scale` is the cost of forwarding, thousandths of a send.
    pub(super) fn jobs(self, scale: u32) -> BTreeSet<Job> {
        match self {
            Self::Claims => {
                let mut all: BTreeSet<Job> = Server::ALL.map(Job::Check).into();
                for other in [Self::Figure5, Self::Figure6, Self::Figure7, Self::Figure8] {
                    all.extend(other.jobs(scale));
                }
                all
            }
            Self::Figure3 => {
                let loads = LOADS.into_iter();
                let both = loads.flat_map(|admitted| {
                    [true, false].map(|is_trace| Job::Load { admitted, is_trace })
                });
                both.collect()
            }
            Self::Figure5 => sizes(Server::Apache, scale),
            Self::Figure6 => sizes(Server::Flash, scale),
            Self::Figure7 => lines(Server::Apache, scale),
            Self::Figure8 => lines(Server::Flash, scale),
            Self::Costs => {
                let mut all = BTreeSet::new();
                for server in Server::ALL {
                    for scale in SCALES {
                        for line in [Line::MultipleHandOff, Line::Forwarding, Line::ZeroCost] {
                            all.extend(
                                NODES.map(|nodes| Job::throughput(server, line, nodes, scale)),
                            );
                        }
                    }
                }
                all
            }
        }
    }
}

fn sizes(server: Server, scale: u32) -> BTreeSet<Job> {
    let mechanisms = [Mechanism::MultipleHandOff, Mechanism::Forwarding];
    let all = mechanisms.into_iter().flat_map(|mechanism| {
        SIZES_KB.into_iter().map(move |kb| Job::Size {
            server,
            mechanism,
            kb,
            scale,
        })
    });
    all.collect()
}

fn lines(server: Server, scale: u32) -> BTreeSet<Job> {
    let all = Line::ALL
        .into_iter()
        .flat_map(|line| NODES.map(move |nodes| Job::throughput(server, line, nodes, scale)));
    all.collect()
}

written_as_words!(Exhibit);
