//! The terminal: what is read each second as a full screen, and keys that change what is shown.
//!
//! A thread reads, so that keys are answered while a proxy is not. The terminal is as it was when
//! this ends, also by an error, a panic, SIGINT, SIGTERM or SIGQUIT.

mod draw;
mod reader;
mod state;
mod terminal;

use super::reading::{Selection, Source};
use crate::messages::Failure;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use reader::Reader;
use state::{Answer, State};
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};
use terminal::{Signals, Terminal};

/// Between the end of a reading and the next one.
const BETWEEN_READINGS: Duration = Duration::from_secs(1);

/// How long keys are waited for, before readings and signals are looked at.
const KEYS_WAIT: Duration = Duration::from_millis(50);

/// Rows of heavy hitters that are read: a filter has something to choose from.
const ROWS: usize = 200;

/// Whether keys can be read, and a screen drawn.
pub(super) fn has_terminal() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows what `source` gives until a key or a signal ends it.
///
/// # Errors
///
/// Nothing can be read at the start, or the terminal fails.
pub(super) fn run(source: Source, selection: Selection) -> Result<(), Failure> {
    let selection = Selection {
        rows: ROWS,
        ..selection
    };
    // what is wrong at the start is said in lines that stay
    let first = source.read_first(selection)?;
    let mut state = State::new(source.address(), selection, first);
    let failed = |error| Failure::outside("cannot use the terminal", error);
    let signals = Signals::watch().map_err(failed)?;
    let reader = Reader::start(source).map_err(failed)?;
    let mut terminal = Terminal::open().map_err(failed)?;
    let shown = show(&mut terminal, &signals, &reader, &mut state);
    // before anything is written to the terminal
    drop(terminal);
    shown.map_err(failed)
}

fn show(
    terminal: &mut Terminal,
    signals: &Signals,
    reader: &Reader,
    state: &mut State,
) -> io::Result<()> {
    let mut due = Instant::now() + BETWEEN_READINGS;
    let mut is_reading = false;
    while !signals.have_come() {
        if let Some(result) = reader.take() {
            is_reading = false;
            due = Instant::now() + BETWEEN_READINGS;
            state.take(result);
        }
        if state.wants_reading() && !is_reading {
            due = Instant::now();
        }
        if !state.is_paused() && !is_reading && Instant::now() >= due {
            is_reading = reader.begin(state.selection());
        }
        terminal.draw(state)?;
        if event::poll(KEYS_WAIT)?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && state.press(key) == Answer::Quit
        {
            break;
        }
    }
    Ok(())
}
