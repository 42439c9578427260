//! The paper at a small scale: every number has one place, what the paper states in words holds,
//! and the page is whole.

use super::*;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::OnceLock;

const REQUESTS: u64 = 12_000;

fn order(only: &[Exhibit]) -> Order {
    Order {
        requests: REQUESTS,
        seed: 1,
        only: only.to_vec(),
        threads: NonZero::new(2).unwrap(),
    }
}

fn paper() -> &'static Paper {
    static PAPER: OnceLock<Paper> = OnceLock::new();
    PAPER.get_or_init(|| reproduce(&order(&[]), &|| false, |_| ()).unwrap())
}

fn ours(key: &str, kind: Kind) -> f64 {
    let mut lines = paper().exhibits.iter().flat_map(|shown| &shown.lines);
    let line = lines.find(|line| line.key == key);
    let cell = line.and_then(|line| line.cell(kind));
    let ours = cell.and_then(|cell| cell.ours);
    ours.unwrap_or_else(|| panic!("{key} of {kind:?}"))
}

#[test]
fn published_number_appears_in_exactly_one_table() {
    let mut places: BTreeMap<(&str, Kind), usize> = BTreeMap::new();
    for shown in &paper().exhibits {
        for line in &shown.lines {
            for kind in Kind::ALL {
                let paper = line.cell(kind).and_then(|cell| cell.paper);
                if let Some(paper) = paper {
                    assert_eq!(paper.unit, line.unit, "{}", line.key);
                    *places.entry((paper.key, kind)).or_default() += 1;
                }
            }
        }
    }
    for published in PUBLISHED {
        let count = places.get(&(published.key, published.kind));
        assert_eq!(count, Some(&1), "{} of {:?}", published.key, published.kind);
    }
    assert_eq!(places.len(), PUBLISHED.len(), "a number is published twice");
    assert_eq!(paper().count.published, PUBLISHED.len());
}

#[test]
fn published_number_has_a_simulated_one_beside_it() {
    for shown in &paper().exhibits {
        for line in &shown.lines {
            for kind in Kind::ALL {
                let cell = line.cell(kind).filter(|cell| cell.paper.is_some());
                // of a gain that is none there are no multiples
                let is_factor = line.key.ends_with("-factor");
                let is_missing = cell.is_some_and(|cell| cell.ours.is_none());
                assert!(!is_missing || is_factor, "{} of {kind:?}", line.key);
            }
        }
    }
}

#[test]
fn cookies_lower_the_hit_ratio_and_the_byte_hit_ratio_is_below_it() {
    for kind in Kind::ALL {
        let obeying = ours("hits.obeying-cookies", kind);
        assert!(ours("hits.ignoring-cookies", kind) > obeying + 3.0);
        assert!(ours("hits.bytes-obeying-cookies", kind) < obeying);
        let simulated = ours("hits.simulated", kind);
        assert!(simulated <= obeying + 1.0, "{simulated} {obeying}");
    }
}

#[test]
fn ignoring_cookies_lowers_latency_and_both_caches_beat_either_alone() {
    for kind in Kind::ALL {
        let gain = |word: &str| ours(&format!("latency.{word}"), kind);
        assert!(gain("data-cookies") > gain("data"));
        assert!(gain("data") > gain("nothing"));
    }
    let gain = |word: &str| ours(&format!("latency.{word}"), Kind::Research);
    assert!(gain("both") > gain("data") + 5.0);
    assert!(gain("both") > gain("connections") + 5.0);
    assert!(gain("both-median") > gain("connections-median"));
}

#[test]
fn connections_gain_more_than_data_behind_modems_and_both_gain_most() {
    let gain = |word: &str| ours(&format!("latency.{word}"), Kind::Modem);
    assert!(gain("connections") > gain("data"));
    assert!(gain("connections-median") > gain("data-median") + 5.0);
    assert!(gain("both") > gain("connections") && gain("both") > gain("data"));
    assert!(gain("both-median") > gain("connections-median"));
}

#[test]
fn aborted_fetches_cost_bandwidth_and_flow_control_reduces_the_loss() {
    let saved = |word: &str| ours(&format!("bandwidth.{word}"), Kind::Modem);
    assert!(
        saved("continue") < 0.0,
        "a cache costs more bytes than it saves"
    );
    // a stopped response is not stored, and requested again
    let again = 1.0;
    assert!(saved("continue") <= saved("stop-45") + again);
    assert!(saved("stop-45") <= saved("stop-1.5") + again);
    assert!(saved("stop-1.5") <= saved("stop-0.5") + again);
    assert!(saved("flow-control") > saved("stop-45") + 5.0);
}

#[test]
fn connections_are_all_new_without_persistence_and_often_reused_with_it() {
    for kind in Kind::ALL {
        let new = |word: &str| ours(&format!("connections.{word}"), kind);
        assert!((new("none.client-new") - 100.0).abs() < 1e-9);
        assert!((new("server.client-new") - 100.0).abs() < 1e-9);
        assert!(new("all.client-new") < 60.0 && new("all.server-new") < 60.0);
        assert!(new("client.server-new") > new("all.server-new"));
        assert!(new("all.client-max") >= new("none.client-max"));
        assert!(new("all.server-max") >= new("none.server-max"));
    }
}

#[test]
fn every_table_and_figure_is_on_the_terminal_and_the_page() {
    let (text, page) = (paper().to_string(), html(paper()));
    for exhibit in Exhibit::ALL {
        assert!(text.contains(&format!("[{exhibit}]")), "{exhibit}");
        assert!(
            page.contains(&format!("<section id=\"{exhibit}\">")),
            "{exhibit}"
        );
        assert_eq!(exhibit.as_str().parse(), Ok(exhibit));
    }
    let shown = paper().exhibits.iter();
    let pictures: usize = shown.map(|shown| shown.pictures.len()).sum();
    assert_eq!(pictures, 8, "figures 4 (of two traces) to 9, and of bytes");
    assert_eq!(page.matches("<svg").count(), pictures);
    assert!(!page.contains("NaN") && !page.contains("inf\""));
}

#[test]
fn page_is_well_formed_and_loads_nothing() {
    let page = html(paper());
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("url("));
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("src="));
    let mut open: Vec<&str> = Vec::new();
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    for tag in body
        .split('<')
        .skip(1)
        .map(|text| text.split('>').next().unwrap())
    {
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn paper_is_the_same_for_any_number_of_threads() {
    let only = [Exhibit::Bandwidth, Exhibit::Figure4, Exhibit::Figure6];
    let made = |threads| {
        let order = Order {
            requests: 4000,
            threads: NonZero::new(threads).unwrap(),
            ..order(&only)
        };
        reproduce(&order, &|| false, |_| ()).unwrap()
    };
    let (one, other) = (made(1), made(3));
    assert_eq!(html(&one), html(&other));
    assert_eq!(one.to_string(), other.to_string());
    assert_eq!(
        serde_json::to_string(&one).unwrap(),
        serde_json::to_string(&other).unwrap()
    );
    assert_eq!(one.exhibits.len(), only.len());
}

#[test]
fn progress_reaches_its_end_and_an_interrupt_stops_the_reproduction() {
    let mut last = None;
    let small = Order {
        requests: 3000,
        ..order(&[Exhibit::Causes])
    };
    reproduce(&small, &|| false, |progress| last = Some(progress)).unwrap();
    let last = last.unwrap();
    assert_eq!((last.done, last.all), (6000, 6000));
    let stopped = reproduce(&small, &|| true, |_| ());
    assert_eq!(stopped.unwrap_err(), PaperError::Interrupted);
}
