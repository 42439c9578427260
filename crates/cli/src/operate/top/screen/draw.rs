//! The state as lines of a screen of any size.

use super::state::{State, View};
use crate::operate::top::numbers::Sums;
use crate::operate::top::reading::Reading;
use crate::operate::top::text;
use crate::operate::top::units::{count, percent, span, visible};
use ratatui::Frame;
use ratatui::style::{Modifier, Style};

/// Lines from which on a screen has all numbers, and from which on some.
const TALL: usize = 16;
const LOW: usize = 9;

/// Lines from which on it has the last misses below the table.
const VERY_TALL: usize = 20;

/// How many of these.
const LAST_MISSES: usize = 4;

const HELP: [&str; 12] = [
    "q       quit",
    "? h     this help",
    "tab     urls, hosts, clients, next hops",
    "s S     by what they are sorted",
    "/       filter by a part of the name",
    "esc     no filter; back",
    "m       the last misses and refusals",
    "p       pause, and go on",
    "up down page rows",
    "left right names",
    "?  behind a place: may have less",
    "   than what has no counter",
];

const KEYS: &str = "q quit  ? help  tab of  s by  / filter  m misses  p pause";

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Title,
    Footer,
}

type Line = (String, Look);

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let area = frame.area();
    let lines = lines(state, area.width.into(), area.height.into());
    for ((line, look), row) in lines.iter().zip(area.y..) {
        let style = match look {
            Look::Plain => Style::new(),
            Look::Title => Style::new().add_modifier(Modifier::BOLD),
            Look::Footer => Style::new().add_modifier(Modifier::REVERSED),
        };
        let width = usize::from(area.width);
        let line = match look {
            Look::Footer => format!("{line:<width$}"),
            _ => line.clone(),
        };
        frame
            .buffer_mut()
            .set_stringn(area.x, row, line, width, style);
    }
}

/// As many lines as the screen has.
fn lines(state: &mut State, width: usize, height: usize) -> Vec<Line> {
    let mut lines = match state.view {
        View::Help => Vec::new(),
        _ => numbers(state, height),
    };
    let footer = usize::from(height > 1);
    let below = match state.view {
        View::Top if height >= VERY_TALL => last_misses(state, width),
        _ => Vec::new(),
    };
    let left = height
        .saturating_sub(lines.len())
        .saturating_sub(below.len())
        .saturating_sub(footer);
    lines.extend(main_part(state, width, left));
    lines.extend(below);
    lines.truncate(height.saturating_sub(footer));
    if footer > 0 {
        lines.push((status(state), Look::Footer));
    }
    lines
}

/// Most lines of numbers: eight, and three of links.
const NUMBERS_MAX: usize = 11;

fn numbers(state: &State, height: usize) -> Vec<Line> {
    if height < LOW {
        return vec![(short(&state.reading), Look::Title)];
    }
    let all = text::summary(&state.address, &state.reading);
    let count = if height < TALL {
        5
    } else {
        all.len().min(NUMBERS_MAX)
    };
    let looks = [Look::Title]
        .into_iter()
        .chain(std::iter::repeat(Look::Plain));
    all.into_iter().zip(looks).take(count).collect()
}

/// The last minute in a line, or the last second where it is not known.
fn short(reading: &Reading) -> String {
    let Some(live) = &reading.live else {
        return "nothing yet".to_owned();
    };
    let (sums, seconds) = match &reading.minute {
        Some(minute) => (Sums::of_rows(minute), text::minute_s(live)),
        None => (Sums::of_second(live), 1),
    };
    format!(
        "{}/s hit {} byte {}",
        count(sums.requests / seconds),
        percent(sums.hits, sums.requests),
        percent(sums.from_store, sums.content)
    )
}

/// The part that takes what the others leave.
fn main_part(state: &mut State, width: usize, height: usize) -> Vec<Line> {
    let (mut lines, rows): (Vec<Line>, Vec<String>) = match state.view {
        View::Help => (Vec::new(), HELP.map(str::to_owned).to_vec()),
        View::Misses => (
            vec![(text::MISSES.to_owned(), Look::Title)],
            misses(state, width),
        ),
        View::Top => top(state, width, height),
    };
    let page = height.saturating_sub(lines.len());
    state.page = page.max(1);
    state.first = state.first.min(rows.len().saturating_sub(page));
    let rows = rows.into_iter().skip(state.first).take(page);
    lines.extend(rows.map(|row| (row, Look::Plain)));
    lines.resize(height, (String::new(), Look::Plain));
    lines
}

fn top(state: &State, width: usize, height: usize) -> (Vec<Line>, Vec<String>) {
    let Some(table) = &state.reading.top else {
        return (vec![(text::OFF.to_owned(), Look::Title)], Vec::new());
    };
    let mut titles = vec![
        (text::title(table), Look::Title),
        (text::head(table, width), Look::Plain),
    ];
    // a small screen has rows rather than titles
    if height < 4 {
        titles.pop();
    }
    let rows = state.rows();
    let row = |(rank, row)| text::top_row(table, row, rank, width, state.shift);
    (titles, rows.into_iter().map(row).collect())
}

