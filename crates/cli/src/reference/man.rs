//! `weir generate man`: a page for each command (section 1) and one for the config file (section
//! 5).
//!
//! The pages have no date, so that the same program makes the same bytes on each day.

use crate::flags::Cli;
use crate::messages::Failure;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;
use std::path::Path;
use weir_proxy::config::{Setting, settings};

/// The directories of the sections, in one of `man`'s path, and the page of the config file.
const COMMANDS: &str = "man1";
const CONFIG_PAGE: &str = "man5/weir.toml.5";

/// What the pages are of.
const SOURCE: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));

/// Writes all pages below this directory, and makes it if it is not there.
///
/// # Errors
///
/// The directory or a file in it cannot be made.
pub(super) fn write(directory: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::output(directory, &error);
    let (commands, file) = (directory.join(COMMANDS), directory.join(CONFIG_PAGE));
    for section in [Some(commands.as_path()), file.parent()] {
        std::fs::create_dir_all(section.unwrap_or(directory)).map_err(failed)?;
    }
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_commands(&command, &commands).map_err(failed)?;
    std::fs::write(&file, config_page()).map_err(|error| Failure::output(&file, &error))
}

/// The page of a command, and those of the commands below it.
fn write_commands(command: &Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_commands(below, directory)?;
    }
    let page = Man::new(command.clone()).source(SOURCE);
    page.generate_to(directory).map(drop)
}

fn config_page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["weir.toml", "5", "", SOURCE, ""])
        .control("SH", ["NAME"])
        .text([roman(
            "weir.toml - config file of the caching HTTP proxy weir",
        )])
        .control("SH", ["DESCRIPTION"])
        .text(inlines(
            "A file in TOML, for `weir serve --config`. Each setting has a default, and the file \
             has those that differ. `weir check FILE` finds mistakes with line and column; `weir \
             serve --config FILE --print-config` prints what is in force; `weir reload` applies a \
             changed file to a running proxy.",
        ))
        .control("PP", [])
        .text(inlines(
            "`a.b` is the key `b` of the table `[a]`, and `a[].b` that of each table `[[a]]`.",
        ))
        .control("SH", ["SETTINGS"]);
    for setting in settings() {
        entry(&setting, &mut page);
    }
    page.control("SH", ["SEE ALSO"])
        .text([bold("weir-serve"), roman("(1), ")])
        .text([bold("weir-check"), roman("(1), ")])
        .text([bold("weir-reload"), roman("(1)")]);
    page.render()
}

fn entry(setting: &Setting, page: &mut Roff) {
    let default = setting.default.as_ref();
    let default = default.map_or("no default".to_owned(), |it| format!("default {it}"));
    let range = match (&setting.minimum, &setting.maximum) {
        (Some(minimum), Some(maximum)) => format!(", from {minimum} to {maximum}"),
        _ => String::new(),
    };
    page.control("SS", [setting.path.as_str()])
        .text([roman(format!("{}: {default}{range}.", setting.form))]);
    for paragraph in setting.reason.split("\n\n") {
        page.control("PP", []).text(inlines(paragraph));
    }
}

/// Text of which what stands between backquotes is bold. Spaces and line ends are as in one line.
fn inlines(text: &str) -> Vec<Inline> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let parts = text.split('`').enumerate();
    let parts = parts.filter(|(_, part)| !part.is_empty());
    parts
        .map(|(n, part)| match n % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}
