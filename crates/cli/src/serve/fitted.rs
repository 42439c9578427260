//! The start message on a terminal: lines that are broken at spaces, not in words.

use std::io::IsTerminal as _;

/// Columns of a terminal below which its lines are left as they are.
const COLUMNS_MIN: usize = 40;

/// Where lines go on that begin with a word and two spaces: below what stands behind it.
const INDENT: &str = "           ";

/// Before the command to try, which stays whole, to be copied.
const TRY: &str = "  try ";

/// `text` as it fits the terminal of stderr, or as it is without one.
pub(super) fn to_terminal(text: &str) -> String {
    let stderr = std::io::stderr();
    let columns = match stderr.is_terminal() {
        true => rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| size.ws_col),
        false => 0,
    };
    to_columns(text, columns.into())
}

fn to_columns(text: &str, columns: usize) -> String {
    if columns < COLUMNS_MIN {
        return text.to_owned();
    }
    let lines = text.lines().map(|line| match line.starts_with(TRY) {
        true => line.to_owned(),
        false => broken(line, columns),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A word that is longer than a line has one of its own.
fn broken(line: &str, columns: usize) -> String {
    let indent = if line.starts_with("  ") { INDENT } else { "  " };
    let (mut text, mut width) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let shown = word.trim_end().chars().count();
        if width > indent.len() && width + shown > columns {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(indent);
            width = indent.len();
        }
        text.push_str(word);
        width += word.chars().count();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_message_is_broken_at_spaces_where_a_terminal_is_narrow() {
        let text = "weir is ready
  cache    256MiB in memory, s3-fifo, responses up to 25MiB
  try      curl -sD- -o /dev/null -x http://127.0.0.1:3128 http://example.com/
note: 0.0.0.0:3128 can be reached from the network";
        let expected = "weir is ready
  cache    256MiB in memory, s3-fifo,
           responses up to 25MiB
  try      curl -sD- -o /dev/null -x http://127.0.0.1:3128 http://example.com/
note: 0.0.0.0:3128 can be reached from
  the network";
        assert_eq!(to_columns(text, 40), expected);
        assert_eq!(to_columns(text, 200), text);
        assert_eq!(to_columns(text, 0), text, "no terminal");
        let long = format!("  disk     10GiB in /{}", "a".repeat(60));
        let expected = format!("  disk     10GiB in\n{INDENT}/{}", "a".repeat(60));
        assert_eq!(to_columns(&long, 40), expected);
    }
}
