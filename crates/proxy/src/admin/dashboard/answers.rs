//! `/live` and `/history`.

use super::{Dashboard, shown, told};
use crate::admin::{json, of_type, text};
use axum::Extension;
use axum::extract::RawQuery;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use weir_measure::history::{History, Step};
use weir_measure::live::{HistoryTable, Live, VERSION};

/// `GET /live`.
pub(in crate::admin) async fn live(Extension(dashboard): Extension<Arc<Dashboard>>) -> Response {
    let latest = dashboard.latest.borrow().sample.clone();
    let Some(sample) = latest else {
        let why = "nothing is measured yet: a second has not passed\n";
        return text(StatusCode::SERVICE_UNAVAILABLE, why.into());
    };
    json(serde_json::to_string(&Live {
        version: VERSION,
        weir: env!("CARGO_PKG_VERSION").into(),
        started_unix_ms: dashboard.started_unix_ms,
        series: dashboard.series.iter().map(shown).collect(),
        sample: (*sample).clone(),
    }))
}

/// What a query asks for.
#[derive(Debug, PartialEq, Eq)]
struct HistoryQuery<'q> {
    step: Step,
    from_s: u64,
    /// Names of series; all if there is none.
    series: Vec<&'q str>,
}

impl<'q> HistoryQuery<'q> {
    fn read(query: Option<&'q str>) -> Result<Self, String> {
        let mut read = Self {
            step: Step::Second,
            from_s: 0,
            series: Vec::new(),
        };
        for part in query.unwrap_or_default().split('&') {
            match part.split_once('=') {
                Some(("step", "1s")) => read.step = Step::Second,
                Some(("step", "1min")) => read.step = Step::Minute,
                Some(("step", _)) => return Err("step: 1s or 1min is expected".into()),
                Some(("from", from)) => {
                    let wrong = "from: seconds since 1970 UTC are expected";
                    read.from_s = from.parse().map_err(|_| wrong)?;
                }
                Some(("series", names)) => read.series = names.split(',').collect(),
                None if part.is_empty() => {}
                _ => {
                    let part = part.escape_debug();
                    return Err(format!("unexpected `{part}`: use step, from and series"));
                }
            }
        }
        Ok(read)
    }
}

/// `GET /history`.
pub(in crate::admin) async fn history(
    Extension(dashboard): Extension<Arc<Dashboard>>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(place) = dashboard.readers.place(Instant::now()) else {
        let why = "the history is being read by as many as may read it at once: try again\n";
        return text(StatusCode::SERVICE_UNAVAILABLE, why.into());
    };
    let table = HistoryQuery::read(query.as_deref()).and_then(|query| table(&dashboard, &query));
    match table.map(|table| serde_json::to_string(&table)) {
        Ok(Ok(written)) => {
            let length = HeaderValue::from(written.len());
            let content = place.in_pieces(written);
            let mut response = of_type(StatusCode::OK, "application/json", content);
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, length);
            response
        }
        Ok(Err(error)) => json(Err(error)),
        Err(why) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
    }
}

fn table(dashboard: &Dashboard, query: &HistoryQuery<'_>) -> Result<HistoryTable, String> {
    let all = &dashboard.series;
    let place = |name: &&str| {
        let place = all.iter().position(|series| series.name == *name);
        place.ok_or_else(|| {
            format!(
                "series: there is no `{}`; /live has all",
                name.escape_debug()
            )
        })
    };
    let mut places = query
        .series
        .iter()
        .map(place)
        .collect::<Result<Vec<_>, _>>()?;
    // an answer is at most all series, however often a query names one
    let named: BTreeSet<usize> = places.iter().copied().collect();
    if named.len() < places.len() {
        return Err("series: each is named once".into());
    }
    if places.is_empty() {
        places = (0..all.len()).collect();
    }
    let history = dashboard.history();
    let now_s = super::sampler::unix_s();
    let times: Vec<u64> = History::times(query.step, query.from_s, now_s).collect();
    let column = |place: &usize| {
        let value = |at_s: &u64| told(history.row(query.step, *at_s)?[*place]);
        times.iter().map(value).collect()
    };
    Ok(HistoryTable {
        version: VERSION,
        step_s: query.step.seconds(),
        from_s: times.first().copied().unwrap_or(now_s),
        series: places.iter().map(|place| shown(&all[*place])).collect(),
        columns: places.iter().map(column).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_of_the_history_names_what_is_wrong_with_it() {
        let read = HistoryQuery::read(Some("step=1min&from=7&series=a,b")).expect("good");
        let expected = HistoryQuery {
            step: Step::Minute,
            from_s: 7,
            series: vec!["a", "b"],
        };
        assert_eq!(read, expected);
        for (query, word) in [
            ("step=1h", "1s or 1min"),
            ("from=-1", "since 1970"),
            ("to=9", "unexpected `to=9`"),
        ] {
            let why = HistoryQuery::read(Some(query)).expect_err(query);
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn table_has_a_column_for_each_series_that_is_asked_for() {
        let dashboard = Dashboard::new(None, Vec::new());
        let now_s = super::super::sampler::unix_s();
        let width = dashboard.series.len();
        let mut values = vec![f32::NAN; width];
        values[0] = 7.0;
        dashboard.history().push(Step::Second, now_s - 5, &values);
        let query = HistoryQuery {
            step: Step::Second,
            from_s: now_s - 6,
            series: vec!["requests.hit", "clients-open"],
        };
        let found = table(&dashboard, &query).expect("known");
        assert_eq!(found.columns.len(), 2);
        assert_eq!(found.from_s, now_s - 6);
        assert_eq!(found.columns[0][..3], [None, Some(7), None]);
        assert!(found.columns[1].iter().all(Option::is_none));
        let all = HistoryQuery {
            series: Vec::new(),
            from_s: 0,
            step: Step::Minute,
        };
        let all = table(&dashboard, &all).expect("known");
        assert_eq!((all.columns.len(), all.columns[0].len()), (width, 10_080));
        let repeated = HistoryQuery {
            series: vec!["requests.hit", "clients-open", "requests.hit"],
            step: Step::Second,
            from_s: 0,
        };
        let why = table(&dashboard, &repeated).expect_err("too much");
        assert_eq!(why, "series: each is named once");
        let unknown = HistoryQuery {
            series: vec!["a\u{1b}"],
            ..query
        };
        let why = table(&dashboard, &unknown).expect_err("unknown");
        assert_eq!(why, "series: there is no `a\\u{1b}`; /live has all");
    }
}
