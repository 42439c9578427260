use super::*;
use crate::cluster::Server;
use std::num::NonZero;
use std::sync::OnceLock;
use weir_trace::Row;
use weir_trace::grouping::{ConnectionTrace, GroupingRules};
use weir_workload::{Chance, mix};

/// A site of 300 pages with four images each, small enough for tests: two pages a connection.
fn trace(requests: usize) -> ConnectionTrace {
    let mut chance = Chance::new(1, 0);
    let mut rows = Vec::new();
    let mut page = 0_u64;
    while rows.len() < requests {
        let drawn = chance
            .below(300)
            .min(chance.below(300))
            .min(chance.below(300));
        for image in 0..5 {
            let target = drawn * 5 + image;
            rows.push(Ok(Row {
                arrival_us: i64::try_from(page * 60 + image.min(1) * 10).unwrap() * 1_000_000,
                connection: Some(page / 2),
                target,
                received_bytes: Some(20_000 + mix(target) % 1_000_000),
                ..Row::default()
            }));
        }
        page += 1;
    }
    ConnectionTrace::read(rows, GroupingRules::default()).unwrap()
}

fn order(only: &[Exhibit], threads: usize) -> Order {
    Order {
        trace: "test".to_owned(),
        seed: 1,
        scale: NonZero::new(500).unwrap(),
        only: only.to_vec(),
        threads: NonZero::new(threads).unwrap(),
    }
}

/// The whole paper, of a small trace.
fn paper() -> &'static Paper {
    static PAPER: OnceLock<Paper> = OnceLock::new();
    PAPER.get_or_init(|| reproduce(&order(&[], 2), &trace(1500), &|| false, |_| ()).unwrap())
}

fn claim(key: &str, server: Server) -> &'static Claim {
    let all = paper().exhibits.iter().flat_map(|shown| &shown.claims);
    let mut found = all.filter(|claim| claim.key == key && claim.server == server);
    found.next().unwrap()
}

#[test]
fn published_costs_and_crossovers_hold_on_any_trace() {
    for server in Server::ALL {
        for key in ["hits-8kb", "crossover"] {
            let claim = claim(key, server);
            assert!(claim.holds, "{claim:?}");
            assert_eq!(claim.kind, ClaimKind::Calibrated);
        }
    }
}

#[test]
fn calibrated_numbers_do_not_count_as_reproduced() {
    let Count {
        predicted,
        as_published,
        calibrated,
    } = paper().count;
    assert_eq!((predicted, calibrated), (6, 10));
    assert!(as_published <= predicted);
}

#[test]
fn every_figure_is_on_the_terminal_and_the_page() {
    let (text, page) = (paper().to_string(), html(paper()));
    for exhibit in Exhibit::ALL {
        assert!(text.contains(&format!("[{exhibit}]")), "{exhibit}");
        assert!(
            page.contains(&format!("<section id=\"{exhibit}\">")),
            "{exhibit}"
        );
        assert_eq!(exhibit.as_str().parse(), Ok(exhibit));
    }
    for line in Line::ALL {
        assert!(text.matches(line.as_str()).count() >= 4, "{line}");
    }
    assert_eq!(
        page.matches("<svg").count(),
        6,
        "figures 3 (two) and 5 to 8"
    );
    assert!(!page.contains("NaN") && !page.contains("inf\"") && !text.contains("NaN"));
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
    assert!(!text.contains("  -\n"), "a run was not made: {text}");
}

#[test]
fn paper_is_the_same_for_any_number_of_threads() {
    let trace = trace(600);
    let made = |threads| {
        let order = order(&[Exhibit::Figure8, Exhibit::Figure5], threads);
        reproduce(&order, &trace, &|| false, |_| ()).unwrap()
    };
    let (one, other) = (made(1), made(3));
    assert_eq!(html(&one), html(&other));
    assert_eq!(one.to_string(), other.to_string());
    let json = |paper: &Paper| serde_json::to_string(paper).unwrap();
    assert_eq!(json(&one), json(&other));
    assert_eq!(one.exhibits.len(), 2);
}

#[test]
fn progress_reaches_its_end_and_an_interrupt_stops_the_reproduction() {
    let trace = trace(300);
    let only = [Exhibit::Figure5];
    let mut last = None;
    reproduce(&order(&only, 2), &trace, &|| false, |progress| {
        last = Some(progress)
    })
    .unwrap();
    let last = last.unwrap();
    assert_eq!(last.done, last.all);
    let stopped = reproduce(&order(&[Exhibit::Figure7], 2), &trace, &|| true, |_| ());
    assert!(
        matches!(stopped, Err(LardError::Interrupted)),
        "{stopped:?}"
    );
}