fn misses(state: &State, width: usize) -> Vec<String> {
    let row = |miss| text::miss_row(miss, width, state.shift);
    state.misses().into_iter().map(row).collect()
}

fn last_misses(state: &State, width: usize) -> Vec<Line> {
    let rows = misses(state, width).into_iter().take(LAST_MISSES);
    let mut lines = vec![(text::MISSES.to_owned(), Look::Title)];
    lines.extend(rows.map(|row| (row, Look::Plain)));
    lines
}

/// The last line: what is wrong, what is typed, or what keys there are.
fn status(state: &State) -> String {
    let filter = visible(&state.filter, 64);
    if state.is_editing {
        return format!("filter: {filter}_");
    }
    let mut line = match &state.problem {
        Some((since, why)) => {
            let why = visible(why, 256);
            return format!("not read for {}: {why}", span(since.elapsed().as_secs()));
        }
        None if state.is_paused() => "PAUSED  ".to_owned(),
        None if state.wants_reading() => "reading  ".to_owned(),
        None => String::new(),
    };
    if !filter.is_empty() {
        line.push_str(&format!("filter: {filter}  "));
    }
    line + KEYS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Failure;
    use crate::operate::top::example;
    use crate::operate::top::reading::Selection;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use weir_measure::live::{TopBy, TopOf};

    const URLS: Selection = Selection {
        of: TopOf::Urls,
        by: TopBy::ToClients,
        rows: 200,
    };

    fn state() -> State {
        State::new("127.0.0.1:3129".into(), URLS, example::reading())
    }

    /// The screen as lines without the spaces at their ends.
    fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal");
        terminal.draw(|frame| draw(frame, state)).expect("memory");
        let buffer = terminal.backend().buffer().clone();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        let lines = cells.chunks(width.into());
        lines
            .map(|line| line.concat().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn screen_of_80_by_24_has_numbers_table_misses_and_keys() {
        let found = screen(&mut state(), 80, 24);
        assert_eq!(found.len(), 24);
        let expected = [
            (0, "weir 0.1.0 at 127.0.0.1:3129, up 1 h 0 min"),
            (2, "last second        12/s   75.0 %"),
            (3, "last minute"),
            (4, "in all"),
            (
                8,
                "link          satellite (spent): 2.00 kB of 2.00 kB spent",
            ),
            (9, "urls by to-clients: 12.0 kB in all, halved each 10 min"),
            (11, "   1   6.00 kB  50.0 %  http://b.example/large"),
            (
                12,
                r"   2   3.00 kB  25.0 %  http://a/\u{1b}]0;owned\u{7}\u{202e}",
            ),
            (
                7,
                "stored        3.00 MB of 268 MB in memory, 4.81 MB of 10.7 GB on disk",
            ),
            (21, "last misses and refusals"),
            (22, r"14:46:40Z uri-miss  200 http://a/\u{1b}]0;owned"),
            (23, "q quit  ? help  tab of"),
        ];
        for (line, part) in expected {
            assert!(found[line].starts_with(part), "line {line}: {found:#?}");
        }
    }

    #[test]
    fn screen_of_20_by_5_has_the_ratios_and_rows() {
        let found = screen(&mut state(), 20, 5);
        let expected = [
            "4/s hit 50% byte 100",
            "urls by to-clients:",
            " 6.00 kB b.exampl...",
            r" 3.00 kB a/\u{1b}...",
            "q quit  ? help  tab",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn no_size_of_the_screen_and_no_name_breaks_it() {
        for view in [View::Top, View::Misses, View::Help] {
            for width in [1, 2, 9, 20, 59, 60, 79, 80, 200] {
                for height in [1, 2, 3, 4, 5, 8, 9, 15, 16, 19, 20, 24, 60] {
                    let mut state = state();
                    state.view = view;
                    state.first = 1000;
                    state.shift = 3;
                    let found = screen(&mut state, width, height);
                    assert_eq!(found.len(), usize::from(height));
                    let is_plain = |byte| matches!(byte, b' '..=b'~');
                    let text = found.concat();
                    assert!(text.bytes().all(is_plain), "{width}x{height}: {text:?}");
                }
            }
        }
    }

    #[test]
    fn status_says_what_is_wrong_before_what_keys_do() {
        let mut state = state();
        let fail = Failure::outside("cannot", "nothing listens\u{1b}[2J there");
        state.take((URLS, Err(fail)));
        let found = screen(&mut state, 80, 24);
        assert_eq!(
            found[23],
            r"not read for 0 s: nothing listens\u{1b}[2J there"
        );
        state.is_editing = true;
        state.filter = "\u{202e}x".into();
        assert_eq!(status(&state), r"filter: \u{202e}x_");
    }

    #[test]
    fn help_names_each_key() {
        let mut state = state();
        state.view = View::Help;
        let found = screen(&mut state, 80, 24).concat();
        for part in ["quit", "filter", "pause", "sorted", "misses"] {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}
