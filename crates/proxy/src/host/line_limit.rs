//! Lines that a module writes to the proxy's own log: how many, and in which form.

use crate::modules::report::push_visible;
use weir_extend::LogLevel;
use weir_policy::Tick;

/// Lines that one module may write on one worker within a second; further ones are dropped, and
/// counted.
const LINES_PER_SECOND_MAX: u32 = 20;

/// Most bytes of a line; the rest of it is dropped.
const LINE_BYTES_MAX: usize = 2048;

/// How many lines were written lately.
#[derive(Debug, Default)]
pub(super) struct LineLimit {
    second: u64,
    written: u32,
    /// Since a line was written.
    dropped: u64,
}

impl LineLimit {
    /// Whether a line may be written now: with the lines that were dropped before it.
    pub(super) fn permit(&mut self, now: Tick) -> Option<u64> {
        let second = now.0 / 1000;
        if second != self.second {
            self.second = second;
            self.written = 0;
        }
        if self.written >= LINES_PER_SECOND_MAX {
            self.dropped += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

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

    #[test]
    fn module_writes_20_lines_a_second_and_learns_how_many_were_dropped() {
        let mut limit = LineLimit::default();
        for _ in 0..20 {
            assert_eq!(limit.permit(Tick(999)), Some(0));
        }
        assert_eq!(limit.permit(Tick(999)), None);
        assert_eq!(limit.permit(Tick(999)), None);
        assert_eq!(limit.permit(Tick(1000)), Some(2));
        assert_eq!(limit.permit(Tick(1000)), Some(0));
    }
}
