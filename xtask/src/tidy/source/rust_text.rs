//! Rust source seen as a rule sees it: comments and literals blanked out, and each line marked as
//! test code or not.
//!
//! This is a small scanner and no parser: it knows comments (nested), strings (raw ones too),
//! characters and lifetimes, and finds the item behind a `#[cfg(test)]` by its braces. That is
//! enough to distinguish `std::` in code from `std::` in prose.

use crate::tidy::tree::File;
use std::collections::BTreeSet;

/// A Rust file prepared for the rules that read code.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a File,
    /// One entry for each line: what is left of it without comments and the inside of literals.
    pub(crate) code: Vec<String>,
    /// One entry for each line: whether only tests compile it.
    pub(crate) is_test: Vec<bool>,
}

impl<'a> Source<'a> {
    /// `whole_is_test` is for a file that is test code because of its directory or of the module
    /// that includes it.
    pub(crate) fn new(file: &'a File, whole_is_test: bool) -> Self {
        let masked = mask(&file.text);
        let is_test = if whole_is_test {
            vec![true; masked.lines().count()]
        } else {
            test_lines(&masked).is_test
        };
        Self {
            file,
            code: masked.lines().map(str::to_owned).collect(),
            is_test,
        }
    }

    /// Code lines with their numbers (from 1) and whether they are test code.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        self.code
            .iter()
            .zip(&self.is_test)
            .zip(1..)
            .map(|((code, is_test), number)| (number, code.as_str(), *is_test))
    }
}

/// Prepares every Rust file; a file included as `#[cfg(test)] mod name;` is test code as a whole.
pub(crate) fn sources(files: &[File]) -> Vec<Source<'_>> {
    let rust = || files.iter().filter(|file| file.is_rust());
    let mut test_files = BTreeSet::new();
    for file in rust() {
        for module in test_lines(&mask(&file.text)).modules {
            test_files.extend(module_paths(&file.path, &module));
        }
    }
    rust()
        .map(|file| {
            let by_place = file.path.split('/').any(|part| part == "tests");
            Source::new(file, by_place || test_files.contains(&file.path))
        })
        .collect()
}

/// The two files that `mod name;` in `path` can mean.
fn module_paths(path: &str, module: &str) -> [String; 2] {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let base = match file {
        "lib.rs" | "main.rs" | "mod.rs" => directory.to_owned(),
        _ => format!("{directory}/{}", file.trim_end_matches(".rs")),
    };
    [
        format!("{base}/{module}.rs"),
        format!("{base}/{module}/mod.rs"),
    ]
}

/// Whether `word` stands at byte `at` of `code` as a word of its own.
pub(crate) fn is_word_at(code: &str, at: usize, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code[at..].starts_with(word)
        && !code[..at].ends_with(part_of_name)
        && !code[at + word.len()..].starts_with(part_of_name)
}

/// Whether `code` has `word` as a word of its own.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word)
        .any(|(at, _)| is_word_at(code, at, word))
}

/// Replaces comments and the inside of literals by spaces; lines and columns stay.
pub(crate) fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/')) => end_of_line(&chars, at),
            ('/', Some('*')) => end_of_block(&chars, at),
            ('"', _) => end_of_string(&chars, at),
            ('r', Some('"' | '#')) if begins_word(&chars, at) => end_of_raw(&chars, at),
            ('\'', _) => end_of_character(&chars, at),
            _ => at,
        };
        if end == at {
            masked.push(chars[at]);
            at += 1;
            continue;
        }
        masked.extend(
            chars[at..end]
                .iter()
                .map(|&c| if c == '\n' { c } else { ' ' }),
        );
        at = end;
    }
    masked
}

fn begins_word(chars: &[char], at: usize) -> bool {
    // `br"…"` is a raw string as well
    let before = match at.checked_sub(1).map(|i| chars[i]) {
        Some('b') => at.checked_sub(2).map(|i| chars[i]),
        other => other,
    };
    before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(chars.len(), |length| at + length)
}

