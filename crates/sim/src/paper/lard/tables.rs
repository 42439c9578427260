//! Which numbers and lines stand in which exhibit.

use super::claims::claims;
use super::exhibit::{Exhibit, NODES, SCALES};
use super::findings::Findings;
use super::job::{Job, LOADS, SIZES_KB};
use super::line::Line;
use super::shown::{Grid, GridRow, ShownExhibit};
use crate::cluster::{CROSSOVER_BYTES, ClusterOutcome, Http, Mechanism, Server};
use crate::paper::drawing::{Along, Curve, Curves, Mark, Picture, Stroke};

/// The figure, or the numbers of the text.
pub(super) fn of(exhibit: Exhibit, findings: &Findings) -> ShownExhibit {
    let shown = match exhibit {
        Exhibit::Claims => numbers(findings),
        Exhibit::Figure3 => loads(findings),
        Exhibit::Figure5 => sizes(findings, Server::Apache),
        Exhibit::Figure6 => sizes(findings, Server::Flash),
        Exhibit::Figure7 => throughput(findings, Server::Apache),
        Exhibit::Figure8 => throughput(findings, Server::Flash),
        Exhibit::Costs => costs(findings),
    };
    ShownExhibit { exhibit, ..shown }
}

fn shown(about: &str, grids: Vec<Grid>, pictures: Vec<Picture>) -> ShownExhibit {
    ShownExhibit {
        exhibit: Exhibit::Claims,
        about: about.to_owned(),
        claims: Vec::new(),
        grids,
        pictures,
    }
}

fn numbers(findings: &Findings) -> ShownExhibit {
    ShownExhibit {
        claims: claims(findings),
        ..shown(
            "Each number with ours. The prototype is the paper's own: six machines of 1999, not its simulation. Worst and best are over \
             one to ten nodes.",
            Vec::new(),
            Vec::new(),
        )
    }
}

fn row(name: &str, is_paper: bool, values: Vec<Option<f64>>) -> GridRow {
    GridRow {
        name: name.to_owned(),
        is_paper,
        values,
    }
}

/// The rows of a grid as lines, each in a colour of its own unless `looks` says otherwise.
fn picture(
    grid: &Grid,
    note: &str,
    to: u32,
    step: u32,
    looks: impl Fn(usize) -> (usize, Stroke),
) -> Curves {
    let lines = grid.rows.iter().enumerate().map(|(place, row)| {
        let (series, stroke) = looks(place);
        let points = grid.heads.iter().zip(&row.values);
        let points = points.filter_map(|(x, y)| Some((f64::from(*x), (*y)?)));
        Curve {
            name: row.name.clone(),
            series,
            stroke,
            points: points.collect(),
        }
    });
    Curves {
        title: grid.title.clone(),
        note: note.to_owned(),
        along: Along::Count { to, step },
        labels: [grid.along.clone(), grid.title.clone()],
        lines: lines.collect(),
        marks: Vec::new(),
    }
}

const fn solid(place: usize) -> (usize, Stroke) {
    (place, Stroke::Solid)
}

fn mark(name: &str, x: f64) -> Mark {
    Mark {
        name: name.to_owned(),
        series: 3,
        is_paper: true,
        x,
        y: None,
    }
}

/// A number of a run of figure 3.
type OfLoad = fn(&ClusterOutcome) -> f64;

fn loads(findings: &Findings) -> ShownExhibit {
    let grid = |title: &str, digits, of: OfLoad| {
        let values = |is_trace| {
            let outcome = |admitted| findings.outcome(Job::Load { admitted, is_trace });
            LOADS.map(|admitted| outcome(admitted).map(of)).to_vec()
        };
        Grid {
            title: title.to_owned(),
            along: "connections at once".to_owned(),
            heads: LOADS.to_vec(),
            digits,
            rows: vec![
                row("the trace", true, values(true)),
                row("hits of 8 KB", false, values(false)),
            ],
        }
    };
    let throughput = grid("requests/s", 1, ClusterOutcome::requests_per_s);
    let delay = grid("mean delay, ms", 1, |outcome| {
        outcome.delay.mean_us / 1000.0
    });
    let pictures = [(&throughput, "throughput"), (&delay, "delay")].map(|(grid, note)| {
        let mut curves = picture(grid, note, 200, 20, solid);
        curves.marks = vec![
            mark("the paper's L_idle: 30", 30.0),
            mark("the paper's L_overload: 130", 130.0),
        ];
        Picture::Curves(curves)
    });
    shown(
        "One node with Apache's costs and a fixed number of connections. The paper measured its constants here: below L_idle (30) throughput \
         falls, above L_overload (130) delay does nothing but grow. A simulated disk is a queue, so that ours is flat from a few connections on.",
        vec![throughput.clone(), delay.clone()],
        pictures.into(),
    )
}

