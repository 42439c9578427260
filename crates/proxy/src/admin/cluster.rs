//! The cluster, and where requests for a URL go: as tables, or as JSON.

use super::table::aligned;
use super::{Control, asks_for_json, json, purge, text, wants_json};
use crate::cluster::report::{ClusterReport, MembersReport, RouteReport};
use crate::config::Direct;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use weir_extend::ListenerMode;

/// `GET /cluster`.
pub(super) async fn cluster(
    State(control): State<Arc<dyn Control>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    match control.cluster() {
        None => text(
            StatusCode::NOT_FOUND,
            "this proxy is in no cluster: its configuration has no `[cluster]`\n".into(),
        ),
        Some(cluster) if wants_json(query.as_deref(), &headers) => {
            json(serde_json::to_string_pretty(&cluster).map(|text| text + "\n"))
        }
        Some(cluster) => text(StatusCode::OK, cluster_table(&cluster)),
    }
}

/// `POST /drain`.
pub(super) async fn drain(State(control): State<Arc<dyn Control>>) -> Response {
    set_draining(
        &*control,
        true,
        "draining: other nodes ask this one for no new targets\n",
    )
}

/// `POST /drain/end`.
pub(super) async fn end_drain(State(control): State<Arc<dyn Control>>) -> Response {
    set_draining(&*control, false, "in: this node takes targets again\n")
}

fn set_draining(control: &dyn Control, drains: bool, done: &str) -> Response {
    if control.set_draining(drains) {
        text(StatusCode::OK, done.into())
    } else {
        text(
            StatusCode::NOT_FOUND,
            "this proxy is no member of a cluster\n".into(),
        )
    }
}

/// `GET /route`.
pub(super) async fn route(
    State(control): State<Arc<dyn Control>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let query = query.unwrap_or_default();
    let is_json = asks_for_json(purge::before_url(&query).0, &headers);
    let report = read(&query).and_then(|(mode, url)| control.route(mode, &url));
    match report {
        Err(why) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
        Ok(report) if is_json => {
            json(serde_json::to_string_pretty(&report).map(|text| text + "\n"))
        }
        Ok(report) => text(StatusCode::OK, route_table(&report)),
    }
}

/// The mode and the URL of a query. The URL is the last parameter: an `&` within it is written
/// `%26`.
fn read(query: &str) -> Result<(Option<ListenerMode>, String), String> {
    let mut mode = None;
    let (parameters, url) = purge::before_url(query);
    for parameter in parameters {
        mode = match parameter {
            "mode=forward" => Some(ListenerMode::Forward),
            "mode=gateway" => Some(ListenerMode::Gateway),
            "format=json" | "format=table" => mode,
            other => {
                return Err(format!(
                    "unexpected `{other}`: use mode=forward or mode=gateway, format=json, and url last"
                ));
            }
        };
    }
    match url {
        Some(url) => Ok((mode, purge::url(Some(url), None, b"")?)),
        None => Err("which URL? use GET /route?url=http://host/path".into()),
    }
}

/// A node tells each 5 s how it is, by default: a report that is twice as old is marked.
const REPORT_OLD_MS: u64 = 10_000;

