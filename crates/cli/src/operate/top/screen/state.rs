//! What is shown, and what keys do to it.

use super::reader::Outcome;
use crate::operate::top::reading::{Reading, Selection};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Instant;
use weir_measure::Label;
use weir_measure::live::{Miss, NAME_BYTES_MAX, TopRow};

/// Most characters of a filter.
const FILTER_CHARS_MAX: usize = 64;

/// Characters that a key moves names by.
const SHIFT: usize = 8;

/// What is to happen after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It goes on.
    Stay,
    /// It ends.
    Quit,
}

/// What the largest part of the screen has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Heavy hitters.
    Top,
    /// Requests that were forwarded.
    Misses,
    /// What keys do.
    Help,
}

/// Everything that the screen is made of.
#[derive(Debug)]
pub(super) struct State {
    pub(super) address: String,
    pub(super) reading: Reading,
    pub(super) view: View,
    /// A part of the names of the rows that are shown.
    pub(super) filter: String,
    /// Keys are a part of the filter.
    pub(super) is_editing: bool,
    /// The first row that is shown.
    pub(super) first: usize,
    /// Characters of names that are left out in front.
    pub(super) shift: usize,
    /// Rows that a page has, by the last screen.
    pub(super) page: usize,
    /// Why nothing was read, and since when.
    pub(super) problem: Option<(Instant, String)>,
    selection: Selection,
    paused: bool,
    /// The table is for another selection.
    is_outdated: bool,
}

impl State {
    /// With a first reading.
    pub(super) const fn new(address: String, selection: Selection, reading: Reading) -> Self {
        Self {
            address,
            reading,
            view: View::Top,
            filter: String::new(),
            is_editing: false,
            first: 0,
            shift: 0,
            page: 1,
            problem: None,
            selection,
            paused: false,
            is_outdated: false,
        }
    }

    /// What is to be read.
    pub(super) const fn selection(&self) -> Selection {
        self.selection
    }

    /// Whether nothing is read.
    pub(super) const fn is_paused(&self) -> bool {
        self.paused && !self.is_outdated
    }

    /// Whether something is to be read at once.
    pub(super) const fn wants_reading(&self) -> bool {
        self.is_outdated
    }

    /// Shows what was read, or that nothing was.
    pub(super) fn take(&mut self, (selection, read): Outcome) {
        if self.paused && !self.is_outdated {
            return;
        }
        match read {
            Ok(reading) => {
                self.problem = None;
                if selection == self.selection {
                    self.is_outdated = false;
                    self.reading = reading;
                }
            }
            Err(failure) => {
                let since = self.problem.take().map(|(since, _)| since);
                self.problem = Some((since.unwrap_or_else(Instant::now), failure.cause));
                // it is tried again after a while
                self.is_outdated = false;
            }
        }
    }

    /// The heavy hitters that the filter leaves, with their places.
    pub(super) fn rows(&self) -> Vec<(usize, &TopRow)> {
        let table = self.reading.top.iter();
        let rows = table.flat_map(|table| table.rows.iter().zip(1..));
        rows.filter(|(row, _)| self.passes(&row.name))
            .map(|(row, rank)| (rank, row))
            .collect()
    }

    /// The misses that it leaves.
    pub(super) fn misses(&self) -> Vec<&Miss> {
        let misses = self.reading.misses.iter();
        let misses = misses.flat_map(|misses| &misses.misses);
        misses
            .filter(|miss| self.passes(&miss.url) || self.passes(&miss.why))
            .collect()
    }

    fn passes(&self, name: &str) -> bool {
        self.filter.is_empty()
            || name
                .to_ascii_lowercase()
                .contains(&self.filter.to_ascii_lowercase())
    }

    /// Does what a key says.
    pub(super) fn press(&mut self, key: KeyEvent) -> Answer {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Answer::Quit;
        }
        if self.is_editing {
            self.edit(key.code, with_control);
            return Answer::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Answer::Quit,
            KeyCode::Esc if self.view != View::Top => self.show(View::Top),
            KeyCode::Esc => self.set_filter(String::new()),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.toggle(View::Help),
            KeyCode::Char('m') => self.toggle(View::Misses),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.is_editing = true,
            KeyCode::Tab => self.select(|selection| selection.of = next(selection.of, 1)),
            KeyCode::BackTab => self.select(|selection| selection.of = next(selection.of, -1)),
            KeyCode::Char('s') => self.select(|selection| selection.by = next(selection.by, 1)),
            KeyCode::Char('S') => self.select(|selection| selection.by = next(selection.by, -1)),
            code => self.scroll(code),
        }
        Answer::Stay
    }

    fn edit(&mut self, code: KeyCode, with_control: bool) {
        match code {
            KeyCode::Enter => self.is_editing = false,
            KeyCode::Esc => {
                self.is_editing = false;
                self.set_filter(String::new());
            }
            KeyCode::Backspace => {
                self.filter.pop();
                self.first = 0;
            }
            KeyCode::Char(character) if !with_control && self.has_room() => {
                self.filter.push(character);
                self.first = 0;
            }
            _ => {}
        }
    }

    fn has_room(&self) -> bool {
        self.filter.chars().count() < FILTER_CHARS_MAX
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.first = 0;
    }

    fn toggle(&mut self, view: View) {
        self.show(if self.view == view { View::Top } else { view });
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.first = 0;
    }

    fn select(&mut self, change: impl FnOnce(&mut Selection)) {
        change(&mut self.selection);
        self.is_outdated = true;
        self.show(View::Top);
    }

    fn scroll(&mut self, code: KeyCode) {
        let count = match self.view {
            View::Top => self.rows().len(),
            View::Misses => self.misses().len(),
            View::Help => usize::MAX,
        };
        let last = count.saturating_sub(self.page);
        self.first = match code {
            KeyCode::Up | KeyCode::Char('k') => self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first.saturating_add(1).min(last),
            KeyCode::PageUp => self.first.saturating_sub(self.page),
            KeyCode::PageDown => self.first.saturating_add(self.page).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => self.first,
        };
        self.shift = match code {
            KeyCode::Left => self.shift.saturating_sub(SHIFT),
            KeyCode::Right => (self.shift + SHIFT).min(NAME_BYTES_MAX),
            _ => self.shift,
        };
    }
}