fn sizes(findings: &Findings, server: Server) -> ShownExhibit {
    let values = |mechanism| {
        let of = |kb| findings.mbit_per_s(server, mechanism, kb);
        SIZES_KB.map(of).to_vec()
    };
    let grid = Grid {
        title: "Mbit/s a node".to_owned(),
        along: "size of the response, KB".to_owned(),
        heads: SIZES_KB.to_vec(),
        digits: 1,
        rows: vec![
            row(
                "multiple hand-off",
                true,
                values(Mechanism::MultipleHandOff),
            ),
            row("forwarding", true, values(Mechanism::Forwarding)),
        ],
    };
    let mut curves = picture(
        &grid,
        "the diamond is the published crossover",
        32,
        4,
        solid,
    );
    let published = CROSSOVER_BYTES
        .iter()
        .find(|(costs, _)| *costs == server.costs());
    curves.marks.extend(published.map(|(_, bytes)| {
        let kb = *bytes as f64 / 1024.0;
        mark(&format!("the paper's crossover: {kb} KB"), kb)
    }));
    shown(
        "Two nodes, connections of 5.6 requests in the mean, all responses in memory; every request but the first of a connection is given to \
         the other node.",
        vec![grid],
        vec![Picture::Curves(curves)],
    )
}

/// Colour and stroke of a line: a dashed one has persistent connections where a solid one has not.
const fn look(line: Line) -> (usize, Stroke) {
    match line {
        Line::Wrr => (0, Stroke::Solid),
        Line::WrrPersistent => (0, Stroke::Dashed),
        Line::Lard => (1, Stroke::Solid),
        Line::LardPersistent => (1, Stroke::Dashed),
        Line::MultipleHandOff => (2, Stroke::Dashed),
        Line::Forwarding => (3, Stroke::Dashed),
        Line::ZeroCost => (6, Stroke::Dashed),
        Line::BoundedHash => (4, Stroke::Dashed),
        Line::TwoChoices => (5, Stroke::Dashed),
        Line::ReplicatedHash => (7, Stroke::Dashed),
    }
}

fn throughput(findings: &Findings, server: Server) -> ShownExhibit {
    let of_lines = |title: &str, digits, of: &dyn Fn(Line, u16) -> Option<f64>| Grid {
        title: title.to_owned(),
        along: "nodes".to_owned(),
        heads: NODES.map(u32::from).collect(),
        digits,
        rows: Line::ALL
            .into_iter()
            .map(|line| {
                let values = NODES.map(|nodes| of(line, nodes)).collect();
                row(line.as_str(), line.is_paper(), values)
            })
            .collect(),
    };
    let per_s = of_lines("requests/s", 0, &|line, nodes| {
        findings.per_s(server, line, nodes)
    });
    let hits = of_lines("hits of memory, %", 1, &|line, nodes| {
        let job = Job::throughput(server, line, nodes, findings.scale);
        Some(100.0 * findings.outcome(job)?.hit_ratio())
    });
    let note = "dashed: persistent connections (P-HTTP); solid: HTTP/1.0";
    let curves = picture(&per_s, note, 10, 1, |place| look(Line::ALL[place]));
    let persistent = Line::ALL
        .iter()
        .filter(|line| line.http() == Http::Persistent);
    let about = format!(
        "Ten lines, {} of them with persistent connections. The first seven are the paper's; bounded-hash, two-choices and replicated-hash \
         (the default of a cluster here) are policies of today, with forwarding.",
        persistent.count()
    );
    shown(&about, vec![per_s, hits], vec![Picture::Curves(curves)])
}

fn costs(findings: &Findings) -> ShownExhibit {
    let grids = Server::ALL.map(|server| {
        let rows = [Line::MultipleHandOff, Line::Forwarding].map(|line| {
            SCALES.map(|scale| {
                let values = NODES.map(|nodes| {
                    let ours = findings.per_s_at(server, line, nodes, scale)?;
                    Some(100.0 * ours / findings.per_s(server, Line::ZeroCost, nodes)?)
                });
                let x = f64::from(scale) / 1000.0;
                row(&format!("{line}, x = {x}"), true, values.collect())
            })
        });
        Grid {
            title: format!("{server}: of zero cost, %"),
            along: "nodes".to_owned(),
            heads: NODES.map(u32::from).collect(),
            digits: 1,
            rows: rows.into_iter().flatten().collect(),
        }
    });
    shown(
        "The crossovers leave one cost open: what forwarding 512 bytes takes, as a part x of sending them. The paper's 8 % bound it; x = 0.5 is \
         calibrated to them.",
        grids.into(),
        Vec::new(),
    )
}