fn cluster_table(cluster: &ClusterReport) -> String {
    let titles = [
        "name",
        "url",
        "weight",
        "state",
        "outstanding",
        "response time",
        "serving",
        "miss pressure",
        "report age",
        "purges overdue",
    ]
    .map(str::to_owned);
    let rows = cluster.members.iter().map(|member| {
        let own = if member.is_own { ", this node" } else { "" };
        let state = match member.gone_for_ms {
            Some(ms) => format!("{} for {}", member.state, seconds(ms)),
            None => format!("{}{own}", member.state),
        };
        let report = member.report;
        [
            member.name.clone(),
            member.url.clone(),
            member.weight.to_string(),
            state,
            member.outstanding.to_string(),
            or_dash(member.response_time_us.map(|us| format!("{us} us"))),
            or_dash(report.map(|report| report.outstanding)),
            or_dash(report.map(|report| report.miss_pressure)),
            match report {
                Some(report) if report.age_ms > REPORT_OLD_MS => {
                    format!("{}, old", seconds(report.age_ms))
                }
                Some(report) if !member.is_own => seconds(report.age_ms),
                _ => "-".into(),
            },
            match &*member.behind_at {
                [] => member.purges_overdue.to_string(),
                nodes => format!("{}, behind at {}", member.purges_overdue, nodes.join(" ")),
            },
        ]
    });
    let rows: Vec<[String; 10]> = std::iter::once(titles).chain(rows).collect();
    let policy = cluster.policy;
    let node = match &cluster.node {
        Some(node) => format!("node {node}"),
        None => "this node is none of the members".to_owned(),
    };
    let source = cluster
        .source
        .as_ref()
        .map_or_else(String::new, source_line);
    let problem = cluster.problem.as_ref();
    let problem = problem.map_or_else(String::new, |problem| format!("problem: {problem}\n"));
    format!(
        "{node}, policy {policy}\n{source}{problem}{}{}",
        disagreement(cluster),
        aligned(&rows)
    )
}

/// The nodes that have other nodes keep targets, in a line.
fn disagreement(cluster: &ClusterReport) -> String {
    let members = cluster.members.iter();
    let names = members.filter(|member| member.placement_differs);
    let names: Vec<&str> = names.map(|member| member.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "problem: not the same policy, constants, members, weights and secret as here: {}\n",
        names.join(", ")
    )
}

/// Where the members are listed, and how that is.
fn source_line(members: &MembersReport) -> String {
    let mut line = format!("members from {}", members.source);
    let _infallible = match members.age_ms {
        Some(age_ms) => write!(line, ", of {} ago", seconds(age_ms)),
        None => write!(line, ", none so far"),
    };
    if members.errors > 0 {
        let _infallible = write!(line, ", errors {}", members.errors);
    }
    if let Some(problem) = &members.problem {
        let _infallible = write!(line, ": {problem}");
    }
    line + "\n"
}

fn route_table(route: &RouteReport) -> String {
    if route.candidates.is_empty() {
        return "sent to the host of the URL: there are no other nodes, parents or routes for it\n"
            .into();
    }
    let titles = [
        "kind",
        "name",
        "url",
        "state",
        "weight",
        "load",
        "balancing",
        "locality",
        "replacement",
        "chosen",
        "passed over",
    ]
    .map(str::to_owned);
    let rows = route.candidates.iter().map(|candidate| {
        let cost =
            |units: Option<u64>| units.map_or_else(|| "infinite".into(), |it| it.to_string());
        [
            candidate.kind.as_str().to_owned(),
            or_dash(candidate.name.as_ref()),
            candidate.url.clone(),
            candidate.state.to_owned(),
            candidate.weight.to_string(),
            candidate.load.to_string(),
            cost(candidate.balancing),
            cost(candidate.locality),
            cost(candidate.replacement),
            or_dash(candidate.chosen),
            or_dash(candidate.passed_over),
        ]
    });
    let rows: Vec<[String; 11]> = std::iter::once(titles).chain(rows).collect();
    let mut text = aligned(&rows);
    if route.is_copied {
        let _infallible = writeln!(
            text,
            "each node that is asked for it fetches it from the chosen one and keeps a copy"
        );
    }
    if let Some(direct) = route.direct.and_then(|word| word.parse().ok()) {
        text.push_str(meaning(direct));
    }
    text
}

/// What follows the siblings and parents, in a line.
const fn meaning(direct: Direct) -> &'static str {
    match direct {
        Direct::Fallback => "sent to the host of the URL if no parent can be reached\n",
        Direct::Never => "never sent to the host of the URL\n",
        Direct::Prefer => {
            "sent to the host of the URL, and to a parent if that cannot be reached\n"
        }
        Direct::Always => "sent to the host of the URL if no sibling has it\n",
    }
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

/// As seconds with one digit behind the point.
fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}
