//! Comparisons: runs under equal conditions, by proxy.

use super::conditions::Conditions;
use super::source::RecordFile;
use weir_measure::record::{Phase, Record};
use weir_report::{Html, Line, Point, Stroke, palette};

/// All runs of one scenario under equal conditions.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    pub(super) scenario: &'a str,
    pub(super) scale: f64,
    conditions: Conditions,
    /// Why these runs are not compared with earlier ones of the same scenario; empty if there are
    /// none.
    pub(super) differences: Vec<String>,
    /// In the order in which they were met.
    pub(super) proxies: Vec<ProxyRuns<'a>>,
}

/// All runs of one proxy.
#[derive(Debug)]
pub(super) struct ProxyRuns<'a> {
    pub(super) label: &'a str,
    /// Its colour; the same on the whole page.
    pub(super) colour: usize,
    pub(super) runs: Vec<&'a RecordFile>,
}

/// Which of a proxy's runs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunKind {
    pub(super) is_caching: bool,
    /// Clients have a link of their own, such as a modem.
    pub(super) has_link: bool,
}

/// With caching, clients as they are.
pub(super) const CACHING: RunKind = RunKind {
    is_caching: true,
    has_link: false,
};

/// The same without caching.
pub(super) const UNCACHED: RunKind = RunKind {
    is_caching: false,
    has_link: false,
};

/// Sorts runs into comparisons, in the order in which they are met.
pub(super) fn comparisons(runs: &[RecordFile]) -> Vec<Comparison<'_>> {
    let mut labels: Vec<&str> = Vec::new();
    let mut comparisons: Vec<Comparison<'_>> = Vec::new();
    for run in runs {
        let (label, scenario) = (
            run.record.subject.label.as_str(),
            run.record.scenario_name.as_str(),
        );
        let scale = run.record.scale;
        let colour = position(&mut labels, label);
        let conditions = Conditions::of(&run.record);
        let is_here = |comparison: &Comparison<'_>| {
            comparison.scenario == scenario
                && comparison.scale.total_cmp(&scale).is_eq()
                && comparison.conditions.differences(&conditions).is_empty()
        };
        let at = comparisons.iter().position(is_here).unwrap_or_else(|| {
            let same = comparisons
                .iter()
                .find(|comparison| comparison.scenario == scenario);
            let differences =
                same.map_or_else(Vec::new, |first| first.conditions.differences(&conditions));
            comparisons.push(Comparison {
                scenario,
                scale,
                conditions: conditions.clone(),
                differences,
                proxies: Vec::new(),
            });
            comparisons.len() - 1
        });
        comparisons[at].conditions.meet(&conditions);
        comparisons[at].add(label, colour, run);
    }
    comparisons
}

fn position<'a>(labels: &mut Vec<&'a str>, label: &'a str) -> usize {
    labels
        .iter()
        .position(|known| *known == label)
        .unwrap_or_else(|| {
            labels.push(label);
            labels.len() - 1
        })
}

impl<'a> Comparison<'a> {
    fn add(&mut self, label: &'a str, colour: usize, run: &'a RecordFile) {
        let known = self.proxies.iter_mut().find(|proxy| proxy.label == label);
        if let Some(proxy) = known {
            proxy.runs.push(run);
            return;
        }
        self.proxies.push(ProxyRuns {
            label,
            colour,
            runs: vec![run],
        });
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &'a RecordFile> {
        self.proxies
            .iter()
            .flat_map(|proxy| proxy.runs.iter().copied())
    }

    /// The numbers of clients that were tried, rising; runs behind links of their own are not a
    /// sweep.
    pub(super) fn places(&self) -> Vec<f64> {
        places(self.runs().filter(|run| !has_link(&run.record)))
    }

    /// More than one number of clients was tried.
    pub(super) fn is_sweep(&self) -> bool {
        self.places().len() > 1
    }

    /// The kind of runs that stand for the proxies where there is room for one of each: with
    /// caching if any run has it, without links if any run has none.
    pub(super) fn kind(&self) -> RunKind {
        let has = |is_right: &dyn Fn(&Record) -> bool| self.runs().any(|run| is_right(&run.record));
        RunKind {
            is_caching: has(&|record| record.subject.is_caching),
            has_link: !has(&|record| !has_link(record)),
        }
    }

