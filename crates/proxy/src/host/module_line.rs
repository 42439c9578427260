//! The form of lines that a module writes to the proxy's own log.

use crate::modules::report::push_visible;
use weir_extend::LogLevel;

/// Most bytes of a line; the rest of it is dropped.
const LINE_BYTES_MAX: usize = 2048;

/// A line for the operator, of visible ASCII.
pub(super) fn form(module: &str, level: LogLevel, line: &str, dropped: u64) -> String {
    let mut text = format!("module `{module}`: ");
    if dropped > 0 {
        text.push_str(&format!("({dropped} lines dropped) "));
    }
    text.push_str(match level {
        LogLevel::Debug | LogLevel::Info => "",
        LogLevel::Warning => "warning: ",
        LogLevel::Error => "error: ",
    });
    push_visible(&mut text, line, LINE_BYTES_MAX);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_one_line_of_visible_ascii_with_the_name_of_its_module() {
        let check = |line: &str, expected: &str| {
            assert_eq!(form("m", LogLevel::Info, line, 0), expected);
        };
        check("text \"x\"\n", "module `m`: text \"x\"");
        check("a\r\nnote: b\t\0", "module `m`: a\\r\\nnote: b\\t\\u{0}");
        check("\u{1b}[31m\u{202e}", "module `m`: \\u{1b}[31m\\u{202e}");
        let line = form("m", LogLevel::Error, &"x".repeat(9999), 3);
        assert!(line.starts_with("module `m`: (3 lines dropped) error: xx"));
        assert!(line.len() < LINE_BYTES_MAX + 64 && line.ends_with("x..."));
    }
}