/// The label so many places further, in a circle.
fn next<L: Label>(label: L, step: isize) -> L {
    let count = L::ALL.len();
    let place = label.index().wrapping_add_signed(step).wrapping_add(count) % count;
    L::ALL[place]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Failure;
    use crate::operate::top::example;
    use weir_measure::live::{TopBy, TopOf};

    const URLS: Selection = Selection {
        of: TopOf::Urls,
        by: TopBy::ToClients,
        rows: 200,
    };

    fn state() -> State {
        State::new("127.0.0.1:1".into(), URLS, example::reading())
    }

    fn press(state: &mut State, keys: &str) -> Answer {
        let mut answer = Answer::Stay;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{8}' => KeyCode::Backspace,
                '\u{1b}' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            answer = state.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        answer
    }

    #[test]
    fn tab_and_s_select_another_table_which_is_read_at_once() {
        let mut state = state();
        assert!(!state.wants_reading());
        for (key, of, by) in [
            ("\t", TopOf::Hosts, TopBy::ToClients),
            ("s", TopOf::Hosts, TopBy::FromNextHops),
            ("S", TopOf::Hosts, TopBy::ToClients),
            ("S", TopOf::Hosts, TopBy::Requests),
            ("S", TopOf::Hosts, TopBy::Errors),
            ("\t\t\t", TopOf::Urls, TopBy::Errors),
        ] {
            assert_eq!(press(&mut state, key), Answer::Stay);
            let selection = state.selection();
            assert_eq!((selection.of, selection.by), (of, by), "{key:?}");
            assert!(state.wants_reading());
        }
        let selection = state.selection();
        state.take((URLS, Ok(example::reading())));
        assert!(state.wants_reading(), "that was of another table");
        state.take((selection, Ok(example::reading())));
        assert!(!state.wants_reading());
    }

    #[test]
    fn filter_leaves_rows_with_their_places() {
        let mut state = state();
        press(&mut state, "/RARE");
        assert!(state.is_editing);
        let places: Vec<_> = state.rows().iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [3]);
        // in a filter it is no command
        assert_eq!(press(&mut state, "q"), Answer::Stay);
        assert!(state.rows().is_empty());
        press(&mut state, "\u{8}\n");
        assert_eq!((state.rows().len(), state.is_editing), (1, false));
        press(&mut state, "\u{1b}");
        assert_eq!(state.rows().len(), 3);
        press(&mut state, &format!("/{}", "x".repeat(1000)));
        assert_eq!(state.filter.len(), FILTER_CHARS_MAX);
    }

    #[test]
    fn nothing_changes_while_it_is_paused() {
        let mut state = state();
        press(&mut state, "p");
        assert!(state.is_paused());
        let mut later = example::reading();
        later.top = None;
        state.take((URLS, Ok(later.clone())));
        assert!(state.reading.top.is_some());
        press(&mut state, " ");
        state.take((URLS, Ok(later)));
        assert!(state.reading.top.is_none());
    }

    #[test]
    fn what_was_read_stays_while_the_proxy_is_not_reached() {
        let mut state = state();
        let fail = |cause: &str| (URLS, Err(Failure::outside("cannot", cause)));
        state.take(fail("nothing listens there"));
        let since = state.problem.clone().expect("a problem").0;
        state.take(fail("what listens there does not answer"));
        let (still, cause) = state.problem.clone().expect("a problem");
        assert_eq!(since, still);
        assert_eq!(cause, "what listens there does not answer");
        assert_eq!(state.rows().len(), 3);
        state.take((URLS, Ok(example::reading())));
        assert!(state.problem.is_none());
    }

    #[test]
    fn q_and_control_c_quit_and_rows_scroll_within_the_table() {
        let mut state = state();
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        press(&mut state, "/x");
        assert_eq!(state.press(control_c), Answer::Quit);
        press(&mut state, "\u{1b}");
        state.page = 2;
        press(&mut state, "jjjj");
        assert_eq!(state.first, 1);
        press(&mut state, "kk");
        assert_eq!(state.first, 0);
        assert_eq!(press(&mut state, "q"), Answer::Quit);
    }
}