fn end_of_block(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut at = at;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut at = at + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r"…"`, `r#"…"#`, …; `r#name` is an identifier and stays.
fn end_of_raw(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let mut at = open + 1;
    while at < chars.len() {
        if chars[at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    chars.len()
}

/// `'x'` and `'\n'` are literals, `'a` is a lifetime and stays.
fn end_of_character(chars: &[char], at: usize) -> usize {
    if chars.get(at + 1) == Some(&'\\') {
        let close = chars.iter().skip(at + 3).position(|&c| c == '\'');
        return close.map_or(at, |length| at + 3 + length + 1);
    }
    if chars.get(at + 2) == Some(&'\'') {
        at + 3
    } else {
        at
    }
}

struct TestLines {
    is_test: Vec<bool>,
    /// Names of `#[cfg(test)] mod name;`.
    modules: Vec<String>,
}

fn test_lines(masked: &str) -> TestLines {
    let line_count = masked.lines().count();
    if masked.contains("#![cfg(test)]") {
        return TestLines {
            is_test: vec![true; line_count],
            modules: Vec::new(),
        };
    }
    let mut found = TestLines {
        is_test: vec![false; line_count],
        modules: Vec::new(),
    };
    for (at, _) in masked.match_indices("#[cfg(") {
        let condition = masked[at..].split(']').next().unwrap_or_default();
        if !has_word(condition, "test") || condition.contains("not(test") {
            continue;
        }
        let item = at + condition.len() + 1;
        let end = end_of_item(masked, item);
        if let Some(module) = included_module(&masked[item..end]) {
            found.modules.push(module);
        }
        let first = masked[..at].matches('\n').count();
        let last = masked[..end].matches('\n').count();
        found.is_test[first..line_count.min(last + 1)].fill(true);
    }
    found
}

/// Behind the closing brace of the item's body, or behind its `;`.
fn end_of_item(masked: &str, start: usize) -> usize {
    let mut depth = 0_u32;
    for (offset, c) in masked[start..].char_indices() {
        match c {
            ';' if depth == 0 => return start + offset + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return start + offset + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    masked.len()
}

fn included_module(item: &str) -> Option<String> {
    let head = item.trim().strip_suffix(';')?;
    let mut words = head
        .split_whitespace()
        .skip_while(|&word| word != "mod")
        .skip(1);
    words.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(mask(text), expected, "{text}");
    }

    #[test]
    fn comments_and_literals_are_masked() {
        check("a // std::b\nc", "a          \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("a\"b") g"#, "f(      ) g");
        check("f(r#\"a\"b\"#) g", "f(        ) g");
        check("f(br\"\\\") g", "f(b    ) g");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_kept_as_code() {
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("let r#type = '\"';", "let r#type =    ;");
        check(r"let c = '\''; d", "let c =     ; d");
    }

    fn check_test_lines(text: &str, expected: &[usize]) {
        let file = File::new("crates/x/src/lib.rs", text);
        let source = Source::new(&file, false);
        let found: Vec<usize> = source
            .lines()
            .filter(|(_, _, is_test)| *is_test)
            .map(|(number, _, _)| number)
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn only_the_item_under_cfg_test_is_test_code() {
        check_test_lines(
            "a();\n#[cfg(test)]\nmod tests {\n  b();\n}\nc();\n",
            &[2, 3, 4, 5],
        );
        check_test_lines("#[cfg(test)]\nuse a::b;\nc();\n", &[1, 2]);
        check_test_lines("#[cfg(not(test))]\nmod live {\n}\n", &[]);
        check_test_lines("#![cfg(test)]\na();\n", &[1, 2]);
        check_test_lines("#![cfg_attr(not(test), no_std)]\na();\n", &[]);
    }

    #[test]
    fn file_included_by_a_test_module_is_test_code() {
        let files = [
            File::new("crates/x/src/head.rs", "#[cfg(test)]\nmod table;\n"),
            File::new("crates/x/src/head/table.rs", "a();\n"),
            File::new("crates/x/src/table.rs", "a();\n"),
            File::new("crates/x/tests/live.rs", "a();\n"),
        ];
        let whole: Vec<bool> = sources(&files)
            .iter()
            .map(|source| source.is_test[0])
            .collect();
        assert_eq!(whole, [true, true, false, true]);
    }

    #[test]
    fn word_is_matched_only_as_a_whole_identifier() {
        assert!(has_word("use std::io;", "std"));
        assert!(!has_word("use no_std::io;", "std"));
        assert!(!has_word("use stdx::io;", "std"));
    }
}
