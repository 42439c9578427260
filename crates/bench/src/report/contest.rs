//! Who is compared with whom: runs under equal conditions, by proxy.

use super::conditions::Conditions;
use super::source::RecordFile;
use weir_measure::record::{Phase, Record};

/// All runs of one scenario under equal conditions.
#[derive(Debug)]
pub(super) struct Contest<'a> {
    pub(super) scenario: &'a str,
    pub(super) scale: f64,
    conditions: Conditions,
    /// Why these runs are not compared with earlier ones of the same scenario; empty if there are
    /// none.
    pub(super) differences: Vec<String>,
    /// In the order in which they were met.
    pub(super) contestants: Vec<Contestant<'a>>,
}

/// All runs of one proxy.
#[derive(Debug)]
pub(super) struct Contestant<'a> {
    pub(super) label: &'a str,
    /// Its colour; the same on the whole page.
    pub(super) colour: usize,
    pub(super) runs: Vec<&'a RecordFile>,
}

/// Which of a proxy's runs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Which {
    pub(super) is_caching: bool,
    /// Clients have a link of their own, such as a modem.
    pub(super) has_link: bool,
}

/// With caching, clients as they are.
pub(super) const CACHING: Which = Which {
    is_caching: true,
    has_link: false,
};

/// The same without caching.
pub(super) const UNCACHED: Which = Which {
    is_caching: false,
    has_link: false,
};

/// Sorts runs into contests, in the order in which they are met.
pub(super) fn contests(runs: &[RecordFile]) -> Vec<Contest<'_>> {
    let mut labels: Vec<&str> = Vec::new();
    let mut contests: Vec<Contest<'_>> = Vec::new();
    for run in runs {
        let (label, scenario) = (
            run.record.subject.label.as_str(),
            run.record.scenario_name.as_str(),
        );
        let scale = run.record.scale;
        let colour = position(&mut labels, label);
        let conditions = Conditions::of(&run.record);
        let is_here = |contest: &Contest<'_>| {
            contest.scenario == scenario
                && contest.scale.total_cmp(&scale).is_eq()
                && contest.conditions.differences(&conditions).is_empty()
        };
        let at = contests.iter().position(is_here).unwrap_or_else(|| {
            let same = contests.iter().find(|contest| contest.scenario == scenario);
            let differences =
                same.map_or_else(Vec::new, |first| first.conditions.differences(&conditions));
            contests.push(Contest {
                scenario,
                scale,
                conditions: conditions.clone(),
                differences,
                contestants: Vec::new(),
            });
            contests.len() - 1
        });
        contests[at].conditions.meet(&conditions);
        contests[at].add(label, colour, run);
    }
    contests
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

impl<'a> Contest<'a> {
    fn add(&mut self, label: &'a str, colour: usize, run: &'a RecordFile) {
        let known = self
            .contestants
            .iter_mut()
            .find(|contestant| contestant.label == label);
        if let Some(contestant) = known {
            contestant.runs.push(run);
            return;
        }
        self.contestants.push(Contestant {
            label,
            colour,
            runs: vec![run],
        });
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &'a RecordFile> {
        self.contestants
            .iter()
            .flat_map(|contestant| contestant.runs.iter().copied())
    }

    /// The numbers of clients that were tried, rising; runs behind links of their own are not a
    /// sweep.
    pub(super) fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self
            .runs()
            .filter(|run| !has_link(&run.record))
            .filter_map(|run| clients(&run.record))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// More than one number of clients was tried.
    pub(super) fn is_sweep(&self) -> bool {
        self.places().len() > 1
    }

    /// The kind of runs that stand for the proxies where there is room for one of each: with
    /// caching if anybody has such a run, without links if anybody has.
    pub(super) fn kind(&self) -> Which {
        let has = |is_right: &dyn Fn(&Record) -> bool| self.runs().any(|run| is_right(&run.record));
        Which {
            is_caching: has(&|record| record.subject.is_caching),
            has_link: !has(&|record| !has_link(record)),
        }
    }

    /// The largest number of clients at which everybody who has runs of this kind has one.
    pub(super) fn common_clients(&self, which: Which) -> Option<f64> {
        let mut places = self.places();
        places.reverse();
        places.into_iter().find(|&place| {
            let mut those = self
                .contestants
                .iter()
                .filter(|contestant| contestant.of(which).next().is_some());
            those.all(|contestant| contestant.at(which, Some(place)).is_some())
        })
    }

    /// One run for each proxy: the kind of [`Contest::kind`], at [`Contest::common_clients`].
    pub(super) fn chosen(&self) -> Vec<(&Contestant<'a>, &'a RecordFile)> {
        let which = self.kind();
        let clients = self.common_clients(which);
        self.contestants
            .iter()
            .filter_map(|contestant| Some((contestant, contestant.at(which, clients)?)))
            .collect()
    }
}

impl<'a> Contestant<'a> {
    pub(super) fn of(&self, which: Which) -> impl Iterator<Item = &'a RecordFile> {
        self.runs.iter().copied().filter(move |run| {
            run.record.subject.is_caching == which.is_caching
                && has_link(&run.record) == which.has_link
        })
    }

    /// All runs that are alike in caching, link, clients and validity: repetitions of each other.
    pub(super) fn repetitions(&self, of: &Record) -> Vec<&'a RecordFile> {
        let which = Which {
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
    pub(super) fn at(&self, which: Which, place: Option<f64>) -> Option<&'a RecordFile> {
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

/// All measured phases together, or the whole run if none is.
pub(super) fn together(record: &Record) -> Phase {
    record.measured_together()
}
