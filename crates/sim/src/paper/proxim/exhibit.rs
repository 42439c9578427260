//! What is laid beside the paper: its tables, its figures, and numbers of its text that belong
//! together.

use super::experiment::{Cache, Kind, Persistent, Run};
use crate::paper::exhibit::written_as_words;
use std::collections::BTreeSet;
use weir_semantics::words;

words! {
    /// A table or a figure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Exhibit {
        /// The traces themselves.
        Traces = "traces",
        /// Why responses may not be cached.
        Causes = "causes",
        /// Hits of a cache without limits.
        HitRatios = "hit-ratios",
        /// Transfers by declared and received length.
        Aborts = "aborts",
        /// Bytes from servers, by what becomes of aborted fetches.
        Bandwidth = "bandwidth",
        /// What caches of data and of connections gain.
        Latency = "latency",
        /// How many connections there are, and how many of them are new.
        Connections = "connections",
        /// The simulator beside the trace.
        Figure4 = "figure-4",
        /// The share of connection set-up.
        Figure5 = "figure-5",
        /// How latency is spread: modems.
        Figure6 = "figure-6",
        /// Mean latency by what is kept: modems.
        Figure7 = "figure-7",
        /// How latency is spread: research.
        Figure8 = "figure-8",
        /// Mean latency by what is kept: research.
        Figure9 = "figure-9",
    }
}

impl Exhibit {
    /// As a heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Traces => "The traces",
            Self::Causes => "Why responses may not be cached",
            Self::HitRatios => "Hits of a cache without limits",
            Self::Aborts => "Aborted transfers, by declared and received length",
            Self::Bandwidth => "Bytes from servers, and what aborted fetches cost",
            Self::Latency => "What caches of data and of connections gain",
            Self::Connections => "Connections at the proxy",
            Self::Figure4 => "Figure 4: the simulator beside the trace",
            Self::Figure5 => "Figure 5: the share of connection set-up",
            Self::Figure6 => "Figure 6: latency behind modems",
            Self::Figure7 => "Figure 7: mean latency behind modems",
            Self::Figure8 => "Figure 8: latency on the research network",
            Self::Figure9 => "Figure 9: mean latency on the research network",
        }
    }

    /// The traces that are counted for it.
    pub(super) const fn counts(self) -> &'static [Kind] {
        match self {
            Self::Traces
            | Self::Causes
            | Self::HitRatios
            | Self::Aborts
            | Self::Figure4
            | Self::Figure5
            | Self::Connections => &Kind::ALL,
            Self::Bandwidth
            | Self::Latency
            | Self::Figure6
            | Self::Figure7
            | Self::Figure8
            | Self::Figure9 => &[],
        }
    }

    /// The runs that it is made of.
    pub(super) fn runs(self) -> BTreeSet<(Kind, Run)> {
        let of = |kinds: &[Kind], runs: &[Run]| -> BTreeSet<(Kind, Run)> {
            let pairs = kinds
                .iter()
                .map(|kind| runs.iter().map(move |run| (*kind, *run)));
            pairs.flatten().collect()
        };
        let both = &Kind::ALL;
        match self {
            Self::Traces | Self::Causes | Self::Aborts | Self::Figure5 => BTreeSet::new(),
            Self::HitRatios => of(both, &[Run::FULL]),
            Self::Bandwidth => {
                let mut all = of(&[Kind::Modem], &Run::BANDWIDTH);
                all.extend(of(both, &[Run::NoProxy, Run::FULL]));
                all
            }
            Self::Connections => {
                let mut all = of(&[Kind::Modem], &[Run::NoProxy]);
                let runs = Persistent::ALL.map(|persistent| Run::Proxy(persistent, Cache::Data));
                all.extend(of(both, &runs));
                all
            }
            Self::Figure4 => of(both, &[Run::Validation]),
            Self::Latency => of(both, &Run::latency()),
            Self::Figure6 => of(&[Kind::Modem], &Run::CURVES),
            Self::Figure8 => of(&[Kind::Research], &Run::CURVES),
            Self::Figure7 => of(&[Kind::Modem], &Run::latency()),
            Self::Figure9 => of(&[Kind::Research], &Run::latency()),
        }
    }
}

written_as_words!(Exhibit);