    /// The largest number of clients at which every proxy with runs of this kind has one.
    pub(super) fn common_clients(&self, which: RunKind) -> Option<f64> {
        let mut places = self.places();
        places.reverse();
        places.into_iter().find(|&place| {
            let mut those = self
                .proxies
                .iter()
                .filter(|proxy| proxy.of(which).next().is_some());
            those.all(|proxy| proxy.at(which, Some(place)).is_some())
        })
    }

    /// One run for each proxy: the kind of [`Comparison::kind`], at [`Comparison::common_clients`].
    pub(super) fn chosen(&self) -> Vec<(&ProxyRuns<'a>, &'a RecordFile)> {
        let which = self.kind();
        let clients = self.common_clients(which);
        self.proxies
            .iter()
            .filter_map(|proxy| Some((proxy, proxy.at(which, clients)?)))
            .collect()
    }
}

impl<'a> ProxyRuns<'a> {
    /// A line of these points in the proxy's colour.
    pub(super) fn line(&self, stroke: Stroke, has_marks: bool, points: Vec<Point>) -> Line {
        Line {
            name: self.label.to_owned(),
            colour: palette::series(self.colour),
            stroke,
            has_marks,
            points,
        }
    }

    /// The custom property with the proxy's colour.
    pub(super) fn style(&self) -> String {
        format!("--c:var(--s{})", self.colour % palette::SERIES.len())
    }

    /// Begins a row of a table, and writes its head: the proxy, with a title if it is not empty.
    pub(super) fn begin_row(&self, html: &mut Html, title: &str) {
        html.open_with("tr", &[("style", &self.style())]);
        html.open_with("th", &[("scope", "row"), ("title", title)]);
        html.element("span", "swatch", "");
        html.text(self.label);
        html.close();
    }

    pub(super) fn of(&self, which: RunKind) -> impl Iterator<Item = &'a RecordFile> {
        self.runs.iter().copied().filter(move |run| {
            run.record.subject.is_caching == which.is_caching
                && has_link(&run.record) == which.has_link
        })
    }

    /// All runs that are alike in caching, link, clients and validity: repetitions of each other.
    pub(super) fn repetitions(&self, of: &Record) -> Vec<&'a RecordFile> {
        let which = RunKind {
            is_caching: of.subject.is_caching,
            has_link: has_link(of),
        };
        let is_alike = |run: &&RecordFile| {
            clients(&run.record) == clients(of) && run.record.is_valid == of.is_valid
        };
        self.of(which).filter(is_alike).collect()
    }

    /// The run at this number of clients, a valid one rather than another, a later one rather than
    /// an earlier; at the largest number if none is named.
    pub(super) fn at(&self, which: RunKind, place: Option<f64>) -> Option<&'a RecordFile> {
        let is_here = |run: &&RecordFile| place.is_none() || clients(&run.record) == place;
        let here: Vec<&RecordFile> = self.of(which).filter(is_here).collect();
        let most = here
            .iter()
            .filter_map(|run| clients(&run.record))
            .max_by(f64::total_cmp);
        let of_most = |run: &&&RecordFile| clients(&run.record) == most;
        let valid = here.iter().filter(of_most).rfind(|run| run.record.is_valid);
        valid.or_else(|| here.iter().rfind(of_most)).copied()
    }
}

/// The numbers of clients of some runs, rising, each once.
pub(super) fn places<'a>(runs: impl Iterator<Item = &'a RecordFile>) -> Vec<f64> {
    let mut places: Vec<f64> = runs.filter_map(|run| clients(&run.record)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// How many clients (closed loop) there were.
pub(super) fn clients(record: &Record) -> Option<f64> {
    record.parameters.get("clients").copied()
}

/// The rate of the clients' links, bits a second; `None` where they have none of their own.
pub(super) fn link_bits_per_s(record: &Record) -> Option<f64> {
    record.parameters.get("link_bits_per_s").copied()
}

fn has_link(record: &Record) -> bool {
    link_bits_per_s(record).is_some()
}

/// The phase whose numbers are the result: the last measured one (the second phase of the Wisconsin
/// Proxy Benchmark, the second plateau of PolyMix), or the whole run.
pub(super) fn result(record: &Record) -> &Phase {
    record.measured().last().unwrap_or(&record.total)
}

/// The mean response time of that phase, microseconds.
pub(super) fn mean_us(record: &Record) -> Option<f64> {
    result(record).response_time.all.mean_us()
}

/// Each name once, in the order in which they are met.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// All measured phases together, or the whole run if none is.
pub(super) fn together(record: &Record) -> Phase {
    record.measured_together()
}
