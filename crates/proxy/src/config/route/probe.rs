//! Requests that find out whether the next hops of a route can answer.

use crate::config::route::PathPrefix;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use weir_policy::route::ProbeRules;

/// The `probe` of a `[[route]]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// What is requested.
    pub path: PathPrefix,
    /// Time from one probe of a next hop to the next one.
    pub interval: Span,
    /// Time for the head of the response, connecting included.
    pub timeout: Span,
    /// Probes in a row that end an ejection.
    pub healthy_after: u32,
    /// Probes in a row that eject a next hop.
    pub unhealthy_after: u32,
    /// Statuses that pass; empty: 200 to 399.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<u16>,
}

const INTERVALS: [Span; 2] = [Span::from_millis(100), Span::from_hours(1)];
const TIMEOUTS: [Span; 2] = [Span::from_millis(10), Span::from_mins(1)];
const IN_A_ROW_MAX: u32 = 100;
const STATUSES_FORM: &str = "a list of status codes, such as [200, 204]";

impl Default for Probe {
    /// Every 2 s, for 1 s; two that pass or three that fail.
    ///
    /// As HAProxy's `inter`, `rise` and `fall`.
    fn default() -> Self {
        Self {
            path: PathPrefix::default(),
            interval: Span::from_secs(2),
            timeout: Span::from_secs(1),
            healthy_after: 2,
            unhealthy_after: 3,
            status: Vec::new(),
        }
    }
}

/// The settings of a route about it.
pub(super) fn settings() -> Vec<Setting> {
    let default = Probe::default();
    vec![
        Setting::new::<PathPrefix>(
            "route[].probe.path",
            &[
                "With a `probe` table, each next hop of the route gets a GET for this path each `interval`, on a connection of its own,",
                "with the address of the next hop as its host. Without one, requests of clients alone find out how next hops are.",
            ],
        )
        .by_default(&default.path),
        Setting::new::<Span>(
            "route[].probe.interval",
            &["Time from one probe of a next hop to the next one."],
        )
        .by_default(&default.interval)
        .within(&INTERVALS[0], &INTERVALS[1]),
        Setting::new::<Span>(
            "route[].probe.timeout",
            &["Time for the head of the response to a probe, connecting included. Content is not read."],
        )
        .by_default(&default.timeout)
        .within(&TIMEOUTS[0], &TIMEOUTS[1]),
        Setting::new::<u32>(
            "route[].probe.healthy_after",
            &["So many probes in a row that pass bring back a next hop that is ejected."],
        )
        .by_default(&default.healthy_after)
        .within(&1, &IN_A_ROW_MAX),
        Setting::new::<u32>(
            "route[].probe.unhealthy_after",
            &[
                "So many probes in a row that fail eject a next hop, in every route that has it, until it passes `healthy_after`.",
                "A failed connect of a client's request ejects it at once.",
            ],
        )
        .by_default(&default.unhealthy_after)
        .within(&1, &IN_A_ROW_MAX),
        Setting {
            form: STATUSES_FORM,
            ..Setting::new::<Vec<u16>>(
                "route[].probe.status",
                &["Status codes with which a probe passes. Without them, all from 200 to 399."],
            )
        },
    ]
}

impl Probe {
    /// Whether a response with `status` passes.
    pub(crate) fn passes(&self, status: u16) -> bool {
        match &*self.status {
            [] => (200..400).contains(&status),
            wanted => wanted.contains(&status),
        }
    }

    /// How outcomes count.
    pub(crate) const fn rules(&self) -> ProbeRules {
        // two intervals, as the outcome of the next one may come late
        let hold_ms = 2 * self.interval.as_millis() + self.timeout.as_millis();
        ProbeRules {
            healthy_after: self.healthy_after,
            unhealthy_after: self.unhealthy_after,
            hold_ms,
        }
    }

    /// Refuses what is outside of the ranges.
    pub(super) fn check(&self, route: usize) -> Result<(), Invalid> {
        let path = |key: &str| format!("route[{route}].probe.{key}");
        let [shortest, longest] = &INTERVALS;
        check_range(&path("interval"), &self.interval, shortest, longest)?;
        let [shortest, longest] = &TIMEOUTS;
        check_range(&path("timeout"), &self.timeout, shortest, longest)?;
        check_range(
            &path("healthy_after"),
            &self.healthy_after,
            &1,
            &IN_A_ROW_MAX,
        )?;
        check_range(
            &path("unhealthy_after"),
            &self.unhealthy_after,
            &1,
            &IN_A_ROW_MAX,
        )?;
        for (place, status) in self.status.iter().enumerate() {
            check_range(&path(&format!("status[{place}]")), status, &200, &599)?;
        }
        Ok(())
    }
}
